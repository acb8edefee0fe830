// Package device measures models on boards: [Measure] listens to firmware that reports the time of
// each operator, over a serial port, a network connection or a recording. [NewProgram] turns a
// quantised model into C sources for a board.
package device

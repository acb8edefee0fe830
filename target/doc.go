// Package target lists the hardware that models can be estimated on: [Load] returns the built-in
// chips and those of target files, [Target.Estimate] predicts time and memory of a model,
// [Target.Calibrate] fits a target to measurements of a board.
package target

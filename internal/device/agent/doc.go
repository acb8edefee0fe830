// Package agent is the host's side of the opmeter agent (firmware/opmeter.h): frames from a stream
// with other output between them, inferences from frames, figures from inferences.
// docs/reference/agent.md describes the format.
//
// Nothing is made of what may be wrong: a frame with a false check is lost, the sequence of frames
// tells which inference lost one, and an inference that did is marked.
package agent

// Package opmeter profiles neural-network models: for any .tflite or .onnx file,
// where do time and memory go, operator by operator?
//
// [Open] reads a model, [Profile] runs it on this computer and measures every
// operator, [Count] reports what follows from the model alone, [Estimate] says what
// to expect of a chip that is absent. All return a [profile.Profile], which holds
// figures with their spread, the settings and the machine, and can be saved, encoded
// as JSON and read again.
//
// The engine is part of the package: plain Go, no cgo, nothing to install.
//
// Packages beside it have a topic each: engine (external engines), target (chips), device (boards),
// record (profiles of other tools), compress (pruning and quantisation).
package opmeter

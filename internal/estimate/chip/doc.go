// Package chip describes hardware as data: chips on which models can be estimated, written in
// YAML.
//
// Known chips are embedded in the binary as a table generated from the files in chips; [Load]
// adds the files of a folder. The descriptions hold facts and fitted coefficients with their
// cross-validation error. The figures are interpreted by the models in packages mvp (a matrix
// accelerator), cortexm (processors) and tflm (memory).
//
// The package imports the YAML reader and internal/model/graph, and computes nothing.
package chip

//go:generate go run ../../../tools/chips -data= -out chips

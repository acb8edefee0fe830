// Package chip describes hardware on which a model can be estimated without
// having it: chips as data, written in YAML.
//
// Known chips are part of the binary as a table that is made from the files in chips;
// [Load] adds the files of a folder.
// The descriptions hold facts and fitted coefficients with the error that
// cross-validation found. What the figures mean is the business of the models
// in the packages beside: mvp (a matrix accelerator), cortexm (processors),
// tflm (memory).
//
// The package imports the YAML reader and internal/model/graph, and computes nothing.
package chip

//go:generate go run ../../../tools/chips -data= -out chips

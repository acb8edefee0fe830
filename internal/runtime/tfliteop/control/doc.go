// Package control implements TFLite's control flow, calls of subgraphs, resources (variables and
// hash tables) and random numbers: operators that need more of the engine than their tensors.
package control

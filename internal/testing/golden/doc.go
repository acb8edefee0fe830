// Package golden compares the engine with recorded results of other engines.
//
// The material (see internal/testing/material) holds, for each model and engine, the
// outputs for made inputs, and for the integer reference kernels the hash of
// every operator's output. Only tests and benchmarks import this package.
package golden

// Package stablehlo holds the StableHLO operators that TFLite files may contain
// beside its own: element-wise arithmetic, data movement, gathers, scatters and
// reductions. Their shapes are static. Control flow and composites are in
// internal/runtime/tfliteop/control. TensorFlow operators that mean the same (Flex) are here too.
package stablehlo

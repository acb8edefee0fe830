// Package quantise converts integer sums to quantised values or float32. Functions do not check
// their arguments: operators check shapes.
//
//	requantise_tflite.go  fixed-point multipliers, TFLite's rounding
//	requantise_onnx.go    float32 scales, ONNX's rounding
//	dequantise.go         sums to float32 (hybrid layers)
//	binary.go             sums, differences and products of two quantised operands
//	weights.go            element types of integer weights
package quantise

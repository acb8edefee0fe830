// Package quantise converts integer sums to quantised values or float32: fixed-point multipliers
// with TFLite's rounding, float32 scales with ONNX's rounding, binary operators on quantised
// operands. Functions do not check their arguments: operators check shapes.
//
//	requantise_tflite.go  fixed-point multipliers, TFLite's rounding
//	requantise_onnx.go    float32 scales, ONNX's rounding
//	dequantise.go         sums to float32 (hybrid layers)
//	binary.go             sums, differences and products of two quantised operands
//	weights.go            element types of integer weights
package quantise

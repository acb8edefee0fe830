// Package weights finds the weights of a model: constants that its operators multiply with. It
// presents them as matrices from inputs to outputs, whatever their layout in the file.
//
// One table lists the weight operands of the operators of both formats, and their layouts.
// Between a constant and its operator there may be nodes that move or convert single elements:
// Transpose, Reshape, Cast, DequantizeLinear and the like. Quantised values are read with their
// scales and zero points.
package weights

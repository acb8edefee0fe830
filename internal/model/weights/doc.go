// Package weights finds the weights of a model: constants that its operators multiply
// with, seen as matrices that take inputs to outputs, wherever they lie in the file.
//
// One table says at which operands the operators of both formats have weights and how
// they are laid out. Between a constant and its operator may stand what moves or
// converts elements one by one: Transpose, Reshape, Cast, DequantizeLinear and the like.
// Integers are numbers by their scales and zero points.
package weights

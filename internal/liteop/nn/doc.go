// Package nn holds TFLite's arithmetic layers in float and in the integer
// arithmetic of the TFLite Micro reference kernels, bit for bit.
package nn

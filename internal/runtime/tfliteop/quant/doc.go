// Package quant holds TFLite's operators that quantise and take codes back to real
// numbers.
package quant

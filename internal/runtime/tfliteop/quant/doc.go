// Package quant implements TFLite's operators that quantise and dequantise.
package quant

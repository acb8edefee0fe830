// Package attention implements ONNX's multi-head attention, rotary embeddings and other operators
// on sequences of tokens.
package attention

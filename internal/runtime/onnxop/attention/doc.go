// Package attention holds ONNX's attention over heads, rotary embeddings and what
// else works on sequences of tokens.
package attention

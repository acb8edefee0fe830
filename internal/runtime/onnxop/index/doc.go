// Package index implements ONNX's operators that select, scatter, sort and count elements: the
// gather and scatter families, TopK, Unique, NonZero, Compress and OneHot.
package index

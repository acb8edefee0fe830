// Package protoread walks protocol-buffer messages without generated code, copies or panics.
// Every read is checked against the end of its message, nesting is bounded, and each field knows
// its byte offset in the file, so that errors can name it.
//
// It is independent of any schema. The low-level decoding is protowire's.
package protoread

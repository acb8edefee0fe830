// Package protoread walks protocol-buffer messages without generated code, copies or
// panics: every read is checked against the end of its message, nesting is
// bounded, and each field knows its byte offset in the file, so that a reader
// can say where a bad file is bad.
//
// It knows nothing of any schema. The low-level decoding is protowire's.
package protoread

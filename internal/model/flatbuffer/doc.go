// Package flatbuffer reads and writes FlatBuffers without generated code.
//
// The reader is for files from strangers. Every offset is checked, nothing
// panics, and the first thing found wrong is kept as an [Error] that names the
// table path, the field and the byte offset. It is sticky: after an error all
// accessors return zero values and empty vectors, so that a decoder may look at
// [Reader.Err] once at the end.
//
// A file can point at the same bytes from many places. A budget, a small
// multiple of the file's size, bounds the bytes that are visited in total, so
// that neither time nor memory can grow beyond the size of the file.
//
// The package imports nothing of the project.
package flatbuffer

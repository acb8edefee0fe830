// Package flatbuffer reads and writes FlatBuffers without generated code.
//
// The reader is for untrusted files. Every offset is checked, nothing panics, and the first
// defect is kept as an [Error] with the table path, the field and the byte offset. It is sticky:
// after an error all accessors return zero values and empty vectors, so a decoder may check
// [Reader.Err] once at the end.
//
// A file can refer to the same bytes from many places. A budget, a small multiple of the file
// size, bounds the bytes visited in total, so that time and memory stay proportional to the file
// size.
//
// The package imports nothing of the project.
package flatbuffer

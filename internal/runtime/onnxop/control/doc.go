// Package control implements ONNX's control flow (If, Loop, Scan, SequenceMap) and its
// containers: sequences and optionals. Elements of containers are never written after creation,
// so containers share them.
package control

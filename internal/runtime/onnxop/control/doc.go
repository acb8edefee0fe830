// Package control holds ONNX's control flow (If, Loop, Scan, SequenceMap) and
// the containers that go with it: sequences and optionals. Elements of
// containers are never written after they were made, so containers share them.
package control

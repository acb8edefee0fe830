//go:build (linux && !android && (amd64 || arm64 || riscv64 || loong64)) || (darwin && !ios && (amd64 || arm64)) || (windows && (amd64 || arm64))

package onnxruntime

import "github.com/ebitengine/purego"

// invoke calls a function of C with whole numbers and addresses. What their addresses
// are of must stay where it is: pinned, or an argument of a function marked uintptrescapes.
//
//go:uintptrescapes
func invoke(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

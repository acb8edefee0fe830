//go:build (linux && !android && (amd64 || arm64 || riscv64 || loong64)) || (darwin && !ios && (amd64 || arm64)) || (windows && (amd64 || arm64))

package onnxruntime

import "github.com/ebitengine/purego"

// invoke calls a C function with integers and addresses. Go memory behind the addresses must not
// move: it is pinned, or an argument of a function marked uintptrescapes.
//
//go:uintptrescapes
func invoke(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

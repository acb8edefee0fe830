//go:build (linux && !android && (amd64 || arm64 || riscv64 || loong64)) || (darwin && !ios && (amd64 || arm64))

package onnxruntime

import "github.com/ebitengine/purego"

// symbol opens a library and returns the address of a function.
func symbol(library, name string) (addr uintptr, opened bool, err error) {
	h, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, false, err
	}
	addr, err = purego.Dlsym(h, name)
	return addr, true, err
}

// path returns a path in the library's encoding.
func path(s string) []byte { return text(s) }

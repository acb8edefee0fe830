//go:build (darwin || linux) && (amd64 || arm64 || (linux && riscv64))

package litert

import "github.com/ebitengine/purego"

func open(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func find(library uintptr, name string) (uintptr, error) { return purego.Dlsym(library, name) }

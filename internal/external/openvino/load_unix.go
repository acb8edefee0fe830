//go:build (linux || darwin) && (amd64 || arm64)

package openvino

import "github.com/ebitengine/purego"

// openLibrary opens a shared library. Its dependencies are found through its RPATH, which wheels
// and archives set to its folder, or in the system's folders.
func openLibrary(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(handle uintptr, name string) uintptr {
	p, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return p
}

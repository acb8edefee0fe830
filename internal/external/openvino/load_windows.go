//go:build windows && (amd64 || arm64)

package openvino

import "golang.org/x/sys/windows"

// openLibrary opens a shared library. Its dependencies are searched in its folder, too.
func openLibrary(path string) (uintptr, error) {
	h, err := windows.LoadLibraryEx(path, 0, windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR|windows.LOAD_LIBRARY_SEARCH_DEFAULT_DIRS)
	return uintptr(h), err
}

func symbol(handle uintptr, name string) uintptr {
	p, err := windows.GetProcAddress(windows.Handle(handle), name)
	if err != nil {
		return 0
	}
	return p
}

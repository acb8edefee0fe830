//go:build windows && (amd64 || arm64)

package onnxruntime

import (
	"encoding/binary"
	"unicode/utf16"

	"golang.org/x/sys/windows"
)

// symbol opens a library and returns the address of a function. Its dependencies are searched
// beside it.
func symbol(library, name string) (addr uintptr, opened bool, err error) {
	h, err := windows.LoadLibraryEx(library, 0, windows.LOAD_WITH_ALTERED_SEARCH_PATH)
	if err != nil {
		return 0, false, err
	}
	addr, err = windows.GetProcAddress(h, name)
	return addr, true, err
}

// path returns a path in the library's encoding: UTF-16.
func path(s string) []byte {
	var out []byte
	for _, u := range append(utf16.Encode([]rune(s)), 0) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return out
}

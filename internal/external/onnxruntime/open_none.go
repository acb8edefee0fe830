//go:build !((linux && !android && (amd64 || arm64 || riscv64 || loong64)) || (darwin && !ios && (amd64 || arm64)) || (windows && (amd64 || arm64)))

package onnxruntime

import "errors"

func symbol(string, string) (addr uintptr, opened bool, err error) {
	return 0, false, errors.New("libraries cannot be opened on this system")
}

func invoke(uintptr, ...uintptr) uintptr { return 0 }

func path(s string) []byte { return text(s) }

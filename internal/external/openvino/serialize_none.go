//go:build (darwin || windows) && (amd64 || arm64)

package openvino

import (
	"errors"
	"os"
)

// writer would call ov::serialize: only where the C++ library's layouts are those of GNU.
type writer struct{}

func findWriter(uintptr, string) *writer { return nil }

func (*writer) write(uintptr, string, string) (*os.File, error) { return nil, errors.ErrUnsupported }

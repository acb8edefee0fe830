//go:build !((darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64)))

package tflite

import (
	"runtime"

	"github.com/opmeter/opmeter/internal/external"
)

// Open opens a library by its path, which is not possible on this platform.
func Open(path string) (external.Library, error) {
	return nil, external.Errorf(external.NotLibrary, "%s: libraries of TensorFlow Lite cannot be opened on %s/%s.", path, runtime.GOOS, runtime.GOARCH)
}

//go:build !((darwin || freebsd || linux || windows) && (amd64 || arm64 || (linux && riscv64)))

package tflite

import (
	"runtime"

	"github.com/opmeter/opmeter/internal/guest"
)

// Open opens a library by its path, which is not possible on this platform.
func Open(path string) (guest.Library, error) {
	return nil, guest.Errorf(guest.NotLibrary, "%s: libraries of TensorFlow Lite cannot be opened on %s/%s.", path, runtime.GOOS, runtime.GOARCH)
}

//go:build !((darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64)))

package litert

import (
	"runtime"

	"github.com/opmeter/opmeter/internal/external"
)

// Open returns an error: libraries cannot be opened on this platform.
func Open(path string) (external.Library, error) {
	return nil, external.Errorf(external.NotLibrary, "%s: libraries of LiteRT cannot be opened on %s/%s.", path, runtime.GOOS, runtime.GOARCH)
}

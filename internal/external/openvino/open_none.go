//go:build !((linux || darwin || windows) && (amd64 || arm64))

package openvino

import (
	"runtime"

	"github.com/opmeter/opmeter/internal/external"
)

// Open refuses: there is no OpenVINO for this system.
func Open(library string) (external.Library, error) {
	return nil, external.Errorf(external.NotLibrary, "%s: OpenVINO cannot be opened on %s/%s; use linux, darwin or windows on amd64 or arm64", library, runtime.GOOS, runtime.GOARCH)
}

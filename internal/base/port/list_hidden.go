//go:build !linux

package port

import (
	"path/filepath"
	"strings"
)

// hidden reports whether a name is one of the system's own: on macOS the half of each
// device that waits for a call, and ports that have nothing to do with devices.
func hidden(name string) bool {
	b := filepath.Base(name)
	if strings.HasPrefix(b, "tty.") {
		return true
	}
	switch strings.TrimPrefix(b, "cu.") {
	case "Bluetooth-Incoming-Port", "debug-console", "wlan-debug":
		return true
	}
	return false
}

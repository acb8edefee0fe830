//go:build !linux

package port

import (
	"path/filepath"
	"strings"
)

// hidden reports whether a port is internal to the system: on macOS the call-in half of each
// device, and ports that are not devices.
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

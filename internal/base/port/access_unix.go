//go:build darwin || freebsd || openbsd

package port

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// access reports whether this user may open a device.
func access(path string) Access {
	if unix.Access(path, unix.R_OK|unix.W_OK) != nil {
		return Denied
	}
	return Allowed
}

// terminal is unknown without opening the device.
func terminal(fs.FileInfo) bool { return true }

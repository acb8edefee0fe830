//go:build !linux && !darwin && !freebsd && !openbsd && !windows

package port

// connected lists nothing: serial ports are not supported on this system.
func connected() ([]Info, error) { return nil, nil }

//go:build !linux && !darwin && !freebsd && !openbsd

package port

// access cannot be told without opening the device.
func access(string) Access { return NotChecked }

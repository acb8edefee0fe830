//go:build !linux && !darwin

package wire

import "testing"

// Open skips the test: there are no pseudo-terminals here.
func (l Line) Open(t testing.TB, _ Device) (path string, unplug func()) {
	t.Helper()
	t.Skip("there are no pseudo-terminals on this system")
	return "", nil
}

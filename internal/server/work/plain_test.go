package work

import (
	"path/filepath"
	"testing"
)

// Errors name files as the user does, and no flag of the child.
func TestPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "1", "a.txt")
	got := plain(file+": no known format: opmeter import --list shows them, --from NAME skips the detection", dir)
	if want := "a.txt: no known format: opmeter import --list shows them"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestMany: one of many files appears complete or not at all, as every file does.
func TestMany(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	boom := errors.New("boom")
	for _, fails := range []error{nil, boom} {
		err := Many(path, func(w io.Writer) error {
			if _, err := io.WriteString(w, "new"); err != nil {
				return err
			}
			return fails
		})
		if !errors.Is(err, fails) {
			t.Errorf("%v, want %v", err, fails)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
			t.Errorf("holds %q, %v", got, err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
			t.Errorf("%v files, %v", left, err)
		}
	}
}

package subprocess

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFolder makes a folder that is not swept while it is in use.
func TestFolder(t *testing.T) {
	t.Parallel()
	path, remove, err := Folder("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "x"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	sweep(filepath.Dir(path))
	if _, err := os.Stat(filepath.Join(path, "x")); err != nil {
		t.Errorf("a folder in use was swept: %v", err)
	}
	remove()
	remove() // a second time does no harm
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestSweep removes what a killed process left, and nothing else.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := func(name, lock string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(path, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		if lock != "" {
			if err := os.WriteFile(filepath.Join(path, lock), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	gone := []string{folder("opmeter-engine-1", lockName), folder("opmeter-2", lockName)}
	stay := []string{folder("opmeter-3", ""), folder("opmeter-4", "other"), folder("other-5", lockName)}
	link := filepath.Join(dir, "opmeter-link")
	if err := os.Symlink(stay[2], link); err == nil {
		stay = append(stay, link)
	}
	linked := folder("opmeter-6", "")
	if err := os.Symlink(filepath.Join(stay[2], lockName), filepath.Join(linked, lockName)); err == nil {
		stay = append(stay, linked)
	}
	sweep(dir)
	for _, path := range gone {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", filepath.Base(path), err)
		}
	}
	for _, path := range stay {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was removed: %v", filepath.Base(path), err)
		}
	}
	sweep(filepath.Join(dir, "absent"))
}

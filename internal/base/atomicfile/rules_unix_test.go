//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// New files have the rights that the umask leaves, others keep theirs. The umask belongs
// to the process, so that nothing runs beside this test.
func TestRights(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		umask int
		old   fs.FileMode // 0 for no older file
		want  fs.FileMode
	}{
		{0o022, 0, 0o644},
		{0o077, 0, 0o600},
		{0o002, 0, 0o664},
		{0o000, 0, 0o666},
		{0o022, 0o600, 0o600},
		{0o077, 0o664, 0o664},
		{0o022, 0o444, 0o444},
		{0o022, 0o755, 0o755},
	} {
		path := filepath.Join(dir, "x")
		if tt.old != 0 {
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.old); err != nil {
				t.Fatal(err)
			}
		}
		before := syscall.Umask(tt.umask)
		err := errors.Join(Check(path), Write(path, []byte("new")))
		syscall.Umask(before)
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.Mode().Perm(); got != tt.want {
			t.Errorf("umask %o, older file %o: %o, want %o", tt.umask, tt.old, got, tt.want)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
			t.Errorf("%+v: %q, %v", tt, b, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What is not a file is never replaced by one, and the input never by the output.
func TestTargets(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("model"), []byte("m"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(in("model"), in("link")), os.Symlink(in("nothing"), in("dangling")), os.Link(in("model"), in("second name")), os.Mkdir(in("folder"), 0o755), syscall.Mkfifo(in("pipe"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		in("link"): "is a link", in("dangling"): "is a link", in("folder"): "is a folder", in("pipe"): "is a pipe", os.DevNull: "is a device",
		in("none/x"): "no such file", in("model/x"): "not a directory",
	} {
		for what, err := range map[string]error{"check": Check(name), "write": Write(name, []byte("x"))} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "write "+name+": ") {
				t.Errorf("%s of %s: %v, want %q", what, name, err, want)
			}
		}
	}
	for name, want := range map[string]bool{in("model"): true, in("second name"): true, in("folder/../model"): true, in("new"): false} {
		if err := Check(name, in("nothing"), in("model")); errors.Is(err, ErrInput) != want || err != nil != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(in("model")); err != nil || string(b) != "m" {
		t.Errorf("the model is %q, %v", b, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 6 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A folder that may not be written to is told before the work.
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is forbidden to the superuser")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := Check(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

//go:build unix

package onnx

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// hub lays a model out as the cache of a model hub does: the files of a revision are links to
// blobs. It returns the path of the model in the revision.
func hub(t *testing.T, data []byte) (path, blobs string) {
	t.Helper()
	root := t.TempDir()
	blobs, revision := filepath.Join(root, "blobs"), filepath.Join(root, "snapshots", "r1", "onnx")
	for _, dir := range []string{blobs, revision} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"m.onnx": data, "w.bin": {1, 2, 3, 4, 5, 6, 7, 8}} {
		if err := os.WriteFile(filepath.Join(blobs, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../../../blobs/"+name, filepath.Join(revision, name)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(revision, "m.onnx"), blobs
}

// TestHubCache reads external data behind links that lead out of the model's folder: of the file,
// and of a folder in the location.
func TestHubCache(t *testing.T) {
	t.Parallel()
	of := func(location string) []byte {
		return model(externalTensor(2, "location", location, "length", "8"), input("x"), node("Add y = x w"), output("y"))
	}
	for _, location := range []string{"w.bin", "folder/w.bin"} {
		path, blobs := hub(t, of(location))
		if err := os.Symlink(blobs, filepath.Join(filepath.Dir(path), "folder")); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			t.Fatalf("%s: %v", location, err)
		}
		w := m.Main().Values[0]
		for _, v := range m.Main().Values {
			if v.Name == "w" {
				w = v
			}
		}
		if w.Const == nil || string(w.Const.Data) != "\x01\x02\x03\x04\x05\x06\x07\x08" || m.BesideBytes != 8 {
			t.Errorf("%s: %+v of %d bytes", location, w.Const, m.BesideBytes)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOtherOwner refuses a link to a file of another user, and to what is not a file.
func TestOtherOwner(t *testing.T) {
	t.Parallel()
	data := model(externalTensor(2, "location", "w.bin"), input("x"), node("Add y = x w"), output("y"))
	path, blobs := hub(t, data)
	if err := os.Remove(filepath.Join(blobs, "w.bin")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(blobs, "w.bin"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), `location "w.bin" is a link`) {
		t.Errorf("a pipe: %v", err)
	}
	path, blobs = hub(t, data)
	if err := os.Chown(filepath.Join(blobs, "w.bin"), 12345, -1); err != nil {
		t.Skip("only the superuser can give a file away")
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "another owner") {
		t.Errorf("of another owner: %v", err)
	}
}

// TestLinkLoop refuses external data behind links that lead back to themselves, in plain words.
func TestLinkLoop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	data := model(externalTensor(2, "location", "a.bin", "length", "8"), input("x"), node("Add y = x w"), output("y"))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"a.bin": "b.bin", "b.bin": "a.bin"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(path)
	if err == nil || !strings.Contains(err.Error(), `"a.bin" is a link that leads back to itself`) || strings.Contains(err.Error(), "EvalSymlinks") {
		t.Errorf("%v", err)
	}
}

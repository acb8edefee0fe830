package mapped

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	want := make([]byte, 1<<18+123)
	for i := range want {
		want[i] = byte(i * 7 / 3)
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	for _, c := range []struct {
		name   string
		lo, hi int
	}{{"whole", 0, len(want)}, {"inner", 5, 100_000}, {"end", 4096, len(want)}, {"less than a page", 10, 20}, {"nothing", 7, 7}} {
		if !bytes.Equal(m.Data, want) {
			t.Fatalf("%s: other bytes before", c.name)
		}
		Release(m.Data[c.lo:c.hi])
		if !bytes.Equal(m.Data, want) {
			t.Errorf("%s: other bytes after", c.name)
		}
	}
	// What no file holds keeps its bytes, and so does a file that could not be mapped.
	own := bytes.Clone(want)
	Release(own)
	if !bytes.Equal(own, want) {
		t.Error("memory of the process changed")
	}
	c := &File{Data: own, copied: true}
	files.Lock()
	files.list = append(files.list, c)
	files.Unlock()
	Release(own)
	if !bytes.Equal(own, want) {
		t.Error("a copy of a file changed")
	}
}

package record

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// countedFile counts what is read of a file, and how many are open.
type countedFile struct {
	*os.File
	read, open *int64
}

func (c countedFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.File.ReadAt(b, off)
	*c.read += int64(n)
	return n, err
}

func (c countedFile) Close() error { *c.open--; return c.File.Close() }

// TestArchive: what is read for one file of an archive does not grow with the number of its files.
func TestArchive(t *testing.T) {
	t.Parallel()
	const files = 2000
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range files {
		f, err := w.Create(fmt.Sprintf("dir/%d.json", i))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "[%d]", i)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "many.zip")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var read, open int64
	a, err := newArchive(func() (archiveFile, fs.FileInfo, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		st, err := f.Stat()
		open++
		return countedFile{f, &read, &open}, st, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.release(); err != nil || open != 0 {
		t.Fatalf("%v, %d files are open", err, open)
	}
	read = 0
	for i := range files {
		r, err := a.entry(i)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if want := fmt.Sprintf("[%d]", i); err != nil || string(text) != want {
			t.Fatalf("%q, %v, want %q", text, err, want)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if per := read / files; open != 0 || per > 4500 { // buffers of 4 KiB, and a header
		t.Errorf("%d bytes are read for each file, %d are open", per, open)
	}
	// An archive that was replaced since is not read with the old directory.
	if err := os.WriteFile(path, b.Bytes()[:b.Len()-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.entry(0); err == nil || open != 0 {
		t.Errorf("%v, %d files are open", err, open)
	}
}

package record_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/opmeter/opmeter/internal/record"
)

// TestProgress tells of each byte once, however often and however far a file is read.
func TestProgress(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789"), record.HeadBytes/5)
	f := record.Bytes("x", data)
	told := int64(0)
	f.Progress = func(n int64) { told += n }
	for _, c := range []struct{ read, want int }{{100, 100}, {50, 100}, {record.HeadBytes + 7, record.HeadBytes + 7}, {len(data), len(data)}, {len(data), len(data)}} {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(iotest.HalfReader(r), make([]byte, c.read)); err != nil {
			t.Fatal(err)
		}
		if told != int64(c.want) {
			t.Errorf("told of %d bytes after reading %d, want %d", told, c.read, c.want)
		}
	}
	small := record.Bytes("y", data[:30])
	told = 0
	small.Progress = f.Progress
	for range 2 {
		if b, err := small.Read(100); err != nil || len(b) != 30 || told != 30 {
			t.Errorf("%d bytes, %v, told of %d", len(b), err, told)
		}
	}
}

// TestNestedZip: an archive in another one is one error that says what to do; the other files and
// spreadsheets are still found.
func TestNestedZip(t *testing.T) {
	t.Parallel()
	pack := func(files map[string][]byte) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, data := range files {
			w, err := z.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	inner := pack(map[string][]byte{"a.log": []byte("a")})
	for name, c := range map[string]struct {
		files map[string][]byte
		found int
	}{
		"alone": {map[string][]byte{"in.zip": inner}, 0}, "beside a log": {map[string][]byte{"in.ZIP": inner, "b.log": []byte("b")}, 1},
		"data of another kind": {map[string][]byte{"in.zip": inner, "t.xlsx": inner}, 1},
	} {
		path := filepath.Join(t.TempDir(), "out.zip")
		if err := os.WriteFile(path, pack(c.files), 0o600); err != nil {
			t.Fatal(err)
		}
		files, faults, err := record.Find(path)
		if err != nil {
			faults = append(faults, err)
		}
		if len(files) != c.found || len(faults) != 1 || !strings.Contains(faults[0].Error(), "unpack it") || !strings.Contains(strings.ToLower(faults[0].Error()), "out.zip!in.zip") {
			t.Errorf("%s: %d files, %v", name, len(files), faults)
		}
	}
}

package record_test

import (
	"bytes"
	"io"
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

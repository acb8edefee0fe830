package chip

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a start of the program pays for one shipped target, and for all.
func BenchmarkFind(b *testing.B) {
	for _, id := range []string{"efr32xg24-mvp", "stm32l4r5"} {
		b.Run(id, func(b *testing.B) {
			for b.Loop() {
				if _, err := readTable(table)[id](); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for _, read := range readTable(table) {
				if _, err := read(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// The table in the binary holds what the files say.
func TestTable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("chips/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	got := readTable(table)
	var list []*Target
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Parse(text, filepath.Base(file))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, want)
		read := got[want.ID]
		if read == nil {
			t.Errorf("%s is not in the table; run go generate ./internal/estimate/chip", want.ID)
			continue
		}
		have, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s differs from the table; run go generate ./internal/estimate/chip\n%s", file, d)
		}
	}
	if len(got) != len(files) {
		t.Errorf("%d targets in the table, %d files", len(got), len(files))
	}
	if !bytes.Equal(Table(list), []byte(table)) {
		t.Error("the table is not the one that its files give; run go generate ./internal/estimate/chip")
	}
}

// A table that is cut anywhere is an error, not a panic.
func TestTableCut(t *testing.T) {
	t.Parallel()
	const n = 200
	for i := range n {
		cut := table[:len(table)*i/n]
		read := readTable(cut)
		whole := 0
		for _, f := range read {
			if _, err := f(); err == nil {
				whole++
			}
		}
		if all := len(readTable(table)); whole == all {
			t.Errorf("%d of %d bytes give all targets", len(cut), len(table))
		}
	}
}

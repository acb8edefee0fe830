package tpu_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
)

// BenchmarkSample reads a real recording, from its files to a profile that is valid.
func BenchmarkSample(b *testing.B) {
	dir := material.Path(b, "raw", "bmprofile", "bmprofile_data-1_bm1688")
	for b.Loop() {
		list, _, err := record.Find(dir)
		if err != nil {
			b.Fatal(err)
		}
		one(b, &record.Input{Files: list})
	}
}

// BenchmarkMade reads a recording of 100,000 commands.
func BenchmarkMade(b *testing.B) {
	d := tpurecords.Make(tpurecords.Options{Commands: 100_000, LayerSize: 2000, Small: true, TIUStart: 5})
	n := 0
	for _, v := range d.Files {
		n += len(v)
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		one(b, &record.Input{Files: files(d.Files)})
	}
}

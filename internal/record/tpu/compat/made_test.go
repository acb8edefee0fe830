package compat_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compat"
	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
)

// Directories that are made up, of every chip: each record of the tensor engine is there
// with its command and its own length.
func TestMade(t *testing.T) {
	t.Parallel()
	host := tpurecords.Step{Kind: block.OnCPU, HostS: 1}
	for _, c := range []struct {
		name string
		o    tpurecords.Options
	}{
		{"BM1684", tpurecords.Options{Chip: command.BM1684}},
		{"BM1684X", tpurecords.Options{Chip: command.BM1684X}},
		{"BM1684X lost records", tpurecords.Options{Chip: command.BM1684X, Lose: 7}},
		{"BM1688", tpurecords.Options{Chip: command.BM1688}},
		{"BM1688 lost records", tpurecords.Options{Chip: command.BM1688, Lose: 5}},
		{"CV186X", tpurecords.Options{Chip: command.CV186X}},
		{"CV184X", tpurecords.Options{Chip: command.CV184X}},
		{"BM1690", tpurecords.Options{Chip: command.BM1690, CopyStart: 50_000}},
		{"counters wrap", tpurecords.Options{Chip: command.BM1688, TIUStart: 1<<32 - 5000, CopyStart: 1<<32 - 5000}},
		{"behind a subnet of the host", tpurecords.Options{Chip: command.BM1688, Steps: []tpurecords.Step{host, {Number: 1, Subnet: 1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := tpurecords.Make(c.o)
			dir := t.TempDir()
			for name, data := range d.Files {
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			files, _, err := record.Find(dir)
			if err != nil {
				t.Fatal(err)
			}
			in, err := compat.Read(t.Context(), &record.Input{Files: files, Options: record.Options{Arch: c.o.Chip.Name}})
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			for _, x := range d.Subnets[0].Commands {
				if !x.DMA && !x.Lost {
					want = append(want, x.End-x.Start)
				}
			}
			got := lengths(t, compat.Texts(in))
			if len(got) != len(want) {
				t.Fatalf("%d records of the tensor engine, want %d", len(got), len(want))
			}
			for i := range got {
				// Cycles become nanoseconds and cycles again, each time cut off; the newer
				// converter counts both ends.
				if diff := got[i] - want[i]; diff < -2 || diff > 2 {
					t.Fatalf("record %d has %d cycles, want %d", i, got[i], want[i])
				}
			}
		})
	}
}

// lengths are the cycles of tensor commands in the files.
func lengths(t *testing.T, files []compat.File) []int64 {
	t.Helper()
	var out []int64
	for _, f := range files {
		switch f.Name {
		case "tiuRegInfo_0.txt":
			r := reginfo.NewReader(bytes.NewReader(f.Data))
			for {
				b, err := r.Next()
				if err != nil {
					return out
				}
				if v, ok := b.Int("Asic Cycle"); ok {
					out = append(out, v)
				}
			}
		case "instruction.csv":
			r := csv.NewReader(bytes.NewReader(f.Data))
			r.FieldsPerRecord = -1
			rows, err := r.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows[1:] {
				if row[0] == "0" {
					n, err := strconv.ParseInt(row[8], 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, n)
				}
			}
		}
	}
	return out
}

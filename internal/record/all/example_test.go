package all_test

import (
	"context"
	"fmt"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// toyFormat reads the table of an invented tool: a title, a header, and a row for each layer.
func toyFormat() *record.Format {
	return &record.Format{
		Name:  "toy",
		Title: "table of the toy profiler",
		Files: "text that begins with \"toy profile\"",
		Gives: []string{"latency_s", "options"},
		Match: func(f *record.File) record.Sure {
			return record.Certain.If(textscan.Any(f.Head, "toy profile"))
		},
		Read: record.RunsPerFile(readToy),
	}
}

func readToy(_ context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	d := draft.New("toy", draft.Stem(f), "toy runtime")
	var columns textscan.Columns
	err := f.Lines(func(line string) {
		row := textscan.Fields(line, ';')
		ms, ok := columns.Number(row, "time (ms)")
		switch {
		case row[0] == "layer":
			columns = textscan.NewColumns(row)
		case ok:
			// The name of a layer is the hint that joins it with the node of a model.
			name := columns.Text(row, "layer")
			i := d.Add(profile.Layer{Name: name, Op: columns.Text(row, "op")}, runlog.Hint{Nodes: []string{name}})
			d.Set(i, profile.Quantity{Key: "latency_s"}, ms/1e3)
			d.Option(i, "threads", columns.Text(row, "threads"))
		case columns.Names() != nil:
			d.Dropped.Add("rows without a time", 1)
		}
	})
	return d.Runs(err)
}

// Example shows an importer for an invented format. A real one is a package below internal/record
// with a line in all.go and a fuzz target.
func Example() {
	text := "toy profile\nlayer;op;time (ms);threads\nconv1;Conv;1.5;4\nfc;Gemm;0.25;1\ntotal;;?;\n"
	f := record.Bytes("net.txt", []byte(text))
	format := record.Surest([]*record.Format{toyFormat()}, f)
	runs, err := format.Read(context.Background(), &record.Input{Files: []*record.File{f}})
	fmt.Println(runs[0].Profile.Model.Name, err)
	for _, l := range runs[0].Profile.Layers {
		seconds, _ := l.Latency.Best()
		fmt.Println(l.Name, l.Op, seconds, l.Options)
	}
	fmt.Println(*runs[0].Lost[0].Records, runs[0].Lost[0].Cause.Text)
	// Output:
	// net <nil>
	// conv1 Conv 0.0015 [{threads 4}]
	// fc Gemm 0.00025 [{threads 1}]
	// 1 rows without a time
}

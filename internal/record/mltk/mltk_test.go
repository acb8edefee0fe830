package mltk_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/mltk"
	writer "github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func read(t *testing.T, name, text string) []*profile.Profile {
	t.Helper()
	return records.Read(t, mltk.Format(), []*record.File{record.Bytes(name, []byte(text))}, record.Options{})
}

// written is a profile as a board gives it, so that everything is written.
func written() *profile.Profile {
	m := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }
	n := func(v int64) *int64 { return &v }
	return &profile.Profile{
		Schema: profile.SchemaV1,
		Model:  profile.Model{Name: "kws", FileBytes: n(21288), Inputs: []profile.Tensor{{Shape: []int64{1, 49, 10, 1}, DType: "int8"}}, Outputs: []profile.Tensor{{Shape: []int64{1, 4}, DType: "int8"}}},
		Target: profile.Target{ID: "board", Kind: profile.TargetDevice, ClockHz: new(78e6), Accelerator: "mvp"},
		Totals: profile.Totals{RAMBytes: n(11200)},
		Layers: []profile.Layer{
			{
				Index: 0, Op: "CONV_2D", State: profile.Ran, MLTKOps: n(380000), MLTKMACs: n(180000), AcceleratorCycles: m(300000), CPUCycles: m(88000), Latency: m(1.5e-3), Energy: m(5e-5),
				Inputs: []profile.Tensor{{Shape: []int64{1, 49, 10, 1}}, {Shape: []int64{8, 3, 3, 1}}}, Outputs: []profile.Tensor{{Shape: []int64{1, 49, 10, 8}}},
				Options: []profile.Option{{Key: "padding", Value: "same"}, {Key: "stride", Value: "2x2"}, {Key: "activation", Value: "relu"}}, Placement: &profile.Placement{On: "mvp"},
			},
			{
				Index: 1, Op: "FULLY_CONNECTED", State: profile.Ran, MLTKOps: n(2000), MLTKMACs: n(1000), AcceleratorCycles: m(0), CPUCycles: m(20000), Latency: m(2.5e-4), Energy: m(5e-6),
				Inputs: []profile.Tensor{{Shape: []int64{1, 8}}}, Outputs: []profile.Tensor{{Shape: []int64{1, 4}}}, Placement: &profile.Placement{On: profile.CPU, Cause: profile.ByLimit, Text: "too wide (2048)"},
			},
		},
		Memory: &profile.Memory{PersistentBytes: n(1200), ArenaBytes: n(10000), Plan: []profile.Buffer{{Name: "mfcc", Bytes: 490, Offset: 8000, First: 0, Last: 1}}},
	}
}

// TestRoundTrip reads what opmeter writes in this layout, plain and with prefixes.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := written()
	for name, write := range map[string]func(*bytes.Buffer) error{
		"raw.txt":     func(b *bytes.Buffer) error { return writer.Text(b, p, writer.Options{Raw: true, Full: true}) },
		"short.txt":   func(b *bytes.Buffer) error { return writer.Text(b, p, writer.Options{}) },
		"report.json": func(b *bytes.Buffer) error { return writer.JSON(b, p, writer.Options{Full: true}) },
		"report.csv":  func(b *bytes.Buffer) error { return writer.CSV(b, p, writer.Options{}) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		got := read(t, name, b.String())[0]
		if got.Model.Name != "kws" || len(got.Layers) != 2 || *got.Target.ClockHz != 78e6 || got.Target.Accelerator != "mvp" {
			t.Fatalf("%s: %+v", name, got)
		}
		// With prefixes there is one decimal.
		slack := map[bool]float64{true: 0.05, false: 1e-12}[name == "short.txt"]
		same := func(what string, got, want float64) {
			if !(math.Abs(got-want) <= slack*want) {
				t.Errorf("%s: %s is %g, want %g", name, what, got, want)
			}
		}
		same("RAM", float64(*got.Totals.RAMBytes), 11200)
		same("size", float64(*got.Model.FileBytes), 21288)
		total, _ := got.Totals.Latency.Best()
		same("total", total, 1.75e-3)
		for i := range p.Layers {
			w, g := &p.Layers[i], &got.Layers[i]
			for _, key := range []string{"latency_s", "mltk_ops", "mltk_macs", "accelerator_cycles", "cpu_cycles", "energy_j"} {
				a, _ := g.Value(key)
				b, _ := w.Value(key)
				same(key, a, b)
			}
			if g.Op != w.Op || len(g.Inputs) != len(w.Inputs) || profile.ShapeText(g.Outputs[0].Shape) != profile.ShapeText(w.Outputs[0].Shape) {
				t.Errorf("%s: %+v", name, g)
			}
		}
		if l := &got.Layers[0]; l.Option("padding") != "same" || l.Option("stride") != "2x2" || l.Placement.On != "mvp" {
			t.Errorf("%s: %+v %+v", name, l.Options, l.Placement)
		}
		if l := got.Layers[1].Placement; l.On != profile.CPU || l.Cause != profile.ByLimit || l.Text != "too wide (2048)" {
			t.Errorf("%s: %+v", name, l)
		}
		if name == "report.json" && (len(got.Memory.Plan) != 1 || got.Memory.Plan[0] != p.Memory.Plan[0]) {
			t.Errorf("%+v", got.Memory)
		}
	}
}

// TestWritten reads reports with columns that are missing and figures that are not known.
func TestWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mltk.txt", "mltk_full.txt", "mltk_raw.txt", "mltk.json", "mltk.csv"} {
		b, err := os.ReadFile(filepath.Join(material.Root(), "internal", "report", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		p := read(t, name, string(b))[0]
		if len(p.Layers) != 5 || p.Layers[4].Op != "MYSTERY" || p.Layers[4].MLTKOps != nil || p.Layers[4].Latency != nil {
			t.Errorf("%s: %+v", name, p.Layers)
		}
	}
}

// TestTwice: tables of layers that follow one another without a summary are reports of their own.
func TestTwice(t *testing.T) {
	t.Parallel()
	csv := "index,opcode,ops,macs,cpu_cycles\n0,CONV_2D,10,5,100\n1,SOFTMAX,3,0,7\n"
	text := "+-------+---------+------------+\n| Index | OpCode  | CPU Cycles |\n+-------+---------+------------+\n| 0     | CONV_2D | 100        |\n| 1     | SOFTMAX | 7          |\n+-------+---------+------------+\n"
	for name, text := range map[string]string{"r.csv": csv, "r.txt": text} {
		for n := 1; n <= 2; n++ {
			ps := read(t, name, strings.Repeat(text, n))
			if len(ps) != n || len(ps[0].Layers) != 2 || *ps[0].Layers[0].CPUCycles.Median != 100 || n == 2 && !records.Found(ps[1], "record.runs") {
				t.Errorf("%s: %d reports, want %d", name, len(ps), n)
			}
		}
	}
}

// TestPair: the two files of a report are one run.
func TestPair(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names, err := writer.Folder(dir, written(), writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ps := records.Read(t, mltk.Format(), records.Files(t, names...), record.Options{}); len(ps) != 1 {
		t.Errorf("%d runs", len(ps))
	}
}

const board = "Starting Model Profiler\r\nLoading model\r\nOp1-MAX_POOL_2D not supported: Output vector stride (2048) exceeded (max=2047)\r\nName: my_model\r\nVersion: 1\r\nAccelerator: MVP\r\nTensor runtime memory: 11.2k\r\nCPU clock: 78.0MHz\r\n" +
	"--------------------------\r\nOp0-CONV_2D\r\n1.15M OPs\r\n497.66k MACs\r\n\r\nOp1-MAX_POOL_2D\r\n33.15k OPs\r\n0.00 MACs\r\n\r\n--------------------------\r\nInference\r\n10.5 ms\r\n33.20k CPU cycles\r\n1.20M Accelerator cycles\r\n100.00M OP/s\r\n" +
	"Op0-CONV_2D\r\n9.0 ms\r\n12.34k CPU cycles\r\n1.20M Accelerator cycles\r\n5.00M OP/s\r\nstalls=77\r\n\r\nOp1-MAX_POOL_2D\r\n1.5 ms\r\n20.86k CPU cycles\r\n0.00 Accelerator cycles\r\n\r\ndone\r\n"

func TestBoard(t *testing.T) {
	t.Parallel()
	p := read(t, "serial.log", board)[0]
	if p.Model.Name != "my_model" || len(p.Layers) != 2 || *p.Target.ClockHz != 78e6 || *p.Totals.RAMBytes != 11200 {
		t.Fatalf("%+v", p)
	}
	for i, want := range []map[string]float64{
		{"latency_s": 9e-3, "cpu_cycles": 12340, "accelerator_cycles": 1.2e6, "mltk_ops": 1.15e6, "mltk_macs": 497660, "stalls": 77},
		{"latency_s": 1.5e-3, "cpu_cycles": 20860, "accelerator_cycles": 0, "mltk_ops": 33150, "mltk_macs": 0},
	} {
		for key, w := range want {
			if v, ok := p.Layers[i].Value(key); !ok || math.Abs(v-w) > 1e-9*w {
				t.Errorf("%s of %d is %g %v, want %g", key, i, v, ok, w)
			}
		}
	}
	if l := p.Layers[1].Placement; l.On != profile.CPU || l.Cause != profile.ByLimit || !strings.Contains(l.Text, "2048") || p.Layers[0].Placement.On != "mvp" {
		t.Errorf("%+v", l)
	}
	if v, _ := p.Totals.Latency.Best(); v != 10.5e-3 {
		t.Errorf("%g", v)
	}
	cut, _, _ := strings.Cut(board, "Op1-MAX_POOL_2D\r\n1.5 ms")
	p = read(t, "serial.log", cut)[0]
	if len(p.Layers) != 2 || p.Layers[1].Latency != nil || p.Findings[0].ID != "mltk.cut" {
		t.Errorf("a log that is cut: %+v", p.Layers)
	}
}

func FuzzMLTK(f *testing.F) {
	f.Add([]byte(board))
	for _, o := range []writer.Options{{Raw: true}, {Full: true}} {
		var b, c bytes.Buffer
		if err := writer.Text(&b, written(), o); err != nil {
			f.Fatal(err)
		}
		if err := writer.JSON(&c, written(), o); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(c.Bytes())
	}
	f.Add([]byte("name,accelerator,input_shape,time\na,MVP,1x2,0.5\n\nindex,opcode,ops,time\n0,conv,5,0.5\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, mltk.Format(), "a.txt", b) })
}

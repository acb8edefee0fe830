package deepsparse_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/deepsparse"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func TestSummarise(t *testing.T) {
	t.Parallel()
	r := deepsparse.Summarise("singlestream", []float64{.004, .001, .002, .003}, 8, .02)
	if r.ItemsPerSec != 1600 || r.Iterations != 4 || *r.Median != 2.5 || *r.Mean != 2.5 || !near(*r.Std, 1.118033988749895) {
		t.Errorf("%+v", r)
	}
	// Linear between samples: of four the 90th lies at 3.7.
	if !near(*r.P90, 3.7) || !near(*r.P25, 1.75) || !near(*r.P, 3.997) {
		t.Errorf("percentiles %v %v %v", *r.P25, *r.P90, *r.P)
	}
	if r := deepsparse.Summarise("x", nil, 1, 0); r.Median != nil || r.ItemsPerSec != 0 {
		t.Errorf("of nothing: %+v", r)
	}
}

// TestExport writes what was read and reads it again.
func TestExport(t *testing.T) {
	t.Parallel()
	read := func(name string, text []byte) *profile.Profile {
		return records.Read(t, deepsparse.Format(), []*record.File{record.Bytes(name, text)}, record.Options{})[0]
	}
	p := records.Read(t, deepsparse.Format(), records.Files(t, material.Path(t, "raw", "traces", "deepsparse", "benchmark_yolov5_2core_from_issue_1193.json")), record.Options{})[0]
	text, err := deepsparse.BenchmarkOf(p).JSON()
	if err != nil {
		t.Fatal(err)
	}
	back := read("b.json", text)
	for _, f := range []func(p *profile.Profile) float64{
		func(p *profile.Profile) float64 { return *p.Totals.Latency.Median },
		func(p *profile.Profile) float64 { return *p.Totals.Latency.P99 },
		func(p *profile.Profile) float64 { return float64(*p.Totals.Latency.N) },
		func(p *profile.Profile) float64 { return float64(*p.Settings.Threads) },
	} {
		if !near(f(p), f(back)) {
			t.Errorf("%v was written, %v read", f(p), f(back))
		}
	}
	p.Totals.LatencySamples = []float64{.001, .003}
	if b := deepsparse.BenchmarkOf(p); *b.Result.Median != 2 || !near(b.Result.ItemsPerSec, 500) {
		t.Errorf("of samples: %+v", b.Result)
	}
}

func TestExportLayers(t *testing.T) {
	t.Parallel()
	layer := func(op, out string, ms float64, kernel ...int64) profile.Layer {
		l := profile.Layer{Op: op, Name: out, Latency: profile.Value(profile.Measured, ms/1e3, ""), Outputs: []profile.Tensor{{Name: out, Shape: []int64{1, 64, 7, 9}}}}
		if kernel != nil {
			l.Params = new(int64(1))
			l.Ops = new(int64(2e9))
			l.Inputs = []profile.Tensor{{}, {Shape: kernel}}
			l.Options = []profile.Option{{Key: "strides", Value: "1x2"}}
		}
		return l
	}
	p := &profile.Profile{Layers: []profile.Layer{layer("Conv", "a,b", 2, 64, 3, 3, 3), layer("Conv", "c", 1, 64, 64, 1, 1), layer("Relu", "d", 1), {Op: "Shape"}}}
	p.Totals.Latency = profile.Value(profile.Measured, .004, "")
	a := deepsparse.AnalysisOf(p)
	if len(a.Layers) != 3 || *a.ItemsPerSecond != 250 || *a.Layers[0].TFLOPS != 1 {
		t.Fatalf("%+v", a)
	}
	text, err := a.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := a.CSV(&table); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"l.json": text, "l.csv": table.Bytes()} {
		back := records.Read(t, deepsparse.Format(), []*record.File{record.Bytes(name, text)}, record.Options{})[0]
		if len(back.Layers) != 3 || back.Layers[0].Name != "a,b" || fmt.Sprint(back.Layers[0].Outputs[0].Shape) != "[1 64 7 9]" || back.Layers[0].Option("kernel_dims") != "n=64 c=3 h=3 w=3" || back.Layers[0].Option("strides") != "h=2 w=1" {
			t.Errorf("%s: %+v", name, back.Layers)
		}
		if v, _ := back.Totals.Latency.Best(); !near(v, .004) {
			t.Errorf("%s: sum %v", name, v)
		}
	}
	want := `Name  OutDims   KerDims    Strides  ActSpars  Time(ms)  Util(%)  TFLOPS  Canonical Name
Conv  1x64x7x9  64x3x3x3   2x1                2.0000             1.0000  a,b
Conv  1x64x7x9  64x64x1x1  2x1                1.0000             2.0000  c
Relu  1x64x7x9                                1.0000                     d

Layer Type    Time(ms)  Percent
Conv          3.0000    75.00
  kernel=3x3  2.0000    50.00
  kernel=1x1  1.0000    25.00
Relu          1.0000    25.00
`
	if got := string(a.Table()); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%s", got)
	}
}

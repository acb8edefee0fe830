package profile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// thousand is a profile of a thousand layers as a run on this computer makes it, with
// some samples of each layer's time, whole nanoseconds that spread.
func thousand(tb testing.TB, samples int) *Profile {
	tb.Helper()
	p := &Profile{
		Schema: SchemaV1, Created: "2026-01-02T03:04:05Z", Model: Model{Name: "net", Format: "onnx"}, Target: Target{ID: "host", Kind: TargetHost},
		Settings: Settings{Version: "1", Threads: new(int64(4))},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		l := Layer{
			Index: int64(i), Name: fmt.Sprintf("/blocks.%d/conv/Conv", i), Op: "Conv", State: Ran, Kernel: "conv2d/im2col",
			Options: []Option{{"strides", "1x1"}, {"pads", "1,1,1,1"}, {"group", "1"}},
			Inputs:  []Tensor{{Name: fmt.Sprintf("t%d", i), DType: "float32", Shape: []int64{1, 64, 56, 56}}, {Name: fmt.Sprintf("w%d", i), DType: "float32", Shape: []int64{64, 64, 3, 3}, Constant: true}},
			Outputs: []Tensor{{Name: fmt.Sprintf("t%d", i+1), DType: "float32", Shape: []int64{1, 64, 56, 56}}},
			Ops:     new(r.Int64N(1e9)), MACs: new(r.Int64N(1e9)), BytesRead: new(r.Int64N(1e6)), BytesWritten: new(r.Int64N(1e6)),
			Provenance: &Provenance{Confidence: Exact, SourceNodes: []SourceNode{{Node: int64(i)}}},
		}
		times := make([]float64, max(samples, 40))
		for k := range times {
			times[k] = float64(1_000_000+r.Int64N(100_000)) / 1e9
		}
		l.Latency = Summarize(Measured, times, "")
		if samples > 0 {
			l.Samples = times
		}
		p.Layers = append(p.Layers, l)
	}
	p.Totals.Latency = p.Layers[0].Latency
	return p
}

// BenchmarkListHeads lists a folder of a thousand saved profiles of a thousand layers.
func BenchmarkListHeads(b *testing.B) {
	text, err := Marshal(thousand(b, 0))
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, Extension)), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1000 {
			b.Fatal(err)
		}
		for _, f := range files {
			if _, err := ReadHead(filepath.Join(dir, f.Name())); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkFile saves and reads a profile of a thousand layers, without samples and
// with a thousand for each layer.
func BenchmarkFile(b *testing.B) {
	for _, n := range []int{0, 1000} {
		p := thousand(b, n)
		text, err := Marshal(p)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("Save/samples=%d", n), func(b *testing.B) {
			for b.Loop() {
				if err := p.Save(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(text)), "file-bytes")
		})
		b.Run(fmt.Sprintf("Read/samples=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Unmarshal(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

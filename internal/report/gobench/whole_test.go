package gobench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// The whole text of a profile: rates follow the time of each line, other figures are
// those of the layer.
func TestWhole(t *testing.T) {
	t.Parallel()
	s := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }
	n := func(v int64) *int64 { return &v }
	p := &profile.Profile{
		Model: profile.Model{Name: " my\tnet "}, Target: profile.Target{ID: "this", Kind: profile.TargetHost}, Host: &profile.Host{OS: "linux", Arch: "amd64", CPUModel: "cpu"}, Settings: profile.Settings{Threads: n(2)},
		Totals: profile.Totals{Latency: s(0.002), MACs: n(1000), BytesRead: n(300), BytesWritten: n(100), Energy: s(0.5), LatencySamples: []float64{0.002, 0.004}},
		Layers: []profile.Layer{
			{Index: 0, Op: "CONV", Name: "a/b c", State: profile.Ran, Latency: s(0.001), MACs: n(1000), BytesRead: n(300), BytesWritten: n(100), Energy: s(0.25), Figures: map[string]*profile.Metric{"own_figure": s(7), "own_sum": s(3)}},
			{Index: 1, Op: "ADD", State: profile.Folded, Latency: s(9)},
			{Index: 2, Op: "MUL", State: profile.Ran},
			{Index: 3, Op: "SUB", State: profile.Ran, Latency: s(0.0005), Samples: []float64{0.0005}},
		},
		Quantities: []profile.Quantity{{Key: "own_figure"}, {Key: "own_sum", Adds: true, Better: 1}},
	}
	const want = `goos: linux
goarch: amd64
cpu: cpu
model: my net
target: this
# threads: 2
# one process, one sample: join files of six or more runs (cat *.bench.txt) for benchstat
Unit J/op better=lower
Unit MACs/s better=higher
Unit own-sum/op better=higher

BenchmarkModel/layer=all 2 2000000 ns/op 0.5 J/op 500000 MACs/s 200000 moved-B/s
BenchmarkModel/layer=0:a:b_c 1 1000000 ns/op 0.25 J/op 1000000 MACs/s 400000 moved-B/s 7 own-figure 3 own-sum/op
BenchmarkModel/layer=3:SUB 1 500000 ns/op
`
	text := func() string {
		t.Helper()
		var b bytes.Buffer
		if err := Write(&b, p); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// What is not a computer has no processor; numbers of layers have as many digits as the last.
	p.Target.Kind, p.Settings.Threads = profile.TargetDevice, nil
	for len(p.Layers) < 11 {
		p.Layers = append(p.Layers, profile.Layer{Op: "X", State: profile.Ran, Latency: s(1)})
	}
	got := text()
	if !strings.HasPrefix(got, "model: my net\ntarget: this\n# one process, ") || !strings.Contains(got, "\nBenchmarkModel/layer=00:a:b_c ") || !strings.HasSuffix(got, "\nBenchmarkModel/layer=10:X 1 1000000000 ns/op\n") {
		t.Errorf("got\n%s", got)
	}
	p.Layers = p.Layers[:10]
	if got = text(); !strings.Contains(got, "\nBenchmarkModel/layer=0:a:b_c ") {
		t.Errorf("ten layers:\n%s", got)
	}
	p.Layers, p.Totals.LatencySamples = nil, nil
	if got = text(); !strings.HasSuffix(got, "\n\nBenchmarkModel/layer=all 1 2000000 ns/op 0.5 J/op 500000 MACs/s 200000 moved-B/s\n") {
		t.Errorf("no layers:\n%s", got)
	}
	p.Totals.Latency = nil
	if got = text(); strings.Contains(got, "Benchmark") {
		t.Errorf("no time:\n%s", got)
	}
}

// A process is one sample, however many inferences it measured: its line has the figure and
// their number.
func TestOneSample(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "1 250000000 ns/op", 1: "1 250000000 ns/op", 20: "20 250000000 ns/op", 100: "100 250000000 ns/op"} {
		p := &profile.Profile{Model: profile.Model{Name: "m"}, Totals: profile.Totals{Latency: profile.Value(profile.Measured, 0.25, "")}}
		for i := range n {
			p.Totals.LatencySamples = append(p.Totals.LatencySamples, float64(i))
		}
		var b bytes.Buffer
		if err := Write(&b, p); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(b.String(), "\n\nBenchmarkModel/layer=all "+want+"\n") || !strings.Contains(b.String(), "\n# one process, one sample: ") {
			t.Errorf("%d samples:\n%s", n, b.String())
		}
	}
	for in, want := range map[string]string{"a/b": "a:b", "a b\tc": "a_b_c", "x\x00y": "x_y", "\ufffd": "_", "é": "é", strings.Repeat("é", 201): strings.Repeat("é", 200)} {
		if got := Name(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := line("  a \n b\x00c\xff "); got != "a b c\ufffd" {
		t.Errorf("%q", got)
	}
}

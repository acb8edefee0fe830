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
Unit J/op better=lower
Unit MACs/s better=higher
Unit own-sum/op better=higher

BenchmarkModel/layer=all 1 2000000 ns/op 0.5 J/op 500000 MACs/s 200000 moved-B/s
BenchmarkModel/layer=all 1 4000000 ns/op 0.5 J/op 250000 MACs/s 100000 moved-B/s
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
	if !strings.HasPrefix(got, "model: my net\ntarget: this\nUnit ") || !strings.Contains(got, "\nBenchmarkModel/layer=00:a:b_c ") || !strings.HasSuffix(got, "\nBenchmarkModel/layer=10:X 1 1000000000 ns/op\n") {
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

// More samples than lines are gathered into batches of neighbours, with their means.
func TestBatches(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1", 20: "1", 21: "1 1 2", 45: "2 2 2 3", 100: "5"} {
		p := &profile.Profile{Model: profile.Model{Name: "m"}, Totals: profile.Totals{Latency: profile.Value(profile.Measured, 1, "")}}
		sum := 0
		for i := range n {
			p.Totals.LatencySamples = append(p.Totals.LatencySamples, float64(i))
			sum += i
		}
		var b bytes.Buffer
		if err := Write(&b, p); err != nil {
			t.Fatal(err)
		}
		lines, total, weighed := 0, 0, 0.0
		sizes := map[int]bool{}
		for l := range strings.Lines(b.String()) {
			f := strings.Fields(l)
			if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
				continue
			}
			k, mean := 0, 0.0
			for _, r := range f[1] {
				k = 10*k + int(r-'0')
			}
			// whole and half seconds, see below
			for _, r := range strings.TrimSuffix(f[2], "000000000") {
				if r >= '0' && r <= '9' {
					mean = 10*mean + float64(r-'0')
				}
			}
			if strings.HasSuffix(f[2], "500000000") && !strings.HasSuffix(f[2], "000000000") {
				mean = 0
				for _, r := range strings.TrimSuffix(f[2], "500000000") {
					mean = 10*mean + float64(r-'0')
				}
				mean += 0.5
			}
			if f[2] == "0" {
				mean = 0
			}
			lines, total, weighed, sizes[k] = lines+1, total+k, weighed+float64(k)*mean, true
		}
		if lines != min(n, MaxLines) || total != n || weighed != float64(sum) {
			t.Errorf("%d samples: %d lines of %d, in all %v, want %d (%s)", n, lines, total, weighed, sum, want)
		}
		for _, r := range strings.Fields(want) {
			if !sizes[int(r[0]-'0')] {
				t.Errorf("%d samples: batches of %v, want %s", n, sizes, want)
			}
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

package report

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// TestAnswers has one sentence for each comparison: which run is faster, by how much, and how sure.
func TestAnswers(t *testing.T) {
	t.Parallel()
	f := func(v float64) *float64 { return &v }
	n := func(v int64) *int64 { return &v }
	run := func(name string, total float64) compare.Run {
		return compare.Run{Name: name, Model: "net", DType: "float32", Target: "host", Engine: "opmeter", Threads: n(1), Total: compare.Figure{Value: &total}}
	}
	for _, c := range []struct {
		name   string
		ratio  compare.Ratio
		change func(first, r *compare.Run)
		want   string
	}{
		{"faster", compare.Ratio{Value: f(0.8), Low: f(0.75), High: f(0.85), Verdict: compare.Faster}, nil, "b is 1.25x as fast as a (162 vs 199 µs; 95 % CI 1.18 to 1.33)"},
		{"slower", compare.Ratio{Value: f(1.25), Low: f(1.2), High: f(1.3), Verdict: compare.Slower}, nil, "b takes 1.25x as long as a (162 vs 199 µs; 95 % CI 1.20 to 1.30)"},
		{"an estimate", compare.Ratio{Value: f(2), Low: f(1), High: f(4), Interval: compare.Band90, Verdict: compare.Open}, nil, "b is not measurably faster or slower than a (162 vs 199 µs; ratio 2.00, 90 % band 1.00 to 4.00)"},
		{"equal", compare.Ratio{Value: f(1), Low: f(0.96), High: f(1.04), Verdict: compare.Alike}, nil, "b is as fast as a within 5 % (162 vs 199 µs; ratio 1.00, 95 % CI 0.960 to 1.04)"},
		{"undecided", compare.Ratio{Value: f(0.9), Low: f(0.7), High: f(1.2), Verdict: compare.Open}, nil, "b is not measurably faster or slower than a (162 vs 199 µs; ratio 0.900, 95 % CI 0.700 to 1.20)"},
		{"no interval", compare.Ratio{Value: f(0.5), Verdict: compare.Open}, nil, "b is 2.00x as fast as a (162 vs 199 µs; interval unknown)"},
		{"unreliable", compare.Ratio{Value: f(0.5), Low: f(0.4), High: f(0.6), Verdict: compare.Open}, func(_, r *compare.Run) { r.Trust = profile.Unreliable }, "b is 2.00x as fast as a (162 vs 199 µs; 95 % CI 1.67 to 2.50) · unstable: repeat the measurement"},
		{"no ratio", compare.Ratio{}, nil, "b and a: no ratio, since the total of one is missing or incomplete"},
		{"threads", compare.Ratio{Value: f(0.5)}, func(_, r *compare.Run) { r.Threads = n(2) }, "b [2 threads] is 2.00x as fast as a [1 thread] (162 vs 199 µs; interval unknown)"},
		{"types", compare.Ratio{Value: f(0.5)}, func(_, r *compare.Run) { r.DType = "int8" }, "b [int8] is 2.00x as fast as a [float32] (162 vs 199 µs; interval unknown)"},
		{"all", compare.Ratio{Value: f(0.5)}, func(_, r *compare.Run) { r.Model, r.Target, r.Engine, r.Threads = "other", "chip", "tflm", nil }, "b [other, chip, tflm] is 2.00x as fast as a [net, host, opmeter] (162 vs 199 µs; interval unknown)"},
		{"named after the engine", compare.Ratio{Value: f(0.5)}, func(x, r *compare.Run) { r.Engine, r.Name, x.Name = "tflm", "tflm", "opmeter" }, "tflm is 2.00x as fast as opmeter (162 vs 199 µs; interval unknown)"},
	} {
		x := &compare.Table{Quantity: "latency_s", Unit: "s", Runs: []compare.Run{run("a", 199e-6), run("b", 162e-6)}}
		x.Runs[1].Ratio = c.ratio
		if c.change != nil {
			c.change(&x.Runs[0], &x.Runs[1])
		}
		if got := answers(x); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

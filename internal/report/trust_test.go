package report

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestReconcileWords: the layers and what is not in them make up the latency; a median of other
// runs beside it would be a second figure for the same quantity.
func TestReconcileWords(t *testing.T) {
	t.Parallel()
	cost := func(low, middle, high float64) *profile.Metric {
		return &profile.Metric{Kind: profile.Measured, Median: &middle, CI95: &[2]float64{low, high}}
	}
	per := profile.Value(profile.Measured, 50e-9, "")
	for _, tt := range []struct {
		name                   string
		operators, wall, plain float64
		cost                   *profile.Metric
		want                   string
	}{
		{"at rest", 1.9e-3, 1.9e-3, 1.91e-3, cost(-1e-6, 0, 1e-6), "1.90 ms; profiling overhead not measurable (50.0 ns per operator)"},
		{"gaps", 1.8e-3, 1.9e-3, 1.9e-3, nil, "1.80 ms + 100 µs not in layers = 1.90 ms; profiling overhead not measurable (50.0 ns per operator)"},
		{"busy", 1.9e-3, 1.9e-3, 2.5e-3, cost(-1, 0, 1), "1.90 ms; profiling overhead not measurable (50.0 ns per operator)"},
		{"busy in the instrumented pass", 2.5e-3, 2.5e-3, 1.9e-3, cost(-1, 0, 1), "2.50 ms; profiling overhead not measurable (50.0 ns per operator)"},
		{"instruments", 5e-6, 5e-6, 4e-6, cost(0.9e-6, 1e-6, 1.1e-6), "5.00 µs; profiling overhead 1.00 µs (25.0 %)"},
		{"a cost below zero is not a cost", 1.9e-3, 1.9e-3, 1.95e-3, cost(-6e-5, -5e-5, -4e-5), "1.90 ms"},
	} {
		r := &profile.Reconcile{OperatorsS: &tt.operators, WallS: &tt.wall, GapsS: new(tt.wall - tt.operators), PlainS: &tt.plain, OverheadS: tt.cost, OverheadPerOperatorS: per}
		if got := reconcile(r); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if got := reconcile(nil) + reconcile(&profile.Reconcile{WallS: new(1.0)}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// TestBottleneckWords has the parts of the time by what bounds them, which add up to 100 %, and
// what is unknown where only one peak is known.
func TestBottleneckWords(t *testing.T) {
	t.Parallel()
	layer := func(s float64, b profile.Bound, level string) profile.Layer {
		l := profile.Layer{State: profile.Ran, Latency: profile.Value(profile.Measured, s, "")}
		if b != "" {
			l.Roof = &profile.Roof{Bound: b, DType: "int8", Level: level}
		}
		return l
	}
	two := profile.Target{PeakOpsPerSecond: new(1e9), PeakBytesPerSecond: new(1e9), Peaks: []profile.Peak{{DType: "int8", OpsPerSecond: 1e9}, {DType: "float32", OpsPerSecond: 5e9}}}
	for _, tt := range []struct {
		name   string
		target profile.Target
		layers []profile.Layer
		want   string
	}{
		{"no times", two, []profile.Layer{{State: profile.Ran}}, ""},
		{"all kinds", two, []profile.Layer{layer(5, profile.BoundCompute, "L1"), layer(2, profile.BoundMemory, "L2"), layer(1, profile.BoundMemory, "memory"), layer(1, profile.BoundOverhead, "L1"), layer(1, "", "")}, "50 % compute-bound, 20 % L2-bound, 10 % memory-bound, 10 % overhead-bound, 10 % unknown"},
		{"one peak", profile.Target{PeakOpsPerSecond: new(1e9)}, []profile.Layer{layer(1, "", "")}, "unknown: memory bandwidth of the target is not known"},
		{"the other one", profile.Target{PeakBytesPerSecond: new(1e9)}, []profile.Layer{layer(1, "", "")}, "unknown: peak arithmetic rate of the target is not known"},
		{"none", profile.Target{}, []profile.Layer{layer(1, "", "")}, ""},
	} {
		if got := bottleneck(&profile.Profile{Target: tt.target, Layers: tt.layers}); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

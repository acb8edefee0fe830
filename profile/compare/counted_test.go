package compare_test

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// TestUncounted takes no count as the cost of an inference that layers are missing from.
func TestUncounted(t *testing.T) {
	t.Parallel()
	counted := func(ops, weights int64, uncounted int64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
		p.Layers = []profile.Layer{{Op: "Mul", Name: "m", State: profile.Ran, Ops: &ops, WeightsBytes: &weights}}
		p.Totals.Ops, p.Totals.WeightsBytes, p.Totals.UncountedLayers = &ops, &weights, &uncounted
		return p
	}
	if x := table(t, counted(1, 10, 0), counted(2, 20, 0)); x.Quantity != "ops" {
		t.Errorf("%s is compared, want ops", x.Quantity)
	}
	runs := []*profile.Profile{counted(1, 10, 3), counted(2, 20, 0)}
	x := table(t, runs...)
	if x.Quantity != "weights_bytes" {
		t.Errorf("%s is compared, want weights_bytes", x.Quantity)
	}
	for i := range x.Whole {
		if w := &x.Whole[i]; w.Key == "ops" && (!w.Figures[0].Partial || w.Figures[1].Partial || w.Ratios[1].Value != nil) {
			t.Errorf("operations: %+v", w)
		}
	}
}

// TestEstimatedHere: times that were estimated for this computer are not measured.
func TestEstimatedHere(t *testing.T) {
	t.Parallel()
	p, q := run("a", 1e-3, 1e-6, row("Conv", 1e-3, 1e-6, 0)), run("a", 1e-3, 1e-6, row("Conv", 1e-3, 1e-6, 0))
	p.Totals.Latency = &profile.Metric{Kind: profile.Estimated, Median: new(1e-3), Band: &[2]float64{5e-4, 2e-3}}
	if rs := table(t, p, q).Runs; rs[0].Source != compare.Estimated || rs[1].Source != compare.Measured {
		t.Errorf("%s and %s, want estimated and measured", rs[0].Source, rs[1].Source)
	}
}

// TestDeclaredType names the type of a model that did not run by its tensors, and both where an
// engine computes in another one.
func TestDeclaredType(t *testing.T) {
	t.Parallel()
	half := func(ran bool) *profile.Profile {
		p := run("a", 1e-3, 1e-6, row("Conv", 1e-3, 1e-6, 0))
		p.Layers[0].Inputs, p.Layers[0].Computes = []profile.Tensor{{Name: "x", DType: "float16"}}, "float32"
		if !ran {
			p.Totals.Latency, p.Layers[0].Latency = nil, nil
			p.Layers[0].MACs, p.Totals.MACs = new(int64(8)), new(int64(8))
		}
		return p
	}
	if r := table(t, half(false), half(false)).Runs[0]; r.DType != "float16" || r.Declared != "" {
		t.Errorf("counted: %q, declared %q", r.DType, r.Declared)
	}
	if r := table(t, half(true), half(true)).Runs[0]; r.DType != "float32" || r.Declared != "float16" {
		t.Errorf("measured: %q, declared %q", r.DType, r.Declared)
	}
	silent := half(false) // a type without work is not that of the model
	silent.Layers[0].MACs, silent.Totals.MACs = new(int64(0)), new(int64(0))
	if r := table(t, silent, silent).Runs[0]; r.DType != "" {
		t.Errorf("no work: %q", r.DType)
	}
}

// TestDequantisedType: what a layer computes in is the type before dequantisation, where another
// layer does this work.
func TestDequantisedType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		change   func(dq *profile.Layer)
		estimate bool
		want     string
	}{
		{"fused", func(dq *profile.Layer) { dq.State, dq.FusedInto = profile.Fused, new(int64(1)) }, false, "int8"},
		{"estimated without work", func(dq *profile.Layer) { dq.Latency = &profile.Metric{Kind: profile.Estimated, Median: new(0.0)} }, true, "int8"},
		{"it runs", func(dq *profile.Layer) {}, false, "float32"},
		{"TFLite", func(dq *profile.Layer) { dq.Op, dq.State, dq.FusedInto = "DEQUANTIZE", profile.Fused, new(int64(1)) }, false, "int8"},
		{"not known", func(dq *profile.Layer) { dq.Latency = nil }, false, "float32"},
	} {
		p := run("a", 1e-3, 1e-6, row("DequantizeLinear", 1e-4, 1e-6, 0), row("Conv", 1e-3, 1e-6, 1))
		p.Layers[0].Inputs, p.Layers[0].Outputs = []profile.Tensor{{Name: "q", DType: "int8"}}, []profile.Tensor{{Name: "x", DType: "float32"}}
		p.Layers[1].Inputs = []profile.Tensor{{Name: "x", DType: "float32"}}
		if c.estimate {
			p.Target = profile.Target{ID: "m33", Kind: profile.TargetSimulator}
		}
		c.change(&p.Layers[0])
		if r := table(t, p, p).Runs[0]; r.DType != c.want {
			t.Errorf("%s: %q, want %q", c.name, r.DType, c.want)
		}
		if c.estimate {
			continue
		}
		for i := range p.Layers { // counted
			p.Layers[i].Latency = nil
		}
		p.Totals.Latency, p.Layers[1].MACs, p.Totals.MACs = nil, new(int64(8)), new(int64(8))
		if r := table(t, p, p).Runs[0]; r.DType != c.want {
			t.Errorf("%s, counted: %q, want %q", c.name, r.DType, c.want)
		}
	}
}

// TestNoWork: an estimate of no work has no error, so that rows of several layers have an interval.
// A zero that was measured may be rounded.
func TestNoWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    profile.Kind
		bounded bool
	}{{profile.Estimated, true}, {profile.Measured, false}} {
		made := func(s float64) *profile.Profile {
			p := run("a", s, s/100, row("DequantizeLinear", 0, 0, 0), row("Conv", s, s/100, 1))
			p.Target = profile.Target{ID: "m33", Kind: profile.TargetSimulator}
			p.Layers[0].Latency = &profile.Metric{Kind: c.kind, Median: new(0.0)}
			p.Layers[1].Latency = &profile.Metric{Kind: profile.Estimated, Median: &s, Band: &[2]float64{s * .99, s * 1.01}}
			return p
		}
		b := made(1)
		b.Layers = b.Layers[1:]
		b.Layers[0].Index, b.Layers[0].Provenance = 0, row("Conv", 1, 1, 0, 1).Provenance
		g := table(t, made(4), b).Groups[0]
		if len(g.Layers[0]) != 2 || g.Ratios[1].Value == nil {
			t.Fatalf("%s: %+v", c.kind, g)
		}
		if r := g.Ratios[1]; (r.Low != nil) != c.bounded || c.bounded && r.Verdict != compare.Faster {
			t.Errorf("%s: %+v", c.kind, r)
		}
	}
}

// TestOtherLayout does not take channels last for another input.
func TestOtherLayout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape []int64
		other bool
	}{
		{[]int64{1, 4, 6, 3}, false},
		{[]int64{1, 6, 4, 3}, true},
		{[]int64{4, 6, 3, 1}, true},
	} {
		p, q := run("a", 1e-3, 1e-6, row("Conv", 1e-3, 1e-6, 0)), run("b", 1e-3, 1e-6, row("Conv", 1e-3, 1e-6, 0))
		p.Model.Inputs = []profile.Tensor{{Name: "x", Shape: []int64{1, 3, 4, 6}}}
		q.Model.Inputs = []profile.Tensor{{Name: "x", Shape: c.shape}}
		if got := table(t, p, q).Whole[0].Why[1] == compare.OtherShapes; got != c.other {
			t.Errorf("%v: other shapes %v, want %v", c.shape, got, c.other)
		}
	}
}

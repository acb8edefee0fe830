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

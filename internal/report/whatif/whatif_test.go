package whatif

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// layer makes an operator with a first input and constants of the given shapes.
func layer(op, dtype string, constants ...[]int64) profile.Layer {
	l := profile.Layer{Op: op, State: profile.Ran, Inputs: []profile.Tensor{{Name: "x", DType: dtype, Shape: []int64{1, 8}}}, Latency: profile.Value(profile.Measured, 1e-3, "")}
	for _, s := range constants {
		l.Inputs = append(l.Inputs, profile.Tensor{Name: "w", DType: dtype, Shape: s, Constant: true})
	}
	return l
}

func profileOf(ls ...profile.Layer) *profile.Profile {
	for i := range ls {
		ls[i].Index = int64(i)
	}
	return &profile.Profile{Schema: profile.SchemaV1, Layers: ls}
}

func TestCapable(t *testing.T) {
	t.Parallel()
	first := layer("Gemm", "int8", []int64{1, 1})
	first.Inputs = []profile.Tensor{{Name: "w", DType: "int8", Shape: []int64{8, 3}, Constant: true}, {Name: "x", Shape: []int64{3, 1}}}
	variable := layer("MatMul", "float32")
	variable.Inputs = append(variable.Inputs, profile.Tensor{Name: "y", Shape: []int64{8, 8}})
	for _, tt := range []struct {
		name         string
		l            profile.Layer
		can          bool
		shape, block string
	}{
		{"float", layer("InnerProduct", "float32", []int64{256, 1024}), true, "256x1024", "1x16"},
		{"8-bit", layer("FULLY_CONNECTED", "int8", []int64{4, 3}, []int64{4}), true, "4x3", "4x16"},
		{"8-bit weights first", first, true, "8x3", "4x1"},
		{"rows not divisible by 4", layer("Gemm", "float32", []int64{6, 8}), false, "6x8", "1x16"},
		{"three dimensions", layer("MatMul", "float32", []int64{4, 4, 4}), false, "4x4x4", "1x16"},
		{"no rows", layer("MatMul", "float32", []int64{0, 4}), false, "0x4", "1x16"},
		{"unknown dimension", layer("MatMul", "float32", []int64{4, -1}), false, "4x?", "1x16"},
		{"weights not constant", variable, false, "", ""},
		{"convolution", layer("Conv", "float32", []int64{4, 4}), false, "", ""},
		{"no inputs", profile.Layer{Op: "MatMul"}, false, "", ""},
	} {
		r := New(profileOf(tt.l)).Rows[0]
		if r.Capable() != tt.can || r.WeightShape != tt.shape || r.Block != tt.block {
			t.Errorf("%s: capable %t, shape %q, block %q; want %t, %q, %q", tt.name, r.Capable(), r.WeightShape, r.Block, tt.can, tt.shape, tt.block)
		}
		if (r.Target != nil) != tt.can {
			t.Errorf("%s: target %v", tt.name, r.Target)
		}
	}
}

// TestStoredWeights has weights that reach the product through another operator, of a
// product of the engine's that stands for several of the model's, and of no product.
func TestStoredWeights(t *testing.T) {
	t.Parallel()
	w := &profile.Weights{Name: "q", DType: "int8", Shape: []int64{8, 16}, Input: 1}
	behind := layer("MatMul", "float32")
	behind.Inputs, behind.Weights = append(behind.Inputs, profile.Tensor{Name: "dequantised", DType: "float32", Shape: []int64{8, 16}}), w
	joined := behind
	joined.Op, joined.Provenance = "fused by the engine", &profile.Provenance{SourceNodes: []profile.SourceNode{{Op: "DynamicQuantizeLinear"}, {Op: "MatMulInteger"}}}
	joined.Inputs = []profile.Tensor{{Name: "x", DType: "float32"}, {Name: "scale", DType: "float32"}, {Name: "q", DType: "int8", Shape: []int64{8, 16}, Constant: true}}
	convolution := behind
	convolution.Op = "Conv"
	got := New(profileOf(behind, joined, convolution))
	if len(got.Shapes) != 1 || got.Shapes[0].Name != "8x16" {
		t.Errorf("shapes %+v", got.Shapes)
	}
	for i, want := range [][]string{{"x", "q"}, {"x", "scale", "q"}, {"x", "dequantised"}} {
		r := &got.Rows[i]
		if capable := i < 2; r.Capable() != capable || !slices.Equal(r.Inputs.Names, want) || capable && (r.Block != "4x16" || r.WeightShape != "8x16") {
			t.Errorf("row %d: %+v, want inputs %q", i, r, want)
		}
	}
	if !slices.Equal(got.Rows[0].Inputs.Types, []string{"fp32", "s8"}) {
		t.Errorf("types %q", got.Rows[0].Inputs.Types)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	sparse := layer("Gemm", "float32", []int64{8, 64})
	sparse.Sparsity = &profile.Sparsity{Weights: new(0.9), Blocks: map[string]float64{"1x16": 0.5, "4x16": 0.1}}
	dense := layer("Gemm", "float32", []int64{64, 8})
	dense.Sparsity = &profile.Sparsity{Weights: new(0.9), Blocks: map[string]float64{"1x16": 0.49}}
	dense.Options = []profile.Option{{Key: "activation", Value: "relu"}, {Key: "alpha", Value: "1"}}
	element := layer("Gemm", "float32", []int64{64, 8})
	element.Sparsity = &profile.Sparsity{Weights: new(0.9)}
	untimed := layer("Gemm", "float32", []int64{128, 8})
	untimed.Latency = nil
	unreached := layer("Add", "float32")
	unreached.State, unreached.Calls = profile.NotReached, new(0.0)
	fused, folded := layer("Add", "float32"), layer("Shape", "int64")
	fused.State, fused.FusedInto, fused.Latency = profile.Fused, new(int64(1)), nil
	folded.State = profile.Folded
	w := New(profileOf(sparse, dense, fused, folded, element, untimed, unreached, layer("Softmax", "float32")))
	var names []string
	for _, s := range w.Shapes {
		names = append(names, s.Name)
	}
	// By number, dimension by dimension: 64 before 128.
	if want := []string{"8x64", "64x8", "128x8"}; !slices.Equal(names, want) {
		t.Errorf("shapes %q, want %q", names, want)
	}
	if len(w.Rows) != 6 {
		t.Fatalf("%d rows, want 6: those that are fused or folded do not run", len(w.Rows))
	}
	if r := w.Rows[0]; r.Target != nil || *r.BlockSparsity != 0.5 {
		t.Errorf("half sparse: target %v, sparsity %v; want none and 0.5", r.Target, r.BlockSparsity)
	}
	if r := w.Rows[1]; r.Target == nil || *r.Target != 0.9 || !slices.Equal(r.PostOp, []string{"relu", "add"}) {
		t.Errorf("dense: target %v, post %q", r.Target, r.PostOp)
	}
	if r := w.Rows[2]; r.BlockSparsity != nil || *r.ElementSparsity != 0.9 || r.Target == nil {
		t.Errorf("blocks not known: %v, elements %v, target %v", r.BlockSparsity, r.ElementSparsity, r.Target)
	}
	// 1 ms each: sparse as it is, dense and element a quarter, softmax as it is.
	s := w.Totals()
	for name, x := range map[string][2]float64{
		"total": {s.Latency, 4e-3}, "aim": {s.Aim, 2.5e-3}, "support": {s.SupportLatency, 3e-3}, "support aim": {s.SupportAim, 1.5e-3},
		"improve": {*s.Improve, 1.6}, "share": {*s.SupportShare, 0.75}, "aim share": {*s.AimShare, 0.6},
	} {
		if math.Abs(x[0]-x[1]) > 1e-12 {
			t.Errorf("%s is %g, want %g", name, x[0], x[1])
		}
	}
	// Edits: each target takes its own ratio, others the last, none or zero keeps.
	w.Shapes[1].Ratios = [4]float64{5, 4, 2, 1.25}
	for target, want := range map[float64]float64{0.9: 0.2e-3, 0.8: 0.25e-3, 0.7: 0.5e-3, 0.5: 0.8e-3} {
		w.Rows[1].Target = &target
		if got := w.Aim(&w.Rows[1]); math.Abs(*got-want) > 1e-12 {
			t.Errorf("target %g: %g s, want %g", target, *got, want)
		}
	}
	w.Shapes[1].Ratios[3], w.Rows[1].Target = 0, new(0.5)
	if got := w.Aim(&w.Rows[1]); *got != 1e-3 {
		t.Errorf("ratio 0: %g s, want the time as it is", *got)
	}
}

func TestTotalsUnknown(t *testing.T) {
	t.Parallel()
	l := layer("Gemm", "float32", []int64{4, 4})
	l.Latency = nil
	if s := New(profileOf(l)).Totals(); s != nil {
		t.Errorf("no times: %+v, want nothing", s)
	}
	l.Latency = profile.Value(profile.Measured, 0, "")
	if s := New(profileOf(l)).Totals(); s == nil || s.Improve != nil || s.SupportShare != nil || s.AimShare != nil {
		t.Errorf("times of zero: %+v, want no quotients", s)
	}
	if s := New(profileOf(layer("Add", "float32"))).Totals(); s == nil || *s.Improve != 1 || s.SupportAim != 0 || *s.AimShare != 0 {
		t.Errorf("nothing can be sparse: %+v, want no change", s)
	}
}

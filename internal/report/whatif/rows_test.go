package whatif

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
)

// Every field of the rows, of an operator that has everything, one that has nothing, and
// one that was not run.
func TestRows(t *testing.T) {
	t.Parallel()
	full := layer("MatMul", "uint8", []int64{8, 4})
	full.Name = "fc"
	full.Inputs = append(full.Inputs, profile.Tensor{Absent: true}, profile.Tensor{Name: "b", DType: "mystery"}, profile.Tensor{Name: "s", DType: "int32", Shape: []int64{}})
	full.Outputs = []profile.Tensor{{Name: "y", DType: "bfloat16", Shape: []int64{1, -1}}}
	full.Options = []profile.Option{{Key: "activation", Value: "none"}, {Key: "other", Value: "tanh"}, {Key: "append_op", Value: "gelu"}}
	full.Sparsity = &profile.Sparsity{Weights: new(0.25), Blocks: map[string]float64{"4x16": 0.125, "1x16": 0.75}}
	skipped := layer("Gemm", "float32", []int64{4, 4})
	skipped.State = profile.Skipped
	fused := layer("RELU", "float32")
	fused.State, fused.FusedInto = profile.Fused, new(int64(0))
	got := New(profileOf(full, fused, profile.Layer{Op: "Add", State: profile.Ran}, skipped))
	want := &Table{
		Shapes: []Shape{{Name: "4x4", Dims: []int64{4, 4}, Ratios: [4]float64{4, 4, 4, 1}}, {Name: "8x4", Dims: []int64{8, 4}, Ratios: [4]float64{4, 4, 4, 1}}},
		Rows: []Row{
			{
				Op: "MatMul", Name: "fc", PostOp: []string{"gelu", "relu"},
				Inputs: Ports{
					Names: []string{"x", "w", "b", "s"}, Shapes: []string{"1x8", "8x4", "?", ""}, Types: []string{"u8", "u8", "mystery", "s32"},
				},
				Outputs:     Ports{Names: []string{"y"}, Shapes: []string{"1x?"}, Types: []string{"bf16"}},
				WeightShape: "8x4", Block: "4x16", BlockSparsity: new(0.125), ElementSparsity: new(0.25),
				Blocks: map[string]float64{"4x16": 0.125, "1x16": 0.75}, Shape: 1, Latency: new(1e-3), Target: new(0.9),
			},
			{Layer: 2, Op: "Add", Shape: -1},
			{
				Layer: 3, Op: "Gemm",
				Inputs: Ports{Names: []string{"x", "w"}, Shapes: []string{"1x8", "4x4"}, Types: []string{"fp32", "fp32"}}, WeightShape: "4x4", Block: "1x16", Target: new(0.9),
			},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("table (-want +got):\n%s", d)
	}
}

// The names of element types are letter and width, those of floating point begin
// with f but for bfloat16.
func TestTypes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"float32": "fp32", "float16": "fp16", "float64": "fp64", "bfloat16": "bf16",
		"int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
	}
	if d := cmp.Diff(want, types); d != "" {
		t.Error(d)
	}
}

// With ratios of 1 nothing is gained: every operator's time is what it is.
func TestPlain(t *testing.T) {
	t.Parallel()
	p := profileOf(layer("Gemm", "float32", []int64{4, 4}), layer("InnerProduct", "float32", []int64{8, 4}))
	w := Plain(p)
	if s := w.Totals(); s.Latency != 2e-3 || s.Aim != 2e-3 || s.SupportAim != 2e-3 || *s.Improve != 1 {
		t.Errorf("totals %+v", s)
	}
	for _, s := range w.Shapes {
		if s.Ratios != [4]float64{1, 1, 1, 1} {
			t.Errorf("%s: ratios %v", s.Name, s.Ratios)
		}
	}
	// A row that cannot be sparse or has no target has no ratio, and one of less than
	// nothing changes nothing.
	for i := range w.Rows {
		r := &w.Rows[i]
		w.Shapes[r.Shape].Ratios[0] = -1
		if got := w.Aim(r); *got != 1e-3 {
			t.Errorf("ratio -1: %g s", *got)
		}
		if v, ok := w.Ratio(r); !ok || v != -1 {
			t.Errorf("ratio %g, %t", v, ok)
		}
		r.Target = nil
		if v, ok := w.Ratio(r); ok || v != 0 {
			t.Errorf("no target: ratio %g", v)
		}
	}
}

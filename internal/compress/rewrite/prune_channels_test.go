package rewrite_test

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/study"
)

// alike compares outputs of a model with zeros and of one with the units removed. Floats are
// summed in another order, which affects the last bits. Quantised values may differ by one, and
// so may 16-bit results, to which every layer rounds. Operators with integer weights and float
// activations quantise their inputs by a range that includes the removed units: one of 127 steps.
func alike(t *testing.T, what string, got, want *tensor.Tensor, hybrid bool) {
	t.Helper()
	if got == nil && want == nil {
		return
	}
	if got == nil || want == nil || got.Type != want.Type || got.Len() != want.Len() {
		t.Errorf("%s: %+v, want %+v", what, got, want)
		return
	}
	if !want.Type.IsNumber() {
		return
	}
	a, b := make([]float64, got.Len()), make([]float64, want.Len())
	tensor.Read(a, got, 0)
	tensor.Read(b, want, 0)
	most := 0.0
	for _, x := range b {
		most = max(most, x, -x)
	}
	slack := 1e-4 * most
	switch {
	case hybrid:
		slack = most / 127
	case !want.Type.IsFloat():
		slack = 1
	case want.Type == tensor.Float16:
		slack = most / 256 // four units of 11 bits: what layers round apart adds up
	}
	for i := range a {
		if d := a[i] - b[i]; max(d, -d) > slack {
			t.Errorf("%s: element %d is %v, want %v (largest %v)", what, i, a[i], b[i], most)
			return
		}
	}
}

// TestRemoved removes channels and filters from all reference models: the rest computes the same
// as the model with zeros.
func TestRemoved(t *testing.T) {
	t.Parallel()
	each(t, 1<<20, []string{"real", "mcu", "synthetic"}, huge, func(t *testing.T, _ string, m *graph.Model) {
		layers := weights.Find(m, nil)
		if len(layers) == 0 {
			t.Skip("no weights")
		}
		in := madeInputs(t, m)
		if !runs(t, m, in) {
			t.Skip("does not run by itself")
		}
		hybrid := slices.ContainsFunc(layers, func(l *weights.Layer) bool {
			return m.Format == "tflite" && l.Quant != nil && l.Data >= 0 && m.Main().Values[l.Data].Type == tensor.Float32
		})
		for _, s := range []study.Structure{study.Filter, study.Channel} {
			changes := make([]rewrite.Change, len(layers))
			for i, l := range layers {
				changes[i] = rewrite.Change{Layer: l, Change: study.Change{Structure: s, Level: 0.5}}
			}
			zeroed, _, err := rewrite.Apply(m, changes, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			removed, effects, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
			if err != nil {
				t.Fatal(err)
			}
			n, causes, left, all := 0, map[study.Cause]int{}, int64(0), int64(0)
			for i, e := range effects {
				n += e.Removed
				causes[e.Cause]++
				left += e.Weights
				all += layers[i].Weights()
			}
			t.Logf("%s: %d taken out, %d of %d weights left, %v", s, n, left, all, causes)
			if err := removed.Validate(); err != nil {
				t.Fatal(err)
			}
			want, got := run(t, zeroed, in, engine.Options{Exact: true}), run(t, parse(t, removed), in, engine.Options{Exact: true})
			for i := range m.Main().Outputs {
				alike(t, string(s), got.Output(i), want.Output(i), hybrid)
			}
		}
	})
}

package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnrun holds the rule for what most of the work is against models at its edges.
func TestUnrun(t *testing.T) {
	t.Parallel()
	layer := func(s State, macs int64) Layer {
		l := Layer{Op: "X", State: s}
		if macs >= 0 {
			l.MACs = &macs
		}
		return l
	}
	for _, tt := range []struct {
		name   string
		layers []Layer
		idle   []int64
		most   bool
	}{
		{"no layers", nil, nil, false},
		{"all ran", []Layer{layer(Ran, 5), layer(Ran, -1)}, nil, false},
		{"half of the work", []Layer{layer(Ran, 5), layer(Failed, 5)}, []int64{1}, false},
		{"more than half of the work", []Layer{layer(Ran, 5), layer(Ran, 0), layer(Failed, 6)}, []int64{2}, true},
		{"many layers of little work", []Layer{layer(Ran, 50), layer(Failed, 1), layer(Skipped, 0), layer(Unsupported, 1)}, []int64{1, 2, 3}, false},
		{"half of the layers without counts", []Layer{layer(Ran, 9), layer(Failed, -1)}, []int64{1}, false},
		{"most layers without counts", []Layer{layer(Ran, 9), layer(Failed, -1), layer(Skipped, -1)}, []int64{1, 2}, true},
		{"layers of no work at all", []Layer{layer(Ran, 0), layer(Skipped, 0), layer(Skipped, 0)}, []int64{1, 2}, true},
		{"branches not taken", []Layer{layer(Ran, -1), layer(NotReached, 90), layer(NotReached, 90), layer(Failed, -1), layer(Skipped, -1)}, []int64{3, 4}, true},
		{"computed at load", []Layer{layer(Ran, -1), {Op: "X", State: Folded, Constant: true}, {Op: "X", State: Folded, Constant: true}, layer(Failed, -1), layer(Skipped, -1)}, []int64{3, 4}, true},
		{"lost and not estimated ran", []Layer{layer(Lost, 9), layer(NoEstimate, 9)}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &Profile{Layers: tt.layers}
			idle, most := p.Unrun()
			if d := cmp.Diff(tt.idle, idle); d != "" || most != tt.most {
				t.Errorf("most %v, want %v; layers (-want +got):\n%s", most, tt.most, d)
			}
		})
	}
}

// TestNothingToQuote takes every figure of the whole away where most did not run, and
// leaves those of layers.
func TestNothingToQuote(t *testing.T) {
	t.Parallel()
	for _, most := range []bool{false, true} {
		b := begun(t)
		state := Failed
		if !most {
			state = Ran
		}
		send(t, b, Event{Refined: &Refined{Layer: 1, State: state}}) // the one with work
		if err := b.Count(-1, "processor_s", Value(Measured, 3, "")); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"latency_s", "energy_j", "cpu_cycles"} {
			if err := b.Count(-1, key, Value(Measured, 3, "")); err != nil {
				t.Fatal(err)
			}
			if err := b.Count(0, key, Value(Measured, 2, "")); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Measure(-1, "latency_s", 1, 2, 3); err != nil {
			t.Fatal(err)
		}
		send(t, b, Event{Noted: &Noted{Reconcile: &Reconcile{WallS: new(3.0)}}})
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		quoted := p.Totals.Latency != nil || p.Totals.Energy != nil || p.Totals.CPUCycles != nil || p.Totals.LatencySamples != nil ||
			p.Reconcile != nil || p.Totals.Figure("processor_s") != nil || p.Rates().InferencesPerSecond != nil
		told := len(p.Incomplete) == 1 && p.Incomplete[0].Cause == ByWork && cmp.Equal(p.Incomplete[0].Layers, []int64{1})
		if quoted == most || told != most {
			t.Errorf("most did not run: %v, figures to quote: %v, told: %v (%+v)", most, quoted, told, p.Incomplete)
		}
		if p.Layers[0].Latency == nil {
			t.Error("the time of a layer is gone")
		}
	}
}

// TestStarved: a model that lacks a layer because memory ran out has no figure of the whole,
// however little work the layer is. A layer that failed for another reason leaves it.
func TestStarved(t *testing.T) {
	t.Parallel()
	for _, cause := range []CauseCode{ByMemory, ByError} {
		b := begun(t)
		send(t, b, Event{Refined: &Refined{Layer: 0, State: Failed, Cause: &Cause{Code: cause, Text: "no"}}})
		for _, l := range []int{-1, 1} {
			if err := b.Count(l, "latency_s", Value(Measured, 3, "")); err != nil {
				t.Fatal(err)
			}
		}
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if _, most := p.Unrun(); most {
			t.Fatal("the layer is most of the work")
		}
		if starved := cause == ByMemory; (p.Totals.Latency == nil) != starved || (len(p.Incomplete) == 1) != starved || (p.Starved() != nil) != starved {
			t.Errorf("%s: latency %v, incomplete %+v", cause, p.Totals.Latency, p.Incomplete)
		}
		if p.Layers[1].Latency == nil {
			t.Errorf("%s: the time of a layer is gone", cause)
		}
	}
}

// TestWorkNotKnown never sums up counts that are not known to nothing.
func TestWorkNotKnown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		macs  []*int64
		total *int64
	}{
		{"nothing known", []*int64{nil, nil}, nil},
		{"none beside not known", []*int64{new(int64(0)), nil}, nil},
		{"some beside not known", []*int64{new(int64(7)), nil}, new(int64(7))},
		{"none", []*int64{new(int64(0)), new(int64(0))}, new(int64(0))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &Profile{}
			for i, n := range tt.macs {
				p.Layers = append(p.Layers, Layer{Index: int64(i), Op: "X", State: Ran, MACs: n})
			}
			p.sum()
			if d := cmp.Diff(tt.total, p.Totals.MACs); d != "" {
				t.Errorf("multiply-accumulates (-want +got):\n%s", d)
			}
		})
	}
}

func TestShapeTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		t              Tensor
		shape, declare string
	}{
		{Tensor{}, "?", ""},
		{Tensor{Shape: []int64{}}, "scalar", ""},
		{Tensor{Shape: []int64{1, -1, 3}}, "1x?x3", ""},
		{Tensor{Shape: []int64{1, 3, 1, 1}, Declared: []int64{-1, 3, -1, -1}}, "1x3x1x1", "?x3x?x?"},
		{Tensor{Shape: []int64{1, 3}, Declared: []int64{-1, 3}, DimNames: []string{"batch", ""}}, "1x3", "batch x 3"},
		{Tensor{Shape: []int64{1, 3, 2}, Declared: []int64{-1, 3, -1}, DimNames: []string{"N", "", "n + 1"}}, "1x3x2", "N x 3 x n + 1"},
		{Tensor{Shape: []int64{1, 1}, Declared: []int64{-1, -1}, DimNames: []string{"unk__7", "p2o.DynamicDimension.0"}}, "1x1", "?x?"},
		{Tensor{Shape: []int64{1, 1}, Declared: []int64{-1, -1}, DimNames: []string{"rows", "\x1b[31m"}}, "1x1", "rows x ?"},
	} {
		if got := ShapeText(tt.t.Shape); got != tt.shape {
			t.Errorf("shape %q, want %q", got, tt.shape)
		}
		if got := tt.t.DeclaredText(); got != tt.declare {
			t.Errorf("declared %q, want %q", got, tt.declare)
		}
	}
}

package estimate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Where the processor does everything, time is its cycles over its clock, and so are the
// bounds of the whole model's.
func TestBandsAgree(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"efr32xg24"} {
		tg := find(t, id)
		p := estimated(t, dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), tg, chip.Options{})
		c, hz := p.Totals.CPUCycles, *p.Target.ClockHz
		if c == nil || c.Band == nil {
			t.Fatalf("%s: cycles %+v", id, c)
		}
		is(t, id, p.Totals.Latency, best(c)/hz, c.Band[0]/hz, c.Band[1]/hz)
		if b := tg.Runtimes[0].Calibration; b == nil || b.Band == nil {
			t.Fatalf("%s has no band of whole models", id)
		} else if c.Band[0] > best(c)*b.Band[0]*(1+1e-9) || c.Band[1] < best(c)*b.Band[1]*(1-1e-9) {
			t.Errorf("%s: band %v of %v is less than %v", id, *c.Band, best(c), *b.Band)
		}
	}
}

// A model without operators is not an error: its profile says what it is for and has no figure,
// as there is nothing that takes time.
func TestNoLayers(t *testing.T) {
	t.Parallel()
	v := &graph.Value{Name: "in", Type: tensor.Int8, Shape: []int{1, 4}, HasShape: true}
	m := &graph.Model{Format: "tflite", Path: "net.tflite", FileBytes: 1000, Graphs: []*graph.Graph{{Inputs: []int{0}, Outputs: []int{0}, Values: []*graph.Value{v}}}}
	p := estimated(t, m, byHand(), chip.Options{})
	if len(p.Layers) != 0 || p.Target.ID != "board" || p.Totals.Latency != nil {
		t.Errorf("%d layers on %q, time %+v", len(p.Layers), p.Target.ID, p.Totals.Latency)
	}
}

// One model is estimated on many targets: none leaves anything behind for the next.
func TestManyTargets(t *testing.T) {
	t.Parallel()
	m, err := Prepare(dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), inputs.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow := byHand()
	slow.Runtimes[0].Cortexm.Integer.Cycles[cortexm.Op] = 300
	on := func(tg *chip.Target) *profile.Profile {
		p, err := source.Collect(t.Context(), &Source{Model: m, Target: tg}, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second, again := on(byHand()), on(slow), on(byHand())
	for i, cycles := range [][2]float64{{2480, 2680}, {600, 800}} {
		a, b, c := first.Layers[i].CPUCycles, second.Layers[i].CPUCycles, again.Layers[i].CPUCycles
		if best(a) != cycles[0] || best(b) != cycles[1] || best(c) != cycles[0] {
			t.Errorf("layer %d: %v, %v and %v cycles, want %v, %v and %v", i, best(a), best(b), best(c), cycles[0], cycles[1], cycles[0])
		}
	}
	if d := cmp.Diff(m.base.Layers, described(t).Layers); d != "" {
		t.Errorf("the description has changed:\n%s", d)
	}
}

// described is the model as it is before any estimate.
func described(t *testing.T) *profile.Profile {
	t.Helper()
	m, err := Prepare(dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), inputs.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m.base
}

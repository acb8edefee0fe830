package cortexm_test

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// chain makes a model of dense layers of 10 x 20, one for each type of activations.
func chain(types ...tensor.Type) *graph.Model {
	g := &graph.Graph{}
	value := func(t tensor.Type, shape ...int) int {
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Type: t, Shape: shape, HasShape: true})
		return len(g.Values) - 1
	}
	for i, t := range types {
		w := t
		if t == tensor.Int16 {
			w = tensor.Int8
		}
		n := &graph.Node{Index: i, Op: "FULLY_CONNECTED", Domain: graph.TFLite, Inputs: []int{value(t, 1, 20), value(w, 10, 20)}, Outputs: []int{value(t, 1, 10)}}
		g.Nodes = append(g.Nodes, n)
	}
	return &graph.Model{Format: "tflite", Graphs: []*graph.Graph{g}}
}

// board has figures that can be added up by hand: 100 cycles a call, 10 an operator, and
// 1, 2 and 4 a product with 8 bits, 16 bits and floating point.
func board() *chip.Target {
	terms := func(call, op, mac float64) (t chip.Terms) {
		t[cortexm.Call], t[cortexm.Op], t[cortexm.DenseMAC] = call, op, mac
		return t
	}
	float := terms(0, 0, 4)
	float[cortexm.DenseOutput] = 0.001
	return &chip.Target{ID: "board", Runtimes: []chip.Runtime{{
		Name: "r", Cortexm: &chip.Structural{
			Family: "tflm-cmsis-nn", Tier: "dsp",
			Integer: chip.Integer{Cycles: terms(100, 10, 1), Near: 0.2, Far: 0.2, Layer: 0.5},
			Int16:   &chip.Typed{Measured: "dense", Near: 0.3, Far: 0.6, Cycles: terms(50, 5, 2)},
			Float:   &chip.Typed{Measured: "conv", Near: 0.4, Far: 0.5, Cycles: float},
		},
		Builds: []chip.Build{{Name: "size", Integer: terms(0, 0, 3), Band: 0.15}, {Name: "no-fpu", Float: terms(0, 0, 10), Band: 0.3}},
	}}}
}

// TestTotals asks for totals and both ends of their bands to be what the figures make:
// no wider and no narrower.
func TestTotals(t *testing.T) {
	t.Parallel()
	const i8, i16, f32 = tensor.Int8, tensor.Int16, tensor.Float32
	const products = 200.0
	// part is a share of the cycles with half-widths of errors that go together.
	type part struct{ cycles, half float64 }
	band := func(parts ...part) (v, low, high float64) {
		for _, p := range parts {
			v += p.cycles
			low += math.Pow(p.cycles*(1-math.Exp(-p.half)), 2)
			high += math.Pow(p.cycles*(math.Exp(p.half)-1), 2)
		}
		return v, v - math.Sqrt(low), v + math.Sqrt(high)
	}
	for _, c := range []struct {
		name  string
		types []tensor.Type
		build string
		parts []part
	}{
		{"8 bits", []tensor.Type{i8}, "", []part{{100 + 10 + products, 0.2}}},
		{"two layers err together", []tensor.Type{i8, i8}, "", []part{{100 + 2*(10+products), 0.2}}},
		{"16 bits", []tensor.Type{i16}, "", []part{{50 + 5 + 2*products, 0.3}}},
		{"types err apart", []tensor.Type{i8, i8, i16}, "", []part{{100 + 2*(10+products), 0.2}, {5 + 2*products, 0.3}}},
		{"built for size", []tensor.Type{i8}, "size", []part{{100 + 10 + 3*products, math.Hypot(0.2, 0.15)}}},
		{"built for size, 16 bits", []tensor.Type{i16}, "size", []part{{50 + 5 + 3*2*products, math.Hypot(0.3, 0.15)}}},
		{"a build that changes nothing here", []tensor.Type{i8}, "no-fpu", []part{{100 + 10 + products, 0.2}}},
	} {
		tg := board()
		m := chain(c.types...)
		costs, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{Build: c.build})
		if err != nil {
			t.Fatal(err)
		}
		v, low, high := band(c.parts...)
		f := costs.Latency
		for _, x := range [][2]float64{{f.Value, v}, {f.Low, low}, {f.High, high}} {
			if !(math.Abs(x[0]-x[1]) <= 1e-9*v) {
				t.Errorf("%s: %v (%v to %v), want %v (%v to %v)", c.name, f.Value, f.Low, f.High, v, low, high)
				break
			}
		}
		sum := 0.0
		for _, l := range costs.Layers {
			sum += l.Latency.Value
			if !(l.Latency.Low < l.Latency.Value && l.Latency.Value < l.Latency.High) {
				t.Errorf("%s: a layer of %+v", c.name, l.Latency)
			}
		}
		if !(math.Abs(sum-f.Value) <= 1e-9*v) {
			t.Errorf("%s: layers add up to %v of %v", c.name, sum, f.Value)
		}
	}
}

// TestBuildBound keeps the estimate of the default build where a build was not measured on the
// board, and raises the upper end of the band by what other boards measured.
func TestBuildBound(t *testing.T) {
	t.Parallel()
	tg := board()
	bound := chip.Build{Name: "size"}
	bound.IntegerBound[cortexm.DenseMAC] = 3
	tg.Runtimes[0].Builds = append(tg.Runtimes[0].Builds[1:], bound)
	m := chain(tensor.Int8, tensor.Int8)
	costs := func(build string) *chip.Costs {
		c, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{Build: build})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	usual, size := costs(""), costs("size")
	// Of 520 cycles 400 are products, which may take three times as long.
	want := usual.Latency.High * (520 + 2*400) / 520
	if got := size.Latency; got.Value != usual.Latency.Value || got.Low != usual.Latency.Low || !(math.Abs(got.High-want) <= 1e-9*want) {
		t.Errorf("%+v, want %v and %v to %v", got, usual.Latency.Value, usual.Latency.Low, want)
	}
	if len(size.Remarks) != len(usual.Remarks)+1 {
		t.Errorf("remarks %q", size.Remarks)
	}
	if a, b := usual.Layers[1].CPU, size.Layers[1].CPU; a.Value != b.Value || a.Low != b.Low || !(math.Abs(b.High-a.High*(210+400)/210) <= 1e-9*b.High) {
		t.Errorf("a layer of %+v, of the usual build %+v", b, a)
	}
}

// TestSoftQuantise prices quantisation as floating point where it is computed in software.
func TestSoftQuantise(t *testing.T) {
	t.Parallel()
	g := &graph.Graph{Values: []*graph.Value{
		{ID: 0, Type: tensor.Float32, Shape: []int{1, 50}, HasShape: true}, {ID: 1, Type: tensor.Int8, Shape: []int{1, 50}, HasShape: true},
	}}
	g.Nodes = []*graph.Node{{Op: "QUANTIZE", Domain: graph.TFLite, Inputs: []int{0}, Outputs: []int{1}}}
	m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{g}}
	for _, c := range []struct {
		fpu, build string
		want       float64 // of a call, an operator and 50 elements
	}{{"single", "", 100 + 10 + 50*3}, {"none", "", 100 + 10 + 50*700}, {"single", "no-fpu", 100 + 10 + 50*700}} {
		tg := board()
		tg.Core.FPU = c.fpu
		s := tg.Runtimes[0].Cortexm
		s.Integer.Cycles[cortexm.PlainElement], s.Float.Cycles[cortexm.PlainElement] = 3, 700
		costs, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{Build: c.build})
		if err != nil {
			t.Fatal(err)
		}
		if got := costs.Latency.Value; got != c.want {
			t.Errorf("FPU %s, build %q: %v cycles, want %v", c.fpu, c.build, got, c.want)
		}
	}
}

// TestHalf is the half-width between what was seen and what is far, and of overhead.
func TestHalf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ near, far, ports, distance, overhead, want float64 }{
		{0.2, 0.6, 1.1, 0, 0, 0.2},
		{0.2, 0.6, 1.1, cortexm.FarAway / 2, 0, 0.4},
		{0.2, 0.6, 1.1, cortexm.FarAway, 0, 0.6},
		{0.2, 0.6, 1.1, 1, 0, 0.6},
		{0.2, 0.6, 1.1, 1, 1, 1.3},
		{0.2, 0.6, 0, 1, 1, 0.2},
		{0.2, 0.6, 1.1, 0, 0.5, 0.75},
	} {
		if got := cortexm.Half(c.near, c.far, c.ports, c.distance, c.overhead); !(math.Abs(got-c.want) < 1e-12) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

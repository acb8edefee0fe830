package cortexm_test

import (
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// near compares with room for rounding.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-12*math.Max(1, math.Abs(want))) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestVectors has sums and products of work.
func TestVectors(t *testing.T) {
	t.Parallel()
	a := cortexm.Vector{cortexm.Call: 1, cortexm.ConvMAC: 2, cortexm.PlainMove: 3}
	b := cortexm.Vector{cortexm.Call: 5, cortexm.DenseMAC: 7, cortexm.PlainMove: 11}
	if got, want := a.Plus(b), (cortexm.Vector{cortexm.Call: 6, cortexm.ConvMAC: 2, cortexm.DenseMAC: 7, cortexm.PlainMove: 14}); got != want {
		t.Errorf("sum %v, want %v", got, want)
	}
	if got := a.Dot(b); got != 5+33 {
		t.Errorf("product %v, want 38", got)
	}
	for k, want := range map[cortexm.Type]string{cortexm.Int8: "int8", cortexm.Int16: "int16", cortexm.Float: "float32"} {
		if k.String() != want {
			t.Errorf("%q, want %q", k, want)
		}
	}
}

// TestMixes has shares of cycles and how far they are from each other.
func TestMixes(t *testing.T) {
	t.Parallel()
	coef := cortexm.Vector{cortexm.Call: 100, cortexm.Op: 10, cortexm.ConvMAC: 2, cortexm.DenseMAC: 3}
	work := cortexm.Vector{cortexm.Call: 1, cortexm.Op: 5, cortexm.ConvMAC: 30, cortexm.DenseMAC: 80}
	// 60 and 240 of 300; calls are 100 and operators 50 of 450.
	if got, want := cortexm.Mix(coef, work), (cortexm.Vector{cortexm.ConvMAC: 0.2, cortexm.DenseMAC: 0.8}); got != want {
		t.Errorf("mix %v, want %v", got, want)
	}
	near(t, "overhead", cortexm.Overhead(coef, work), 150.0/450)
	near(t, "overhead of nothing", cortexm.Overhead(coef, cortexm.Vector{}), 0)
	near(t, "overhead of less than a cycle", cortexm.Overhead(coef, cortexm.Vector{cortexm.Call: 0.001, cortexm.ConvMAC: 0.15}), 0.1/0.4)
	if got := cortexm.Mix(coef, cortexm.Vector{cortexm.Call: 1, cortexm.Op: 3}); got != (cortexm.Vector{}) {
		t.Errorf("mix of overhead only %v, want none", got)
	}
	if got, want := cortexm.Mix(coef, cortexm.Vector{cortexm.ConvMAC: 0.25}), (cortexm.Vector{cortexm.ConvMAC: 1}); got != want {
		t.Errorf("mix of half a cycle %v, want %v", got, want)
	}
	a := cortexm.Vector{cortexm.ConvMAC: 0.5, cortexm.DenseMAC: 0.5}
	b := cortexm.Vector{cortexm.ConvMAC: 0.25, cortexm.PointMAC: 0.75}
	near(t, "distance", cortexm.Distance(a, b), 0.75)
	near(t, "distance back", cortexm.Distance(b, a), 0.75)
	near(t, "distance to itself", cortexm.Distance(a, a), 0)
	near(t, "nearest", cortexm.Nearest(a, []cortexm.Vector{b, {cortexm.DenseMAC: 1}}), 0.5)
	near(t, "nearest of none", cortexm.Nearest(a, nil), 1)
}

// TestCoefficients refuses what cannot be a cost.
func TestCoefficients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		want string
	}{{0, ""}, {1, ""}, {-0.5, "conv_mac are -0.5"}, {math.NaN(), "conv_mac are NaN"}, {math.Inf(1), "conv_mac are +Inf"}} {
		rt := &chip.Runtime{Cortexm: &chip.Structural{}}
		rt.Cortexm.Integer.Cycles[cortexm.ConvMAC] = c.v
		v, err := cortexm.Coefficients(rt)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.v, err, c.want)
		}
		if err == nil && v[cortexm.ConvMAC] != c.v {
			t.Errorf("%v: %v", c.v, v)
		}
	}
	for _, rt := range []*chip.Runtime{nil, {}} {
		if _, err := cortexm.Coefficients(rt); err == nil {
			t.Error("a runtime without figures has some")
		}
	}
	// Errors name target and runtime.
	m := chain(tensor.Int8)
	if _, err := (cortexm.Model{}).Costs(m, m.Main(), &chip.Target{ID: "board"}, &chip.Runtime{Name: "r"}, chip.Options{}); err == nil || !strings.Contains(err.Error(), "target board, runtime r: ") {
		t.Errorf("error %v", err)
	}
}

// estimator reads the figures of a board, of the usual build where build is "".
func estimator(t *testing.T, tg *chip.Target, build string) *cortexm.Estimator {
	t.Helper()
	e, err := cortexm.NewEstimator(tg, tg.Runtime(""), chip.Options{Build: build})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestLayerBands has the cycles of one layer and the half-width of its band, in
// logarithms: the mean of those of its terms by their cycles.
func TestLayerBands(t *testing.T) {
	t.Parallel()
	integer := func(l *cortexm.Layer) { l.Type = cortexm.Int8 }
	wide := func(l *cortexm.Layer) { l.Type = cortexm.Int16 }
	float := func(l *cortexm.Layer) { l.Type = cortexm.Float }
	for _, c := range []struct {
		name         string
		change       func(s *chip.Structural, b *chip.Build)
		kind         func(*cortexm.Layer)
		work         cortexm.Vector
		build        string
		cycles, half float64
		missing      chip.MissingCode
	}{
		{"one term", nil, integer, cortexm.Vector{cortexm.DenseMAC: 50}, "", 50, 0.5, ""},
		{"less than a cycle", nil, integer, cortexm.Vector{cortexm.DenseMAC: 0.25}, "", 0.25, 0.5, ""},
		{"nothing to do", nil, integer, cortexm.Vector{}, "", 0, 0, ""},
		{"a band of its own", func(s *chip.Structural, _ *chip.Build) { s.Integer.Bands[cortexm.DenseMAC] = 0.9 }, integer, cortexm.Vector{cortexm.Op: 3, cortexm.DenseMAC: 50}, "", 80, (30*0.5 + 50*0.9) / 80, ""},
		// Dense was measured, convolutions were carried over.
		{"16 bits, measured", nil, wide, cortexm.Vector{cortexm.DenseMAC: 50}, "", 100, 0.3, ""},
		{"16 bits, carried over", func(s *chip.Structural, _ *chip.Build) { s.Int16.Cycles[cortexm.ConvMAC] = 4 }, wide, cortexm.Vector{cortexm.ConvMAC: 50}, "", 200, 0.6, ""},
		{"16 bits, overhead", nil, wide, cortexm.Vector{cortexm.Op: 4}, "", 20, 0.5, ""},
		{"16 bits, rough with 8", func(s *chip.Structural, _ *chip.Build) {
			s.Int16.Cycles[cortexm.PlainMAC], s.Integer.Bands[cortexm.PlainMAC] = 4, 0.4
		}, wide, cortexm.Vector{cortexm.PlainMAC: 50}, "", 200, 0.5, ""}, // of 0.3 and 0.4
		{"16 bits not measured", func(s *chip.Structural, _ *chip.Build) { s.Int16 = nil }, wide, cortexm.Vector{cortexm.DenseMAC: 50}, "", 50, 0.5, ""},
		{"floats, overhead of the runtime", nil, float, cortexm.Vector{cortexm.Op: 4}, "", 40, 0.5, ""},
		{"floats, overhead of their own", func(s *chip.Structural, _ *chip.Build) { s.Float.Cycles[cortexm.Op] = 7 }, float, cortexm.Vector{cortexm.Op: 4}, "", 28, 0.5, ""},
		{"a build", nil, integer, cortexm.Vector{cortexm.DenseMAC: 50}, "size", 150, math.Hypot(0.5, 0.15), ""},
		{"a build, what it leaves", nil, integer, cortexm.Vector{cortexm.Op: 5}, "size", 50, math.Hypot(0.5, 0.15), ""},
		{"a build, 16 bits like 8", nil, wide, cortexm.Vector{cortexm.DenseMAC: 50}, "size", 300, math.Hypot(0.3, 0.15), ""},
		{"a build, 16 bits", func(_ *chip.Structural, b *chip.Build) { b.Int16[cortexm.DenseMAC] = 2 }, wide, cortexm.Vector{cortexm.DenseMAC: 50}, "size", 200, math.Hypot(0.3, 0.15), ""},
		{"a build, floats as they are", nil, float, cortexm.Vector{cortexm.DenseMAC: 50}, "size", 200, 0.5, ""},
		{"a build of floats", nil, float, cortexm.Vector{cortexm.DenseMAC: 50}, "no-fpu", 2000, math.Hypot(0.5, 0.3), ""},

		{"plain C is not measured", nil, integer, cortexm.Vector{cortexm.PlainMAC: 1}, "", 0, 0, chip.MissingData},
		{"nor is what follows", nil, integer, cortexm.Vector{cortexm.PlainMove: 1}, "", 0, 0, chip.MissingData},
		{"kernels of integers may cost nothing", nil, integer, cortexm.Vector{cortexm.DenseMAC: 5, cortexm.MoveElement: 9}, "", 5, 0.5, ""},
		{"floats that are not measured", nil, float, cortexm.Vector{cortexm.ConvMAC: 1}, "", 0, 0, chip.MissingType},
		{"windows of floats may cost nothing", nil, float, cortexm.Vector{cortexm.DenseMAC: 5, cortexm.ConvWindow: 1, cortexm.ConvGather: 1, cortexm.PointGather: 1}, "", 20, 0.5, ""},
		{"floats that are not known at all", func(s *chip.Structural, _ *chip.Build) { s.Float = nil }, float, cortexm.Vector{cortexm.Op: 1}, "", 0, 0, chip.MissingType},
	} {
		tg := board()
		rt := &tg.Runtimes[0]
		if c.change != nil {
			c.change(rt.Cortexm, &rt.Builds[0])
		}
		l := cortexm.Layer{Work: c.work, Live: c.work, Kernel: "k"}
		c.kind(&l)
		e := estimator(t, tg, c.build)
		got := e.Layer(&l, "OP")
		if c.missing != "" {
			if got.Missing == nil || got.Missing.Code != c.missing || !strings.Contains(got.Missing.Text, "OP") || got.Latency != nil {
				t.Errorf("%s: %+v, want %q", c.name, got, c.missing)
			}
			continue
		}
		if got.Missing != nil || got.Kernel != "k" || got.Simulated != -1 || got.Latency == nil || *got.Latency != *got.CPU {
			t.Errorf("%s: %+v", c.name, got)
			continue
		}
		near(t, c.name, got.CPU.Value, c.cycles)
		near(t, c.name+", low", got.CPU.Low, c.cycles*math.Exp(-c.half))
		near(t, c.name+", high", got.CPU.High, c.cycles*math.Exp(c.half))
	}
}

// TestPruned leaves out what is zero where the runtime does.
func TestPruned(t *testing.T) {
	t.Parallel()
	l := cortexm.Layer{Work: cortexm.Vector{cortexm.DenseMAC: 50}, Live: cortexm.Vector{cortexm.DenseMAC: 20}}
	for pruned, want := range map[bool]float64{false: 50, true: 20} {
		tg := board()
		tg.Runtimes[0].Cortexm.Pruned = pruned
		if got := estimator(t, tg, "").Layer(&l, "OP").CPU.Value; got != want {
			t.Errorf("pruned %v: %v cycles, want %v", pruned, got, want)
		}
	}
}

// TestSlowMemory states when reading weights costs time: on chips with no flash inside
// and a stated cost of that outside; at each pass where a quarter of the cache does not
// hold them.
func TestSlowMemory(t *testing.T) {
	t.Parallel()
	cost := 2.0
	outside := chip.Memory{Role: "external-flash", Size: 1 << 20, Cache: 400, ReadCyclesPerByte: &cost}
	unknown := outside
	unknown.ReadCyclesPerByte = nil
	for _, c := range []struct {
		name     string
		memories []chip.Memory
		bytes    float64
		want     float64
	}{
		{"none is known", nil, 1000, 0},
		{"flash outside", []chip.Memory{outside}, 1000, 2 * 1000 * 3},
		{"behind other memories", []chip.Memory{{Role: "ram", Size: 4, ReadCyclesPerByte: &cost}, outside}, 1000, 2 * 1000 * 3},
		{"RAM is not read from", []chip.Memory{{Role: "ram", Size: 4, ReadCyclesPerByte: &cost}}, 1000, 0},
		{"of unknown cost", []chip.Memory{unknown}, 1000, 0},
		{"flash inside, too", []chip.Memory{outside, {Role: "flash", Size: 100}}, 1000, 0},
		{"a quarter of the cache", []chip.Memory{outside}, 100, 2 * 100},
		{"a byte more", []chip.Memory{outside}, 101, 2 * 101 * 3},
	} {
		tg := board()
		tg.Memories = c.memories
		l := cortexm.Layer{Work: cortexm.Vector{cortexm.DenseMAC: 50}, WeightBytes: c.bytes, Passes: 3}
		got := estimator(t, tg, "").Layer(&l, "OP").CPU
		near(t, c.name, got.Value, 50+c.want)
		// Boards differ by a factor of two in waiting, 0.7 in logarithms.
		half := (50*0.5 + c.want*0.7) / (50 + c.want)
		near(t, c.name+", band", got.High, (50+c.want)*math.Exp(half))
	}
}

// TestPlace moves a model to RAM, which does not wait, and to flash outside of a chip with both.
func TestPlace(t *testing.T) {
	t.Parallel()
	cost := 2.0
	outside := chip.Memory{Role: "external-flash", Size: 1 << 20, Cache: 400, ReadCyclesPerByte: &cost}
	inside := chip.Memory{Role: "flash", Size: 100}
	for _, c := range []struct {
		place    string
		memories []chip.Memory
		want     float64
	}{
		{"", []chip.Memory{outside}, 50 + 2*1000*3},
		{chip.FlashRAM, []chip.Memory{outside}, 50},
		{"", []chip.Memory{inside, outside}, 50},
		{chip.FlashExternal, []chip.Memory{inside, outside}, 50 + 2*1000*3},
	} {
		tg := board()
		tg.Memories = c.memories
		e, err := cortexm.NewEstimator(tg, tg.Runtime(""), chip.Options{Flash: c.place})
		if err != nil {
			t.Fatal(err)
		}
		l := cortexm.Layer{Work: cortexm.Vector{cortexm.DenseMAC: 50}, WeightBytes: 1000, Passes: 3}
		near(t, "model in "+c.place, e.Layer(&l, "OP").CPU.Value, c.want)
	}
}

// TestSlowTotal says that waiting widens the band of a network, and tells it.
func TestSlowTotal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perByte float64
		said    bool
	}{{0.3, false}, {0.5, true}} {
		// A dense layer of 200 weights, read once: 310 cycles beside 60 or 100 of waiting,
		// less and more than a fifth of all.
		tg := board()
		tg.Memories = []chip.Memory{{Role: "external-flash", Size: 1, Cache: 800, ReadCyclesPerByte: &c.perByte}}
		m := chain(tensor.Int8)
		costs, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{})
		if err != nil {
			t.Fatal(err)
		}
		half := 0.2
		if c.said {
			half = 0.7
		}
		want := 310 + 200*c.perByte
		near(t, "cycles", costs.Latency.Value, want)
		near(t, "high", costs.Latency.High, want*math.Exp(half))
		if said := strings.Contains(strings.Join(costs.Remarks, ";"), "slow memory"); said != c.said {
			t.Errorf("%v a byte: remarks %q", c.perByte, costs.Remarks)
		}
	}
}

// TestRemarks says what is rough about an estimate, and from when on.
func TestRemarks(t *testing.T) {
	t.Parallel()
	from := func(b *chip.Target) { b.Runtimes[0].Cortexm.Int16.From = "another core" }
	apart := func(b *chip.Target) {
		f := &b.Runtimes[0].Cortexm.Integer
		f.Far = 0.6
		b.Runtimes[0].Cortexm.Seen = []chip.Terms{{cortexm.ConvMAC: 1}}
	}
	for _, c := range []struct {
		name   string
		change func(*chip.Target)
		types  []tensor.Type
		want   []string
	}{
		{"nothing", nil, []tensor.Type{tensor.Int8}, nil},
		{"figures of the same core", nil, []tensor.Type{tensor.Int16}, nil},
		// 405 cycles of 16 bits with 100 + 210 n of 8.
		{"other figures", from, []tensor.Type{tensor.Int16}, []string{"100 % of the cycles are in 16-bit integers, estimated from another core"}},
		{"some", from, []tensor.Type{tensor.Int8, tensor.Int8, tensor.Int16}, []string{"44 % of the cycles are in 16-bit integers, estimated from another core"}},
		{"a few", from, append(make([]tensor.Type, 0, 20), tensor.Int16, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8, tensor.Int8), nil},
		{"another mix", apart, []tensor.Type{tensor.Int8}, []string{"the mix of operators is unlike the networks that r was calibrated on, so the band is wider"}},
		{"of what is less than half", apart, []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int16}, nil},
		{"a mix that makes no difference", func(b *chip.Target) {
			apart(b)
			b.Runtimes[0].Cortexm.Integer.Far = 0.2
		}, []tensor.Type{tensor.Int8}, nil},
		{"a mix that was seen", func(b *chip.Target) {
			apart(b)
			// By the figures before any fit, that of a layer of 10 x 20.
			b.Runtimes[0].Cortexm.Seen = []chip.Terms{{cortexm.ConvMAC: 1}, chip.Terms(cortexm.Mix(cortexm.Prior("tflm-cmsis-nn", "dsp"), cortexm.Vector{cortexm.DenseMAC: 200, cortexm.DenseOutput: 10}))}
		}, []tensor.Type{tensor.Int8}, nil},
	} {
		tg := board()
		if c.change != nil {
			c.change(tg)
		}
		m := chain(c.types...)
		costs, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(costs.Remarks, ";") != strings.Join(c.want, ";") {
			t.Errorf("%s: %q, want %q", c.name, costs.Remarks, c.want)
		}
	}
}

// TestPlainTotal adds up kernels in plain C, whose errors are their own: 100 cycles of
// the call, 10 of each operator, 1 a product, 50 an element in plain C with a half-width
// of 0.9.
func TestPlainTotal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		elements int
		said     string
	}{{0, ""}, {1, "14 % of the cycles are in operators without an optimised kernel; their cost is that of plain C on other cores, which is a rough estimate"}} {
		tg := board()
		f := &tg.Runtimes[0].Cortexm.Integer
		f.Cycles[cortexm.PlainElement], f.Bands[cortexm.PlainElement] = 50, 0.9
		m := chain(tensor.Int8)
		g := m.Main()
		x := add(g, i8(c.elements))
		g.Nodes = append(g.Nodes, &graph.Node{Index: 1, Op: "SUB", Domain: graph.TFLite, Inputs: []int{x, x}, Outputs: []int{add(g, i8(c.elements))}})
		costs, err := cortexm.Model{}.Costs(m, g, tg, tg.Runtime(""), chip.Options{Build: ""})
		if err != nil {
			t.Fatal(err)
		}
		own := 50 * float64(c.elements)
		near(t, "cycles", costs.Latency.Value, 320+own)
		near(t, "high", costs.Latency.High, 320+own+math.Hypot(320*(math.Exp(0.2)-1), own*(math.Exp(0.9)-1)))
		near(t, "low", costs.Latency.Low, 320+own-math.Hypot(320*(1-math.Exp(-0.2)), own*(1-math.Exp(-0.9))))
		if got := strings.Join(costs.Remarks, ";"); got != c.said {
			t.Errorf("%d elements: %q, want %q", c.elements, got, c.said)
		}
		if costs.Method != "structural model, r" {
			t.Errorf("method %q", costs.Method)
		}
	}
}

// TestCallCharged puts the cost of the call to the first layer that has a figure, with
// that layer's band, and none where no layer has one.
func TestCallCharged(t *testing.T) {
	t.Parallel()
	tg := board()
	m := chain(tensor.Int8, tensor.Int8, tensor.Int8)
	m.Main().Nodes[0].Op, m.Main().Nodes[0].Domain = "NEW", graph.TFLiteCustom
	costs, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{Build: "size"})
	if err != nil {
		t.Fatal(err)
	}
	if costs.Method != "structural model, r, built size" {
		t.Errorf("method %q", costs.Method)
	}
	half := math.Hypot(0.5, 0.15)
	for i, want := range []float64{-1, 100 + 10 + 600, 10 + 600} {
		l := costs.Layers[i]
		if want < 0 {
			if l.Missing == nil || l.Latency != nil {
				t.Errorf("layer %d: %+v", i, l)
			}
			continue
		}
		near(t, "cycles", l.Latency.Value, want)
		near(t, "low", l.CPU.Low, want*math.Exp(-half))
		near(t, "high", l.CPU.High, want*math.Exp(half))
	}
	near(t, "total", costs.Latency.Value, 100+2*610)
	for _, n := range m.Main().Nodes {
		n.Op, n.Domain = "NEW", graph.TFLiteCustom
	}
	costs, err = cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{})
	if err != nil || costs.Latency != nil || costs.CPU != nil {
		t.Errorf("no layer is known: %+v, %v", costs, err)
	}
}

// TestEnergy is that of the power model for all cycles.
func TestEnergy(t *testing.T) {
	t.Parallel()
	tg := board()
	tg.Energy = &chip.Energy{ElapsedCycle: 2e-9, CPUCycle: 1e-9}
	m := chain(tensor.Int8)
	costs, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := costs.Energy; f == nil || !(math.Abs(f.Value-310*3e-9) <= 1e-18) {
		t.Errorf("%+v, want 310 cycles of 3 nJ", f)
	}
}

// TestPrior has what is known about kernels before any fit, from measured layers and
// instructions: ratios between kinds of work.
func TestPrior(t *testing.T) {
	t.Parallel()
	between := func(what string, v, low, high float64) {
		t.Helper()
		if !(v >= low && v <= high) {
			t.Errorf("%s: %v, want %v to %v", what, v, low, high)
		}
	}
	for _, family := range []string{"tflm-reference", cortexm.Int16Reference, "x-cube-ai", "tflm-esp-nn", "tflm-andes-nn", "tflm-cmsis-nn", cortexm.FloatTFLM, cortexm.FloatXCubeAI} {
		for _, tier := range []string{"dsp", "mve"} {
			v := cortexm.Prior(family, tier)
			for k, c := range v {
				if !(c >= 0) {
					t.Errorf("%s: %s costs %v", family, cortexm.Names[k], c)
				}
			}
			for _, k := range []int{cortexm.Call, cortexm.Op, cortexm.ConvMAC, cortexm.PointMAC, cortexm.DepthwiseMAC, cortexm.DenseMAC, cortexm.Element, cortexm.TableElement} {
				if !(v[k] > 0) {
					t.Errorf("%s: %s costs nothing", family, cortexm.Names[k])
				}
			}
			// Plain C costs more than any kernel of its own, a transcendental function more than
			// a sum.
			if !(v[cortexm.PlainMAC] >= v[cortexm.DenseMAC] && v[cortexm.PlainTable] >= v[cortexm.TableElement] && v[cortexm.TableElement] > v[cortexm.Element] && v[cortexm.PlainReduce] > v[cortexm.PoolElement]) {
				t.Errorf("%s: plain C is cheaper: %v", family, v)
			}
		}
	}
	// A VexRiscv took 19 cycles a product of a 1x1 convolution, 160 an output, 46 to 50 a
	// product of a depthwise one.
	v := cortexm.Prior("tflm-reference", "none")
	between("plain C, 1x1", v[cortexm.PointMAC], 19, 19)
	between("plain C, output", v[cortexm.PointOutput], 160, 160)
	between("plain C, depthwise", v[cortexm.DepthwiseMAC], 46, 50)
	between("plain C gathers nothing", v[cortexm.ConvGather], 0, 0)
	if v != cortexm.Prior(cortexm.Int16Reference, "none") {
		t.Error("plain C of 16 bits differs from that of 8")
	}
	// Instructions for two products a cycle take less than 5 a product with loads, those of
	// Helium less than 1, plain C more than 10.
	dsp, mve := cortexm.Prior("tflm-cmsis-nn", "dsp"), cortexm.Prior("tflm-cmsis-nn", "mve")
	between("two at once", dsp[cortexm.ConvMAC], 1, 5)
	between("Helium", mve[cortexm.ConvMAC], 0.1, 1)
	if dsp == mve || cortexm.Prior("tflm-esp-nn", "mve") == mve {
		t.Error("Helium is for CMSIS-NN alone")
	}
	// Floats are not requantised, gathered nor widened.
	for _, family := range []string{cortexm.FloatTFLM, cortexm.FloatXCubeAI} {
		f := cortexm.Prior(family, "dsp")
		between(family+" gathers", f[cortexm.ConvGather]+f[cortexm.PointGather], 0, 0)
	}
	// What plain C costs beside optimised kernels is the same everywhere.
	for _, k := range []int{cortexm.PlainMAC, cortexm.PlainElement, cortexm.PlainTable, cortexm.PlainReduce, cortexm.PlainMove} {
		if dsp[k] != mve[k] || dsp[k] != v[k] {
			t.Errorf("%s differs between families", cortexm.Names[k])
		}
	}
}

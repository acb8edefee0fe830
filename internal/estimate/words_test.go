package estimate

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// TestONNXFormat says what figures of an ONNX file mean on a runtime for other files, and
// how many operators between conversions count as integers.
func TestONNXFormat(t *testing.T) {
	t.Parallel()
	product := func() *graph.Model {
		m := dense(tensor.Float32, 64, 10, graph.ONNX, "Softmax")
		m.Format, m.Path, m.Opsets = "onnx", "net.onnx", map[string]int{"": 13}
		g := m.Main()
		g.Nodes[0].Op, g.Nodes[0].Domain = "MatMul", graph.ONNX
		g.Values[1].Shape, g.Values[1].Const = []int{64, 10}, tensor.New(tensor.Float32, 64, 10)
		for _, n := range g.Nodes {
			n.Version = 13
		}
		return m
	}
	const format = "target.format info: TensorFlow Lite Micro takes .tflite files, not ONNX: figures are of the same operators in a .tflite file with channels last; transposes that a conversion may add are not counted."
	tg := byHand()
	tg.Runtimes[0].Cortexm.Float = &chip.Typed{Measured: "dense", Near: 0.2, Cycles: tg.Runtimes[0].Cortexm.Integer.Cycles}
	p := estimated(t, product(), tg, chip.Options{})
	if got := said(p); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "target.format") }) {
		t.Errorf("a runtime for any file: %q", got)
	}
	memory := func(p *profile.Profile) string {
		i := slices.IndexFunc(said(p), func(s string) bool { return strings.HasPrefix(s, "target.memory") })
		if i < 0 {
			return ""
		}
		return said(p)[i]
	}
	// 64 floats and 10, the most that are live at the same time.
	if want := "target.memory info: At least 296 B of RAM for activations; what the runtime needs beside them is not known for a file of ONNX."; memory(p) != want {
		t.Errorf("memory: %q, want %q", memory(p), want)
	}
	const low = "target.ram problem: The activation peak of 296 B does not fit: a chip has 200 B of RAM, 96 B too little."
	for most, want := range map[chip.Bytes]bool{200: true, 296: false} {
		small := byHand()
		small.Name = "a chip"
		small.Memories = []chip.Memory{{Name: "ram", Role: "ram", Size: most}}
		if got := said(estimated(t, product(), small, chip.Options{})); slices.Contains(got, low) != want {
			t.Errorf("%d bytes of RAM: %q", most, got)
		}
	}
	tg.Runtimes[0].Arena = "reference"
	p = estimated(t, product(), tg, chip.Options{})
	if got := said(p); !slices.Contains(got, format) {
		t.Errorf("a runtime for other files: %q", got)
	}
	if p.Memory == nil || p.Memory.ArenaBytes != nil || p.Totals.RAMBytes != nil {
		t.Errorf("an arena of an ONNX file: %+v", p.Memory)
	}
	// A file of the runtime's own format says nothing about formats.
	tg = byHand()
	tg.Runtimes[0].Arena = "reference"
	if got := said(estimated(t, dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), tg, chip.Options{})); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "target.format") }) {
		t.Errorf("a .tflite file: %q", got)
	}
}

// TestTypesByActivations uses the type of activations, not that of weights, and
// leaves out layers without multiplications or time.
func TestTypesByActivations(t *testing.T) {
	t.Parallel()
	layer := func(macs int64, timed bool, types ...string) profile.Layer {
		l := profile.Layer{MACs: &macs}
		for _, d := range types {
			l.Inputs = append(l.Inputs, profile.Tensor{DType: d})
		}
		if timed {
			l.Latency = profile.Value(profile.Estimated, 1, "")
		}
		return l
	}
	b := &builder{rt: &chip.Runtime{}, p: &profile.Profile{Layers: []profile.Layer{
		layer(5, true, "int16", "int8"), layer(5, true, "int8", "int16"), layer(0, true, "int16"), layer(5, false, "int16"), layer(5, true),
		{Inputs: []profile.Tensor{{DType: "int16"}}, Latency: profile.Value(profile.Estimated, 1, "")},
		layer(5, true, "int16", "int8"), layer(5, true, "uint8", "uint8"),
	}}}
	b.types()
	if len(b.out) != 2 || !slices.Equal(b.out[0].Layers, []int64{7}) || !slices.Equal(b.out[1].Layers, []int64{0, 6}) || b.out[1].Text != "2 layers compute in int16, which was not measured: int8 figures are used." {
		t.Errorf("%+v", b.out)
	}
	b.out, b.rt = nil, &chip.Runtime{Cortexm: &chip.Structural{Int16: &chip.Typed{}}}
	if b.types(); len(b.out) != 1 || !slices.Equal(b.out[0].Layers, []int64{7}) {
		t.Errorf("16 bits were measured: %+v", b.out)
	}
}

// TestAcceleratorWords says by cause why layers are not accelerated.
func TestAcceleratorWords(t *testing.T) {
	t.Parallel()
	on := func(unit string, cause profile.CauseCode, text string) profile.Layer {
		return profile.Layer{Placement: &profile.Placement{On: unit, Cause: cause, Text: text}}
	}
	taken, limit, typ, operator := on("mvp", "", ""), on(profile.CPU, profile.ByLimit, "too wide"), on(profile.CPU, profile.ByType, "x"), on(profile.CPU, profile.ByOperator, "x")
	refused := on("mvp", profile.ByLimit, "another kernel took it")
	for _, c := range []struct {
		name   string
		layers []profile.Layer
		want   []string
	}{
		{"all", []profile.Layer{taken, operator, {}}, nil},
		{"none of its type", []profile.Layer{typ, operator}, []string{"target.type warning: Nothing is accelerated: MVP takes int8, and this model computes in other types. Quantise it to int8."}},
		{"one of another type", []profile.Layer{taken, typ}, []string{"target.type warning: 1 layer has an operator of MVP but not its type, which is int8: left to the processor."}},
		{"two of another type", []profile.Layer{typ, taken, typ}, []string{"target.type warning: 2 layers have an operator of MVP but not its type, which is int8: left to the processor."}},
		{"a limit", []profile.Layer{taken, limit}, []string{"target.limit warning: 1 layer exceeds a limit of MVP, so that the processor does the work, the first: too wide"}},
		{"limits and types", []profile.Layer{limit, limit, typ}, []string{
			"target.type warning: Nothing is accelerated: MVP takes int8, and this model computes in other types. Quantise it to int8.",
			"target.limit warning: 2 layers exceed a limit of MVP, so that the processor does the work, the first: too wide",
		}},
		{"refused by a first kernel", []profile.Layer{refused}, nil},
	} {
		b := &builder{t: &chip.Target{Accelerator: &chip.Accelerator{Name: "mvp"}}, p: &profile.Profile{Layers: c.layers}}
		b.accelerator()
		if got := said(&profile.Profile{Findings: b.out}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	b := &builder{t: &chip.Target{}, p: &profile.Profile{Layers: []profile.Layer{limit}}}
	if b.accelerator(); b.out != nil {
		t.Errorf("without an accelerator: %+v", b.out)
	}
}

// TestMissingParts lists what an estimate lacks, each with how many layers there are.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	b := &builder{p: &profile.Profile{Layers: make([]profile.Layer, 5)}}
	if got := b.incomplete(); got != nil {
		t.Errorf("nothing is missing: %+v", got)
	}
	b.idle, b.missing, b.once = []int64{0}, []int64{1, 2}, []int64{3}
	got := b.incomplete()
	if len(got) != 3 || got[0].Cause != profile.ByUse || *got[0].Got != 4 || *got[0].Want != 5 || got[1].Cause != profile.ByNoFigures || *got[1].Got != 3 || *got[1].Want != 5 || got[2].Cause != profile.ByData || got[2].Got != nil || !slices.Equal(got[2].Layers, []int64{3}) {
		t.Errorf("%+v", got)
	}
	// The energy of a layer depends on the multiplications of one call.
	layer := &profile.Layer{MACsExecuted: new(int64(30)), Calls: new(3.0)}
	b = &builder{t: &chip.Target{Energy: &chip.Energy{MAC: 2}}, clock: 1}
	cost := &chip.LayerCost{Latency: &chip.Figure{}}
	if f := b.energy(layer, cost); f == nil || f.Value != 20 {
		t.Errorf("energy %+v, want 20", f)
	}
	for _, calls := range []*float64{nil, new(0.0)} {
		layer.Calls = calls
		if f := b.energy(layer, cost); f == nil || f.Value != 60 {
			t.Errorf("energy of %v calls %+v, want 60", calls, f)
		}
	}
	layer.MACsExecuted = nil
	if f := b.energy(layer, cost); f == nil || f.Value != 0 {
		t.Errorf("energy of unknown products %+v", f)
	}
	for _, c := range []struct {
		t    chip.Target
		want string
	}{
		{chip.Target{}, "how"},
		{chip.Target{Energy: &chip.Energy{Reference: "total"}}, "total supply"},
		{chip.Target{Energy: &chip.Energy{Reference: "above-idle"}}, "above idle"},
		{chip.Target{Energy: &chip.Energy{Reference: "total"}, Supply: &chip.Supply{Volts: 3.3}}, "total supply at 3.3 V"},
	} {
		b := &builder{t: &c.t, costs: []*chip.Costs{{Method: "how"}}}
		if got := b.energyMethod(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

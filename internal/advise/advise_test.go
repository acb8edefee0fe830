package advise_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/advise"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/target"
)

// builder makes small ONNX models. Nodes are named by their operator and a number.
type builder struct {
	g    *graph.Graph
	last int
}

func newBuilder() *builder { return &builder{g: &graph.Graph{Name: "main"}} }

func (b *builder) value(name string, t tensor.Type, shape ...int) int {
	id := len(b.g.Values)
	b.g.Values = append(b.g.Values, &graph.Value{ID: id, Name: name, Type: t, Shape: shape, HasShape: shape != nil, Offset: -1})
	return id
}

// input adds an input, which the next node reads.
func (b *builder) input(t tensor.Type, shape ...int) *builder {
	b.last = b.value(fmt.Sprintf("in%d", len(b.g.Inputs)), t, shape...)
	b.g.Inputs = append(b.g.Inputs, b.last)
	return b
}

func (b *builder) constant(fill func(i int) float64, shape ...int) int {
	c := tensor.New(tensor.Float32, shape...)
	tensor.Fill(c, fill)
	id := b.value(fmt.Sprintf("c%d", len(b.g.Values)), tensor.Float32, shape...)
	b.g.Values[id].Const = c
	return id
}

func (b *builder) weights(shape ...int) int {
	return b.constant(func(i int) float64 { return math.Sin(float64(i*i+7)) / 4 }, shape...)
}

// node adds an operator on the last value and more.
func (b *builder) node(op string, attrs graph.Attrs, more ...int) *builder {
	out := b.value(fmt.Sprintf("v%d", len(b.g.Values)), tensor.Float32)
	b.g.Nodes = append(b.g.Nodes, &graph.Node{
		Index: len(b.g.Nodes), Name: fmt.Sprintf("%s_%d", op, len(b.g.Nodes)), Op: op, Version: 17,
		Inputs: append([]int{b.last}, more...), Outputs: []int{out}, Attrs: attrs,
	})
	b.last = out
	return b
}

func (b *builder) dense(in, out int) *builder { return b.node("MatMul", nil, b.weights(in, out)) }

func (b *builder) transpose(perm ...int64) *builder {
	return b.node("Transpose", graph.Attrs{"perm": perm})
}

// model encodes the model.
func (b *builder) model(t *testing.T) []byte {
	t.Helper()
	b.g.Outputs = []int{b.last}
	data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{b.g}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// case of a run on this computer.
type run struct {
	// times are seconds by operator, 1 ms in all for those without.
	times  map[string]float64
	change func(p *profile.Profile)
}

const set = "test"

// onHost makes what rules know of a model that took some times here.
func onHost(t *testing.T, data []byte, r run) *advise.Facts {
	t.Helper()
	m, err := opmeter.OpenBytes("model.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	p, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	p.Target = profile.Target{ID: "host", Kind: profile.TargetHost}
	p.Settings.Engine, p.Settings.KernelSet, p.Settings.Threads = "opmeter", set, new(int64(1))
	p.Host = &profile.Host{CPUs: new(int64(2))}
	sum := 0.0
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.State != profile.Ran {
			continue
		}
		s, ok := r.times[l.Op]
		if !ok {
			s = 1e-3
		}
		sum += s
		l.Latency = &profile.Metric{Kind: profile.Measured, Median: new(s)}
	}
	for i := range p.Layers {
		if v, ok := p.Layers[i].Latency.Best(); ok {
			p.Layers[i].Share = new(v / sum)
			p.Layers[i].ShareCI95 = &[2]float64{0.9 * v / sum, 1.1 * v / sum}
		}
	}
	p.Totals.Latency = &profile.Metric{Kind: profile.Measured, Median: new(sum)}
	if r.change != nil {
		r.change(p)
	}
	return &advise.Facts{Profile: p, Model: bridge.Of(m).Graph, Path: "my model.onnx"}
}

// the advice of a rule, nil if it is silent; then a reason must be there.
func of(t *testing.T, f *advise.Facts, rule string) *advise.Advice {
	t.Helper()
	r := advise.About(f, rule)
	switch {
	case len(r.Advice) == 1:
		a := r.Advice[0]
		if a.Rule != rule || a.Reason == "" || len(a.Figures) == 0 || a.Try == "" || a.Gain.Basis == "" || !(a.Gain.Before > 0) ||
			a.Gain.Band[0] > a.Gain.Ratio || a.Gain.Band[1] < a.Gain.Ratio {
			t.Errorf("incomplete: %+v", a)
		}
		return a
	case len(r.Silent) != 1 || r.Silent[0].Reason == "":
		t.Errorf("neither advice nor a reason: %+v", r)
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// mask is a mask of attention that hides later tokens.
func mask(b *builder, n int) int {
	return b.constant(func(i int) float64 {
		if i%n > i/n {
			return -1e4
		}
		return 0
	}, n, n)
}

// decoder is a language model of one head without a cache if causal, else one that sees all tokens.
func decoder(n int, hides bool) *builder {
	b := newBuilder().input(tensor.Int64, 1, n)
	tokens := b.last
	b.last = b.weights(32, 16)
	b.node("Gather", nil, tokens)
	x := b.last
	k := b.node("Transpose", graph.Attrs{"perm": []int64{0, 2, 1}}).last
	b.last = x
	b.node("MatMul", nil, k)
	if hides {
		b.node("Add", nil, mask(b, n))
	}
	b.node("Softmax", graph.Attrs{"axis": int64(-1)})
	return b.node("MatMul", nil, x).dense(16, 32)
}

// TestHost has for each rule a run where it fires with the right figure, and a silent one.
func TestHost(t *testing.T) {
	t.Parallel()
	dense := func() *builder { return newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).node("Softmax", nil) }
	norm := func(between string) *builder {
		b := newBuilder().input(tensor.Float32, 2, 8).dense(8, 4)
		b.g.Values[b.last].Shape, b.g.Values[b.last].HasShape = []int{2, 4}, true
		if between != "" {
			b.node(between, nil)
		}
		one := func(int) float64 { return 1 }
		return b.node("BatchNormalization", nil, b.constant(one, 4), b.constant(one, 4), b.constant(one, 4), b.constant(one, 4)).node("Relu", nil)
	}
	phases := func(load float64) func(p *profile.Profile) {
		return func(p *profile.Profile) {
			p.Phases = &profile.Phases{LoadS: new(load), PlanS: new(2.2e-2), FirstRunS: new(2e-3)}
		}
	}
	for _, c := range []struct {
		rule   string
		fires  *builder
		run    run
		ratio  float64
		band   [2]float64
		figure float64 // the first one
		silent *builder
		quiet  run
	}{
		// Two transpositions of 2 ms in 6 ms, which do not vanish by themselves, as with one operator
		// between them; the intervals are 10 % wide, and half is sure.
		{
			"transposes", newBuilder().input(tensor.Float32, 1, 2, 3, 4).transpose(0, 2, 3, 1).node("Relu", nil).node("Sigmoid", nil).transpose(0, 3, 1, 2),
			run{times: map[string]float64{"Transpose": 2e-3}},
			1 - 4./6,
			[2]float64{1 - 1.1*4/6, 1 - 0.9*4/6/2},
			2,
			newBuilder().input(tensor.Float32, 1, 2, 3, 4).transpose(0, 2, 3, 1).node("Relu", nil),
			run{},
		},
		// One of two operators of 1 ms; Relu is fused.
		{"batch-norm", norm(""), run{}, 0.5, [2]float64{1 - 1.1/2, 1 - 0.9/4}, 1, norm("Relu"), run{}},
		{"first-run", dense(), run{change: phases(8e-3)}, 1. / 12, [2]float64{1. / 120, 1. / 2}, 2.2e-2, dense(), run{times: map[string]float64{"MatMul": 1, "Softmax": 1}, change: phases(1e-3)}},
		{"kv-cache", decoder(16, true), run{}, 1. / 16, [2]float64{1. / 32, 1. / 8}, 16, decoder(16, false), run{}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			a := of(t, onHost(t, c.fires.model(t), c.run), c.rule)
			if a == nil {
				t.Fatal("silent")
			}
			if g := a.Gain; !near(g.Ratio, c.ratio) || !near(g.Band[0], c.band[0]) || !near(g.Band[1], c.band[1]) {
				t.Errorf("ratio %.6f %.6f, want %.6f %.6f", g.Ratio, g.Band, c.ratio, c.band)
			}
			if !near(a.Figures[0].Value, c.figure) {
				t.Errorf("first figure %v, want %v", a.Figures[0], c.figure)
			}
			if !strings.Contains(a.Try, "'my model.onnx'") {
				t.Errorf("the command does not name the file: %s", a.Try)
			}
			if a := of(t, onHost(t, c.silent.model(t), c.quiet), c.rule); a != nil {
				t.Errorf("not silent: %+v", a)
			}
		})
	}
}

// Engines that compute shapes in each run gain by fixed shapes; opmeter's own does not.
func TestOpenShapes(t *testing.T) {
	t.Parallel()
	b := newBuilder().input(tensor.Float32, -1, 4)
	x := b.last
	b.node("Shape", nil)
	b.g.Values[b.last].Type = tensor.Int64
	b.node("Gather", nil, func() int {
		id := b.value("zero", tensor.Int64)
		b.g.Values[id].Const, b.g.Values[id].Shape, b.g.Values[id].HasShape = tensor.From(tensor.Int64, []int{1}, []int64{0}), []int{1}, true
		return id
	}())
	b.g.Values[b.last].Type = tensor.Int64
	b.last = x
	b.node("Relu", nil)
	data := b.model(t)
	guest := func(p *profile.Profile) {
		p.Settings.Engine = "onnxruntime"
		for i := range p.Layers {
			l := &p.Layers[i]
			l.State, l.Latency = profile.Ran, &profile.Metric{Kind: profile.Measured, Median: new(1e-3)}
			l.Share, l.ShareCI95 = new(0.25), &[2]float64{0.2, 0.3}
		}
		p.Totals.Latency = &profile.Metric{Kind: profile.Measured, Median: new(4e-3)}
	}
	f := onHost(t, data, run{change: guest})
	a := of(t, f, "dynamic-shapes")
	if a == nil {
		t.Fatal("silent")
	}
	if !near(a.Gain.Ratio, 0.5) || !near(a.Gain.Band[0], 0.4) || !near(a.Gain.Band[1], 0.8) {
		t.Errorf("gain %+v", a.Gain)
	}
	v, err := a.Change(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if in := v.Model.Main().Values[v.Model.Main().Inputs[0]]; !slices.Equal(in.Shape, []int{1, 4}) {
		t.Errorf("shape %v, want that of the run", in.Shape)
	}
	if r := advise.About(onHost(t, data, run{}), "dynamic-shapes"); len(r.Advice) != 0 {
		t.Error("opmeter's own engine: not silent")
	}
}

// onTarget makes what rules know of a model on a chip.
func onTarget(t *testing.T, data []byte, id string) *advise.Facts {
	t.Helper()
	m, err := opmeter.OpenBytes("model.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	all, err := target.Load("")
	if err != nil {
		t.Fatal(err)
	}
	chip, err := all.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	p, err := chip.Estimate(m, opmeter.EstimateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &advise.Facts{
		Profile: p, Model: bridge.Of(m).Graph, Path: "m.onnx",
		Estimate: func(g *graph.Model) (*profile.Profile, error) {
			b, err := rewrite.Encode(g)
			if err != nil {
				return nil, err
			}
			x, err := opmeter.OpenBytes("changed.onnx", b)
			if err != nil {
				return nil, err
			}
			defer x.Close()
			return chip.Estimate(x, opmeter.EstimateOptions{})
		},
		Fits: func() ([]*profile.Profile, error) { return []*profile.Profile{p}, nil },
	}
}

// conv is a network of convolutions that takes size × size pixels.
func conv(size int) *builder {
	b := newBuilder().input(tensor.Float32, 1, 8, size, size)
	return b.node("Conv", nil, b.weights(16, 8, 3, 3)).node("Relu", nil).node("Conv", nil, b.weights(16, 16, 1, 1))
}

// words is a table of words of 16 numbers each, with a dense layer.
func words(n int) *builder {
	b := newBuilder().input(tensor.Int64, 1, 4)
	in := b.last
	b.last = b.weights(n, 16)
	return b.node("Gather", nil, in).dense(16, 16)
}

func TestTargets(t *testing.T) {
	t.Parallel()
	int8 := func() *builder { // layers without weights: nothing to quantise
		return newBuilder().input(tensor.Float32, 1, 16).node("Relu", nil)
	}
	for _, c := range []struct {
		rule          string
		fires, silent *builder
		quantity      string
		tried         advise.Verdict
	}{
		{"int8-target", conv(20), int8(), "latency_s", advise.Again},
		{"embedding-flash", words(4000), words(8).dense(16, 512), "flash_bytes", advise.Kept},
		{"ram", conv(92), conv(20), "ram_bytes", advise.Again},
		{"flash", newBuilder().input(tensor.Float32, 1, 64).dense(64, 10_000), conv(20), "flash_bytes", advise.Again},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			f := onTarget(t, c.fires.model(t), "stm32l4r5")
			r := advise.About(f, c.rule)
			if len(r.Advice) != 1 {
				t.Fatalf("silent: %v", r.Silent)
			}
			a := r.Advice[0]
			if a.Gain.Quantity != c.quantity || !strings.Contains(a.Try, "--on stm32l4r5") {
				t.Errorf("%+v", a)
			}
			// What is promised on a chip is what the changed model is estimated to take.
			if _, err := advise.Try(t.Context(), f, r, nil, 0); err != nil {
				t.Fatal(err)
			}
			if x := a.Tried; x == nil || x.Verdict != c.tried || !near(x.Ratio, a.Gain.Ratio) || !near(x.Before, a.Gain.Before) {
				t.Errorf("tried %+v, promised %+v", x, a.Gain)
			}
			if r := advise.About(onTarget(t, c.silent.model(t), "stm32l4r5"), c.rule); len(r.Advice) != 0 {
				t.Errorf("not silent: %+v", r.Advice[0])
			}
		})
	}
}

// A model that fits no chip when it is int8 either is moved to a chip that holds it.
func TestOtherChip(t *testing.T) {
	t.Parallel()
	f := onTarget(t, conv(300).model(t), "stm32l4r5")
	r := advise.About(f, "ram", "int8-target")
	if len(r.Advice) != 1 || r.Advice[0].Rule != "ram" || r.Advice[0].Gain.Quantity != "unsupported_layers" || r.Blocked == "" {
		t.Fatalf("%+v", r)
	}
	// A latency on another chip does not compare with one on a chip that does not run the model.
	if s := r.Answer(); strings.Contains(s, "latency") || !strings.Contains(s, "does not run: ") || !strings.Contains(s, "Expected: the model runs, on stm32l4r5.") {
		t.Error(s)
	}
	if v, err := r.Advice[0].Change(t.Context(), f); v != nil || err != nil {
		t.Errorf("a move to another chip changes no model: %v %v", v, err)
	}
	if !strings.Contains(r.Silent[0].Reason, "does not run there either") {
		t.Errorf("silent: %+v", r.Silent)
	}
}

// probing measures an interval of ratios in each short run.
func probing(low, high float64) func(*advise.Variant) (*advise.Measured, error) {
	return func(*advise.Variant) (*advise.Measured, error) {
		return &ab.Result{Alternatives: []ab.Measured{{}, {}}, Comparisons: []ab.Comparison{{B: 1, Ratio: (low + high) / 2, Low: low, High: high, Blocks: 30}}}, nil
	}
}

// With a model, planning and the first inference are measured in several sessions: the phases of the
// profile are measured once, and other load may have disturbed them.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).node("Softmax", nil).model(t)
	for _, c := range []struct {
		low, high float64
		fires     bool
	}{{0.04, 0.06, true}, {0.2, 0.3, false}, {0.9, 1.1, false}} {
		f := onHost(t, data, run{change: func(p *profile.Profile) {
			p.Phases = &profile.Phases{LoadS: new(1e-3), PlanS: new(1e-2), FirstRunS: new(1e-1)}
		}})
		f.Probe = probing(c.low, c.high)
		a := of(t, f, "first-run")
		if (a != nil) != c.fires {
			t.Errorf("%+v: %+v", c, a)
		}
		if a == nil {
			continue
		}
		if now, _ := f.Profile.Totals.Latency.Best(); !near(a.Gain.Before*a.Gain.Ratio, now) || !near(a.Gain.Ratio, 0.05) ||
			!near(a.Gain.Band[0], 0.02) || !near(a.Gain.Band[1], 0.12) || a.Gain.Source != advise.FromProbe {
			t.Errorf("%+v", a.Gain)
		}
	}
}

// Another engine that was faster in one process is advised if it is faster in several.
func TestOtherEngine(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).node("Softmax", nil).model(t)
	other := func(s float64) func(p *profile.Profile) {
		return func(p *profile.Profile) {
			p.Other = &profile.OtherEngine{Engine: "onnxruntime", Title: "ONNX Runtime", Latency: &profile.Metric{Kind: profile.Measured, Median: new(s), CI95: &[2]float64{0.9 * s, 1.1 * s}}}
		}
	}
	for _, c := range []struct {
		name           string
		latency        float64 // of the other engine; the model takes 2 ms
		low, high      float64 // in several processes, 0 for unmeasured
		advised, asked bool
	}{
		{"faster", 1e-3, 0.4, 0.5, true, true},
		{"faster by chance", 1e-3, 1.02, 1.18, false, true},
		{"slower", 2.5e-3, 0.4, 0.5, false, false},
		{"a saved profile", 1e-3, 0, 0, false, false},
	} {
		f := onHost(t, data, run{change: other(c.latency)})
		asked := ""
		if c.low > 0 {
			f.Beside = func(engine string) (*advise.Measured, error) {
				asked = engine
				return probing(c.low, c.high)(nil)
			}
		}
		a := of(t, f, "other-engine")
		if (a != nil) != c.advised || (asked != "") != c.asked {
			t.Errorf("%s: %+v, asked for %q", c.name, a, asked)
		}
		if a != nil && (!near(a.Gain.Ratio, 0.45) || !near(a.Gain.Band[0], 0.4/1.08) || !strings.Contains(a.Try, "--engine opmeter,"+asked)) {
			t.Errorf("%s: %+v", c.name, a)
		}
		if r := advise.About(f, "other-engine"); c.low == 0 && !strings.Contains(r.Silent[0].Reason, "opmeter ab 'my model.onnx' --engine opmeter,") {
			t.Errorf("%s: %+v", c.name, r.Silent)
		}
	}
}

// A step of one token is measured where that is possible.
func TestStep(t *testing.T) {
	t.Parallel()
	f := onHost(t, decoder(16, true).model(t), run{})
	f.Probe = probing(0.18, 0.22)
	if a := of(t, f, "kv-cache"); a == nil || !near(a.Gain.Ratio, 0.2) || !near(a.Gain.Band[1], 0.22*1.08) || a.Gain.Source != advise.FromProbe {
		t.Errorf("%+v", a)
	}
	if f.Probe = probing(0.95, 1.1); of(t, f, "kv-cache") != nil {
		t.Error("a step that takes as long: not silent")
	}
}

// What is measured decides the verdict; a change that loses is called so.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).node("Softmax", nil).model(t)
	for _, c := range []struct {
		low, high float64
		want      advise.Verdict
	}{
		{0.35, 0.45, advise.Kept}, {0.05, 0.1, advise.More}, {0.7, 0.8, advise.Less}, {1.01, 1.2, advise.Lost}, {0.9, 1.1, advise.Open},
	} {
		f := onHost(t, data, run{times: map[string]float64{"MatMul": 8e-4, "Softmax": 2e-4}})
		f.Probe = probing(0.38, 0.42)
		r := advise.About(f, "int8-static")
		measure := func(_ context.Context, _ *advise.Facts, v *advise.Variant, _ time.Duration) (*ab.Result, error) {
			if v.Model == nil || v.Model == f.Model {
				t.Error("no changed model")
			}
			return &ab.Result{
				Alternatives: []ab.Measured{{Seconds: 7e-3}, {Seconds: 4e-3}}, // the machine is slower now
				Comparisons:  []ab.Comparison{{A: 0, B: 1, Ratio: (c.low + c.high) / 2, Low: c.low, High: c.high, Blocks: 30, Processes: 5}},
			}, nil
		}
		if _, err := advise.Try(t.Context(), f, r, measure, time.Second); err != nil {
			t.Fatal(err)
		}
		got, promised := r.Advice[0].Tried, r.Advice[0].Gain
		if got.Verdict != c.want {
			t.Errorf("%g to %g: %s, want %s", c.low, c.high, got.Verdict, c.want)
		}
		if !near(got.Before, promised.Before) || !near(got.After, promised.Before*(c.low+c.high)/2) {
			t.Errorf("tried %g to %g, promised on %g: not the same base", got.Before, got.After, promised.Before)
		}
		var b bytes.Buffer
		if err := advise.Write(&b, r, "table", 80); err != nil {
			t.Fatal(err)
		}
		if lost := strings.Contains(b.String(), "it lost"); lost != (c.want == advise.Lost) {
			t.Errorf("%s:\n%s", c.want, b.String())
		}
	}
}

// An item of a batch takes its part of an inference.
func TestQuantities(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).node("Softmax", nil).model(t)
	f := onHost(t, data, run{})
	f.Probe = probing(2.3, 2.5)
	r := advise.About(f, "batch")
	measure := func(context.Context, *advise.Facts, *advise.Variant, time.Duration) (*ab.Result, error) {
		return f.Probe(nil)
	}
	if _, err := advise.Try(t.Context(), f, r, measure, time.Second); err != nil {
		t.Fatal(err)
	}
	if x := r.Advice[0].Tried; !near(x.Ratio, 0.3) || !near(x.After, 0.3*x.Before) || x.Verdict != advise.Kept {
		t.Errorf("%+v", x)
	}
}

// Whether threads help is measured: the advice follows from that.
func TestThreads(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).model(t)
	for _, c := range []struct {
		rule          string
		threads, cpus int64
		low, high     float64
		want          int // threads to use, 0 for silence
	}{
		{"threads", 1, 2, 0.5, 0.6, 2},
		{"threads", 1, 16, 0.1, 0.2, 16},
		{"threads", 1, 2, 0.9, 1.05, 0},
		{"threads", 1, 2, 0.8, 0.95, 0},
		{"threads", 1, 1, 0.5, 0.6, 0},
		{"threads", 2, 4, 0.5, 0.6, 0},
		{"fewer-threads", 2, 2, 0.7, 0.8, 1},
		{"fewer-threads", 8, 2, 0.3, 0.5, 2},
		{"fewer-threads", 2, 2, 1.3, 1.6, 0},
		{"fewer-threads", 1, 2, 0.5, 0.6, 0},
	} {
		f := onHost(t, data, run{change: func(p *profile.Profile) { p.Settings.Threads, p.Host.CPUs = &c.threads, &c.cpus }})
		f.Probe = probing(c.low, c.high)
		a := of(t, f, c.rule)
		if a == nil {
			if c.want > 0 {
				t.Errorf("%+v: silent", c)
			}
			continue
		}
		v, err := a.Change(t.Context(), f)
		if err != nil || v.Threads != c.want || !strings.HasSuffix(a.Try, fmt.Sprintf("--threads %d", c.want)) || !near(a.Gain.Band[1], 1.08*c.high) {
			t.Errorf("%+v: %+v %v, %s", c, v, err, a.Try)
		}
	}
}

// Without the file of the model, rules that need its graph say so; the others work.
func TestWithoutModel(t *testing.T) {
	t.Parallel()
	f := onHost(t, newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).node("Softmax", nil).model(t), run{times: map[string]float64{"MatMul": 8e-3, "Softmax": 2e-3}})
	f.Model = nil
	r := advise.About(f)
	if len(r.Advice) != 0 {
		t.Errorf("advice %+v", r.Advice)
	}
	said := 0
	for _, s := range r.Silent {
		if strings.Contains(s.Reason, "needs its graph") {
			said++
		}
	}
	if said < 5 {
		t.Errorf("%d rules say that the graph is missing: %+v", said, r.Silent)
	}
}

// Without the file of the model no change is tried: each rule with a change says so.
func TestTryWithoutModel(t *testing.T) {
	t.Parallel()
	f := onHost(t, newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).model(t), run{change: func(p *profile.Profile) {
		p.Phases = &profile.Phases{LoadS: new(1e-3), PlanS: new(0.5), FirstRunS: new(0.5)}
		p.Model.Inputs[0].Declared = []int64{-1, 64}
	}})
	f.Model = nil
	const want = "the model's file is not known"
	r := advise.About(f)
	if _, err := advise.Try(t.Context(), f, r, advise.Here, time.Second); err != nil || len(r.Advice) == 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, a := range r.Advice {
		if a.Tried == nil || a.Tried.Verdict != advise.NotTried || !strings.HasPrefix(a.Tried.Error, want) {
			t.Errorf("%s: %+v", a.Rule, a.Tried)
		}
	}
	for i := range advise.Rules {
		if v, err := advise.Rules[i].Change(t.Context(), f); v != nil || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %+v, %v", advise.Rules[i].Code, v, err)
		}
	}
	for _, v := range []advise.Variant{{}, {Keep: true}, {Threads: 2}, {Batch: 8}} {
		if res, err := advise.Here(t.Context(), f, &v, time.Second); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %+v, %v", v, res, err)
		}
	}
}

// Layers that a kernel for sparse weights computes stay as they are: int8 would lose that.
func TestSparseStays(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).dense(64, 64).model(t)
	for _, sparse := range []bool{false, true} {
		f := onHost(t, data, run{change: func(p *profile.Profile) {
			if sparse {
				p.Layers[0].Kernel = "sparse/avx512"
			}
		}})
		f.Probe = probing(0.4, 0.5)
		r := advise.About(f, "int8-static")
		if len(r.Advice) != 1 {
			t.Fatalf("%+v", r)
		}
		v, err := r.Advice[0].Change(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		g := v.Model.Main()
		floats := 0 // weights that are still float32
		for _, n := range g.Nodes {
			if n.Op == "MatMul" && g.Values[n.Inputs[1]].Const != nil && g.Values[n.Inputs[1]].Const.Type == tensor.Float32 {
				floats++
			}
		}
		if want := map[bool]int{false: 0, true: 1}[sparse]; floats != want || len(r.Advice[0].Layers) != 2-want {
			t.Errorf("sparse %v: %d float layers, want %d; advice on %v", sparse, floats, want, r.Advice[0].Layers)
		}
	}
}

// A batch is advised only where the outputs follow it.
func TestFixedBatch(t *testing.T) {
	t.Parallel()
	b := newBuilder().input(tensor.Float32, 1, 64)
	shape := b.value("shape", tensor.Int64, 2)
	b.g.Values[shape].Const = tensor.From(tensor.Int64, []int{2}, []int64{1, -1})
	b.node("Reshape", nil, shape).node("Softmax", nil)
	f := onHost(t, b.model(t), run{})
	f.Probe = probing(1, 2)
	r := advise.About(f, "batch")
	if len(r.Advice) != 0 || r.Silent[0].Reason != "the model has a fixed batch" {
		t.Errorf("%+v", r)
	}
}

// A saved profile has nothing to measure: rules that need a short run say what to do.
func TestWithoutProbe(t *testing.T) {
	t.Parallel()
	f := onHost(t, newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).model(t), run{})
	for _, rule := range []string{"int8-static", "int8-dynamic", "batch", "threads"} {
		r := advise.About(f, rule)
		if len(r.Advice) != 0 || !strings.Contains(r.Silent[0].Reason, "it is measured with a model, not with a saved profile") {
			t.Errorf("%s: %+v", rule, r)
		}
	}
}

// A model that takes long is not run as a batch; a change that helps too little says what was asked
// for, and so do threads.
func TestReasons(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).model(t)
	for _, c := range []struct {
		rule      string
		low, high float64
		seconds   float64
		want      string
	}{
		{"threads", 0.91, 0.93, 1e-3, "with 2 threads it takes 0.92 times the time (0.91 to 0.93, measured now); to advise it, the interval must save 10 % or more"},
		{"int8-static", 0.96, 0.98, 1e-3, "the changed model takes 0.97 times the time (0.96 to 0.98, measured now); to advise it, the interval must save 10 % or more"},
		{"batch", 7.6, 8, 1e-3, "an item of a batch of 8 takes 0.97 times the time (0.95 to 1.00, measured now); to advise it, the interval must save 10 % or more"},
		{"batch", 1, 1, 1, "a batch of 8 would take about 8.00 s, too long for a short run: opmeter sweep --batch 1,8 measures it"},
	} {
		f := onHost(t, data, run{times: map[string]float64{"MatMul": c.seconds}})
		f.Probe = probing(c.low, c.high)
		r := advise.About(f, c.rule)
		if len(r.Advice) != 0 || r.Silent[0].Reason != c.want {
			t.Errorf("%s: %+v\nwant %s", c.rule, r.Silent, c.want)
		}
	}
}

// All formats state answer, gain, reason, basis and command; control characters of names stay out.
func TestWrite(t *testing.T) {
	t.Parallel()
	f := onHost(t, newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).node("Softmax", nil).model(t), run{times: map[string]float64{"MatMul": 8e-4, "Softmax": 2e-4}})
	f.Profile.Model.Name, f.Path = "a\x1b[2J|b", "a|b.onnx"
	f.Probe = probing(0.4, 0.5)
	r := advise.About(f, "int8-static", "transposes")
	for _, format := range advise.Formats {
		var b bytes.Buffer
		if err := advise.Write(&b, r, format, 80); err != nil {
			t.Fatal(err)
		}
		s := b.String()
		for _, want := range []string{"int8-static", "80 % of the time", "a short interleaved run here now, 30 pairs of blocks", "opmeter advise", "transposes"} {
			if !strings.Contains(strings.Join(strings.Fields(s), " "), want) {
				t.Errorf("%s lacks %q:\n%s", format, want, s)
			}
		}
		if strings.Contains(s, "\x1b") {
			t.Errorf("%s has a control character", format)
		}
		if format == "json" {
			var back advise.Result
			if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.Schema != advise.Schema || len(back.Advice) != 1 || back.Advice[0].Gain.Before != r.Advice[0].Gain.Before {
				t.Errorf("json: %v %+v", err, back)
			}
		}
	}
	none := advise.About(f, "transposes")
	if s := none.Answer(); !strings.Contains(s, "No advice") {
		t.Error(s)
	}
}

// The rules are complete, their codes differ, and each names its command.
func TestRules(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range advise.Rules {
		r := &advise.Rules[i]
		if seen[r.Code] || r.Title == "" || r.When == "" || r.Silent == "" || r.Quantity == "" || r.Source == "" || !strings.HasPrefix(r.Command, "opmeter ") {
			t.Errorf("%+v", r)
		}
		seen[r.Code] = true
	}
}

// A change that needs more memory says so; one whose model does not load is no advice, and not said
// to fit.
func TestCosts(t *testing.T) {
	t.Parallel()
	changed := func(f *advise.Facts, change func(p *profile.Profile)) {
		estimate := f.Estimate
		f.Estimate = func(g *graph.Model) (*profile.Profile, error) {
			p, err := estimate(g)
			if err == nil {
				change(p)
			}
			return p, err
		}
	}
	f := onTarget(t, conv(20).model(t), "stm32l4r5")
	changed(f, func(p *profile.Profile) { p.Totals.FlashBytes = new(2 * *f.Profile.Totals.FlashBytes) })
	r := advise.About(f, "int8-target")
	if len(r.Advice) != 1 {
		t.Fatalf("silent: %+v", r.Silent)
	}
	if a := r.Advice[0]; !strings.Contains(a.Costs, "of flash in place of") || !strings.Contains(a.Costs, "(+100 %)") || strings.Contains(a.Reason, "flash") || !strings.Contains(r.Answer(), "It costs ") {
		t.Errorf("costs %q, reason %q, answer %q", a.Costs, a.Reason, r.Answer())
	}
	unloaded := func(p *profile.Profile) {
		p.Layers[0].State, p.Layers[0].Cause = profile.Unsupported, &profile.Cause{Code: profile.ByOperator, Text: "no such kernel"}
	}
	f = onTarget(t, conv(20).model(t), "stm32l4r5")
	changed(f, unloaded)
	if r := advise.About(f, "int8-target"); len(r.Advice) > 0 || !strings.Contains(r.Silent[0].Reason, "does not run there either: the runtime has no kernel for 1 layer, the first is #0") {
		t.Errorf("%+v %+v", r.Advice, r.Silent)
	}
	f = onTarget(t, conv(92).model(t), "stm32l4r5")
	changed(f, unloaded)
	if r := advise.About(f, "ram"); len(r.Advice) > 0 && strings.Contains(r.Advice[0].Reason, "The int8 model fits") {
		t.Errorf("%+v", r.Advice[0])
	}
}

// A rule that finds operators which it cannot change says so, and not that the model has none.
func TestAbsent(t *testing.T) {
	t.Parallel()
	norm := func(b *builder) *builder {
		one := func(int) float64 { return 1 }
		return b.node("BatchNormalization", nil, b.constant(one, 4), b.constant(one, 4), b.constant(one, 4), b.constant(one, 4))
	}
	input := func() *builder { return newBuilder().input(tensor.Float32, 1, 4, 8, 8) }
	for _, c := range []struct {
		rule, want string
		model      *builder
	}{
		{"batch-norm", "the model has 1 batch normalisation; none follows a layer with constant float32 weights whose output goes nowhere else", norm(input().node("Relu", nil))},
		{"batch-norm", "the model has none", input().node("Relu", nil)},
		{"transposes", "the model has 1 transposition; none cancels with another one", input().transpose(0, 2, 3, 1)},
		{"transposes", "the model has none", input().node("Relu", nil)},
	} {
		r := advise.About(onHost(t, c.model.model(t), run{}), c.rule)
		if len(r.Silent) != 1 || r.Silent[0].Reason != c.want {
			t.Errorf("%s: %+v, want %q", c.rule, r.Silent, c.want)
		}
	}
	conv := input()
	conv.node("Conv", nil, conv.weights(17, 4, 3, 3))
	f := onHost(t, conv.model(t), run{})
	f.Profile.Settings.KernelSet = "avx512"
	if r := advise.About(f, "channels"); len(r.Silent) != 1 || !strings.Contains(r.Silent[0].Reason, "no layer beside the ONNX convolutions") {
		t.Errorf("%+v", r.Silent)
	}
}

// Rules that lack figures did not find that nothing is to be gained: the answer names them.
func TestUnchecked(t *testing.T) {
	t.Parallel()
	b := newBuilder().input(tensor.Float32, 1, 4).node("Relu", nil)
	f := onHost(t, b.model(t), run{})
	f.Model, f.Probe = nil, nil
	r := advise.About(f)
	r.Advice = nil
	if open := r.Unchecked(); len(open) == 0 || !strings.Contains(r.Answer(), "Not checked, for the reasons below: "+strings.Join(open, ", ")+".") {
		t.Errorf("%s; not checked: %v", r.Answer(), open)
	}
}

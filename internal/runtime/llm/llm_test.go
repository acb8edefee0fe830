package llm_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/decoder"
)

// build writes a model and reads it again.
func build(t *testing.T, c decoder.Config) *graph.Model {
	t.Helper()
	data, err := onnx.Encode(decoder.New(c))
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(data, "decoder.onnx", "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func detect(t *testing.T, m *graph.Model) *llm.Model {
	t.Helper()
	l, err := llm.Detect(m, llm.Setup{})
	if err != nil || l == nil {
		t.Fatalf("%+v, %v", l, err)
	}
	return l
}

func shared(c decoder.Config) decoder.Config {
	c.Shared = true
	return c
}

// TestDetect checks the sizes of a model, and the size of its caches to the byte.
func TestDetect(t *testing.T) {
	t.Parallel()
	type facts struct {
		Layers, Heads, HeadSize, Capacity, Context, Vocabulary int
		Shared                                                 bool
		Roles                                                  map[int]llm.Role
	}
	for _, test := range []struct {
		name string
		c    decoder.Config
		want facts
	}{
		{"caches that grow", decoder.Small, facts{2, 4, 8, 0, 64, 50, false, map[int]llm.Role{0: llm.Tokens, 1: llm.Mask, 2: llm.Positions}}},
		{"shared buffers", shared(decoder.Small), facts{2, 2, 8, 64, 64, 50, true, map[int]llm.Role{0: llm.Tokens, 1: llm.LastKey, 2: llm.Total}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := detect(t, build(t, test.c))
			got := facts{m.Layers, m.Heads, m.HeadSize, m.Capacity, m.Context, m.Vocabulary, m.Shared, m.Inputs}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			const batch, depth = 3, 17
			want := int64(2 * test.want.Layers * batch * depth * test.want.Heads * test.want.HeadSize * 4)
			if got := m.CacheBytes(batch, depth); got != want || m.CacheBytes(1, 0) != 0 {
				t.Errorf("%d bytes, want %d; an empty cache has %d", got, want, m.CacheBytes(1, 0))
			}
		})
	}
}

// run runs a phase with given tokens and, unless it is empty, a given cache.
func run(t *testing.T, m *graph.Model, l *llm.Model, p llm.Phase, ids []int64, caches []*tensor.Tensor) (logits []float32, after []*tensor.Tensor) {
	t.Helper()
	o, err := l.Feed(inputs.Options{}, p)
	if err != nil {
		t.Fatal(err)
	}
	in, _, err := inputs.Inputs(m, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range l.Inputs {
		if r == llm.Tokens {
			copy(tensor.Of[int64](in[i]), ids)
		}
	}
	for i, c := range l.Caches {
		if caches != nil {
			in[c.Input] = caches[i]
		}
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range l.Caches {
		x := *s.Output(c.Output)
		x.Data = bytes.Clone(x.Data)
		after = append(after, &x)
	}
	return append([]float32(nil), tensor.Of[float32](s.Output(0))...), after
}

// TestPhases compares prefill of a prompt, and decode after a prefill, with the same tokens one at
// a time.
func TestPhases(t *testing.T) {
	t.Parallel()
	ids := []int64{3, 17, 20, 5, 9, 40, 0}
	for name, c := range map[string]decoder.Config{"caches that grow": decoder.Small, "shared buffers": shared(decoder.Small)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := build(t, c)
			l := detect(t, m)
			var steps [][]float32
			var caches []*tensor.Tensor
			for i := range ids {
				var y []float32
				y, caches = run(t, m, l, llm.Phase{Batch: 1, Tokens: 1, Depth: i}, ids[i:i+1], caches)
				steps = append(steps, y)
			}
			whole, _ := run(t, m, l, llm.Phase{Batch: 1, Tokens: len(ids)}, ids, nil)
			last := whole[len(whole)-c.Vocabulary:]
			near(t, "prefill", last, steps[len(ids)-1])
			n := len(ids) - 1
			_, caches = run(t, m, l, llm.Phase{Batch: 1, Tokens: n}, ids[:n], nil)
			y, _ := run(t, m, l, llm.Phase{Batch: 1, Tokens: 1, Depth: n}, ids[n:], caches)
			near(t, "decode after prefill", y, last)
			other, _ := run(t, m, l, llm.Phase{Batch: 1, Tokens: 1, Depth: n}, ids[n:], nil)
			if distance(other, last) < 1e-2 {
				t.Error("a random cache gives the same logits: the cache is not read")
			}
			// Rows of a batch do not depend on each other.
			two, _ := run(t, m, l, llm.Phase{Batch: 2, Tokens: len(ids)}, append(append([]int64(nil), ids...), ids...), nil)
			near(t, "second of a batch", two[len(two)-c.Vocabulary:], last)
		})
	}
}

func distance(a, b []float32) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) || !(distance(got, want) <= 1e-4) {
		t.Errorf("%s: %d logits differ by %v from %d", what, len(got), distance(got[:min(len(got), len(want))], want), len(want))
	}
}

// TestShare runs caches of an open length as buffers where the setup says so and operators can.
func TestShare(t *testing.T) {
	t.Parallel()
	c := shared(decoder.Small)
	c.Open = true
	m := build(t, c)
	ids := []int64{3, 17, 20, 5, 9}
	logits := func(share bool) []float32 {
		l, err := llm.Detect(m, llm.Setup{Shared: share})
		if err != nil || l == nil || l.Shared {
			t.Fatalf("%+v, %v", l, err)
		}
		l.Share(16)
		if l.Shared != share || share && l.Capacity != 16 {
			t.Fatalf("shared %t with %d positions, want %t", l.Shared, l.Capacity, share)
		}
		_, caches := run(t, m, l, llm.Phase{Batch: 1, Tokens: 4}, ids[:4], nil)
		if n := caches[0].Shape[2]; share && n != 16 || !share && n != 4 {
			t.Errorf("a cache of %d positions", n)
		}
		y, _ := run(t, m, l, llm.Phase{Batch: 1, Tokens: 1, Depth: 4}, ids[4:], caches)
		return y
	}
	near(t, "decode in a buffer", logits(true), logits(false))
	l, err := llm.Detect(build(t, decoder.Small), llm.Setup{Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.Share(16); l.Shared {
		t.Error("caches that Concat reads are buffers")
	}
}

// TestCaches checks that caches are random and not constant.
func TestCaches(t *testing.T) {
	t.Parallel()
	m := build(t, decoder.Small)
	l := detect(t, m)
	o, err := l.Feed(inputs.Options{Seed: 5}, llm.Phase{Batch: 1, Tokens: 1, Depth: 40})
	if err != nil {
		t.Fatal(err)
	}
	in, _, err := inputs.Inputs(m, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range l.Caches {
		x := tensor.Of[float32](in[c.Input])
		var sum, squares float64
		for _, v := range x {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		n := float64(len(x))
		if mean, square := sum/n, squares/n; math.Abs(mean) > 0.1 || math.Abs(square-1.0/3) > 0.05 {
			t.Errorf("cache %d has mean %v and mean square %v, want 0 and 1/3", c.Input, mean, square)
		}
	}
}

// model is a graph with inputs and outputs and no nodes.
func model(in, out []*graph.Value) *graph.Model {
	g := &graph.Graph{}
	for _, list := range [][]*graph.Value{in, out} {
		for _, v := range list {
			v.ID, v.HasShape, v.Offset = len(g.Values), true, -1
			g.Values = append(g.Values, v)
		}
	}
	for i := range in {
		g.Inputs = append(g.Inputs, i)
	}
	for i := range out {
		g.Outputs = append(g.Outputs, len(in)+i)
	}
	return &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}}
}

func tokens(shape ...int) *graph.Value {
	return &graph.Value{Name: "input_ids", Type: tensor.Int64, Shape: shape}
}

func cache(name string, shape ...int) *graph.Value {
	return &graph.Value{Name: name, Type: tensor.Float16, Shape: shape}
}

// TestNames detects caches by the names that exporters give them.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		past, present string
		shape         []int
		axis, layers  int
		bytes         int64 // of 10 positions
	}{
		// Optimum, ONNX Runtime and its GenAI, transformers.js; the last two are one tensor for both.
		{"past_0_key", "present_0_key", []int{-1, 4, -1, 8}, 2, 0, 640},
		{"past_key_0", "present_key_0", []int{-1, 4, -1, 8}, 2, 0, 640},
		{"past_key_values.0.decoder.key", "present.0.decoder.key", []int{-1, 4, -1, 8}, 2, 0, 640},
		{"past_key_values.0.key", "present.0.key", []int{-1, 4, -1, 8}, 2, 0, 640},
		{"past_key_values.0.key", "present_key_values.0.key", []int{-1, 4, -1, 8}, 2, 0, 640},
		{"past_key_self_0", "present_key_self_0", []int{1, -1, 4, 8}, 1, 0, 640},
		{"past_0", "present_0", []int{2, -1, 4, -1, 8}, 3, 1, 1280},
	} {
		m := model([]*graph.Value{tokens(-1, -1), cache(test.past, test.shape...)}, []*graph.Value{cache(test.present, test.shape...)})
		l := detect(t, m)
		if c := l.Caches[0]; c.Axis != test.axis || l.Layers != test.layers || l.CacheBytes(1, 10) != test.bytes || l.Heads != 4 || l.HeadSize != 8 {
			t.Errorf("%s: %+v, %d bytes", test.past, l, l.CacheBytes(1, 10))
		}
	}
	for _, test := range []struct {
		past, present string
		shape         []int
		kind          llm.Kind
		self, cross   int64 // bytes of 10 positions
		state         int64
	}{
		// The latent caches and the states are those of GGUF.
		{"past_key_values.0.latent", "present.0.latent", []int{-1, -1, 24}, llm.Self, 480, 0, 0},
		{"past_key_values.0.key", "present.0.key", []int{-1, -1, 24}, llm.Self, 480, 0, 0},
		{"past_states.0.conv", "present_states.0.conv", []int{-1, 6, 3}, llm.State, 0, 0, 36},
		{"past_states.0.ssm", "present_states.0.ssm", []int{-1, 6, 4, 1}, llm.State, 0, 0, 48},
		{"past_conv.0", "present_conv.0", []int{-1, 6, 3}, llm.State, 0, 0, 36},
		{"past_recurrent.0", "present_recurrent.0", []int{-1, 2, 3, 4}, llm.State, 0, 0, 48},
		{"past_key_values.0.conv_state", "present.0.conv_state", []int{-1, 6, 3}, llm.State, 0, 0, 36},
		{"past_key_values.0.recurrent_state", "present.0.recurrent_state", []int{-1, 2, 3, 4}, llm.State, 0, 0, 48},
		{"past_key_values.0.encoder.key", "none", []int{-1, 4, -1, 8}, llm.Cross, 0, 640, 0},
		{"past_key_cross_0", "none", []int{-1, 4, -1, 8}, llm.Cross, 0, 640, 0},
	} {
		m := model([]*graph.Value{tokens(-1, -1), cache(test.past, test.shape...)}, []*graph.Value{cache(test.present, test.shape...)})
		l := detect(t, m)
		if c := l.Caches[0]; c.Kind != test.kind || l.CacheBytes(1, 10) != test.self || l.CrossBytes(1, 10) != test.cross || l.StateBytes(1) != test.state || (c.Output < 0) != (test.present == "none") {
			t.Errorf("%s: %+v, %d, %d and %d bytes", test.past, l, l.CacheBytes(1, 10), l.CrossBytes(1, 10), l.StateBytes(1))
		}
		if err := l.Check(llm.Phase{Batch: 2, Tokens: 1, Depth: 9, Encoder: 10}); err != nil {
			t.Errorf("%s: %v", test.past, err)
		}
	}
	renamed := llm.Setup{
		Roles:  map[string]llm.Role{"words": llm.Tokens},
		Caches: []llm.Pair{{Past: "old%dk", Present: "new_%d"}, {Past: "memory%d", Kind: llm.Cross}},
	}
	m := model([]*graph.Value{{Name: "words", Type: tensor.Int64, Shape: []int{1, -1}}, cache("old7k", 1, 4, -1, 8), cache("memory0", 1, 4, 5, 8), cache("oldxk", 1)}, []*graph.Value{cache("new_7", 1, 4, -1, 8)})
	if l, err := llm.Detect(m, renamed); err != nil || len(l.Caches) != 2 || l.Caches[1].Kind != llm.Cross || l.Encoder != 5 {
		t.Errorf("names of a setup: %+v, %v", l, err)
	}
	for name, m := range map[string]*graph.Model{
		"no tokens":         model([]*graph.Value{cache("past_0", 1, 4, -1, 8)}, []*graph.Value{cache("present_0", 1, 4, -1, 8)}),
		"no cache":          model([]*graph.Value{tokens(-1, -1)}, []*graph.Value{cache("logits", 1, 4, 8)}),
		"cache without end": model([]*graph.Value{tokens(-1, -1), cache("past_0", 1, 4, -1, 8)}, []*graph.Value{cache("other", 1, 4, -1, 8)}),
	} {
		if l, err := llm.Detect(m, llm.Setup{}); l != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

// TestTables finds the number of positions and of tokens in tables, also behind a cast.
func TestTables(t *testing.T) {
	t.Parallel()
	table := func(rows int) *graph.Value {
		return &graph.Value{Name: "table", Type: tensor.Float32, Shape: []int{rows, 4}, Const: tensor.New(tensor.Float32, rows, 4)}
	}
	positions := &graph.Value{Name: "position_ids", Type: tensor.Int64, Shape: []int{-1, -1}}
	m := model([]*graph.Value{tokens(-1, -1), positions, cache("past_0", 1, 4, -1, 8)}, []*graph.Value{cache("present_0", 1, 4, -1, 8), table(70), table(9), {Name: "cast"}, {Name: "a"}, {Name: "b"}})
	g := m.Main()
	g.Outputs = g.Outputs[:1]
	g.Nodes = []*graph.Node{
		{Op: "Cast", Inputs: []int{1}, Outputs: []int{6}},
		{Op: "Gather", Inputs: []int{4, 0}, Outputs: []int{7}},
		{Op: "Gather", Inputs: []int{5, 6}, Outputs: []int{8}},
	}
	if l := detect(t, m); l.Vocabulary != 70 || l.Context != 9 {
		t.Errorf("%d tokens, %d positions", l.Vocabulary, l.Context)
	}
	g.Nodes = []*graph.Node{{Domain: graph.Microsoft, Op: "EmbedLayerNormalization", Inputs: []int{0, -1, 4, 5}, Outputs: []int{7}}}
	if l := detect(t, m); l.Vocabulary != 70 || l.Context != 9 {
		t.Errorf("embedding with norm: %d tokens, %d positions", l.Vocabulary, l.Context)
	}
}

// TestUnsupported: what cannot be run is refused with the reason.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	past := func(name string, shape ...int) *graph.Model {
		return model([]*graph.Value{tokens(-1, -1), cache(name, shape...)}, []*graph.Value{cache("present"+name[len("past_key_values"):], shape...)})
	}
	shapeless := model([]*graph.Value{tokens(-1, -1), cache("past_0")}, []*graph.Value{cache("present_0", -1, 4, -1, 8)})
	shapeless.Main().Values[1].HasShape = false
	for want, m := range map[string]*graph.Model{
		`cache "past_key_values.0.key" has shape 4x8: expected 3 to 5 dimensions, such as [batch, heads, positions, size]`: past(
			"past_key_values.0.key", 4, 8),
		`cache "past_0" has no shape in the file: expected 3 to 5 dimensions, such as [batch, heads, positions, size]`: shapeless,
		`some caches have an open length, and others 64 positions`: model(
			[]*graph.Value{tokens(-1, -1), cache("past_0", -1, 4, -1, 8), cache("past_1", -1, 4, 64, 8)},
			[]*graph.Value{cache("present_0", -1, 4, -1, 8), cache("present_1", -1, 4, 64, 8)}),
		`cache "past_key_values.0.conv" has shape ?x?x3: dimension 1 has no size in the file`:  past("past_key_values.0.conv", -1, -1, 3),
		`cache "past_key_values.0.key" has shape ?x?x?x8: dimension 1 has no size in the file`: past("past_key_values.0.key", -1, -1, -1, 8),
	} {
		_, err := llm.Detect(m, llm.Setup{})
		if _, ok := errors.AsType[*llm.UnsupportedError](err); !ok || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	scalar := detect(t, model([]*graph.Value{tokens(-1, -1), {Name: "attention_mask", Type: tensor.Int64}, cache("past_0", 1, 4, -1, 8)}, []*graph.Value{cache("present_0", 1, 4, -1, 8)}))
	small := detect(t, build(t, decoder.Small))
	fixed := detect(t, model([]*graph.Value{tokens(1, 1), cache("past_0", 1, 4, -1, 8)}, []*graph.Value{cache("present_0", 1, 4, -1, 8)}))
	for _, test := range []struct {
		m    *llm.Model
		p    llm.Phase
		want string
	}{
		{small, llm.Phase{Batch: 1, Tokens: 1, Depth: 64}, "the model has 64 positions: 64 in the cache and 1 new are too many"},
		{small, llm.Phase{Batch: 1 << 21, Tokens: 60}, `input "input_ids" needs 125829120 elements, more than 16777216: use a smaller batch, prompt or context`},
		{scalar, llm.Phase{Batch: 1, Tokens: 8}, `input "attention_mask" has no dimensions in the file`},
		{fixed, llm.Phase{Batch: 1, Tokens: 8}, `dimension 1 of input "input_ids" is fixed at 1, and this phase needs 8`},
		{fixed, llm.Phase{Batch: 2, Tokens: 1}, `dimension 0 of input "input_ids" is fixed at 1, and this phase needs 2`},
	} {
		if err := test.m.Check(test.p); err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v, want %s", test.p, err, test.want)
		}
	}
	if err := fixed.Check(llm.Phase{Batch: 1, Tokens: 1, Depth: 5}); err != nil {
		t.Error(err)
	}
}

// TestMask has a row for each token, which sees the positions up to its own.
func TestMask(t *testing.T) {
	t.Parallel()
	mask := &graph.Value{Name: "attention_mask", Type: tensor.Float32, Shape: []int{-1, 1, -1, -1}}
	l := detect(t, model([]*graph.Value{tokens(-1, -1), mask, cache("past_0", 1, 4, -1, 8)}, []*graph.Value{cache("present_0", 1, 4, -1, 8)}))
	o, err := l.Feed(inputs.Options{}, llm.Phase{Batch: 1, Tokens: 2, Depth: 3})
	if err != nil {
		t.Fatal(err)
	}
	const off = -math.MaxFloat32
	want := []float64{0, 0, 0, 0, off, 0, 0, 0, 0, 0}
	if d := cmp.Diff(want, o.Overrides.Fill["attention_mask"].Values); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff([]int{1, 1, 2, 5}, o.Shapes["attention_mask"]); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// FuzzDetect: no file makes detection or the inputs of a phase panic or take much memory.
func FuzzDetect(f *testing.F) {
	for _, c := range []decoder.Config{decoder.Small, shared(decoder.Small)} {
		c.Layers, c.MLP, c.Vocabulary = 1, 8, 4
		data, err := onnx.Encode(decoder.New(c))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, form := range []decoder.Form{decoder.Merged, decoder.Separate, decoder.Crossed} {
		p := decoder.NewPair(decoder.Config{Layers: 1, Width: 8, Heads: 1, HeadSize: 8, MLP: 8, Vocabulary: 4, Context: 4}, form)
		for _, m := range []*graph.Model{p.Encoder, p.Decoder, p.Start} {
			if m == nil {
				continue
			}
			data, err := onnx.Encode(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse(data, "fuzz.onnx", t.TempDir())
		if err != nil {
			return
		}
		if l := llm.DetectPart(m, llm.Setup{}); l != nil {
			_, _ = l.Feed(inputs.Options{}, llm.Phase{Batch: 1, Tokens: 3})
		}
		l, err := llm.Detect(m, llm.Setup{})
		if err != nil || l == nil {
			return
		}
		l.Share(9)
		for _, p := range []llm.Phase{{Batch: 1, Tokens: 3}, {Batch: 2, Tokens: 1, Depth: 5, Encoder: 3, Encoded: true}} {
			o, err := l.Feed(inputs.Options{}, p)
			if err != nil {
				continue
			}
			for _, c := range l.Caches {
				name := m.Main().Values[m.Main().Inputs[c.Input]].Name
				if o.Shapes[name] == nil {
					t.Errorf("no shape for cache %q", name)
				}
			}
		}
	})
}

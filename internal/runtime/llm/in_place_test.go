package llm_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/decoder"
)

// open is a model with buffers whose length the file leaves open, as the exporter of ONNX Runtime
// GenAI writes them.
func open() *graph.Model {
	m := decoder.New(shared(decoder.Small))
	for _, id := range slices.Concat(m.Main().Inputs, m.Main().Outputs) {
		if v := m.Main().Values[id]; len(v.Shape) == 4 {
			v.Shape[2] = -1
		}
	}
	return m
}

// halves is one attention over caches of float16.
func halves() *graph.Model {
	const heads, size, capacity = 2, 8, 20
	g := &graph.Graph{}
	value := func(name string, t tensor.Type, shape ...int) int {
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Name: name, Type: t, Shape: shape, HasShape: true, Offset: -1})
		return len(g.Values) - 1
	}
	x := value("inputs_embeds", tensor.Float16, 1, -1, 3*heads*size)
	past := []int{value("past_key_values.0.key", tensor.Float16, 1, heads, capacity, size), value("past_key_values.0.value", tensor.Float16, 1, heads, capacity, size)}
	lens, total := value("lens", tensor.Int32, 1), value("total", tensor.Int32, 1)
	y := value("y", tensor.Float16)
	present := []int{value("present.0.key", tensor.Float16), value("present.0.value", tensor.Float16)}
	g.Inputs, g.Outputs = append([]int{x, lens, total}, past...), append([]int{y}, present...)
	g.Nodes = []*graph.Node{{
		Domain: graph.Microsoft, Op: "GroupQueryAttention", Version: 1, Attrs: graph.Attrs{"num_heads": int64(heads), "kv_num_heads": int64(heads)},
		Inputs: []int{x, -1, -1, past[0], past[1], lens, total}, Outputs: g.Outputs,
	}}
	return &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, Opsets: map[string]int{graph.ONNX: 23, graph.Microsoft: 1}}
}

// TestInPlace writes new keys and values to the memory of the caches: results and valid positions
// are bit-exact, and the other positions stay.
func TestInPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		m       *graph.Model
		inPlace bool
	}{
		{"buffers", decoder.New(shared(decoder.Small)), true},
		{"buffers of open length", open(), true},
		{"float16", halves(), true},
		{"caches that grow", decoder.New(decoder.Small), false},
	} {
		for _, p := range []llm.Phase{{Batch: 1, Tokens: 5, Buffers: true}, {Batch: 1, Tokens: 1, Depth: 17, Buffers: true}} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				l := detect(t, test.m)
				o, err := l.Feed(inputs.Options{Seed: 3}, p)
				if err != nil {
					t.Fatal(err)
				}
				run := func(pairs []engine.Carry) (*engine.Session, []*tensor.Tensor) {
					in, _, err := inputs.Inputs(test.m, o)
					if err != nil {
						t.Fatal(err)
					}
					s, err := engine.New(test.m, in, engine.Options{Registry: operators.Registry(), InPlace: pairs})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(s.Close)
					for range 2 { // a second run finds what the first one wrote
						if err := s.Run(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					return s, in
				}
				var pairs []engine.Carry
				for _, c := range l.Caches {
					pairs = append(pairs, engine.Carry{Output: c.Output, Input: c.Input})
				}
				want, before := run(nil)
				got, in := run(pairs)
				made := got.InPlace()
				if len(want.InPlace()) != 0 || test.inPlace != slices.Equal(made, pairs) || !test.inPlace && len(made) > 0 {
					t.Fatalf("%v were written in place, of %v", made, pairs)
				}
				if !bytes.Equal(got.Output(0).Data, want.Output(0).Data) {
					t.Error("the result differs")
				}
				named := map[string]string{}
				for i, c := range l.Caches {
					x, y := want.Output(c.Output), got.Output(c.Output)
					row := x.Type.Bytes(x.Shape[3])
					for n := 0; n*row < len(x.Data); n++ {
						expected := x.Data
						if test.inPlace && n%x.Shape[2] >= p.Tokens+p.Depth {
							expected = before[c.Input].Data
						}
						if !bytes.Equal(expected[n*row:][:row], y.Data[n*row:][:row]) {
							t.Fatalf("row %d of cache %d differs", n, c.Input)
						}
					}
					if test.inPlace != bytes.Equal(in[c.Input].Data, y.Data) {
						t.Errorf("cache %d is in place: %v", c.Input, !test.inPlace)
					}
					named[l.Pairs(false)[i][1]] = l.Pairs(false)[i][0]
				}
				if n := l.CopiedBytes(p, named); n != 0 {
					t.Errorf("%d bytes are copied in place", n)
				}
				if n, want := l.CopiedBytes(p, nil), l.CacheBytes(1, max(l.Capacity-p.Tokens, p.Depth)); n != want {
					t.Errorf("%d bytes are copied elsewhere, want %d", n, want)
				}
			})
		}
	}
}

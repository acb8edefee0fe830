package rewrite_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/external/onnxruntime"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// codesOf generates quantised values.
func codesOf(t tensor.Type, seed int, shape ...int) *tensor.Tensor {
	c := tensor.New(t, shape...)
	all := make([]uint8, c.Len())
	for i := range all {
		all[i] = uint8((i*i*7 + i*31 + seed*13) >> 1)
	}
	if t.Bits() < 8 {
		for i := range all {
			all[i] &= 1<<t.Bits() - 1
		}
		tensor.Pack(c, all)
		return c
	}
	copy(c.Data, all)
	return c
}

// scales generates scales.
func scales(shape ...int) *tensor.Tensor {
	c := tensor.New(tensor.Float32, shape...)
	tensor.Fill(c, func(i int) float64 { return 0.003 + 0.0005*math.Abs(math.Sin(float64(i))) })
	return c
}

// codedModels are ONNX models whose operators read low-bit quantised weights, directly or through
// unpacking nodes.
var codedModels = []struct {
	name  string
	build func(b *maker)
	in    *tensor.Tensor
	heads int // layers that are found
}{
	{"recurrent", func(b *maker) {
		b.value("x", tensor.Float32, 3, 1, 8)
		b.constant("w", codesOf(tensor.Int8, 1, 2, 8, 24))
		b.constant("r", codesOf(tensor.Int8, 2, 2, 6, 24))
		b.constant("b", numbers(3, 2, 48))
		b.constant("ws", scales(2, 24))
		b.constant("wz", tensor.New(tensor.Int8, 2, 24))
		b.constant("rs", scales(2))
		b.constant("rz", codesOf(tensor.Int8, 3, 2))
		b.value("h", tensor.Float32, 3, 2, 1, 6)
		b.node(graph.Microsoft, "DynamicQuantizeLSTM", graph.Attrs{"hidden_size": int64(6), "direction": "bidirectional"}, "h", "x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz")
		b.dense("h", 6)
	}, numbers(5, 3, 1, 8), 3},
	{"attention", func(b *maker) {
		b.value("x", tensor.Float32, 1, 4, 8)
		b.value("q", tensor.Uint8, 1, 4, 8)
		b.value("qs", tensor.Float32)
		b.value("qz", tensor.Uint8)
		b.node("", "DynamicQuantizeLinear", nil, "q", "x")
		b.g.Nodes[0].Outputs = b.all([]string{"q", "qs", "qz"})
		b.constant("w", codesOf(tensor.Int8, 4, 8, 24))
		b.constant("b", numbers(5, 24))
		b.constant("ws", scales(24))
		b.constant("wz", tensor.New(tensor.Int8, 24))
		b.value("h", tensor.Float32, 1, 4, 8)
		b.node(graph.Microsoft, "QAttention", graph.Attrs{"num_heads": int64(2), "unidirectional": int64(1)}, "h", "q", "w", "b", "qs", "ws", "", "qz", "wz")
		b.dense("h", 8)
	}, numbers(6, 1, 4, 8), 2},
	{"embeddings", func(b *maker) {
		b.value("x", tensor.Int32, 1, 4)
		names := []string{"x", ""}
		for i, shape := range [][]int{{20, 8}, {6, 8}, nil, {8}, {8}} {
			n := ""
			if shape != nil {
				n = fmt.Sprint("table", i)
				b.constant(n, codesOf(tensor.Uint8, i, shape...))
			}
			names = append(names, n)
		}
		names = append(names, "")
		b.constant("scale", tensor.From(tensor.Float32, []int{}, []float32{0.02}))
		b.constant("zero", tensor.From(tensor.Uint8, []int{}, []uint8{120}))
		names = append(names, "scale", "scale", "", "scale", "scale", "zero", "zero", "", "zero", "zero")
		b.value("h", tensor.Float32, 1, 4, 8)
		b.value("index", tensor.Int32, 1)
		b.node(graph.Microsoft, "QEmbedLayerNormalization", graph.Attrs{"epsilon": float32(1e-12)}, "h", names...)
		b.g.Nodes[0].Outputs = b.all([]string{"h", "index"})
		b.dense("h", 8)
	}, tensor.From(tensor.Int32, []int{1, 4}, []int32{3, 19, 0, 7}), 3},
	{"blocks of four bits", func(b *maker) {
		b.value("x", tensor.Int64, 1, 4)
		b.constant("table", codesOf(tensor.Uint8, 1, 20, 16))
		b.constant("scale", scales(20, 2))
		b.constant("zero", codesOf(tensor.Uint8, 2, 20, 1))
		b.value("rows", tensor.Float32, 1, 4, 32)
		b.node(graph.Microsoft, "GatherBlockQuantized", graph.Attrs{"block_size": int64(16), "bits": int64(4), "quantize_axis": int64(1), "gather_axis": int64(0)}, "rows", "table", "x", "scale", "zero")
		b.constant("codes", codesOf(tensor.Int4, 3, 32, 8))
		b.constant("codes_scale", scales(2, 8))
		b.constant("codes_zero", codesOf(tensor.Int4, 4, 2, 8))
		b.value("m", tensor.Float32, 32, 8)
		b.value("h", tensor.Float32, 1, 4, 8)
		b.node("", "DequantizeLinear", graph.Attrs{"axis": int64(0), "block_size": int64(16)}, "m", "codes", "codes_scale", "codes_zero")
		b.g.Nodes[1].Version = 21
		b.node("", "MatMul", nil, "h", "rows", "m")
		b.dense("h", 8)
	}, tensor.From(tensor.Int64, []int{1, 4}, []int64{3, 19, 0, 7}), 3},
	{"codes of 2, 4 and 8 bits", func(b *maker) {
		b.value("x", tensor.Float32, 4, 32)
		last := "x"
		for i, bits := range []int{2, 4, 8} {
			n := func(s string) string { return fmt.Sprint(s, bits) }
			b.constant(n("w"), codesOf(tensor.Uint8, i, 32, 2, 2*bits))
			b.constant(n("s"), scales(64))
			b.constant(n("z"), codesOf(tensor.Uint8, i+5, 32, (2*bits+7)/8))
			b.value(n("y"), tensor.Float32, 4, 32)
			b.node(graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(32), "N": int64(32), "bits": int64(bits), "block_size": int64(16)}, n("y"), last, n("w"), n("s"), n("z"))
			last = n("y")
		}
		b.dense(last, 32)
	}, numbers(7, 4, 32), 4},
	{"gates in another order", func(b *maker) {
		b.value("x", tensor.Float32, 3, 1, 8)
		b.constant("w", numbers(1, 24, 8))
		b.constant("r", numbers(2, 24, 6))
		b.constant("axis", tensor.From(tensor.Int64, []int{1}, []int64{0}))
		for _, k := range []int64{0, 6, 12, 24} {
			b.constant(fmt.Sprint(k), tensor.From(tensor.Int64, []int{1}, []int64{k}))
		}
		for _, n := range []string{"w", "r"} {
			cols := b.g.Values[b.ids[n]].Shape[1]
			var parts []string
			for _, at := range [][2]int{{0, 6}, {12, 24}, {6, 12}} {
				part := fmt.Sprint(n, at[0], "to", at[1])
				b.value(part, tensor.Float32, at[1]-at[0], cols)
				b.node("", "Slice", nil, part, n, fmt.Sprint(at[0]), fmt.Sprint(at[1]), "axis")
				parts = append(parts, part)
			}
			b.value(n+"all", tensor.Float32, 24, cols)
			b.node("", "Concat", graph.Attrs{"axis": int64(0)}, n+"all", parts...)
			b.value(n+"gates", tensor.Float32, 1, 24, cols)
			b.node("", "Unsqueeze", nil, n+"gates", n+"all", "axis")
		}
		b.value("h", tensor.Float32, 3, 1, 1, 6)
		b.node("", "LSTM", graph.Attrs{"hidden_size": int64(6)}, "h", "x", "wgates", "rgates")
		b.dense("h", 6)
	}, numbers(5, 3, 1, 8), 3},
}

// dense multiplies the last dimension of a value by a float matrix, which gives the output.
func (m *maker) dense(of string, last int) {
	m.constant("last", numbers(8, last, 4))
	shape := append([]int{}, m.g.Values[m.ids[of]].Shape...)
	shape[len(shape)-1] = 4
	m.value("y", tensor.Float32, shape...)
	m.node("", "MatMul", nil, "y", of, "last")
	m.g.Inputs, m.g.Outputs = []int{m.ids["x"]}, []int{m.ids["y"]}
}

func activationQuant(build func(b *maker)) *graph.Model {
	b := newMaker(0, "main", nil)
	build(b)
	for _, n := range b.g.Nodes {
		if n.Domain == graph.Microsoft {
			n.Version = 1
		} else {
			n.Version = 21
		}
	}
	return &graph.Model{Format: "onnx", IRVersion: 10, Opsets: map[string]int{"": 21, graph.Microsoft: 1}, Graphs: []*graph.Graph{b.g}}
}

// TestCoded prunes weights in their own format: they are found again, zero, and everything else
// is unchanged.
func TestCoded(t *testing.T) {
	t.Parallel()
	for _, tt := range codedModels {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := parse(t, activationQuant(tt.build))
			layers := weights.All(m, nil)
			if len(layers) != tt.heads {
				t.Fatalf("%d layers, want %d", len(layers), tt.heads)
			}
			for _, c := range changed {
				var changes []rewrite.Change
				for _, l := range layers {
					if l.Fixed != "" {
						t.Errorf("%s: %s", l.Weight, l.Fixed)
					}
					changes = append(changes, rewrite.Change{Layer: l, Change: c})
				}
				next, effects, err := rewrite.Apply(m, changes, rewrite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				back := weights.All(parse(t, next), nil)
				if len(back) != len(layers) {
					t.Fatalf("%s %s: %d layers are found again", c.Structure, c.Format, len(back))
				}
				for i, l := range back {
					// What cannot have the format stays pruned in its own.
					if l.Zeros < effects[i].Zeros || effects[i].Zeros == 0 {
						t.Errorf("%s %s: %s: %d zero, effect %+v", c.Structure, c.Format, l.Weight, l.Zeros, effects[i])
					}
				}
				in := []*tensor.Tensor{tt.in}
				equal(t, "file", run(t, parse(t, next), in, engine.Options{Exact: true}).Output(0), run(t, next, in, engine.Options{Exact: true}).Output(0))
			}
		})
	}
}

// TestEnginesCoded runs them in ONNX Runtime.
func TestEnginesCoded(t *testing.T) {
	lib := foreign(t, "onnxruntime-1.32.*/onnxruntime/capi/libonnxruntime.so.1.*", onnxruntime.Open)
	for _, tt := range codedModels {
		for _, c := range append([]study.Change{{}}, changed...) {
			t.Run(fmt.Sprintf("%s/%s%s", tt.name, c.Structure, c.Format), func(t *testing.T) {
				agree(t, lib, activationQuant(tt.build), []*tensor.Tensor{tt.in}, c)
			})
		}
	}
}

// TestEnginesSpeech runs in ONNX Runtime a network whose LSTM, in a branch, reads gates reordered
// by Slice and Concat.
func TestEnginesSpeech(t *testing.T) {
	lib := foreign(t, "onnxruntime-1.32.*/onnxruntime/capi/libonnxruntime.so.1.*", onnxruntime.Open)
	m := open(t, material.Path(t, "models", "real", "silero_vad_16k_op15.onnx"))
	var in []*tensor.Tensor
	for _, id := range m.Main().Inputs {
		switch v := m.Main().Values[id]; v.Name {
		case "input":
			in = append(in, numbers(1, 1, 512))
		case "state":
			in = append(in, numbers(2, 2, 1, 128))
		case "sr":
			in = append(in, tensor.From(tensor.Int64, v.Shape, []int64{16000}))
		}
	}
	for _, c := range changed {
		// the output is one number, which may lie nearer to the floats than codes that move lie
		// to each other
		if c.Structure != study.Channel && (c.Format == study.Int8 || c.Format == study.Dynamic8) {
			continue
		}
		t.Run(string(c.Structure)+string(c.Format), func(t *testing.T) { agree(t, lib, m, in, c) })
	}
}

// TestFetched4 converts lookups to 4-bit block-quantised tables, for any operator set: zeros stay
// zero.
func TestFetched4(t *testing.T) {
	t.Parallel()
	m := tables("onnx")
	var changes []rewrite.Change
	for _, l := range weights.All(m, nil) {
		changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Structure: study.Unstructured, Level: 0.5, Format: study.Weight4}})
	}
	next, effects, err := rewrite.Apply(m, changes, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	back := parse(t, next)
	if op := back.Main().Nodes[0].Op; op != "GatherBlockQuantized" || back.Opsets[""] != 13 {
		t.Errorf("%s in operator set %d", op, back.Opsets[""])
	}
	for i, l := range weights.All(back, nil) {
		if effects[i].Cause != "" || l.Bits() != 4 || l.Zeros < l.Weights()/2 {
			t.Errorf("%s: %d of %d zero, %d bits, effect %+v", l.Weight, l.Zeros, l.Weights(), l.Bits(), effects[i])
		}
	}
	for i := range changes {
		changes[i].Format = study.OriginalFormat
	}
	floats, _, err := rewrite.Apply(m, changes, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Codes of 4 bits of numbers of this spread leave 15 dB at least, two layers one after the
	// other 12.
	if s := snr(run(t, back, places(), engine.Options{}).Output(0), run(t, floats, places(), engine.Options{}).Output(0)); !(s > 12) {
		t.Errorf("%.1f dB from the floats", s)
	}
}

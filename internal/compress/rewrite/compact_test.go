package rewrite_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
	"github.com/opmeter/opmeter/study"
)

// denseChain is a model of four dense layers of 64 outputs.
func denseChain(format string) *graph.Model {
	b := newMaker(0, "main", nil)
	b.value("v0", tensor.Float32, 1, 64)
	for i := range 4 {
		w, y := fmt.Sprint("w", i), fmt.Sprint("v", i+1)
		b.constant(w, numbers(i, 64, 64))
		b.value(y, tensor.Float32, 1, 64)
		x := fmt.Sprint("v", i)
		if format == "tflite" {
			b.node(graph.TFLite, "FULLY_CONNECTED", graph.Attrs{"fused_activation_function": "RELU", "weights_format": "DEFAULT", "keep_num_dims": false}, y, x, w, "")
			b.g.Nodes[i].Version = 1
		} else {
			b.node("", "MatMul", nil, y, x, w)
			b.g.Nodes[i].Version = 13
		}
	}
	b.g.Inputs, b.g.Outputs = []int{b.ids["v0"]}, []int{b.ids["v4"]}
	m := &graph.Model{Format: format, IRVersion: 3, Graphs: []*graph.Graph{b.g}}
	if format == "onnx" {
		m.IRVersion, m.Opsets = 8, map[string]int{"": 13}
	}
	return m
}

// unused lists the values of a graph that nothing uses.
func unused(g *graph.Graph) (out []string) {
	used := map[int]bool{}
	for _, list := range [][]int{g.Inputs, g.Outputs} {
		for _, id := range list {
			used[id] = true
		}
	}
	for _, n := range g.Nodes {
		for _, id := range slices.Concat(n.Inputs, n.Outputs) {
			used[id] = true
		}
	}
	for _, v := range g.Values {
		if !used[v.ID] {
			out = append(out, v.Name)
		}
	}
	return out
}

// TestMinimalFiles stores weights in every format: the written file has no value that nothing
// uses, and TensorFlow Lite Micro plans no more activations than for the unchanged model.
func TestMinimalFiles(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"tflite", "onnx"} {
		for _, to := range study.Formats() {
			t.Run(format+"/"+string(to), func(t *testing.T) {
				t.Parallel()
				m := parse(t, denseChain(format))
				var changes []rewrite.Change
				for _, l := range weights.All(m, nil)[1:3] {
					changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: to}})
				}
				next, _, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
				if err != nil {
					t.Fatal(err)
				}
				back := parse(t, next)
				if names := unused(back.Main()); names != nil {
					t.Errorf("nothing uses %q", names)
				}
				in := madeInputs(t, m)
				equal(t, "output", run(t, back, in, engine.Options{Exact: true}).Output(0), run(t, next, in, engine.Options{Exact: true}).Output(0))
				if format != "tflite" || to == study.Half || to == study.Weight8 || to == study.Weight4 {
					return // float16 weights are expanded in the arena
				}
				before, err := memplan.TFLM(m, nil)
				if err != nil {
					t.Fatal(err)
				}
				after, err := memplan.TFLM(back, nil)
				if err != nil {
					t.Fatal(err)
				}
				if after.Bytes > before.Bytes {
					t.Errorf("arena of %d bytes, %d unchanged", after.Bytes, before.Bytes)
				}
			})
		}
	}
}

// TestOfflinePlanFollows keeps the offsets of an offline memory plan with their tensors.
func TestOfflinePlanFollows(t *testing.T) {
	t.Parallel()
	m := denseChain("tflite")
	n := len(m.Main().Values)
	data := make([]byte, 12+4*n)
	binary.LittleEndian.PutUint32(data[8:], uint32(n))
	for _, v := range m.Main().Values {
		offset := int32(-1)
		if v.Const == nil {
			offset = int32(16 * len(v.Name) * (v.ID + 1) * 64)
		}
		binary.LittleEndian.PutUint32(data[12+4*v.ID:], uint32(offset))
	}
	m.Metadata = []graph.Metadata{{Name: memplan.OfflineKey, Data: data}}
	m = parse(t, m)
	l := weights.All(m, nil)[1]
	next, _, err := rewrite.Apply(m, []rewrite.Change{{Layer: l, Change: study.Change{Format: study.Int8}}}, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	back := parse(t, next)
	offsets := func(m *graph.Model) map[string]int32 {
		out := map[string]int32{}
		for _, v := range m.Main().Values {
			out[v.Name] = int32(binary.LittleEndian.Uint32(m.Metadata[0].Data[12+4*v.ID:]))
		}
		return out
	}
	before, after := offsets(m), offsets(back)
	for name, got := range after {
		want, ok := before[name]
		if !ok {
			want = -1
		}
		if got != want {
			t.Errorf("%s at %d, want %d", name, got, want)
		}
	}
	if _, err := memplan.TFLM(back, nil); err != nil {
		t.Error(err)
	}
}

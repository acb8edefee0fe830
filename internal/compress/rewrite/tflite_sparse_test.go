package rewrite_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/external/litert"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/study"
)

// halfZero is a TFLite model of two dense layers: the weights of the first one are float16 of
// which seven of ten are zero, stored sparse, in blocks of four inputs or one by one.
func halfZero(t *testing.T, blocks bool) *graph.Model {
	t.Helper()
	b := newMaker(0, "main", nil)
	b.value("x", tensor.Float32, 2, 64)
	w := tensor.New(tensor.Float16, 32, 64)
	n := numbers(1, 32, 64)
	for i := range w.Len() {
		group := i
		if blocks {
			group = i / 4
		}
		if group%10 < 3 {
			tensor.WriteFloat32(w, i, tensor.Of[float32](n)[i:i+1])
		}
	}
	b.constant("w", w)
	layout := &graph.Sparse{TraversalOrder: []int{0, 1}, Compressed: []bool{false, true}}
	if blocks {
		layout = &graph.Sparse{TraversalOrder: []int{0, 1, 2}, BlockMap: []int{1}, Blocks: []int{4}, Compressed: []bool{false, true, false}}
	}
	v := b.g.Values[b.ids["w"]]
	if v.Sparse = tflite.EncodeSparse(w, layout); v.Sparse == nil {
		t.Fatal("takes no less than dense")
	}
	b.value("dense", tensor.Float16, 32, 64)
	b.value("float", tensor.Float32, 32, 64)
	b.value("h", tensor.Float32, 2, 32)
	b.constant("last", numbers(2, 8, 32))
	b.value("y", tensor.Float32, 2, 8)
	b.node(graph.TFLite, "DENSIFY", nil, "dense", "w")
	b.node(graph.TFLite, "DEQUANTIZE", nil, "float", "dense")
	full := graph.Attrs{"fused_activation_function": "RELU", "weights_format": "DEFAULT", "keep_num_dims": false}
	b.node(graph.TFLite, "FULLY_CONNECTED", full, "h", "x", "float", "")
	b.node(graph.TFLite, "FULLY_CONNECTED", full, "y", "h", "last", "")
	for i, version := range []int{1, 3, 1, 1} {
		b.g.Nodes[i].Version = version
	}
	b.g.Inputs, b.g.Outputs = []int{b.ids["x"]}, []int{b.ids["y"]}
	return &graph.Model{Format: "tflite", IRVersion: 3, Graphs: []*graph.Graph{b.g}}
}

// TestSparse writes constants that are sparse in a file so again: what was pruned is no longer
// stored. Dense ones take no DENSIFY.
func TestSparse(t *testing.T) {
	t.Parallel()
	for _, blocks := range []bool{false, true} {
		for _, tt := range []struct {
			change study.Change
			sparse bool
			stored int // elements at most
		}{
			{study.Change{}, true, 640},
			{study.Change{Structure: study.Unstructured, Level: 0.8}, true, 640},
			{study.Change{Structure: study.Block4, Level: 0.9}, true, 480},
			{study.Change{Structure: study.Filter, Level: 0.5}, true, 400},
			// The operator reads codes of 8 bits itself.
			{study.Change{Structure: study.Unstructured, Level: 0.3, Format: study.Weight8}, false, 0},
		} {
			t.Run(fmt.Sprintf("%v/%s%s", blocks, tt.change.Structure, tt.change.Format), func(t *testing.T) {
				t.Parallel()
				m := parse(t, halfZero(t, blocks))
				layers := weights.All(m, nil)
				if len(layers) != 2 {
					t.Fatalf("%d layers", len(layers))
				}
				changes := []rewrite.Change{{Layer: layers[0], Change: tt.change}}
				if tt.change == (study.Change{}) {
					changes = nil
				}
				next, _, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
				if err != nil {
					t.Fatal(err)
				}
				back := parse(t, next)
				at := slices.IndexFunc(back.Main().Nodes, func(n *graph.Node) bool { return n.Op == "DENSIFY" })
				if at >= 0 != tt.sparse {
					t.Fatalf("DENSIFY at %d", at)
				}
				if !tt.sparse {
					return
				}
				if s := back.Main().Values[back.Main().Nodes[at].Inputs[0]].Sparse; s == nil || s.StoredElements > tt.stored {
					t.Errorf("stored as %+v, want %d elements at most", s, tt.stored)
				}
				in := []*tensor.Tensor{numbers(7, 2, 64)}
				equal(t, "file", run(t, back, in, engine.Options{Exact: true}).Output(0), run(t, next, in, engine.Options{Exact: true}).Output(0))
			})
		}
	}
	m := halfZero(t, false)
	l := weights.All(m, nil)[0]
	next, _, err := rewrite.Apply(m, []rewrite.Change{{Layer: l, Change: study.Change{}, Matrix: tensor.Of[float32](numbers(3, 32, 64))}}, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range parse(t, next).Main().Nodes {
		if n.Op == "DENSIFY" {
			t.Error("DENSIFY of what has no zeros")
		}
	}
}

// TestEnginesSparse has LiteRT load them.
func TestEnginesSparse(t *testing.T) {
	lib := foreign(t, "ai_edge_litert-2.*/ai_edge_litert/libLiteRt.so", litert.Open)
	for _, blocks := range []bool{false, true} {
		for _, c := range append([]study.Change{{}}, changed...) {
			t.Run(fmt.Sprintf("%v/%s%s", blocks, c.Structure, c.Format), func(t *testing.T) {
				agree(t, lib, halfZero(t, blocks), []*tensor.Tensor{numbers(7, 2, 64)}, c)
			})
		}
	}
}

package onnx_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// sameModel compares what a file can carry.
var sameModel = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.EquateNaNs(),
	cmpopts.IgnoreFields(graph.Model{}, "Path", "FileBytes", "Close", "Check", "Warnings", "IRVersion"),
	cmpopts.IgnoreFields(graph.Value{}, "Offset"),
	cmpopts.IgnoreFields(graph.Node{}, "Function", "Scope"),
	cmp.Comparer(func(a, b *tensor.Tensor) bool { // much faster than element by element
		return (a == nil) == (b == nil) && (a == nil || a.Type == b.Type && slices.Equal(a.Shape, b.Shape) &&
			bytes.Equal(a.Data, b.Data) && slices.Equal(a.Strings, b.Strings))
	}),
}

// byName rewrites value ids to names, so that the order of values, which the file
// format does not keep, does not count.
func byName(g *graph.Graph) map[string]any {
	list := func(ids []int) (out []string) {
		for _, id := range ids {
			if id < 0 {
				out = append(out, "")
				continue
			}
			out = append(out, g.Values[id].Name)
		}
		return out
	}
	values := map[string]graph.Value{}
	for _, v := range g.Values {
		c := *v
		c.ID = 0
		values[v.Name] = c
	}
	var nodes []any
	for _, n := range g.Nodes {
		nodes = append(nodes, []any{n.Name, n.Domain, n.Op, n.Version, list(n.Inputs), list(n.Outputs), n.Attrs})
	}
	return map[string]any{"name": g.Name, "values": values, "inputs": list(g.Inputs), "outputs": list(g.Outputs), "nodes": nodes, "captures": len(g.Captures)}
}

func roundTrip(t *testing.T, m *graph.Model) *graph.Model {
	t.Helper()
	data, err := onnx.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	back, err := onnx.Parse(data, m.Path, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.Opsets, back.Opsets); diff != "" {
		t.Errorf("opsets: %s", diff)
	}
	if len(m.Graphs) != len(back.Graphs) {
		t.Fatalf("%d graphs, then %d", len(m.Graphs), len(back.Graphs))
	}
	for i, g := range m.Graphs {
		if diff := cmp.Diff(byName(g), byName(back.Graphs[i]), sameModel); diff != "" {
			t.Errorf("graph %d: %s", i, diff)
		}
	}
	return back
}

func TestEncodeMaterial(t *testing.T) {
	t.Parallel()
	for _, p := range modelFiles(t) {
		t.Run(filepath.Base(p), func(t *testing.T) {
			t.Parallel()
			m, err := onnx.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.Close() }()
			roundTrip(t, m)
		})
	}
}

func TestEncodeTypes(t *testing.T) {
	t.Parallel()
	str := &tensor.Tensor{Type: tensor.String, Shape: []int{2}, Data: []byte{}, Strings: []string{"a", "ü"}}
	consts := []*tensor.Tensor{str, tensor.From(tensor.Complex64, []int{2}, []complex64{1 + 2i, 3})}
	for ty := tensor.Float32; ty <= tensor.Float4E2M1; ty++ {
		if ty.Bits() == 0 {
			continue
		}
		x := tensor.New(ty, 3)
		for i := range x.Data {
			x.Data[i] = byte(i + 1)
		}
		consts = append(consts, x)
	}
	g := &graph.Graph{Name: "types"}
	n := &graph.Node{Op: "Nothing", Name: "n", Version: 21, Attrs: graph.Attrs{
		"f": float32(1.5), "i": int64(-3), "s": "text", "fs": []float32{1, 2}, "is": []int64{-1, 1 << 40}, "ss": []string{"", "x"},
		"none": []int64{}, "t": str, "ts": []*tensor.Tensor{str, str},
	}}
	for i, c := range consts {
		g.Values = append(g.Values, &graph.Value{ID: i, Name: "c" + string(rune('a'+i)), Const: c, Type: c.Type, Shape: c.Shape, HasShape: true})
		n.Inputs = append(n.Inputs, i)
	}
	n.Inputs = append(n.Inputs, -1)
	add := func(v graph.Value) int {
		v.ID = len(g.Values)
		g.Values = append(g.Values, &v)
		return v.ID
	}
	g.Inputs = []int{
		add(graph.Value{Name: "x", Type: tensor.Float32, Shape: []int{-1, 3, -1}, HasShape: true, DimNames: []string{"batch", "", ""}}),
		add(graph.Value{Name: "seq", Type: tensor.Sequence, Elem: tensor.Int64}),
		add(graph.Value{Name: "opt", Type: tensor.Optional, Elem: tensor.Float32}),
		add(graph.Value{Name: "scalar", Type: tensor.Bool, Shape: []int{}, HasShape: true}),
	}
	n.Outputs = []int{add(graph.Value{Name: "y"}), -1, add(graph.Value{Name: "z", Type: tensor.BFloat16})}
	g.Outputs = []int{n.Outputs[0], n.Outputs[2]}
	g.Nodes = []*graph.Node{n}
	roundTrip(t, &graph.Model{Opsets: map[string]int{"": 21, "com.microsoft": 1}, Graphs: []*graph.Graph{g}})
}

// TestEncodeBodies refuses bodies that no file can hold.
func TestEncodeBodies(t *testing.T) {
	t.Parallel()
	make2 := func() (m *graph.Model, outer, body *graph.Graph) {
		v := func(name string) *graph.Value {
			return &graph.Value{Name: name, Type: tensor.Bool, Shape: []int{}, HasShape: true}
		}
		outer = &graph.Graph{Name: "outer", Values: []*graph.Value{v("x"), v("y")}, Inputs: []int{0}, Outputs: []int{1}}
		body = &graph.Graph{Name: "body", Index: 1, Parent: outer, Values: []*graph.Value{v("z")}, Outputs: []int{0}, Captures: []graph.Capture{{Outer: 0, Inner: 0}}}
		ref := graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(1)}
		outer.Nodes = []*graph.Node{{Op: "If", Version: 16, Inputs: []int{0}, Outputs: []int{1}, Attrs: ref}}
		return &graph.Model{Format: "onnx", Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{outer, body}}, outer, body
	}
	for _, tt := range []struct {
		name   string
		change func(outer, body *graph.Graph)
		err    string
	}{
		{"a body for both branches", func(_, _ *graph.Graph) {}, ""},
		{"captures from nowhere", func(_, b *graph.Graph) { b.Parent = nil }, `graph "body" captures value 0, which the graph around it lacks`},
		{"captures from another graph", func(_, b *graph.Graph) { b.Parent = &graph.Graph{Name: "other"} }, `graph "body" captures value 0, which the graph around it lacks`},
		{"captures what is absent", func(_, b *graph.Graph) { b.Captures[0].Outer = 2 }, `graph "body" captures value 2, which the graph around it lacks`},
		{"parents in a circle", func(_, b *graph.Graph) {
			b.Parent = &graph.Graph{Name: "other"}
			b.Parent.Parent = b.Parent
		}, `graph "body" captures value 0, which the graph around it lacks`},
		{"its own parent", func(_, b *graph.Graph) { b.Parent = b }, `graph "body" lies within itself`},
		{"runs itself", func(o, b *graph.Graph) { b.Nodes = o.Nodes; b.Values = o.Values; b.Captures = nil }, `graph "body" lies within itself`},
	} {
		m, outer, body := make2()
		tt.change(outer, body)
		_, err := onnx.Encode(m)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
		}
	}
}

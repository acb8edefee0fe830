package memplan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// TestReferenceScratch compares the scratch requests of the reference kernels with values worked
// out from the shapes.
func TestReferenceScratch(t *testing.T) {
	t.Parallel()
	v := func(typ tensor.Type, shape ...int) *graph.Value {
		return &graph.Value{Type: typ, Shape: shape, HasShape: true}
	}
	i8, i16, i32, f32 := tensor.Int8, tensor.Int16, tensor.Int32, tensor.Float32
	lstm := make([]*graph.Value, 20)
	lstm[19] = v(i16, 2, 6)
	for _, tt := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*graph.Value
		out      *graph.Value
		want     []int
	}{
		{"svdf", "SVDF", graph.Attrs{"rank": int64(2)}, []*graph.Value{v(i8, 3, 8), v(i8, 10, 8)}, v(i8, 3, 5), []int{4 * 30, 4 * 15}},
		{"svdf without rank", "SVDF", nil, []*graph.Value{v(i8, 3, 8), v(i8, 10, 8)}, v(i8, 3, 10), []int{4 * 30, 4 * 30}},
		{"svdf float", "SVDF", graph.Attrs{"rank": int64(2)}, []*graph.Value{v(f32, 3, 8), v(f32, 10, 8)}, v(f32, 3, 5), []int{4 * 30}},
		{"transposed", "TRANSPOSE_CONV", nil, []*graph.Value{v(i32, 4), v(i8, 2, 2, 2, 2), v(i8, 1, 4, 4, 2)}, v(i8, 1, 8, 8, 2), []int{4 * 128}},
		{"transposed, 16 bits", "TRANSPOSE_CONV", nil, []*graph.Value{v(i32, 4), v(i8, 2, 2, 2, 2), v(i16, 1, 4, 4, 2)}, v(i16, 1, 8, 8, 2), []int{8 * 128}},
		{"transposed, float", "TRANSPOSE_CONV", nil, []*graph.Value{v(i32, 4), v(f32, 2, 2, 2, 2), v(f32, 1, 4, 4, 2)}, v(f32, 1, 8, 8, 2), nil},
		{"mean", "MEAN", nil, []*graph.Value{v(i8, 1, 4, 4, 2), v(i32, 2)}, v(i8, 1, 2), []int{4 * 2, 4 * 4, 4 * 2}},
		{"mean, 16 bits", "MEAN", nil, []*graph.Value{v(i16, 1, 4, 4, 2), v(i32, 3)}, v(i16, 2), []int{4 * 2, 4 * 4, 4 * 3}},
		{"mean, float", "MEAN", nil, []*graph.Value{v(f32, 1, 4, 4, 2), v(i32, 2)}, v(f32, 1, 2), []int{4 * 4, 4 * 2}},
		{"sum", "SUM", nil, []*graph.Value{v(i8, 3, 4), v(i32, 1)}, v(i8, 3), []int{4 * 3, 4 * 2, 4}},
		{"greatest", "REDUCE_MAX", nil, []*graph.Value{v(i8, 3, 4), v(i32, 1)}, v(i8, 3), []int{4 * 2, 4}},
		{"least", "REDUCE_MIN", nil, []*graph.Value{v(i8, 3, 4), v(i32, 1)}, v(i8, 3), []int{4 * 2, 4}},
		{"mirror", "MIRROR_PAD", nil, []*graph.Value{v(i8, 3, 4, 5)}, v(i8, 5, 6, 7), []int{12, 12}},
		{"sum of tensors", "ADD_N", nil, []*graph.Value{v(i8, 3), v(i8, 3), v(i8, 3)}, v(i8, 3), []int{12}},
		{"transform", "SignalRfft", nil, []*graph.Value{v(i16, 480)}, v(i16, 514), []int{2 * 512}},
		{"transform of one bin", "SignalRfft", nil, []*graph.Value{v(i16, 1)}, v(i16, 2), nil},
		{"transform of two", "SignalRfft", nil, []*graph.Value{v(i16, 2)}, v(i16, 4), []int{4}},
		{"lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM", nil, lstm, v(i8, 5, 2, 6), []int{24, 24, 24, 24}},
		{"four bits", "CONV_2D", nil, []*graph.Value{v(i8, 1, 4, 4, 2), v(tensor.Int4, 3, 3, 3, 2)}, v(i8, 1, 2, 2, 3), []int{54}},
		{"eight bits", "CONV_2D", nil, []*graph.Value{v(i8, 1, 4, 4, 2), v(i8, 3, 3, 3, 2)}, v(i8, 1, 2, 2, 3), nil},
		{"four bits, dense", "FULLY_CONNECTED", nil, []*graph.Value{v(i8, 1, 7), v(tensor.Int4, 3, 7)}, v(i8, 1, 3), []int{21}},
		{"another", "RELU", nil, []*graph.Value{v(i8, 3)}, v(i8, 3), nil},
	} {
		g := &graph.Graph{}
		n := &graph.Node{Op: tt.op, Domain: graph.TFLite, Attrs: tt.attrs}
		for _, x := range tt.in {
			if x == nil {
				n.Inputs = append(n.Inputs, -1)
				continue
			}
			n.Inputs = append(n.Inputs, len(g.Values))
			g.Values = append(g.Values, x)
		}
		n.Outputs = []int{len(g.Values)}
		g.Values = append(g.Values, tt.out)
		g.Nodes = []*graph.Node{{Op: "RELU", Domain: graph.TFLite}, n}
		list, unknown := memplan.ReferenceScratch(&graph.Model{Graphs: []*graph.Graph{{}, g}})
		var want []memplan.Scratch
		for _, b := range tt.want {
			want = append(want, memplan.Scratch{Graph: 1, Node: 1, Bytes: b})
		}
		if d := cmp.Diff(want, list); d != "" || unknown != nil {
			t.Errorf("%s: unknown %q (-want +got):\n%s", tt.name, unknown, d)
		}
	}
	custom := func(op string) *graph.Node { return &graph.Node{Op: op, Domain: graph.TFLiteCustom} }
	g := &graph.Graph{Nodes: []*graph.Node{custom("Mystery"), custom("SignalWindow"), custom("Mystery"), custom("Other")}}
	_, unknown := memplan.ReferenceScratch(&graph.Model{Graphs: []*graph.Graph{g}})
	if len(unknown) != 2 {
		t.Errorf("unknown %q, want each of two operators once", unknown)
	}
}

// TestLifetimes: a tensor is live from the operator that computes it to the last that reads it,
// scratch while its operator runs, inputs from the beginning, variables never.
func TestLifetimes(t *testing.T) {
	t.Parallel()
	m := chain(16, 16, 16, 16)
	g := m.Graphs[0]
	g.Nodes[2].Inputs = []int{2, 1} // the second reader of value 1
	variable := &graph.Value{ID: 4, Type: tensor.Int8, Shape: []int{16}, HasShape: true, Variable: true}
	constant := &graph.Value{ID: 5, Type: tensor.Int8, Shape: []int{16}, HasShape: true, Const: tensor.New(tensor.Int8, 16)}
	unused := &graph.Value{ID: 6, Type: tensor.Int8, Shape: []int{16}, HasShape: true}
	empty := &graph.Value{ID: 7, Type: tensor.Int8, Shape: []int{0}, HasShape: true}
	g.Values = append(g.Values, variable, constant, unused, empty)
	p, err := memplan.TFLM(m, []memplan.Scratch{{Graph: 0, Node: 1, Bytes: 4}, {Graph: 0, Node: 2}, {Graph: 0, Node: 2, Bytes: 8}})
	if err != nil {
		t.Fatal(err)
	}
	type life struct{ Value, Scratch, First, Last int }
	var got []life
	for _, e := range p.Entries {
		got = append(got, life{e.Value, e.Scratch, e.First, e.Last})
	}
	want := []life{{0, -1, 0, 1}, {1, -1, 1, 3}, {2, -1, 2, 3}, {3, -1, 3, 3}, {6, -1, -1, -1}, {-1, 0, 2, 2}, {-1, 2, 3, 3}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if want := []int{-1, 0, 1, 2}; !slices.Equal(p.Nodes, want) {
		t.Errorf("nodes by scope %v, want %v", p.Nodes, want)
	}
}

// TestDepth: subgraphs nest up to a depth of 32.
func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) *graph.Model {
		m := &graph.Model{}
		for i := range n {
			g := &graph.Graph{}
			if i+1 < n {
				g.Nodes = []*graph.Node{{Op: "CALL_ONCE", Domain: graph.TFLite, Attrs: graph.Attrs{"init_subgraph_index": graph.GraphRef(i + 1)}}}
			}
			m.Graphs = append(m.Graphs, g)
		}
		return m
	}
	for n, ok := range map[int]bool{1: true, 33: true, 34: false} {
		if _, err := memplan.TFLM(nested(n), nil); (err == nil) != ok {
			t.Errorf("%d graphs: %v", n, err)
		}
	}
}

// TestGreedyGaps: a buffer goes into the smallest gap that fits, also at the very beginning, else
// to the end.
func TestGreedyGaps(t *testing.T) {
	t.Parallel()
	// Sizes 100 and 99 are live throughout and end at 199; 60 is above them in step 0, then 50
	// above that. In step 1 the memory of the 60 is free between them: 55 fits, 61 does not.
	for size, want := range map[int]int{55: 199, 40: 199} {
		b := []memplan.Buffer{{Bytes: 100, First: 0, Last: 1}, {Bytes: 99, First: 0, Last: 1}, {Bytes: 60, First: 0, Last: 0}, {Bytes: 58, First: 0, Last: 1}, {Bytes: size, First: 1, Last: 1}}
		at, total := memplan.Greedy(b, 1)
		if at[4] != want || total != 317 {
			t.Errorf("%d bytes at %d of %d (%v), want %d", size, at[4], total, at, want)
		}
	}
	// The beginning is a gap too.
	b := []memplan.Buffer{{Bytes: 100, First: 0, Last: 0}, {Bytes: 90, First: 0, Last: 1}, {Bytes: 80, First: 1, Last: 1}}
	if at, total := memplan.Greedy(b, 1); !slices.Equal(at, []int{0, 100, 0}) || total != 190 {
		t.Errorf("%v of %d", at, total)
	}
	// Two gaps of different size are free: the smaller one is used, wherever it is.
	b = []memplan.Buffer{{Bytes: 100, First: 0, Last: 0}, {Bytes: 90, First: 0, Last: 1}, {Bytes: 80, First: 0, Last: 0}, {Bytes: 70, First: 0, Last: 1}, {Bytes: 60, First: 1, Last: 1}}
	if at, total := memplan.Greedy(b, 1); at[4] != 190 || total != 340 {
		t.Errorf("%v of %d", at, total)
	}
}

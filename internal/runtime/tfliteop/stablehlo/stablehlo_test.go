package stablehlo

import (
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// run runs an operator with a declared result and a body of one operator.
func run(name string, attrs graph.Attrs, outs []*tensor.Tensor, bodyOp string, in ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	g := &graph.Graph{}
	n := &graph.Node{Domain: graph.TFLite, Op: name, Attrs: attrs}
	body := &graph.Graph{Index: 1, Inputs: []int{0, 1}, Outputs: []int{2}, Nodes: []*graph.Node{{Op: bodyOp, Inputs: []int{0, 1}, Outputs: []int{2}}}}
	if bodyOp == "" {
		body.Nodes, body.Outputs = nil, []int{1}
	}
	c := &op.Call{Model: &graph.Model{Graphs: []*graph.Graph{g, body}}, Graph: g, Node: n, In: in}
	for _, x := range in {
		n.Inputs = append(n.Inputs, len(g.Values))
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Type: x.Type, Shape: x.Shape, HasShape: true})
	}
	for _, x := range outs {
		n.Outputs = append(n.Outputs, len(g.Values))
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Type: x.Type, Shape: x.Shape, HasShape: true})
		c.Out = append(c.Out, &tensor.Tensor{Type: x.Type})
	}
	d := op.NewRegistry(Defs()).Find(graph.TFLite, name, 1)
	if d == nil {
		return nil, op.Unsupported("operator %s", name)
	}
	if err := d.Infer(c); err != nil {
		return nil, err
	}
	f, err := d.Prepare(c)
	if err != nil {
		return nil, err
	}
	for _, y := range c.Out {
		y.Alloc()
	}
	return c.Out, f(c)
}

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }
func i32(shape []int, v ...int32) *tensor.Tensor   { return tensor.From(tensor.Int32, shape, v) }

func TestOperators(t *testing.T) {
	t.Parallel()
	m := f32([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	tests := []struct {
		name, op, body string
		attrs          graph.Attrs
		in             []*tensor.Tensor
		want           *tensor.Tensor
	}{
		{"add", "ADD", "", nil, []*tensor.Tensor{m, m}, f32([]int{2, 3}, 2, 4, 6, 8, 10, 12)},
		{"remainder", "REMAINDER", "", nil, []*tensor.Tensor{i32([]int{2}, -7, 7), i32([]int{2}, 3, 0)}, i32([]int{2}, -1, 7)},
		{"shift", "SHIFT_LEFT", "", nil, []*tensor.Tensor{i32([]int{2}, 3, 3), i32([]int{2}, 2, 40)}, i32([]int{2}, 12, 0)},
		{"cube root", "CBRT", "", nil, []*tensor.Tensor{f32([]int{1}, 27)}, f32([]int{1}, 3)},
		{"compare", "COMPARE", "", graph.Attrs{"comparison_direction": "GT"}, []*tensor.Tensor{i32([]int{2}, 1, 2), i32([]int{2}, 1, 1)}, tensor.From(tensor.Bool, []int{2}, []uint8{0, 1})},
		{"clamp", "CLAMP", "", nil, []*tensor.Tensor{f32(nil, 2), m, f32(nil, 4)}, f32([]int{2, 3}, 2, 2, 3, 4, 4, 4)},
		{
			"pad", "PAD", "",
			graph.Attrs{"edge_padding_low": []int64{1}, "edge_padding_high": []int64{-1}, "interior_padding": []int64{1}},
			[]*tensor.Tensor{f32([]int{3}, 1, 2, 3), f32(nil, 9)},
			f32([]int{5}, 9, 1, 9, 2, 9),
		},
		{
			"pad that cuts", "PAD", "",
			graph.Attrs{"edge_padding_low": []int64{-1}, "edge_padding_high": []int64{0}, "interior_padding": []int64{1}},
			[]*tensor.Tensor{f32([]int{3}, 1, 2, 3), f32(nil, 9)},
			f32([]int{4}, 9, 2, 9, 3),
		},
		{"iota", "IOTA", "", graph.Attrs{"iota_dimension": int64(1)}, nil, i32([]int{2, 2}, 0, 1, 0, 1)},
		{"broadcast", "BROADCAST_IN_DIM", "", graph.Attrs{"broadcast_dimensions": []int64{1}}, []*tensor.Tensor{i32([]int{2}, 1, 2)}, i32([]int{2, 2}, 1, 2, 1, 2)},
		{"slice", "SLICE", "", graph.Attrs{"start_indices": []int64{0, 1}, "limit_indices": []int64{2, 3}, "strides": []int64{1, 2}}, []*tensor.Tensor{m}, f32([]int{2, 1}, 2, 5)},
		{"dynamic slice", "DYNAMIC_SLICE", "", graph.Attrs{"slice_sizes": []int64{1, 2}}, []*tensor.Tensor{m, i32(nil, 5), i32(nil, 1)}, f32([]int{1, 2}, 5, 6)},
		{"reduce", "REDUCE", "STABLEHLO_ADD", graph.Attrs{"dimensions": []int64{0}, "body_subgraph_index": graph.GraphRef(1)}, []*tensor.Tensor{m, f32(nil, 1)}, f32([]int{3}, 6, 8, 10)},
		{
			"window", "REDUCE_WINDOW", "STABLEHLO_MAXIMUM",
			graph.Attrs{"window_dimensions": []int64{1, 2}, "window_strides": []int64{1, 1}, "padding": []int64{0, 0, 0, 1}, "body_subgraph_index": graph.GraphRef(1)},
			[]*tensor.Tensor{m, f32(nil, 0)},
			f32([]int{2, 3}, 2, 3, 3, 5, 6, 6),
		},
		{
			"gather rows", "GATHER", "",
			graph.Attrs{"offset_dims": []int64{1}, "collapsed_slice_dims": []int64{0}, "start_index_map": []int64{0}, "index_vector_dim": int64(1), "slice_sizes": []int64{1, 3}},
			[]*tensor.Tensor{m, i32([]int{2, 1}, 1, 0)},
			f32([]int{2, 3}, 4, 5, 6, 1, 2, 3),
		},
		{
			"gather windows", "GATHER", "",
			graph.Attrs{"offset_dims": []int64{0, 1}, "start_index_map": []int64{0, 1}, "index_vector_dim": int64(0), "slice_sizes": []int64{1, 2}},
			[]*tensor.Tensor{m, i32([]int{2}, 9, 1)},
			f32([]int{1, 2}, 5, 6),
		},
		{
			"scatter rows", "SCATTER", "STABLEHLO_ADD",
			graph.Attrs{"update_window_dims": []int64{1}, "inserted_window_dims": []int64{0}, "scatter_dims_to_operand_dims": []int64{0}, "index_vector_dim": int64(1), "update_computation_subgraph_index": graph.GraphRef(1)},
			[]*tensor.Tensor{m, i32([]int{2, 1}, 1, 5), f32([]int{2, 3}, 10, 20, 30, 1, 1, 1)},
			f32([]int{2, 3}, 1, 2, 3, 14, 25, 36),
		},
		{
			"scatter sets", "SCATTER", "",
			graph.Attrs{"inserted_window_dims": []int64{0, 1}, "scatter_dims_to_operand_dims": []int64{0, 1}, "index_vector_dim": int64(1), "update_computation_subgraph_index": graph.GraphRef(1)},
			[]*tensor.Tensor{m, i32([]int{1, 2}, 0, 2), f32([]int{1}, 9)},
			f32([]int{2, 3}, 1, 2, 9, 4, 5, 6),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := run("STABLEHLO_"+tt.op, tt.attrs, []*tensor.Tensor{tt.want}, tt.body, tt.in...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got[0]); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBuiltinWindow sums windows with TFLite's own operator.
func TestBuiltinWindow(t *testing.T) {
	t.Parallel()
	in := []*tensor.Tensor{f32([]int{5}, 1, 2, 3, 4, 5), f32(nil, 0), i32([]int{1}, 2), i32([]int{1}, 1), i32([]int{1}, 2)}
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "REDUCE_WINDOW", Attrs: graph.Attrs{"reduce_function": "ADD"}, Const: []bool{false, true, true, true, true}}, in...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f32([]int{3}, 4, 6, 8), got[0]); diff != "" {
		t.Error(diff)
	}
}

// TestRandomBits checks the block functions against the published vectors for
// keys and counters of all ones.
func TestRandomBits(t *testing.T) {
	t.Parallel()
	ones := ^uint64(0)
	whole := tensor.From(tensor.Uint64, []int{3}, []uint64{ones, ones, ones})
	drawn, err := run("STABLEHLO_RNG_BIT_GENERATOR", graph.Attrs{"algorithm": "PHILOX"}, []*tensor.Tensor{whole, i32([]int{4}, 0, 0, 0, 0)}, "", whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}, tensor.Words[uint32](drawn[1])); diff != "" {
		t.Errorf("philox: %s", diff)
	}
	if diff := cmp.Diff([]uint64{ones, 0, 0}, tensor.Of[uint64](drawn[0])); diff != "" {
		t.Errorf("state after philox: %s", diff)
	}
	if got, want := threefryBlock(ones, ones), [2]uint32{0x1cb996fc, 0xbb002be7}; got != want {
		t.Errorf("threefry gives %#x, want %#x", got, want)
	}
	state := tensor.From(tensor.Uint64, []int{2}, []uint64{1, 2})
	got, err := run("STABLEHLO_RNG_BIT_GENERATOR", graph.Attrs{"algorithm": "THREEFRY"}, []*tensor.Tensor{state, i32([]int{64}, make([]int32, 64)...)}, "", state)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range got[1].Data {
		n += bits.OnesCount8(b)
	}
	if n < 900 || n > 1150 {
		t.Errorf("%d of 2048 bits are set", n)
	}
	if next := tensor.Of[uint64](got[0]); next[0] != 1 || next[1] == 2 {
		t.Errorf("state becomes %v", next)
	}
}

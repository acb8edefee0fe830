package describe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// TestLayerWeights: a weight behind a Transpose that runs at load belongs to the layer that reads
// the result, and one that several layers read counts once. The layers add up to the totals.
func TestLayerWeights(t *testing.T) {
	t.Parallel()
	f32 := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }
	type add func(op string, a graph.Attrs, in ...int) int
	type keep func(c *tensor.Tensor) int
	for _, tt := range []struct {
		name string
		make func(x int, add add, keep keep) int
		want [][2]int64 // parameters of layers, and those shared
	}{
		{"direct", func(x int, add add, keep keep) int { return add("MatMul", nil, x, keep(f32(4, 4))) }, [][2]int64{{16, 0}}},
		{"transposed", func(x int, add add, keep keep) int {
			return add("MatMul", nil, x, add("Transpose", nil, keep(f32(4, 4))))
		}, [][2]int64{{0, 0}, {16, 0}}},
		{"transposed twice", func(x int, add add, keep keep) int {
			return add("MatMul", nil, x, add("Transpose", nil, add("Transpose", nil, keep(f32(4, 4)))))
		}, [][2]int64{{0, 0}, {0, 0}, {16, 0}}},
		{"shared", func(x int, add add, keep keep) int {
			w := keep(f32(4, 4))
			return add("MatMul", nil, add("MatMul", nil, x, w), w)
		}, [][2]int64{{16, 0}, {16, 16}}},
		{"shared behind one Transpose, and direct", func(x int, add add, keep keep) int {
			w := keep(f32(4, 4))
			turned := add("Transpose", nil, w)
			return add("MatMul", nil, add("MatMul", nil, add("MatMul", nil, x, turned), turned), w)
		}, [][2]int64{{0, 0}, {16, 0}, {16, 16}, {16, 16}}},
		{"sum of two weights", func(x int, add add, keep keep) int {
			return add("Mul", nil, x, add("Add", nil, keep(f32(1, 4)), keep(f32(4))))
		}, [][2]int64{{0, 0}, {8, 0}}},
		{"read twice by a layer", func(x int, add add, keep keep) int {
			w := keep(f32(1, 4))
			return add("Add", nil, x, add("Mul", nil, w, w))
		}, [][2]int64{{0, 0}, {4, 0}}},
	} {
		g := &graph.Graph{}
		value := func(v graph.Value) int {
			v.ID = len(g.Values)
			g.Values = append(g.Values, &v)
			return v.ID
		}
		x := value(graph.Value{Type: tensor.Float32, Shape: []int{1, 4}, HasShape: true})
		y := tt.make(x, func(op string, a graph.Attrs, in ...int) int {
			out := value(graph.Value{Type: tensor.Float32})
			g.Nodes = append(g.Nodes, &graph.Node{Index: len(g.Nodes), Op: op, Version: 17, Inputs: in, Outputs: []int{out}, Attrs: a})
			return out
		}, func(c *tensor.Tensor) int {
			return value(graph.Value{Type: c.Type, Shape: c.Shape, HasShape: true, Const: c})
		})
		g.Inputs, g.Outputs = []int{x}, []int{y}
		m := &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, Opsets: map[string]int{"": 17}}
		p, err := plan.Make(m, []*tensor.Tensor{f32(1, 4)}, plan.Options{Registry: operators.Registry()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Model(p, p.Slots(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got [][2]int64
		for _, l := range d.Layers {
			n := [2]int64{*l.Params}
			if l.SharedParams != nil {
				n[1] = *l.SharedParams
				if *l.SharedWeightsBytes != 4*n[1] {
					t.Errorf("%s: %d bytes shared, want %d", tt.name, *l.SharedWeightsBytes, 4*n[1])
				}
			}
			got = append(got, n)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		all := d.Select(func(*profile.Layer) bool { return true })
		for key, total := range map[string]int64{"params": *d.Totals.Params, "weights_bytes": *d.Totals.WeightsBytes} {
			if sum, _ := all.Sum(key); sum != float64(total) {
				t.Errorf("%s: layers have %s %v, the model %d", tt.name, key, sum, total)
			}
		}
	}
}

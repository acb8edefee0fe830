package layerdiff

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x, y  []int
		cross bool
		want  []string
	}{
		{[]int{1, 3, 4, 5}, []int{1, 3, 4, 5}, false, []string{""}},
		{[]int{1, 3, 4, 5}, []int{1, 4, 5, 3}, false, []string{"0,3,1,2"}},
		{[]int{1, 4, 5, 3}, []int{1, 3, 4, 5}, false, []string{"0,2,3,1"}},
		{[]int{1, 8, 1, 1}, []int{1, 8}, false, []string{""}},
		{[]int{1, 4, 4, 4}, []int{1, 4, 4, 4}, true, []string{"", "0,3,1,2", "0,2,3,1"}},
		{[]int{1, 172, 36, 2}, []int{1, 36, 172, 2}, true, []string{"0,2,1,3"}},
		{[]int{1, 10}, []int{1, 11}, true, nil},
		{[]int{2, 3}, []int{3, 2}, true, nil},
	} {
		var got []string
		for _, o := range orders(c.x, c.y, c.cross) {
			got = append(got, o.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v and %v: %q, want %q", c.x, c.y, got, c.want)
		}
	}
}

func TestPermute(t *testing.T) {
	t.Parallel()
	x := tensor.From(tensor.Int16, []int{1, 2, 3}, []int16{1, 2, 3, 4, 5, 6})
	o := order{0, 2, 1}
	y := permute(x, o)
	if !slices.Equal(y.Shape, []int{1, 3, 2}) || !slices.Equal(tensor.Of[int16](y), []int16{1, 4, 2, 5, 3, 6}) {
		t.Errorf("%v %v", y.Shape, tensor.Of[int16](y))
	}
	if z := permute(y, o.inverse()); !slices.Equal(tensor.Of[int16](z), tensor.Of[int16](x)) {
		t.Errorf("back: %v", tensor.Of[int16](z))
	}
}

// compared compares two values of models of some formats.
func compared(a, b *value, formats ...string) *profile.Difference {
	c := &comparison{sides: [2]*Side{{Model: &graph.Model{Format: formats[0]}}, {Model: &graph.Model{Format: formats[1]}}}}
	d, _ := c.difference(a, b)
	return d
}

func TestDifference(t *testing.T) {
	t.Parallel()
	q := func(scale float32, zero int64) *tensor.Quant {
		return &tensor.Quant{Scale: []float32{scale}, Zero: []int64{zero}}
	}
	ints := func(q *tensor.Quant, v ...int8) *value {
		return &value{t: tensor.From(tensor.Int8, []int{1, len(v)}, v), q: q}
	}
	real32 := func(v ...float32) *value {
		return &value{t: tensor.From(tensor.Float32, []int{1, len(v)}, v)}
	}
	wide := func(v ...int64) *value { return &value{t: tensor.From(tensor.Int64, []int{1, len(v)}, v)} }
	for _, c := range []struct {
		name  string
		a, b  *value
		state profile.DifferenceState
		steps float64 // negative: absent
	}{
		{"equal integers", ints(q(0.5, 3), 1, 2, 3), ints(q(0.5, 3), 1, 2, 3), profile.Equal, 0},
		{"a step", ints(q(0.5, 3), 1, 2, 3), ints(q(0.5, 3), 1, 3, 3), profile.Rounding, 1},
		{"four steps", ints(q(0.5, 3), 1, 2, 3), ints(q(0.5, 3), 1, 6, 3), profile.Differs, 4},
		{"other scales, the same numbers", ints(q(0.5, 0), 2, 4, 6), ints(q(1, 0), 1, 2, 3), profile.Equal, 0},
		{"real numbers and integers", real32(1, 2, 3.25), ints(q(0.5, -1), 1, 3, 5), profile.Differs, 0.5},
		{"scale unknown", real32(1, 2), ints(nil, 1, 2), profile.NotComparable, -1},
		{"integers of other widths", wide(1, 2), &value{t: tensor.From(tensor.Int32, []int{1, 2}, []int32{1, 2})}, profile.Equal, -1},
		{"indices", wide(1, 2), wide(1, 3), profile.Differs, -1},
		{"shapes", real32(1, 2), real32(1, 2, 3), profile.NotComparable, -1},
	} {
		d := compared(c.a, c.b, "onnx", "onnx")
		if d.State != c.state || d.Steps == nil != (c.steps < 0) || d.Steps != nil && *d.Steps != c.steps {
			t.Errorf("%s: %s, steps %v, want %s and %v", c.name, d.State, d.Steps, c.state, c.steps)
		}
		if (d.Cause != nil) != (d.State == profile.NotComparable) {
			t.Errorf("%s: cause %v", c.name, d.Cause)
		}
	}
}

// TestReordered flattens an image with the channels first in one format and last in the other.
func TestReordered(t *testing.T) {
	t.Parallel()
	n := 64
	first, last := make([]float32, n), make([]float32, n)
	for i := range n {
		first[i] = float32(i*i%37) - 18
		last[i%4*16+i/4] = first[i]
	}
	a, b := &value{t: tensor.From(tensor.Float32, []int{1, n}, first)}, &value{t: tensor.From(tensor.Float32, []int{1, n}, last)}
	if d := compared(a, b, "onnx", "tflite"); d.State != profile.NotComparable || d.Cause.Text != "the same elements in another order" {
		t.Errorf("two formats: %+v", d)
	}
	if d := compared(a, b, "onnx", "onnx"); d.State != profile.Differs {
		t.Errorf("one format: %+v", d)
	}
}

// TestQuant finds the scale of integers of ONNX in the nodes that make or read them.
func TestQuant(t *testing.T) {
	t.Parallel()
	scale := func(v float32) *tensor.Tensor { return tensor.From(tensor.Float32, nil, []float32{v}) }
	zero := func(v int8) *tensor.Tensor { return tensor.From(tensor.Int8, nil, []int8{v}) }
	g := &graph.Graph{}
	add := func(c *tensor.Tensor) int {
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Const: c})
		return len(g.Values) - 1
	}
	node := func(op string, ins ...int) int {
		out := add(nil)
		g.Nodes = append(g.Nodes, &graph.Node{Index: len(g.Nodes), Op: op, Inputs: ins, Outputs: []int{out}})
		return out
	}
	x := add(nil)
	g.Inputs = []int{x}
	made := node("QuantizeLinear", x, add(scale(0.5)), add(zero(3)))
	moved := node("MaxPool", node("Transpose", made))
	read := node("Strange", moved)
	node("DequantizeLinear", read, add(scale(0.25)))
	open := node("QuantizeLinear", x, node("Strange", x))
	v := newView(&graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}})
	for _, c := range []struct {
		name  string
		id    int
		scale float32
		zero  int64
	}{{"made", made, 0.5, 3}, {"moved", moved, 0.5, 3}, {"read", read, 0.25, 0}, {"known at run time only", open, 0, 0}, {"the input", x, 0, 0}} {
		q := v.quant(c.id)
		if q == nil != (c.scale == 0) || q != nil && (q.Scale[0] != c.scale || q.Zero[0] != c.zero) {
			t.Errorf("%s: %+v, want %v and %d", c.name, q, c.scale, c.zero)
		}
	}
}

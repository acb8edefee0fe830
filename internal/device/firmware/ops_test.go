package firmware_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// net is a model that is made for a test: every operator reads inputs of its own, and
// all results are outputs of the model.
type net struct {
	g *graph.Graph
	r *rand.Rand
}

func newNet(seed uint64) *net {
	return &net{g: &graph.Graph{Name: "main"}, r: rand.New(rand.NewPCG(seed, 7))}
}

func (n *net) model() *graph.Model {
	return &graph.Model{Format: "tflite", Path: "made up \"*/ ?? model\".tflite", Graphs: []*graph.Graph{n.g}}
}

func (n *net) value(t tensor.Type, q *tensor.Quant, shape []int) *graph.Value {
	v := &graph.Value{ID: len(n.g.Values), Name: fmt.Sprintf("v%d", len(n.g.Values)), Type: t, Quant: q, Shape: shape, HasShape: shape != nil}
	n.g.Values = append(n.g.Values, v)
	return v
}

func (n *net) input(t tensor.Type, q *tensor.Quant, shape ...int) int {
	v := n.value(t, q, shape)
	n.g.Inputs = append(n.g.Inputs, v.ID)
	return v.ID
}

// random is a constant of random elements; biases are of a moderate size.
func (n *net) random(t tensor.Type, q *tensor.Quant, shape ...int) int {
	x := tensor.New(t, shape...)
	x.Quant = q
	tensor.Fill(x, func(int) float64 {
		switch t {
		case tensor.Int8:
			return float64(n.r.IntN(255) - 127)
		case tensor.Uint8:
			return float64(n.r.IntN(256))
		}
		return float64(n.r.IntN(20001) - 10000)
	})
	return n.constant(x)
}

func (n *net) constant(x *tensor.Tensor) int {
	v := n.value(x.Type, x.Quant, x.Shape)
	v.Const = x
	return v.ID
}

func (n *net) ints(v ...int32) int {
	return n.constant(tensor.From(tensor.Int32, []int{len(v)}, v))
}

func (n *net) scalar(v int32) int {
	return n.constant(tensor.From(tensor.Int32, []int{}, []int32{v}))
}

// variable keeps its elements from run to run.
func (n *net) variable(t tensor.Type, q *tensor.Quant, shape ...int) int {
	v := n.value(t, q, shape)
	v.Variable = true
	return v.ID
}

// node adds an operator of version 1 with one result.
func (n *net) node(op string, attrs graph.Attrs, t tensor.Type, q *tensor.Quant, ins ...int) int {
	return n.nodes(op, attrs, t, q, 1, ins...)[0]
}

func (n *net) nodes(op string, attrs graph.Attrs, t tensor.Type, q *tensor.Quant, count int, ins ...int) []int {
	var outs []int
	for range count {
		outs = append(outs, n.value(t, q, nil).ID)
	}
	n.g.Nodes = append(n.g.Nodes, &graph.Node{Index: len(n.g.Nodes), Domain: graph.TFLite, Op: op, Version: 1, Inputs: ins, Outputs: outs, Attrs: attrs})
	n.g.Outputs = append(n.g.Outputs, outs...)
	return outs
}

func affine(zero int64, scale float32) *tensor.Quant {
	return &tensor.Quant{Scale: []float32{scale}, Zero: []int64{zero}}
}

func (n *net) channels(count, axis int) *tensor.Quant {
	q := &tensor.Quant{Axis: axis}
	for range count {
		q.Scale, q.Zero = append(q.Scale, 0.002+n.r.Float32()*0.01), append(q.Zero, 0)
	}
	return q
}

// activations are the types of activations with the type of weights beside them and
// zero points at the ends and in between; int16 knows 0 alone.
var activations = []struct {
	t, w, b tensor.Type
	zeros   []int64
}{
	{tensor.Int8, tensor.Int8, tensor.Int32, []int64{-128, 5, 127}},
	{tensor.Uint8, tensor.Uint8, tensor.Int32, []int64{0, 131, 255}},
	{tensor.Int16, tensor.Int8, tensor.Int64, []int64{0}},
	{tensor.Int16, tensor.Int8, tensor.Int32, []int64{0}},
}

// inputsOf draws inputs over the full range of their types.
func inputsOf(m *graph.Model) func(seed uint64) []*tensor.Tensor {
	return func(seed uint64) []*tensor.Tensor {
		r := rand.New(rand.NewPCG(seed, 3))
		var out []*tensor.Tensor
		for _, id := range m.Main().Inputs {
			v := m.Main().Values[id]
			x := tensor.New(v.Type, v.Shape...)
			x.Quant = v.Quant
			if v.Type == tensor.Float32 {
				for i, f := 0, tensor.Of[float32](x); i < len(f); i++ {
					f[i] = (r.Float32() - 0.5) * float32(int(1)<<r.IntN(14))
					if r.IntN(4) == 0 { // halves, whose rounding matters
						f[i] = float32(r.IntN(64)-32) / 4
					}
				}
			} else {
				for i := range x.Data {
					x.Data[i] = byte(r.Uint32() >> 11)
				}
			}
			out = append(out, x)
		}
		return out
	}
}

// try makes a program of the network and compares it with the engine.
func try(t *testing.T, n *net) {
	t.Helper()
	m := n.model()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	compareWith(t, m, inputsOf(m), []uint64{0, 1, 2}, checked...)
}

func TestConvolutions(t *testing.T) {
	t.Parallel()
	for _, a := range activations {
		t.Run(fmt.Sprint(a.t, " with bias of ", a.b), func(t *testing.T) {
			t.Parallel()
			n := newNet(1)
			for i, z := range append(a.zeros, a.zeros...) {
				qx, qo := affine(z, 0.02), affine(a.zeros[n.r.IntN(len(a.zeros))], 0.3)
				act := []string{"NONE", "RELU", "RELU6", "RELU_N1_TO_1"}[i%4]
				for _, s := range []struct{ h, w, c, oc, kh, kw, sh, sw, dh, dw, groups int }{
					{5, 6, 3, 7, 3, 3, 1, 1, 1, 1, 1},
					{7, 5, 4, 5, 2, 3, 2, 1, 1, 1, 1},
					{4, 4, 9, 6, 1, 1, 1, 1, 1, 1, 1},
					{9, 8, 2, 3, 3, 2, 1, 2, 2, 3, 1},
					{6, 5, 6, 4, 3, 3, 2, 2, 1, 1, 2},
					{3, 3, 5, 2, 5, 5, 1, 1, 1, 1, 1},
					{1, 9, 1, 8, 1, 4, 1, 2, 1, 1, 1},
				} {
					for _, pad := range []string{"SAME", "VALID"} {
						if pad == "VALID" && (s.kh > s.h || s.kw > s.w) {
							continue
						}
						attrs := graph.Attrs{
							"stride_h": int64(s.sh), "stride_w": int64(s.sw), "dilation_h_factor": int64(s.dh), "dilation_w_factor": int64(s.dw),
							"padding": pad, "fused_activation_function": act,
						}
						qw := n.channels(s.oc, 0)
						if a.t == tensor.Uint8 || i%2 == 1 {
							qw = affine(0, 0.01)
						}
						if a.t == tensor.Uint8 {
							qw.Zero[0] = int64(n.r.IntN(256))
						}
						ins := []int{n.input(a.t, qx, 1+i%2, s.h, s.w, s.c), n.random(a.w, qw, s.oc, s.kh, s.kw, s.c/s.groups), n.random(a.b, nil, s.oc)}
						n.node("CONV_2D", attrs, a.t, qo, ins...)
						if s.groups > 1 {
							continue
						}
						// Depthwise, with 1 and with 3 outputs a channel, and more than a block
						// of channels.
						for _, c := range []int{s.c, 19} {
							times := []int{1, 3}[n.r.IntN(2)]
							qd := n.channels(c*times, 3)
							if a.t == tensor.Uint8 {
								qd = affine(int64(n.r.IntN(256)), 0.01)
							}
							n.node("DEPTHWISE_CONV_2D", attrs, a.t, qo, n.input(a.t, qx, 1, s.h, s.w, c), n.random(a.w, qd, 1, s.kh, s.kw, c*times), n.random(a.b, nil, c*times))
						}
					}
				}
				for _, d := range [][3]int{{1, 10, 7}, {3, 5, 2}, {6, 33, 4}, {1, 1, 1}} {
					qw := affine(0, 0.01)
					if a.t == tensor.Uint8 {
						qw.Zero[0] = int64(n.r.IntN(256))
					}
					ins := []int{n.input(a.t, qx, d[0], d[1]), n.random(a.w, qw, d[2], d[1])}
					if d[0] != 3 {
						ins = append(ins, n.random(a.b, nil, d[2]))
					}
					n.node("FULLY_CONNECTED", graph.Attrs{"fused_activation_function": act}, a.t, qo, ins...)
				}
			}
			try(t, n)
		})
	}
}

// TestBorders are convolutions that see what a PAD of their own puts around their image, on
// each side another number of lines.
func TestBorders(t *testing.T) {
	t.Parallel()
	for _, a := range activations {
		t.Run(fmt.Sprint(a.t, " with bias of ", a.b), func(t *testing.T) {
			t.Parallel()
			n := newNet(1)
			for i, z := range a.zeros {
				qx, qo := affine(z, 0.02), affine(a.zeros[n.r.IntN(len(a.zeros))], 0.3)
				for _, pads := range [][4]int32{{1, 1, 1, 1}, {0, 1, 0, 1}, {2, 0, 1, 2}} {
					for _, c := range []int{3, 17} {
						attrs := graph.Attrs{"stride_h": int64(1 + i%2), "stride_w": int64(2 - i%2), "padding": "VALID", "fused_activation_function": "RELU"}
						at := n.constant(tensor.From(tensor.Int32, []int{4, 2}, []int32{0, 0, pads[0], pads[1], pads[2], pads[3], 0, 0}))
						padded := func() int {
							p := n.node("PAD", nil, a.t, qx, n.input(a.t, qx, 1, 6, 7, c), at)
							// read by the convolution alone
							n.g.Outputs = n.g.Outputs[:len(n.g.Outputs)-1]
							return p
						}
						n.node("CONV_2D", attrs, a.t, qo, padded(), n.random(a.w, affine(0, 0.01), 5, 3, 3, c), n.random(a.b, nil, 5))
						n.node("DEPTHWISE_CONV_2D", attrs, a.t, qo, padded(), n.random(a.w, affine(0, 0.01), 1, 3, 3, c), n.random(a.b, nil, c))
					}
				}
			}
			try(t, n)
		})
	}
}

func TestTransposeConvolutions(t *testing.T) {
	t.Parallel()
	n := newNet(2)
	for _, a := range activations[:3] {
		for i, z := range a.zeros {
			for _, s := range [][7]int{{3, 4, 2, 3, 3, 2, 2}, {2, 2, 5, 4, 2, 1, 3}, {4, 3, 3, 1, 1, 1, 1}} {
				qw := n.channels(s[3], 0)
				if a.t == tensor.Uint8 {
					qw = affine(100, 0.01)
				}
				size := n.ints(2, int32(s[0]*s[5]), int32(s[1]*s[6]), int32(s[3]))
				ins := []int{size, n.random(a.w, qw, s[3], s[4], s[4], s[2]), n.input(a.t, affine(z, 0.02), 2, s[0], s[1], s[2])}
				if i > 0 || a.t == tensor.Int16 {
					ins = append(ins, n.random(a.b, nil, s[3]))
				}
				n.node("TRANSPOSE_CONV", graph.Attrs{"stride_h": int64(s[5]), "stride_w": int64(s[6]), "padding": "SAME"}, a.t, affine(z, 0.2), ins...)
			}
		}
	}
	try(t, n)
}

func TestPools(t *testing.T) {
	t.Parallel()
	n := newNet(3)
	for _, a := range activations[:3] {
		for _, z := range a.zeros {
			for _, s := range [][6]int{{5, 7, 3, 2, 2, 2}, {4, 4, 5, 4, 4, 1}, {6, 5, 2, 3, 1, 2}} {
				for _, pad := range []string{"SAME", "VALID"} {
					attrs := graph.Attrs{"filter_height": int64(s[3]), "filter_width": int64(s[4]), "stride_h": int64(s[5]), "stride_w": int64(s[5]), "padding": pad, "fused_activation_function": "RELU"}
					for _, op := range []string{"AVERAGE_POOL_2D", "MAX_POOL_2D"} {
						n.node(op, attrs, a.t, affine(z, 0.1), n.input(a.t, affine(z, 0.1), 2, s[0], s[1], s[2]))
					}
				}
			}
		}
	}
	try(t, n)
}

func TestPairs(t *testing.T) {
	t.Parallel()
	n := newNet(4)
	shapes := [][2][]int{{{2, 3, 4, 5}, {2, 3, 4, 5}}, {{1, 6, 1}, {5, 1, 7}}, {{4}, {3, 2, 4}}, {{2, 3, 2, 3}, {1}}, {{1, 1, 5}, {2, 4, 1}}}
	for _, a := range activations[:3] {
		for i, z := range a.zeros {
			for k, s := range shapes {
				act := graph.Attrs{"fused_activation_function": []string{"NONE", "RELU", "RELU6"}[(i+k)%3]}
				x, y := n.input(a.t, affine(z, 0.013), s[0]...), n.input(a.t, affine(a.zeros[k%len(a.zeros)], 0.05), s[1]...)
				for _, op := range []string{"ADD", "SUB", "MUL"} {
					n.node(op, act, a.t, affine(a.zeros[(i+k)%len(a.zeros)], 0.06), x, y)
				}
				n.node("SQUARED_DIFFERENCE", nil, a.t, affine(z, 0.2), x, y)
				u, v := n.input(a.t, affine(z, 0.1), s[0]...), n.input(a.t, affine(z, 0.1), s[1]...)
				n.node("MAXIMUM", nil, a.t, affine(z, 0.1), u, v)
				n.node("MINIMUM", nil, a.t, affine(z, 0.1), u, v)
				if a.t != tensor.Int16 {
					n.node("PRELU", nil, a.t, affine(z, 0.02), x, n.random(a.t, affine(3, 0.01), s[1]...))
				}
			}
		}
	}
	for _, typ := range []tensor.Type{tensor.Int32, tensor.Int64} {
		for _, s := range shapes {
			x, y := n.input(typ, nil, s[0]...), n.input(typ, nil, s[1]...)
			for _, op := range []string{"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"} {
				n.node(op, nil, typ, nil, x, y)
			}
		}
	}
	try(t, n)
}

func TestReductions(t *testing.T) {
	t.Parallel()
	n := newNet(5)
	for _, a := range activations[:3] {
		for _, z := range a.zeros {
			for _, axes := range [][]int32{{1, 2}, {0}, {-1}, {0, 2}, {0, 1, 2, 3}} {
				x := n.input(a.t, affine(z, 0.1), 2, 3, 4, 5)
				for _, op := range []string{"MEAN", "SUM"} {
					n.node(op, nil, a.t, affine(a.zeros[len(a.zeros)/2], 0.7), x, n.ints(axes...))
				}
				for _, op := range []string{"REDUCE_MAX", "REDUCE_MIN"} {
					n.node(op, graph.Attrs{"keep_dims": true}, a.t, affine(z, 0.1), x, n.ints(axes...))
				}
			}
		}
	}
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32} {
		x := n.input(typ, nil, 3, 5, 4)
		n.node("ARG_MAX", nil, tensor.Int32, nil, x, n.scalar(-1))
		n.node("ARG_MIN", nil, tensor.Int64, nil, x, n.scalar(1))
	}
	n.node("REDUCE_MAX", nil, tensor.Int32, nil, n.input(tensor.Int32, nil, 3, 4), n.ints(1))
	try(t, n)
}

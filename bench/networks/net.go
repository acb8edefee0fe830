package networks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// opset is the operator set of the networks: the first with LayerNormalization.
const opset = 17

// net is a network under construction. Its functions take values by their numbers, add nodes and
// return the number of the result.
type net struct {
	Precision

	g *graph.Graph
	r *rand.Rand

	coded   map[int]int    // a value and what it is after QuantizeLinear and DequantizeLinear
	dynamic map[int][3]int // a value, its 8-bit numbers, their scale and zero point
}

func newNet(name string, p Precision) *net {
	return &net{p, &graph.Graph{Name: name}, rand.New(rand.NewPCG(1, 2)), map[int]int{}, map[int][3]int{}}
}

// write writes the network, whose results are outs.
func (n *net) write(path string, outs ...int) error {
	for i, o := range outs {
		n.g.Values[o].Name = fmt.Sprintf("output_%d", i)
	}
	n.g.Outputs = outs
	b, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": opset}, Producer: "opmeter bench", Graphs: []*graph.Graph{n.g}})
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".network-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return err
}

func (n *net) value(t tensor.Type, shape ...int) int {
	id := len(n.g.Values)
	n.g.Values = append(n.g.Values, &graph.Value{ID: id, Name: fmt.Sprintf("v%d", id), Type: t, Shape: shape, HasShape: shape != nil})
	return id
}

func (n *net) input(name string, t tensor.Type, shape ...int) int {
	if t == tensor.Float32 {
		t = n.float()
	}
	id := n.value(t, shape...)
	n.g.Values[id].Name = name
	n.g.Inputs = append(n.g.Inputs, id)
	return id
}

// float is the type of what is not quantised.
func (n *net) float() tensor.Type {
	if n.Precision == FP16 {
		return tensor.Float16
	}
	return tensor.Float32
}

func (n *net) constant(t *tensor.Tensor) int {
	id := n.value(t.Type, t.Shape...)
	n.g.Values[id].Const = t
	return id
}

func (n *net) ints(v ...int64) int { return n.constant(tensor.From(tensor.Int64, []int{len(v)}, v)) }

// scalar is a constant in the network's floating-point type.
func (n *net) scalar(v float64) int { return n.fill(func(int) float64 { return v }) }

func (n *net) fill(f func(i int) float64, shape ...int) int {
	t := tensor.New(n.float(), shape...)
	t.Alloc()
	tensor.Fill(t, f)
	return n.constant(t)
}

// near is a constant of random values around mean.
func (n *net) near(mean, spread float64, shape ...int) int {
	return n.fill(func(int) float64 { return mean + spread*n.r.NormFloat64() }, shape...)
}

// node adds a node of one result; -1 stands for an input that is left out.
func (n *net) node(op string, attrs graph.Attrs, ins ...int) int {
	t := n.float()
	if len(ins) > 0 && ins[0] >= 0 {
		t = n.g.Values[ins[0]].Type
	}
	switch op {
	case "ConvInteger", "MatMulInteger":
		t = tensor.Int32
	case "Gather":
	case "Cast":
		t = tensor.Float32
	case "QuantizeLinear":
		t = n.g.Values[ins[2]].Type
	case "DequantizeLinear":
		t = tensor.Float32
	}
	out := n.value(t)
	n.add(op, attrs, ins, out)
	return out
}

func (n *net) add(op string, attrs graph.Attrs, ins []int, outs ...int) {
	for k, v := range attrs { // files have 64-bit numbers
		switch v := v.(type) {
		case int:
			attrs[k] = int64(v)
		case []int:
			long := make([]int64, len(v))
			for i, x := range v {
				long[i] = int64(x)
			}
			attrs[k] = long
		}
	}
	i := len(n.g.Nodes)
	n.g.Nodes = append(n.g.Nodes, &graph.Node{Index: i, Name: fmt.Sprintf("%s_%d", op, i), Op: op, Version: opset, Inputs: ins, Outputs: outs, Attrs: attrs})
}

// code passes a value through 8-bit numbers where the network is quantised with QDQ nodes: what
// quantised operators take.
func (n *net) code(x int) int {
	if n.Precision != QDQ {
		return x
	}
	if y, ok := n.coded[x]; ok {
		return y
	}
	s := n.constant(tensor.From(tensor.Float32, []int{}, []float32{activationScale}))
	z := n.constant(tensor.From(tensor.Uint8, []int{}, []uint8{128}))
	y := n.node("DequantizeLinear", nil, n.node("QuantizeLinear", nil, x, s, z), s, z)
	n.coded[x] = y
	return y
}

func (n *net) codes(x []int) []int {
	out := make([]int, len(x))
	for i, v := range x {
		out[i] = n.code(v)
	}
	return out
}

const activationScale = 1.0 / 24

// weights are random ones of a layer with so many inputs to a sum, and their scales where they
// are quantised: one for each index of axis, or a single one where axis is negative.
func (n *net) weights(fan, axis int, shape ...int) (codes *tensor.Tensor, scale []float32) {
	spread := math.Sqrt(2 / float64(fan))
	count := 1
	if axis >= 0 {
		count = shape[axis]
	}
	scale = make([]float32, count)
	for i := range scale {
		scale[i] = float32(spread / 40 * (1 + n.r.Float64()/4))
	}
	codes = tensor.New(tensor.Int8, shape...)
	codes.Alloc()
	for i, v := 0, tensor.Of[int8](codes); i < len(v); i++ {
		v[i] = int8(max(-127, min(127, math.Round(40*n.r.NormFloat64()))))
	}
	return codes, scale
}

// quantised8 passes constant weights through DequantizeLinear.
func (n *net) quantised8(axis int, w *tensor.Tensor, scale []float32) int {
	shape, attrs := []int{}, graph.Attrs(nil)
	if axis >= 0 {
		shape, attrs = []int{len(scale)}, graph.Attrs{"axis": axis}
	}
	zero := tensor.New(tensor.Int8, shape...)
	zero.Alloc()
	return n.node("DequantizeLinear", attrs, n.constant(w), n.constant(tensor.From(tensor.Float32, shape, scale)), n.constant(zero))
}

// codesOf is a value as 8-bit numbers whose scale is found in each run, with that and its zero
// point.
func (n *net) codesOf(x int) [3]int {
	if d, ok := n.dynamic[x]; ok {
		return d
	}
	d := [3]int{n.value(tensor.Uint8), n.value(tensor.Float32), n.value(tensor.Uint8)}
	n.add("DynamicQuantizeLinear", nil, []int{x}, d[:]...)
	n.dynamic[x] = d
	return d
}

// integer adds an operator on 8-bit numbers and what makes floating-point numbers of its sums.
func (n *net) integer(op string, attrs graph.Attrs, x int, w *tensor.Tensor, scale []float32) int {
	d := n.codesOf(x)
	zero := n.constant(tensor.From(tensor.Int8, []int{}, []int8{0}))
	sums := n.node("Cast", graph.Attrs{"to": 1}, n.node(op, attrs, d[0], n.constant(w), d[2], zero))
	return n.node("Mul", nil, sums, n.node("Mul", nil, d[1], n.constant(tensor.From(tensor.Float32, []int{}, scale[:1]))))
}

// conv is a convolution of [N,C,H,W] with a bias, whose output has the input's size divided by
// the stride.
func (n *net) conv(x, in, out, kernel, stride, group int) int {
	pad := (kernel - 1) / 2
	attrs := graph.Attrs{"kernel_shape": []int{kernel, kernel}, "strides": []int{stride, stride}, "pads": []int{pad, pad, kernel - 1 - pad, kernel - 1 - pad}, "group": group}
	shape := []int{out, in / group, kernel, kernel}
	fan := in / group * kernel * kernel
	switch n.Precision {
	case QDQ:
		w, s := n.weights(fan, 0, shape...)
		sums, bias := make([]float32, out), make([]int32, out)
		for i := range sums {
			sums[i], bias[i] = activationScale*s[i], int32(n.r.IntN(200)-100)
		}
		zero := make([]int32, out)
		b := n.node("DequantizeLinear", graph.Attrs{"axis": 0}, n.constant(tensor.From(tensor.Int32, []int{out}, bias)), n.constant(tensor.From(tensor.Float32, []int{out}, sums)), n.constant(tensor.From(tensor.Int32, []int{out}, zero)))
		return n.node("Conv", attrs, n.code(x), n.quantised8(0, w, s), b)
	case Dynamic:
		w, s := n.weights(fan, -1, shape...)
		return n.node("Add", nil, n.integer("ConvInteger", attrs, x, w, s), n.near(0, 0.05, 1, out, 1, 1))
	}
	return n.node("Conv", attrs, x, n.near(0, math.Sqrt(2/float64(fan)), shape...), n.near(0, 0.05, out))
}

// linear multiplies the last axis by a matrix and adds a bias.
func (n *net) linear(x, in, out int) int {
	var y int
	switch n.Precision {
	case QDQ:
		w, s := n.weights(in, -1, in, out)
		y = n.node("MatMul", nil, n.code(x), n.quantised8(-1, w, s))
	case Dynamic:
		w, s := n.weights(in, -1, in, out)
		y = n.integer("MatMulInteger", nil, x, w, s)
	default:
		y = n.node("MatMul", nil, x, n.near(0, math.Sqrt(1/float64(in)), in, out))
	}
	return n.node("Add", nil, y, n.near(0, 0.05, out))
}

func (n *net) relu(x int) int  { return n.node("Relu", nil, x) }
func (n *net) relu6(x int) int { return n.node("Clip", nil, x, n.scalar(0), n.scalar(6)) }

// silu is x·sigmoid(x), of a value that is quantised twice.
func (n *net) silu(x int) int {
	x = n.code(x)
	return n.node("Mul", nil, x, n.code(n.node("Sigmoid", nil, x)))
}

// gelu is the one of the error function, as exporters write it.
func (n *net) gelu(x int) int {
	e := n.node("Erf", nil, n.node("Div", nil, x, n.scalar(math.Sqrt2)))
	return n.node("Mul", nil, n.node("Mul", nil, x, n.node("Add", nil, e, n.scalar(1))), n.scalar(0.5))
}

// sum adds two values that are quantised where the network is.
func (n *net) sum(a, b int) int { return n.node("Add", nil, n.code(a), n.code(b)) }

func (n *net) concat(axis int, x ...int) int {
	return n.node("Concat", graph.Attrs{"axis": axis}, n.codes(x)...)
}

func (n *net) maxPool(x, kernel, stride int) int {
	pad := (kernel - 1) / 2
	return n.node("MaxPool", graph.Attrs{"kernel_shape": []int{kernel, kernel}, "strides": []int{stride, stride}, "pads": []int{pad, pad, pad, pad}}, n.code(x))
}

// classify averages the planes and gives numbers of so many classes.
func (n *net) classify(x, in, classes int) int {
	x = n.node("GlobalAveragePool", nil, n.code(x))
	return n.linear(n.node("Flatten", graph.Attrs{"axis": 1}, n.code(x)), in, classes)
}

func (n *net) norm(x, size int) int {
	return n.node("LayerNormalization", graph.Attrs{"axis": -1, "epsilon": float32(1e-5)}, x, n.near(1, 0.05, size), n.near(0, 0.05, size))
}

func (n *net) reshape(x int, shape ...int64) int { return n.node("Reshape", nil, x, n.ints(shape...)) }

func (n *net) transpose(x int, perm ...int) int {
	return n.node("Transpose", graph.Attrs{"perm": perm}, x)
}

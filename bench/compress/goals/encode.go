package main

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// encoder writes layers as an ONNX model.
type encoder struct {
	g       *graph.Graph
	dynamic bool // dense layers in dynamic int8
}

func (e *encoder) value(name string, t tensor.Type, shape ...int) int {
	v := &graph.Value{ID: len(e.g.Values), Name: name, Type: t, Shape: append([]int{}, shape...), HasShape: true, Offset: -1}
	e.g.Values = append(e.g.Values, v)
	return v.ID
}

func (e *encoder) constant(name string, c *tensor.Tensor) int {
	id := e.value(name, c.Type, c.Shape...)
	e.g.Values[id].Const = c
	return id
}

func (e *encoder) floats(name string, data []float32, shape ...int) int {
	return e.constant(name, tensor.From(tensor.Float32, shape, data))
}

func (e *encoder) node(op string, attrs graph.Attrs, out int, in ...int) int {
	e.nodes(op, attrs, []int{out}, in...)
	return out
}

func (e *encoder) nodes(op string, attrs graph.Attrs, out []int, in ...int) {
	e.g.Nodes = append(e.g.Nodes, &graph.Node{Index: len(e.g.Nodes), Name: fmt.Sprint(op, len(e.g.Nodes)), Op: op, Version: 13, Inputs: in, Outputs: out, Attrs: attrs})
}

// encode writes layers as an ONNX model. With dynamic, dense layers are what quantize_dynamic of
// ONNX Runtime makes by default: int8 weights with one scale, activations over their range.
func encode(layers []*layer, dynamic bool) ([]byte, error) {
	e := &encoder{&graph.Graph{Name: "net"}, dynamic}
	first := layers[0]
	shape := []int{1, first.in}
	switch {
	case first.size > 0:
		shape = []int{1, first.in, first.side, first.side}
	case first.tokens > 0:
		shape = []int{1, first.tokens, first.in}
	}
	x := e.value("x", tensor.Float32, shape...)
	e.g.Inputs = []int{x}
	for i, l := range layers {
		w, b := l.parameters()
		name := fmt.Sprint("layer", i)
		if rank := len(e.g.Values[x].Shape); l.size == 0 && l.tokens == 0 && rank > 2 {
			x = e.node("Flatten", nil, e.value("flat", tensor.Float32, 1, l.in), x)
		}
		switch {
		case l.size > 0:
			x = e.conv(name, l, x, w, b)
		case dynamic:
			x = e.dynamicDense(name, l, x, w, b)
		case l.tokens > 0:
			product := e.node("MatMul", nil, e.value(name+".product", tensor.Float32, l.shape()...), x, e.floats(name+".w", transposed(w, l.out), l.in, l.out))
			x = e.node("Add", nil, e.value(name, tensor.Float32, l.shape()...), product, e.floats(name+".b", b, l.out))
		default:
			x = e.node("Gemm", graph.Attrs{"transB": int64(1)}, e.value(name, tensor.Float32, l.shape()...), x, e.floats(name+".w", w, l.out, l.in), e.floats(name+".b", b, l.out))
		}
		if l.relu {
			x = e.node("Relu", nil, e.value(name+".relu", tensor.Float32, e.g.Values[x].Shape...), x)
		}
	}
	e.g.Outputs = []int{x}
	return onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{e.g}})
}

// parameters returns the weights, outputs by inputs, and the bias.
func (l *layer) parameters() (w, b []float32) {
	cols := l.cols()
	for o := range l.out {
		w = append(w, l.w[o*(cols+1):o*(cols+1)+cols]...)
		b = append(b, l.w[o*(cols+1)+cols])
	}
	return w, b
}

// shape is the shape of the output of a dense layer.
func (l *layer) shape() []int {
	if l.tokens > 0 {
		return []int{1, l.tokens, l.out}
	}
	return []int{1, l.out}
}

func (e *encoder) conv(name string, l *layer, x int, w, b []float32) int {
	side, pad := l.outSide(), int64(l.size/2)
	end := max(int64((side-1)*l.steps+l.size-l.side)-pad, 0)
	attrs := graph.Attrs{"pads": []int64{pad, pad, end, end}, "strides": []int64{int64(l.steps), int64(l.steps)}, "kernel_shape": []int64{int64(l.size), int64(l.size)}}
	return e.node("Conv", attrs, e.value(name, tensor.Float32, 1, l.out, side, side), x, e.floats(name+".w", w, l.out, l.in, l.size, l.size), e.floats(name+".b", b, l.out))
}

// dynamicDense writes a dense layer in dynamic int8.
func (e *encoder) dynamicDense(name string, l *layer, x int, w, b []float32) int {
	most := float32(0)
	for _, v := range w {
		most = max(most, float32(math.Abs(float64(v))))
	}
	scale := most / 127
	codes := tensor.New(tensor.Int8, l.in, l.out)
	for i, v := range transposed(w, l.out) {
		tensor.Of[int8](codes)[i] = int8(math.RoundToEven(float64(v / scale)))
	}
	q := e.value(name+".x", tensor.Uint8, e.g.Values[x].Shape...)
	s, z := e.value(name+".x_scale", tensor.Float32), e.value(name+".x_zero", tensor.Uint8)
	e.nodes("DynamicQuantizeLinear", nil, []int{q, s, z}, x)
	sums := e.node("MatMulInteger", nil, e.value(name+".sums", tensor.Int32, l.shape()...), q, e.constant(name+".w", codes), z, e.constant(name+".w_zero", tensor.New(tensor.Int8)))
	floats := e.node("Cast", graph.Attrs{"to": int64(1)}, e.value(name+".float", tensor.Float32, l.shape()...), sums)
	both := e.node("Mul", nil, e.value(name+".scale", tensor.Float32), s, e.floats(name+".w_scale", []float32{scale}))
	product := e.node("Mul", nil, e.value(name+".product", tensor.Float32, l.shape()...), floats, both)
	return e.node("Add", nil, e.value(name, tensor.Float32, l.shape()...), product, e.floats(name+".b", b, l.out))
}

// transposed turns a matrix of some rows.
func transposed(w []float32, rows int) []float32 {
	out, cols := make([]float32, len(w)), len(w)/rows
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = w[r*cols+c]
		}
	}
	return out
}

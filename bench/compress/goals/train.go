package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// layer is a convolution of square images with zero padding, or with size 0 a dense layer.
// Weights are outputs by inputs, a bias last.
type layer struct {
	in, out           int // channels, or elements
	side, size, steps int // side of the input, kernel, stride
	relu              bool

	w, g, m, v []float32 // weights, gradients, moments
	x, y, dx   []float32
	columns    []float32
}

func (l *layer) outSide() int { return (l.side + l.steps - 1) / l.steps }

// positions is the number of output positions, cols that of inputs of one.
func (l *layer) positions() int {
	if l.size == 0 {
		return 1
	}
	return l.outSide() * l.outSide()
}

func (l *layer) cols() int { return l.in * max(l.size*l.size, 1) }

func (l *layer) outputs() int { return l.out * l.positions() }

func (l *layer) init(r *rand.Rand) {
	n := l.out * (l.cols() + 1)
	l.w, l.g, l.m, l.v = make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	scale := math.Sqrt(2 / float64(l.cols()))
	for i := range l.w {
		if i%(l.cols()+1) < l.cols() {
			l.w[i] = float32(r.NormFloat64() * scale)
		}
	}
	l.y, l.columns = make([]float32, l.outputs()), make([]float32, l.positions()*l.cols())
}

// gather calls do for each element of the columns with its input element, -1 in the padding.
func (l *layer) gather(do func(column, input int)) {
	if l.size == 0 {
		for i := range l.in {
			do(i, i)
		}
		return
	}
	k, pad := 0, l.size/2
	for oy := range l.outSide() {
		for ox := range l.outSide() {
			for c := range l.in {
				for ky := range l.size {
					for kx := range l.size {
						y, x := oy*l.steps+ky-pad, ox*l.steps+kx-pad
						at := (c*l.side+y)*l.side + x
						if y < 0 || x < 0 || y >= l.side || x >= l.side {
							at = -1
						}
						do(k, at)
						k++
					}
				}
			}
		}
	}
}

func (l *layer) forward(x []float32) []float32 {
	l.x = x
	l.gather(func(c, i int) {
		if l.columns[c] = 0; i >= 0 {
			l.columns[c] = x[i]
		}
	})
	cols, n := l.cols(), l.positions()
	for o := range l.out {
		w := l.w[o*(cols+1) : (o+1)*(cols+1)]
		for p := range n {
			sum := w[cols]
			for i, v := range l.columns[p*cols : (p+1)*cols] {
				sum += w[i] * v
			}
			if l.relu {
				sum = max(sum, 0)
			}
			l.y[o*n+p] = sum
		}
	}
	return l.y
}

// backward adds gradients of the weights, and returns those of the inputs.
func (l *layer) backward(dy []float32) []float32 {
	cols, n := l.cols(), l.positions()
	dcol := make([]float32, len(l.columns))
	for o := range l.out {
		w, g := l.w[o*(cols+1):(o+1)*(cols+1)], l.g[o*(cols+1):(o+1)*(cols+1)]
		for p := range n {
			d := dy[o*n+p]
			if d == 0 || l.relu && l.y[o*n+p] == 0 {
				continue
			}
			c, dc := l.columns[p*cols:(p+1)*cols], dcol[p*cols:(p+1)*cols]
			for i, v := range c {
				g[i] += d * v
				dc[i] += d * w[i]
			}
			g[cols] += d
		}
	}
	l.dx = make([]float32, len(l.x))
	l.gather(func(c, i int) {
		if i >= 0 {
			l.dx[i] += dcol[c]
		}
	})
	return l.dx
}

// train minimises the cross entropy with Adam.
func train(layers []*layer, xs [][]float32, labels []int, epochs int, r *rand.Rand) {
	for _, l := range layers {
		l.init(r)
	}
	const batch, rate, b1, b2 = 16, 1e-3, .9, .999
	step := 0
	for range epochs {
		order := r.Perm(len(xs))
		for at := 0; at+batch <= len(order); at += batch {
			for _, k := range order[at : at+batch] {
				y := xs[k]
				for _, l := range layers {
					y = l.forward(y)
				}
				d := softmax(y)
				d[labels[k]]--
				for i := range d {
					d[i] /= batch
				}
				for i := len(layers) - 1; i >= 0; i-- {
					d = layers[i].backward(d)
				}
			}
			step++
			c1, c2 := 1-math.Pow(b1, float64(step)), 1-math.Pow(b2, float64(step))
			for _, l := range layers {
				for i, g := range l.g {
					l.m[i], l.v[i], l.g[i] = b1*l.m[i]+(1-b1)*g, b2*l.v[i]+(1-b2)*g*g, 0
					l.w[i] -= float32(rate * float64(l.m[i]) / c1 / (math.Sqrt(float64(l.v[i])/c2) + 1e-8))
				}
			}
		}
	}
}

func softmax(y []float32) []float32 {
	out, most, sum := make([]float32, len(y)), float32(math.Inf(-1)), float32(0)
	for _, v := range y {
		most = max(most, v)
	}
	for i, v := range y {
		out[i] = float32(math.Exp(float64(v - most)))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// encode writes layers as an ONNX model.
func encode(layers []*layer) ([]byte, error) {
	g := &graph.Graph{Name: "net"}
	value := func(name string, shape ...int) int {
		v := &graph.Value{ID: len(g.Values), Name: name, Type: tensor.Float32, Shape: shape, HasShape: true, Offset: -1}
		g.Values = append(g.Values, v)
		return v.ID
	}
	constant := func(name string, data []float32, shape ...int) int {
		id := value(name, shape...)
		g.Values[id].Const = tensor.From(tensor.Float32, shape, data)
		return id
	}
	node := func(op string, attrs graph.Attrs, out int, in ...int) int {
		g.Nodes = append(g.Nodes, &graph.Node{Index: len(g.Nodes), Name: fmt.Sprint(op, len(g.Nodes)), Op: op, Version: 13, Inputs: in, Outputs: []int{out}, Attrs: attrs})
		return out
	}
	first := layers[0]
	x := value("x", 1, first.in)
	if first.size > 0 {
		g.Values[x].Shape = []int{1, first.in, first.side, first.side}
	}
	g.Inputs = []int{x}
	flat := first.size == 0
	for i, l := range layers {
		cols := l.cols()
		w, b := make([]float32, 0, l.out*cols), make([]float32, l.out)
		for o := range l.out {
			w = append(w, l.w[o*(cols+1):o*(cols+1)+cols]...)
			b[o] = l.w[o*(cols+1)+cols]
		}
		name := fmt.Sprint("layer", i)
		if l.size > 0 {
			side, pad := l.outSide(), int64(l.size/2)
			end := int64((side-1)*l.steps+l.size-l.side) - pad
			x = node("Conv", graph.Attrs{"pads": []int64{pad, pad, max(end, 0), max(end, 0)}, "strides": []int64{int64(l.steps), int64(l.steps)}, "kernel_shape": []int64{int64(l.size), int64(l.size)}},
				value(name, 1, l.out, side, side), x, constant(name+".w", w, l.out, l.in, l.size, l.size), constant(name+".b", b, l.out))
		} else {
			if !flat {
				x, flat = node("Flatten", nil, value("flat", 1, l.in), x), true
			}
			x = node("Gemm", graph.Attrs{"transB": int64(1)}, value(name, 1, l.out), x, constant(name+".w", w, l.out, l.in), constant(name+".b", b, l.out))
		}
		if l.relu {
			x = node("Relu", nil, value(name+".relu", g.Values[x].Shape...), x)
		}
	}
	g.Outputs = []int{x}
	return onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{g}})
}

package main

import (
	"math"
	"math/rand/v2"
)

// layer is a convolution of square images with zero padding, or with size 0 a dense layer, of
// each token if there are several. Weights are outputs by inputs, a bias last.
type layer struct {
	in, out           int // channels, or elements
	side, size, steps int // side of the input, kernel, stride
	tokens            int
	relu              bool

	w, g, m, v []float32 // weights, gradients, moments
	x, y, dx   []float32
	columns    []float32
}

func (l *layer) outSide() int { return (l.side + l.steps - 1) / l.steps }

// positions is the number of output positions, cols that of inputs of one.
func (l *layer) positions() int {
	if l.size == 0 {
		return max(l.tokens, 1)
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

// at is the element of an output of a position: channels are first in images, last in tokens.
func (l *layer) at(out, position int) int {
	if l.size == 0 {
		return position*l.out + out
	}
	return out*l.positions() + position
}

// gather calls do for each element of the columns with its input element, -1 in the padding.
func (l *layer) gather(do func(column, input int)) {
	if l.size == 0 {
		for i := range l.in * l.positions() {
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
			l.y[l.at(o, p)] = sum
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
			d := dy[l.at(o, p)]
			if d == 0 || l.relu && l.y[l.at(o, p)] == 0 {
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

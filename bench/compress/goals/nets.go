package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// net is a network with a task.
type net struct {
	name    string
	shape   []int // of a sample
	classes int
	noise   float64
	layers  func() []*layer
	epochs  int
}

func dense(in, out int, relu bool) *layer { return &layer{in: in, out: out, relu: relu} }

func token(in, out, tokens int, relu bool) *layer {
	return &layer{in: in, out: out, tokens: tokens, relu: relu}
}

func conv(in, out, side, size, steps int) *layer {
	return &layer{in: in, out: out, side: side, size: size, steps: steps, relu: true}
}

// nets are networks of different shapes.
var nets = []net{
	{"wide", []int{64}, 10, 1.9, func() []*layer {
		return []*layer{dense(64, 384, true), dense(384, 384, true), dense(384, 10, false)}
	}, 6},
	{"deep", []int{48}, 8, 1.7, func() []*layer {
		return []*layer{dense(48, 128, true), dense(128, 128, true), dense(128, 128, true), dense(128, 96, true), dense(96, 96, true), dense(96, 8, false)}
	}, 6},
	{"narrow", []int{200}, 12, 2.6, func() []*layer {
		return []*layer{dense(200, 256, true), dense(256, 40, true), dense(40, 256, true), dense(256, 40, true), dense(40, 12, false)}
	}, 6},
	{"images", []int{1, 12, 12}, 10, 1.5, func() []*layer {
		return []*layer{conv(1, 12, 12, 3, 1), conv(12, 24, 12, 3, 2), conv(24, 24, 6, 3, 1), dense(24*36, 10, false)}
	}, 3},
	{"pointwise", []int{4, 8, 8}, 6, 1.7, func() []*layer {
		return []*layer{conv(4, 24, 8, 3, 1), conv(24, 48, 8, 1, 1), conv(48, 24, 8, 1, 2), conv(24, 32, 4, 3, 1), dense(32*16, 6, false)}
	}, 3},
	{"mixed", []int{2, 10, 10}, 7, 1.6, func() []*layer {
		return []*layer{conv(2, 16, 10, 3, 2), conv(16, 16, 5, 3, 1), dense(16*25, 192, true), dense(192, 96, true), dense(96, 7, false)}
	}, 4},
	{"tokens", []int{16, 64}, 10, 2.4, func() []*layer {
		return []*layer{token(64, 192, 16, true), token(192, 64, 16, false), token(64, 192, 16, true), token(192, 64, 16, false), dense(16*64, 10, false)}
	}, 2},
}

// Numbers of samples: to train, to give to opmeter, and held out from it.
const (
	trained = 3000
	given   = 2500
	heldOut = 4000
)

// task draws samples: each class has three patterns, smooth over images, and a sample is one of
// them with noise.
func (n *net) task(r *rand.Rand) func(count int) ([][]float32, []int) {
	elements := 1
	for _, d := range n.shape {
		elements *= d
	}
	const patterns = 3
	centres := make([][]float64, n.classes*patterns)
	for i := range centres {
		c := make([]float64, elements)
		fx, fy, phase := r.Float64()*2, r.Float64()*2, r.Float64()*6
		for k := range c {
			if c[k] = r.NormFloat64(); len(n.shape) == 3 {
				side := n.shape[2]
				c[k] = .5*c[k] + 1.2*math.Sin(fx*float64(k%side)+fy*float64(k/side%side)+phase)
			}
		}
		centres[i] = c
	}
	// Noise along the differences of patterns makes classes overlap whatever the dimension.
	return func(count int) (xs [][]float32, labels []int) {
		for range count {
			k := r.IntN(len(centres))
			c, other := centres[k], centres[r.IntN(len(centres))]
			mix := .62 * r.Float64()
			x := make([]float32, elements)
			for i := range x {
				x[i] = float32((1-mix)*c[i] + mix*other[i] + .25*n.noise*r.NormFloat64())
			}
			xs, labels = append(xs, x), append(labels, k/patterns)
		}
		return xs, labels
	}
}

// build trains a network, and writes model and samples to a folder: use0, use1 and so on to give to
// opmeter, each drawn anew, and test.
func (n *net) build(dir string, seed uint64, uses int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, uint64(len(n.name))))
	draw := n.task(r)
	layers := n.layers()
	xs, labels := draw(trained)
	train(layers, xs, labels, n.epochs, r)
	for name, dynamic := range map[string]bool{"model.onnx": false, "dynamic.onnx": true} {
		data, err := encode(layers, dynamic)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	for i := range uses + 1 {
		kind, count := fmt.Sprint("use", i), given
		if i == uses {
			kind, count = "test", heldOut
		}
		xs, labels := draw(count)
		x, y := tensor.New(tensor.Float32, append([]int{count}, n.shape...)...), tensor.New(tensor.Int64, count)
		for i := range xs {
			copy(tensor.Of[float32](x)[i*len(xs[i]):], xs[i])
			tensor.Of[int64](y)[i] = int64(labels[i])
		}
		if err := errors.Join(write(filepath.Join(dir, kind+"_x.npy"), x), write(filepath.Join(dir, kind+"_y.npy"), y)); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, t *tensor.Tensor) error {
	var b bytes.Buffer
	if err := npy.Write(&b, t); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

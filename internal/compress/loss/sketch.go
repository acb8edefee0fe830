package loss

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// sketch finds how errors differ between samples without computing all outputs of each: outputs are added with random
// signs, so that the square of a sum is in the mean the sum of the squares (Hutchinson 1990). It gives the
// length of intervals and not their middle.
type sketch struct {
	z      [][]float32 // by group: sums of rows, copies for each anchor, then for the whole weights
	bias   []float32   // that goes with the copies of the whole weights, of all groups
	cols   int
	groups int // of which sums are taken: the first ones
	slot   int
	slots  [][]float64 // squares by slot of runs and anchor
	y, few []float32
	lines  move.LineCopier
	los    []float64 // factors at the anchors; nil before they are found
	his    []float64
}

// anchors are the levels at which errors are followed, copies the sums with different signs for each.
var anchors = []float64{0.2, 0.5, 0.8, 0.95}

const copies = 4

// mostGroups bounds the groups that a sketch follows.
const mostGroups = 16

// newSketch follows a layer's weights as they are pruned one by one, in an order.
func newSketch(l *weights.Layer, w []float32, order *mask.Order, bias []float64, seed uint64) *sketch {
	fall := order.Falls(anchors)
	outs, n := l.Rows/l.Groups, (len(anchors)+1)*copies
	s := &sketch{cols: l.Cols, groups: min(l.Groups, mostGroups), bias: make([]float32, copies)}
	r := rand.New(rand.NewPCG(seed, 0x516e))
	for g := range s.groups {
		z := make([]float32, n*l.Cols)
		for row := g * outs; row < (g+1)*outs; row++ {
			var signs [copies]float32
			for k := range signs {
				signs[k] = float32(1 - 2*int(r.Uint64()&1))
				if bias != nil && outs > 1 {
					s.bias[k] += signs[k] * float32(bias[row]) / float32(s.groups)
				}
			}
			f := fall[row*l.Cols:][:l.Cols]
			for c, v := range w[row*l.Cols:][:l.Cols] {
				at := int(f[c])*copies*l.Cols + c
				for _, sign := range signs {
					z[at] += sign * v
					at += l.Cols
				}
			}
		}
		// What has fallen stays so; the last copies have all weights, also those that never fall.
		for i := copies * l.Cols; i < len(z); i++ {
			z[i] += z[i-copies*l.Cols]
		}
		s.z = append(s.z, z)
	}
	return s
}

func (s *sketch) begin(slot int) {
	for slot >= len(s.slots) {
		s.slots = append(s.slots, make([]float64, len(anchors)+1))
	}
	s.slot = slot
}

// places bounds the inputs of a run that a sketch looks at, in pieces that are spread over them: the error of a sample is known well
// enough from so many to see how samples differ.
const places, pieces = 64, 4

// planes and rows take inputs as moments do.
func (s *sketch) planes(group int, x []float32, stride, n int) {
	if group >= s.groups {
		return
	}
	if n <= places {
		s.add(group, x, stride, n, 1)
		return
	}
	each := places / pieces
	few := grown(&s.few, s.cols*places)
	s.few = few
	for i := range pieces {
		s.lines.Copy(few[i*each:], places, x[i*(n-each)/(pieces-1):], stride, 1, each, s.cols)
	}
	s.add(group, few, places, places, float64(n)/places)
}

// add takes n inputs that stand for share as many.
func (s *sketch) add(group int, x []float32, stride, n int, share float64) {
	all := (len(anchors) + 1) * copies
	y := grown(&s.y, all*n)
	s.y = y
	kernel.Gemm(nil, kernel.GemmParams{M: all, N: n, K: s.cols, LDB: stride}, s.z[group], x, y)
	for i := range all {
		row := y[i*n:][:n]
		e := float64(vectors.Dot(row, row))
		if k := i - len(anchors)*copies; k >= 0 && s.bias[k] != 0 {
			b := float64(s.bias[k])
			e += 2*b*float64(vectors.Dot(row, ones(n))) + float64(n)*b*b
		}
		s.slots[s.slot][i/copies] += e * share
	}
}

func (s *sketch) rows(group int, x []float32, stride, n int) {
	if group >= s.groups {
		return
	}
	step := max(1, n/places)
	some := n / step
	t := make([]float32, some*s.cols)
	move.Transpose(t, some, x, stride*step, s.cols, some)
	s.add(group, t, some, some, float64(n)/float64(some))
}

// factors are those by which errors at levels are multiplied for the ends of their intervals, NaN where there are too
// few samples. Between anchors they are on a line.
func (s *sketch) factors(levels []float64, seed uint64) (lo, hi []float64) {
	lo, hi = slices.Repeat([]float64{math.NaN()}, len(levels)), slices.Repeat([]float64{math.NaN()}, len(levels))
	n := len(s.slots)
	if n < 2 {
		return lo, hi
	}
	s.ends(seed)
	los, his := s.los, s.his
	for i, level := range levels {
		k := 0
		for k < len(anchors)-2 && level > anchors[k+1] {
			k++
		}
		t := min(max((level-anchors[k])/(anchors[k+1]-anchors[k]), 0), 1)
		lo[i], hi[i] = los[k]+t*(los[k+1]-los[k]), his[k]+t*(his[k+1]-his[k])
	}
	return lo, hi
}

// ends finds the factors at the anchors.
func (s *sketch) ends(seed uint64) {
	if s.los != nil {
		return
	}
	n := len(s.slots)
	times := drawn(n, seed)
	whole := make([]float64, len(anchors)+1)
	for _, v := range s.slots {
		for a, x := range v {
			whole[a] += x
		}
	}
	ratios := make([]float64, len(anchors)*draws)
	for b := range draws {
		sums := make([]float64, len(anchors)+1)
		for i, k := range times[b*n:][:n] {
			for a, x := range s.slots[i] {
				sums[a] += float64(k) * x
			}
		}
		for a := range anchors {
			ratios[a*draws+b] = sums[a] / sums[len(anchors)] / (whole[a] / whole[len(anchors)])
		}
	}
	s.los, s.his = make([]float64, len(anchors)), make([]float64, len(anchors))
	for a := range anchors {
		s.los[a], s.his[a] = between(ratios[a*draws:][:draws])
	}
}

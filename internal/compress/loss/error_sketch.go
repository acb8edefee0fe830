package loss

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// sketch estimates how errors differ between samples without computing all outputs of each.
// Outputs are added with random signs, so the expected square of a sum is the sum of the squares
// (Hutchinson 1990). It determines the length of intervals, not their centre.
type sketch struct {
	// by group: sums of rows, sketchCopies for each level, then for the complete weights
	z      [][]float32
	bias   []float32 // bias of the copies of the complete weights, of all groups
	cols   int
	groups int // number of groups that are sketched: the first ones
	slot   int
	slots  [][]float64 // squares by slot of runs and level
	y, few []float32
	lines  move.LineCopier
	los    []float64 // factors at the levels; nil before they are computed
	his    []float64
}

// sketchLevels are the levels at which errors are sketched. sketchCopies is the number of sums
// with different signs for each.
var sketchLevels = []float64{0.2, 0.5, 0.8, 0.95}

const sketchCopies = 4

// maxSketchGroups bounds the sketched groups.
const maxSketchGroups = 16

// newSketch sketches a layer's weights as they are pruned one by one in the given order.
func newSketch(l *weights.Layer, w []float32, order *mask.Order, bias []float64, seed uint64) *sketch {
	fall := order.PruningLevels(sketchLevels)
	outs, n := l.Rows/l.Groups, (len(sketchLevels)+1)*sketchCopies
	s := &sketch{cols: l.Cols, groups: min(l.Groups, maxSketchGroups), bias: make([]float32, sketchCopies)}
	r := rand.New(rand.NewPCG(seed, 0x516e))
	for g := range s.groups {
		z := make([]float32, n*l.Cols)
		for row := g * outs; row < (g+1)*outs; row++ {
			var signs [sketchCopies]float32
			for k := range signs {
				signs[k] = float32(1 - 2*int(r.Uint64()&1))
				if bias != nil && outs > 1 {
					s.bias[k] += signs[k] * float32(bias[row]) / float32(s.groups)
				}
			}
			f := fall[row*l.Cols:][:l.Cols]
			for c, v := range w[row*l.Cols:][:l.Cols] {
				at := int(f[c])*sketchCopies*l.Cols + c
				for _, sign := range signs {
					z[at] += sign * v
					at += l.Cols
				}
			}
		}
		// Pruned weights stay pruned; the last copies include all weights, also those that are
		// never pruned.
		for i := sketchCopies * l.Cols; i < len(z); i++ {
			z[i] += z[i-sketchCopies*l.Cols]
		}
		s.z = append(s.z, z)
	}
	return s
}

func (s *sketch) begin(slot int) {
	for slot >= len(s.slots) {
		s.slots = append(s.slots, make([]float64, len(sketchLevels)+1))
	}
	s.slot = slot
}

// maxSketchInputs bounds the inputs of a run that are sketched, in sketchPieces spread over them.
// That many give the error of a sample accurately enough to compare samples.
const maxSketchInputs, sketchPieces = 64, 4

// planes and rows take inputs as [sink] says.
func (s *sketch) planes(group int, x []float32, stride, n int) {
	if group >= s.groups {
		return
	}
	if n <= maxSketchInputs {
		s.add(group, x, stride, n, 1)
		return
	}
	each := maxSketchInputs / sketchPieces
	few := grow(&s.few, s.cols*maxSketchInputs)
	s.few = few
	for i := range sketchPieces {
		s.lines.Copy(few[i*each:], maxSketchInputs, x[i*(n-each)/(sketchPieces-1):], stride, 1, each, s.cols)
	}
	s.add(group, few, maxSketchInputs, maxSketchInputs, float64(n)/maxSketchInputs)
}

// add takes n inputs, each of which represents share inputs.
func (s *sketch) add(group int, x []float32, stride, n int, share float64) {
	all := (len(sketchLevels) + 1) * sketchCopies
	y := grow(&s.y, all*n)
	s.y = y
	gemm.Multiply(nil, gemm.Params{M: all, N: n, K: s.cols, LDB: stride}, s.z[group], x, y)
	for i := range all {
		row := y[i*n:][:n]
		e := float64(vectors.Dot(row, row))
		if k := i - len(sketchLevels)*sketchCopies; k >= 0 && s.bias[k] != 0 {
			b := float64(s.bias[k])
			e += 2*b*float64(vectors.Dot(row, ones(n))) + float64(n)*b*b
		}
		s.slots[s.slot][i/sketchCopies] += e * share
	}
}

func (s *sketch) rows(group int, x []float32, stride, n int) {
	if group >= s.groups {
		return
	}
	step := max(1, n/maxSketchInputs)
	some := n / step
	t := make([]float32, some*s.cols)
	move.Transpose(t, some, x, stride*step, s.cols, some)
	s.add(group, t, some, some, float64(n)/float64(some))
}

// intervalFactors returns the factors from level errors to the ends of their intervals, NaN where
// there are too few samples. It interpolates linearly between sketchLevels.
func (s *sketch) intervalFactors(levels []float64, seed uint64) (lo, hi []float64) {
	lo, hi = slices.Repeat([]float64{math.NaN()}, len(levels)), slices.Repeat([]float64{math.NaN()}, len(levels))
	n := len(s.slots)
	if n < 2 {
		return lo, hi
	}
	s.findFactors(seed)
	los, his := s.los, s.his
	for i, level := range levels {
		k := 0
		for k < len(sketchLevels)-2 && level > sketchLevels[k+1] {
			k++
		}
		t := min(max((level-sketchLevels[k])/(sketchLevels[k+1]-sketchLevels[k]), 0), 1)
		lo[i], hi[i] = los[k]+t*(los[k+1]-los[k]), his[k]+t*(his[k+1]-his[k])
	}
	return lo, hi
}

// findFactors computes the factors at sketchLevels.
func (s *sketch) findFactors(seed uint64) {
	if s.los != nil {
		return
	}
	n := len(s.slots)
	times := bootstrapCounts(n, seed)
	whole := make([]float64, len(sketchLevels)+1)
	for _, v := range s.slots {
		for a, x := range v {
			whole[a] += x
		}
	}
	ratios := make([]float64, len(sketchLevels)*bootstrapDraws)
	for b := range bootstrapDraws {
		sums := make([]float64, len(sketchLevels)+1)
		for i, k := range times[b*n:][:n] {
			for a, x := range s.slots[i] {
				sums[a] += float64(k) * x
			}
		}
		for a := range sketchLevels {
			ratios[a*bootstrapDraws+b] = sums[a] / sums[len(sketchLevels)] / (whole[a] / whole[len(sketchLevels)])
		}
	}
	s.los, s.his = make([]float64, len(sketchLevels)), make([]float64, len(sketchLevels))
	for a := range sketchLevels {
		s.los[a], s.his[a] = percentileInterval(ratios[a*bootstrapDraws:][:bootstrapDraws])
	}
}

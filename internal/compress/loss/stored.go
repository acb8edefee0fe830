package loss

import (
	"context"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

func fill(dst []float32, t *tensor.Tensor) { tensor.Read(dst, t, 0) }

// Rounded are weights as numbers of a format with one scale for all, or for each row: symmetric, so that the
// largest magnitude is the largest code, halves to even. Zeros stay zero.
func Rounded(mat []float32, rows, cols int, f study.Format, perTensor bool) []float32 {
	out := make([]float32, len(mat))
	bits := 8
	switch f {
	case study.Half:
		for i, x := range mat {
			out[i] = tensor.F16ToF32(tensor.F32ToF16(x))
		}
		return out
	case study.Weight4:
		bits = 4
	}
	top := math.Ldexp(1, bits-1) - 1
	if perTensor {
		rows, cols = 1, len(mat)
	}
	for r := range rows {
		row := mat[r*cols:][:cols]
		most := 0.0
		for _, x := range row {
			most = max(most, math.Abs(float64(x)))
		}
		s := most / top
		if s == 0 {
			continue
		}
		for i, x := range row {
			out[r*cols+i] = float32(min(max(math.RoundToEven(float64(x)/s), -top), top) * s)
		}
	}
	return out
}

// changed are the weights that a change leaves, as the changed model has them.
func (j *Job) changed(l *weights.Layer, mat []float32, f study.Format) ([]float32, study.Cause, error) {
	perTensor := j.PerTensor
	if f == study.Int8 { // the same weights, but for one operator
		f = study.Weight8
		perTensor = perTensor || j.Model.Main().Nodes[l.Node].Op == "ConvTranspose"
	}
	if f == study.Same {
		return mat, "", nil
	}
	if perTensor && l.Quant == nil {
		return Rounded(mat, l.Rows, l.Cols, f, true), "", nil
	}
	m, effects, err := rewrite.Apply(j.Model, []rewrite.Change{{Layer: l, Change: study.Change{Format: f}, Matrix: mat}}, rewrite.Options{})
	if err != nil {
		return nil, "", err
	}
	if why := effects[0].Cause; why != "" {
		return nil, why, nil
	}
	for _, c := range weights.Find(m, j.Shapes) {
		if c.ID == l.ID && c.Input == l.Input || c.Weight == l.Weight {
			if c.Rows == l.Rows && c.Cols == l.Cols {
				return c.Read(nil), "", nil
			}
		}
	}
	return Rounded(mat, l.Rows, l.Cols, f, false), "", nil
}

// stored finds the point of a layer in another format; those with 8-bit activations wait for their ranges.
func (j *Job) stored(u *unit, l *member, x *matrix, order *mask.Order, c study.Change, base float64) error {
	mat := append([]float32(nil), x.w...)
	if order != nil {
		order.Zero(mat, c.Level)
	}
	q, why, err := j.changed(l.layer, mat, c.Format)
	if err != nil {
		why = study.Unrun
	}
	if c.Format == study.Int8 && why == "" && l.products[0].kind != table {
		l.waiting = append(l.waiting, waiting{c, x.w, q, base})
		return nil
	}
	p := study.LossPoint{Layer: l.index, Change: c, Cause: why}
	switch {
	case why != "":
	case base <= 0:
		p.Cause = study.Unrun
	default:
		d := q
		for i, v := range x.w {
			d[i] -= v
		}
		y := &matrix{moments: u.m, w: d, rows: x.rows, sketch: l.sketch}
		e := sum(y.each(d)) / base
		lo, hi := y.spread(make([]uint16, len(d)), anchors[:1], j.Seed) // as errors of few weights differ
		p.Value = value(profile.Measured, e, j.Data.Len(), e*lo[0], e*hi[0], fmt.Sprintf("closed form from second moments of %d inputs; interval by resampling samples", u.m.n))
	}
	return j.Point(p)
}

// waiting is a change to 8-bit activations.
type waiting struct {
	change  study.Change
	w, q    []float32
	squares float64 // of the unchanged outputs
}

// integers finds the points of layers with 8-bit activations: their ranges in one pass, their errors in another, by
// computing with the codes.
func (j *Job) integers(ctx context.Context, us []*unit) error {
	var some []*member
	var ids, taps []int
	for _, u := range us {
		for _, l := range u.layers {
			if len(l.waiting) == 0 {
				continue
			}
			some = append(some, l)
			for _, p := range l.products {
				ids = append(ids, p.data)
				taps = append(taps, p.taps()...)
			}
		}
	}
	if len(some) == 0 {
		return nil
	}
	n := j.Data.Runs()
	hs, err := histograms(ctx, j.Model, j.Data, ids, j.Threads, func(run int) {
		j.tell(float64(run)/float64(2*n), "ranges of activations")
	})
	if err != nil {
		return err
	}
	s := scratch{pool: j.pool}
	errs := make([][][]float64, len(some)) // by layer, change and slot
	for i, l := range some {
		errs[i] = make([][]float64, len(l.waiting))
		for k := range errs[i] {
			errs[i][k] = make([]float64, min(n, slots))
		}
	}
	failed := make([]bool, len(some))
	err = pass(ctx, j.Model, j.Data, taps, j.Threads, func(run int, v values) error {
		for i, l := range some {
			for k, w := range l.waiting {
				e, err := j.coded(l, &w, hs, v, &s)
				if err != nil {
					failed[i] = true
					break
				}
				errs[i][k][slotOf(run, n)] += e
			}
		}
		j.tell(0.5+float64(run)/float64(2*n), "activations of 8 bits")
		return nil
	})
	if err != nil {
		return err
	}
	for i, l := range some {
		for k, w := range l.waiting {
			p := study.LossPoint{Layer: l.index, Change: w.change}
			if w.squares > 0 && !failed[i] {
				e := errs[i][k]
				v := sum(e) / w.squares
				lo, hi := Resampled(len(e), j.Seed, func(times []float32) float64 {
					t := 0.0
					for i, x := range e {
						t += x * float64(times[i])
					}
					return t / w.squares
				})
				p.Value = value(profile.Measured, v, j.Data.Len(), lo, hi, "computed with codes of 8 bits; interval by resampling samples")
			} else {
				p.Cause = study.Unrun
			}
			if err := j.Point(p); err != nil {
				return err
			}
		}
		l.waiting = nil
	}
	return nil
}

// coded is the squared error of a layer's outputs in a run with codes of its data.
func (j *Job) coded(l *member, w *waiting, hs map[int]*histogram, v values, s *scratch) (float64, error) {
	e := 0.0
	for _, p := range l.products {
		plain := &outputs{layer: l.layer, w: w.w, job: j}
		if err := p.gather(v, plain, s, nil); err != nil {
			return 0, err
		}
		change := func([]float32) {}
		if h := hs[p.data]; h != nil {
			if r, ok := h.rangeOf(j.Ranges); ok {
				c := affine(r)
				change = func(x []float32) {
					for i, v := range x {
						x[i] = c.real(v)
					}
				}
			}
		}
		with := &outputs{layer: l.layer, w: w.q, job: j, other: plain.all}
		if err := p.gather(v, with, s, change); err != nil {
			return 0, err
		}
		e += with.squared
	}
	return e, nil
}

// outputs is a sink that multiplies, and compares with what another has multiplied.
type outputs struct {
	layer   *weights.Layer
	w       []float32
	job     *Job
	all     [][]float32
	other   [][]float32
	squared float64
}

func (o *outputs) planes(group int, x []float32, stride, n int) {
	o.multiply(group, x, stride, n, false)
}

func (o *outputs) rows(group int, x []float32, stride, n int) { o.multiply(group, x, stride, n, true) }

func (o *outputs) multiply(group int, x []float32, stride, n int, byRow bool) {
	outs := o.layer.Rows / o.layer.Groups
	y := make([]float32, outs*n)
	p := kernel.GemmParams{M: outs, N: n, K: o.layer.Cols, LDB: stride, TransB: byRow}
	kernel.Gemm(o.job.pool, p, o.w[group*outs*o.layer.Cols:], x, y)
	if o.other == nil {
		o.all = append(o.all, y)
		return
	}
	for i, v := range o.other[0] {
		d := float64(y[i]) - float64(v)
		o.squared += d * d
	}
	o.other = o.other[1:]
}

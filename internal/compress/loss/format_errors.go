package loss

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// QuantiseWeights quantises weights to a format with one scale for all, or one per row. It is
// symmetric: the largest magnitude becomes the largest integer, rounding is half to even. Zeros
// stay zero.
func QuantiseWeights(mat []float32, rows, cols int, f study.Format, perTensor bool) []float32 {
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
		s := float64(float32(most / top)) // as files store it
		if s == 0 {
			continue
		}
		for i, x := range row {
			out[r*cols+i] = float32(min(max(math.RoundToEven(float64(x)/s), -top), top) * s)
		}
	}
	return out
}

// storedWeights returns the weights of the changed model.
func (j *Job) storedWeights(l *weights.Layer, mat []float32, f study.Format) ([]float32, study.Cause, error) {
	switch {
	case f == study.OriginalFormat:
		return mat, "", nil
	case f == study.Int8 && l.Quant == nil && j.Model.Main().Nodes[l.Node].Op == "ConvTranspose":
		return QuantiseWeights(mat, l.Rows, l.Cols, study.Weight8, true), "", nil
	case f == study.Int8: // the same weights
		f = study.Weight8
	}
	m, effects, err := rewrite.Apply(j.Model, []rewrite.Change{{Layer: l, Change: study.Change{Format: f}, Matrix: mat}}, rewrite.Options{})
	if err != nil {
		return nil, "", err
	}
	if why := effects[0].Cause; why != "" {
		return nil, why, nil
	}
	if f == study.Dynamic8 { // its scale belongs to no weights in the changed model
		return QuantiseWeights(mat, l.Rows, l.Cols, f, true), "", nil
	}
	for _, c := range weights.Find(m, j.Shapes) {
		if c.ID == l.ID && c.Input == l.Input || c.Weight == l.Weight {
			if c.Rows == l.Rows && c.Cols == l.Cols {
				return c.Read(nil), "", nil
			}
		}
	}
	return QuantiseWeights(mat, l.Rows, l.Cols, f, false), "", nil
}

// formatPoint finds the point of a layer in another format. Points with 8-bit activations wait for
// a run.
func (j *Job) formatPoint(u *momentGroup, l *groupLayer, x *matrix, order *mask.Order, c study.Change, base float64) error {
	mat := append([]float32(nil), x.w...)
	if order != nil {
		order.Zero(mat, c.Level)
	}
	q, why, err := j.storedWeights(l.layer, mat, c.Format)
	if err != nil {
		why = study.NotRun
	}
	if (c.Format == study.Int8 && l.products[0].kind != lookup || c.Format == study.Dynamic8) && why == "" {
		l.waiting = append(l.waiting, pendingInt8{c, x.w, q, base, make([]float64, min(j.Data.Runs(), slots))})
		return nil
	}
	p := study.LossPoint{Layer: l.index, Change: c, Cause: why}
	switch {
	case why != "":
	case base <= 0:
		p.Cause = study.NotRun
	default:
		d := q
		for i, v := range x.w {
			d[i] -= v
		}
		y := &matrix{moments: u.m, w: d, rows: x.rows, sketch: l.sketch}
		e := sum(y.squaredOutputs(d)) / base
		// interval as for errors of few pruned weights
		lo, hi := y.errorIntervals(make([]uint16, len(d)), sketchLevels[:1], j.Seed)
		p.Value = metricValue(profile.Measured, e, j.Data.Len(), e*lo[0], e*hi[0], fmt.Sprintf("closed form from second moments of %d inputs; interval by resampling samples", u.m.n))
	}
	return j.Point(p)
}

// pendingInt8 is a change to 8-bit activations that waits for a run.
type pendingInt8 struct {
	change  study.Change
	w, q    []float32
	squares float64   // of the unchanged outputs
	errs    []float64 // by slot of runs
}

// int8Points finds the points of layers with 8-bit activations: one pass for the ranges that are
// fixed, another for the errors, computed with quantised activations.
func (j *Job) int8Points(ctx context.Context, us []*momentGroup) error {
	var some []*groupLayer
	var ids, taps []int
	for _, u := range us {
		for _, l := range u.layers {
			if len(l.waiting) == 0 {
				continue
			}
			some = append(some, l)
			fixed := slices.ContainsFunc(l.waiting, func(w pendingInt8) bool { return w.change.Format == study.Int8 })
			for _, p := range l.products {
				if fixed {
					ids = append(ids, p.data)
				}
				taps = append(taps, p.neededValues()...)
			}
		}
	}
	if len(some) == 0 {
		return nil
	}
	n := j.Data.Runs()
	var hs map[int]*histogram
	if len(ids) > 0 {
		var err error
		if hs, err = histograms(ctx, j.Model, j.Data, ids, j.Threads, func(run int) {
			j.progress(float64(run)/float64(2*n), "ranges of activations")
		}); err != nil {
			return err
		}
	}
	s := scratch{pool: j.pool}
	failed := make([]bool, len(some))
	err := runPass(ctx, j.Model, j.Data, taps, j.Threads, func(run int, v values) error {
		for i, l := range some {
			for _, w := range l.waiting {
				e, err := j.int8Error(l, &w, hs, v, &s)
				if err != nil {
					failed[i] = true
					break
				}
				w.errs[slotOf(run, n)] += e
			}
		}
		j.progress(0.5+float64(run)/float64(2*n), "8-bit activations")
		return nil
	})
	if err != nil {
		return err
	}
	for i, l := range some {
		for _, w := range l.waiting {
			p := study.LossPoint{Layer: l.index, Change: w.change}
			if w.squares > 0 && !failed[i] {
				v := sum(w.errs) / w.squares
				lo, hi := BootstrapInterval(len(w.errs), j.Seed, func(times []float32) float64 {
					t := 0.0
					for i, x := range w.errs {
						t += x * float64(times[i])
					}
					return t / w.squares
				})
				p.Value = metricValue(profile.Measured, v, j.Data.Len(), lo, hi, "computed with 8-bit activations; interval by resampling samples")
			} else {
				p.Cause = study.NotRun
			}
			if err := j.Point(p); err != nil {
				return err
			}
		}
		l.waiting = nil
	}
	return nil
}

// int8Error returns the squared error of a layer's outputs in a run with quantised data.
func (j *Job) int8Error(l *groupLayer, w *pendingInt8, hs map[int]*histogram, v values, s *scratch) (float64, error) {
	e := 0.0
	for _, p := range l.products {
		plain := &outputComparer{layer: l.layer, w: w.w, job: j}
		if err := p.gather(v, plain, s, nil); err != nil {
			return 0, err
		}
		change := func([]float32) {}
		if h := hs[p.data]; w.change.Format == study.Dynamic8 {
			change = quantiseDynamically
		} else if h != nil {
			if r, ok := h.rangeOf(j.Ranges); ok {
				change = affine(r).quantise
			}
		}
		with := &outputComparer{layer: l.layer, w: w.q, job: j, other: plain.all}
		if err := p.gather(v, with, s, change); err != nil {
			return 0, err
		}
		e += with.squared
	}
	return e, nil
}

// outputComparer is a sink that multiplies inputs with weights, and compares the products with
// those of another one.
type outputComparer struct {
	layer   *weights.Layer
	w       []float32
	job     *Job
	all     [][]float32
	other   [][]float32
	squared float64
}

func (o *outputComparer) planes(group int, x []float32, stride, n int) {
	o.multiply(group, x, stride, n, false)
}

func (o *outputComparer) rows(group int, x []float32, stride, n int) {
	o.multiply(group, x, stride, n, true)
}

func (o *outputComparer) multiply(group int, x []float32, stride, n int, byRow bool) {
	outs := o.layer.Rows / o.layer.Groups
	y := make([]float32, outs*n)
	p := gemm.Params{M: outs, N: n, K: o.layer.Cols, LDB: stride, TransB: byRow}
	gemm.Multiply(o.job.pool, p, o.w[group*outs*o.layer.Cols:], x, y)
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

package loss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Compensation has weights that compensate for a change, with the errors on the data.
type Compensation struct {
	// Matrix has the new weights, zero where the changed ones are.
	Matrix []float32
	// Bias is to be added to the outputs; nil where the change keeps the means.
	Bias []float32
	// Before and After are relative squared errors of the layer's outputs: of the change alone,
	// and with Matrix and Bias.
	Before, After float64
}

// damping is added to the diagonal of second moments, as a share of its mean, so that weights of
// rare inputs stay unchanged.
const damping = 0.01

// CompensateErrors compensates errors of changed weights (matrices by layer, in the order of
// [weights.Layer.Read]). It finds the weights whose outputs on data are nearest to the unchanged
// outputs, with the zeros of the changed ones: least squares over second moments of the inputs.
// With fixed the weights stay, as formats require, and only biases are found. A layer that is not
// linear in its weights, or did not run, has no entry in the result.
func CompensateErrors(ctx context.Context, m *graph.Model, layers []*weights.Layer, changed [][]float32, fixed bool, data *samples.Set, threads, maxBytes int, progress func(share float64, doing string)) (map[int]*Compensation, error) {
	if len(layers) != len(changed) {
		return nil, errors.New("expected a matrix for each layer")
	}
	j := &Job{Model: m, Layers: layers, Data: data, Threads: threads, MaxBytes: maxBytes, Progress: progress}
	j.Settings.Changes = []study.Change{{}} // one change, so that every layer is included
	j.Point = func(study.LossPoint) error { return nil }
	j.pool = workers.New(max(threads, 1), nil)
	defer j.pool.Close()
	blocks, _, err := j.momentGroups()
	if err != nil {
		return nil, err
	}
	out := map[int]*Compensation{}
	for i, b := range blocks {
		if err := j.collectMoments(ctx, b, false, float64(i)/float64(len(blocks)), 1/float64(len(blocks))); err != nil {
			return nil, err
		}
		for _, u := range b {
			for _, l := range u.layers {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if u.failed != nil || changed[l.index] == nil {
					continue
				}
				if n := l.layer.Rows * l.layer.Cols; len(changed[l.index]) != n {
					return nil, fmt.Errorf("layer %q: %d weights, want %d", l.layer.Name, len(changed[l.index]), n)
				}
				j.progress((float64(i)+0.8)/float64(len(blocks)), "%s", l.layer.Name)
				out[l.index] = j.compensateLayer(u, l, changed[l.index], fixed)
			}
			u.m = nil
		}
	}
	return out, nil
}

// compensateLayer finds the weights of one layer.
func (j *Job) compensateLayer(u *momentGroup, l *groupLayer, changed []float32, fixed bool) *Compensation {
	w := l.layer.Read(nil)
	x := newMatrix(u.m, w, l.layer.Rows)
	base := u.energyOf(x, l)
	if base <= 0 {
		return nil
	}
	delta := minus(changed, w)
	before := x.squaredOutputs(delta)
	c := &Compensation{Matrix: slices.Clone(changed), Before: sum(before) / base}
	after := before
	if !fixed && !u.m.indexInputs && (!u.m.keepInputs || u.m.cols <= 4096) {
		next := x.solve(changed)
		errs := x.squaredOutputs(minus(next, w))
		after = slices.Clone(before)
		for r := range x.rows {
			if errs[r] < before[r] {
				copy(c.Matrix[r*x.cols:(r+1)*x.cols], next[r*x.cols:])
				after[r] = errs[r]
			}
		}
	}
	c.After = sum(after) / base
	c.Bias, c.After = x.biasCorrection(minus(c.Matrix, w), after, base)
	return c
}

func minus(a, b []float32) []float32 {
	out := make([]float32, len(a))
	for i, v := range a {
		out[i] = v - b[i]
	}
	return out
}

// biasCorrection returns the biases that restore the means of the outputs, and the remaining
// error. errs are the errors by row.
func (x *matrix) biasCorrection(delta []float32, errs []float64, base float64) (bias []float32, after float64) {
	outs := x.rows / x.groups
	n := float64(max(x.n, 1))
	bias = make([]float32, x.rows)
	some := false
	for r := range x.rows {
		mean := 0.0
		for c, d := range delta[r*x.cols:][:x.cols] {
			mean += float64(d) * x.total[r/outs*x.cols+c]
		}
		mean /= n
		bias[r] = float32(-mean)
		some = some || bias[r] != 0
		// The remaining error is the variance.
		after += max(errs[r]-n*mean*mean, 0)
	}
	if !some {
		bias = nil
	}
	return bias, after / base
}

// rounds bounds the iterations of the solver. A row ends earlier when its residual is a
// thousandth.
const rounds = 60

// solve finds for every row the weights, with the zeros of changed, whose outputs are nearest to
// those of the unchanged weights. It runs conjugate gradients on all rows at once, with a
// diagonal (Jacobi) preconditioner, on G with damping.
func (x *matrix) solve(changed []float32) []float32 {
	out := slices.Clone(changed)
	outs, d := x.rows/x.groups, x.cols
	var sq []float32
	for g := range x.groups {
		sq = x.momentMatrix(g, sq)
		mean := 0.0
		for i := range d {
			mean += float64(sq[i*d+i])
		}
		mean /= float64(d)
		if mean == 0 {
			continue
		}
		for i := range d {
			sq[i*d+i] += float32(damping * mean)
		}
		lo := g * outs * d
		s := &solver{matrix: x, sq: sq, n: outs, w: x.w[lo : lo+outs*d], v: out[lo : lo+outs*d]}
		s.run()
	}
	return out
}

// solver solves the rows of a group.
type solver struct {
	*matrix
	sq   []float32
	n    int
	w, v []float32 // target weights, and current solution
}

func (s *solver) run() {
	d := s.cols
	keep := make([]bool, len(s.v))
	for i, v := range s.v {
		keep[i] = v != 0
	}
	size := len(s.v)
	// r is the residual of G·(w-v) where weights may change, p the search direction.
	r, p, q := make([]float32, size), make([]float32, size), make([]float32, size)
	s.times(minus(s.w, s.v), r)
	rz, first := make([]float64, s.n), make([]float64, s.n)
	z := func(i int) float64 { return float64(r[i]) / float64(s.sq[i%d*d+i%d]) }
	for i := range r {
		if !keep[i] {
			r[i] = 0
			continue
		}
		p[i] = float32(z(i))
		rz[i/d] += float64(r[i]) * z(i)
	}
	copy(first, rz)
	for range rounds {
		s.times(p, q)
		open := false
		for row := range s.n {
			if rz[row] <= 1e-6*first[row] || rz[row] <= 0 {
				continue
			}
			open = true
			a, b := row*d, row*d+d
			pq := 0.0
			for i := a; i < b; i++ {
				if keep[i] {
					pq += float64(p[i]) * float64(q[i])
				}
			}
			if !(pq > 0) {
				rz[row] = 0
				continue
			}
			alpha := rz[row] / pq
			next := 0.0
			for i := a; i < b; i++ {
				if !keep[i] {
					continue
				}
				s.v[i] += float32(alpha * float64(p[i]))
				r[i] -= float32(alpha * float64(q[i]))
				next += float64(r[i]) * z(i)
			}
			beta := next / rz[row]
			if math.IsNaN(beta) || math.IsInf(beta, 0) {
				rz[row] = 0
				continue
			}
			for i := a; i < b; i++ {
				if keep[i] {
					p[i] = float32(z(i) + beta*float64(p[i]))
				}
			}
			rz[row] = next
		}
		if !open {
			return
		}
	}
}

// times multiplies rows with the moment matrix.
func (s *solver) times(v, out []float32) {
	gemm.Multiply(s.pool, gemm.Params{M: s.n, N: s.cols, K: s.cols}, v, s.sq, out)
}

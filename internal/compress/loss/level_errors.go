package loss

import (
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// matrix is the weights of a layer with the moments of its inputs.
type matrix struct {
	*moments
	w    []float32 // rows by cols
	rows int
	// rowSquares has the sum of squared outputs of each row, without bias.
	rowSquares []float64
	sketch     *sketch // nil for none
	// flat has the energy of all slots.
	flat []float32
	// sq is the moment matrix of group cachedGroup-1.
	sq          []float32
	cachedGroup int
}

// groupMatrix returns the moment matrix of a group.
func (x *matrix) groupMatrix(group int) []float32 {
	if x.cachedGroup != group+1 {
		x.sq, x.cachedGroup = x.momentMatrix(group, x.sq), group+1
	}
	return x.sq
}

// newMatrix computes the squares of the outputs.
func newMatrix(m *moments, w []float32, rows int) *matrix {
	x := &matrix{moments: m, w: w, rows: rows}
	x.rowSquares = x.squaredOutputs(w)
	return x
}

// squaredOutputs returns the sum of squared outputs of each row d of a matrix: d·G·dᵀ.
func (x *matrix) squaredOutputs(d []float32) []float64 {
	out := make([]float64, x.rows)
	outs := x.rows / x.groups
	var v []float32
	diag := []float64(nil)
	if x.indexInputs {
		diag = x.diagonal()
	}
	for g := range x.groups {
		part := d[g*outs*x.cols:][:outs*x.cols]
		switch {
		case x.indexInputs:
			for r := range outs {
				out[g*outs+r] = weightedSquares(part[r*x.cols:][:x.cols], diag)
			}
		case x.keepInputs:
			in, n := x.inputs(g)
			v = grow(&v, outs*n)
			gemm.Multiply(x.pool, gemm.Params{M: outs, N: n, K: x.cols}, part, in, v)
			for r := range outs {
				out[g*outs+r] = dot64(v[r*n:][:n], v[r*n:][:n])
			}
		default:
			sq := x.groupMatrix(g)
			v = grow(&v, outs*x.cols)
			gemm.Multiply(x.pool, gemm.Params{M: outs, N: x.cols, K: x.cols}, part, sq, v)
			for r := range outs {
				out[g*outs+r] = max(0, dot64(v[r*x.cols:][:x.cols], part[r*x.cols:]))
			}
		}
	}
	return out
}

func dot64(a, b []float32) float64 {
	s := 0.0
	for i, v := range a {
		s += float64(v) * float64(b[i])
	}
	return s
}

// weightedSquares is the weighted sum of squares.
func weightedSquares(v []float32, by []float64) float64 {
	s := 0.0
	for i, x := range v {
		if x != 0 && by[i] != 0 {
			s += float64(x) * float64(x) * by[i]
		}
	}
	return s
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}

// levelErrors returns the squared error of the layer's output at each level.
func (x *matrix) levelErrors(fall []uint16, levels int) []float64 {
	per := make([]float64, x.rows*levels)
	outs := x.rows / x.groups
	var diag []float64
	if x.indexInputs {
		diag = x.diagonal()
	}
	var sq []float32
	large, grain := x.cols*x.cols >= minTiledElements, 1
	if large {
		grain = tileRows
	}
	out := make([]float64, levels)
	for g := range x.groups {
		lo := g * outs
		var in []float32
		n := 0
		switch {
		case x.keepInputs:
			in, n = x.inputs(g)
		case !x.indexInputs:
			sq = x.groupMatrix(g)
		}
		if outs >= 4 && !x.indexInputs && x.sameOrderInRows(fall, lo, outs) {
			if f := fall[lo*x.cols:][:x.cols]; x.keepInputs {
				x.errorsByColumnFromInputs(out, in, n, f, lo, outs)
			} else {
				x.errorsByColumn(out, sq, f, lo, outs)
			}
			continue
		}
		x.pool.For(outs, grain, func(from, to int) {
			r := newRow(x.cols, levels)
			var rest []int
			for i := lo + from; i < lo+to; i++ {
				w, f, q := x.w[i*x.cols:][:x.cols], fall[i*x.cols:][:x.cols], per[i*levels:][:levels]
				switch {
				case prunedAtOnce(f):
					for k := int(f[0]); k < levels; k++ {
						q[k] = x.rowSquares[i]
					}
				case x.indexInputs:
					r.fromCounts(q, w, f, diag)
				case x.keepInputs:
					r.sortByLevel(f)
					r.fromInputs(q, w, in, n)
				case large:
					rest = append(rest, i)
				default:
					r.sortByLevel(f)
					r.fromMoments(q, w, sq)
				}
			}
			x.tiledErrors(per, sq, fall, rest, levels)
		})
	}
	for r := range x.rows {
		for k, v := range per[r*levels:][:levels] {
			out[k] += v
		}
	}
	return out
}

// prunedAtOnce reports whether all weights are pruned at the same level.
func prunedAtOnce(f []uint16) bool {
	for _, k := range f {
		if k != f[0] {
			return false
		}
	}
	return len(f) > 0
}

// sameOrderInRows reports whether all rows of a group are pruned in the same order.
func (x *matrix) sameOrderInRows(fall []uint16, lo, outs int) bool {
	first := fall[lo*x.cols:][:x.cols]
	for r := lo + 1; r < lo+outs; r++ {
		for c, k := range fall[r*x.cols:][:x.cols] {
			if k != first[c] {
				return false
			}
		}
	}
	return true
}

// errorsByColumn adds the errors of rows with the same pruning order: every pair of columns
// counts from the level on at which both are pruned.
func (x *matrix) errorsByColumn(out []float64, sq []float32, f []uint16, lo, outs int) {
	d := x.cols
	w := x.w[lo*d:][:outs*d]
	h := make([]float32, d*d)
	gemm.Multiply(x.pool, gemm.Params{M: d, N: d, K: outs, TransA: true}, w, w, h)
	step := make([]float64, len(out)+1)
	for i := range d {
		fi := f[i]
		if int(fi) == len(out) {
			continue
		}
		a, b := h[i*d:][:i+1], sq[i*d:][:i+1]
		for j, v := range a {
			twice := 2.0
			if i == j {
				twice = 1
			}
			step[max(fi, f[j])] += twice * float64(v) * float64(b[j])
		}
	}
	s := 0.0
	for k := range out {
		s += step[k]
		out[k] += max(s, 0)
	}
}

// errorsByColumnFromInputs does the same with the inputs, columns by n: the columns of a level
// add to all outputs.
func (x *matrix) errorsByColumnFromInputs(out []float64, in []float32, n int, f []uint16, lo, outs int) {
	r := newRow(x.cols, len(out))
	r.sortByLevel(f)
	y, each := make([]float32, outs*n), make([]float64, outs)
	var w, some []float32
	e := 0.0
	for k := range out {
		columns := r.order[r.at[k]:r.at[k+1]]
		if m := len(columns); m > 0 {
			w, some = grow(&w, outs*m), grow(&some, m*n)
			for i, c := range columns {
				copy(some[i*n:(i+1)*n], in[int(c)*n:])
			}
			for o := range outs {
				from, to := x.w[(lo+o)*x.cols:][:x.cols], w[o*m:][:m]
				for i, c := range columns {
					to[i] = from[c]
				}
			}
			gemm.Multiply(x.pool, gemm.Params{M: outs, N: n, K: m, Accumulate: true}, w, some, y)
			x.pool.For(outs, max(1, 1<<14/n), func(from, to int) {
				for o := from; o < to; o++ {
					each[o] = float64(vectors.Dot(y[o*n:][:n], y[o*n:][:n]))
				}
			})
			e = sum(each)
		}
		out[k] += e
	}
}

// rowErrors computes the errors of one row.
type rowErrors struct {
	levels int
	delta  []float32
	order  []uint32 // columns in pruning order
	at     []uint32 // start of each level
	next   []uint32
	sum    vectors.Sum
	// from and by are the offsets of column inputs and their weights, in that order; now and step
	// are outputs.
	from      []int
	by        []float32
	now, step []float32
}

func newRow(cols, levels int) *rowErrors {
	return &rowErrors{levels: levels, delta: make([]float32, cols), order: make([]uint32, cols), at: make([]uint32, levels+2)}
}

func (r *rowErrors) sortByLevel(f []uint16) {
	clear(r.at)
	for _, k := range f {
		r.at[k+1]++
	}
	for k := range r.levels + 1 {
		r.at[k+1] += r.at[k]
	}
	r.next = append(r.next[:0], r.at...)
	for c, k := range f {
		r.order[r.next[k]] = uint32(c)
		r.next[k]++
	}
}

// fromMoments computes the errors level by level from the moment matrix, eight columns at a time.
func (r *rowErrors) fromMoments(out []float64, w, sq []float32) {
	clear(r.delta)
	d := len(w)
	q := 0.0
	k := 0
	last := int(r.at[r.levels])
	var sums, fell [8]float32
	var from [8]int
	for i := 0; i < last; i += 8 {
		cs := r.order[i:min(i+8, last)]
		for x, c := range cs {
			from[x] = int(c) * d
		}
		vectors.Dots(sums[:], r.delta, sq, from[:]) // excess sums are of earlier columns
		for x, c := range cs {
			for i+x >= int(r.at[k+1]) {
				out[k] = max(q, 0)
				k++
			}
			// Add products with columns pruned before these eight, and with those among them.
			row, s := sq[from[x]:][:d], sums[x]
			for y, e := range cs[:x] {
				s += fell[y] * row[e]
			}
			v := w[c]
			fell[x] = v
			q += float64(v) * (2*float64(s) + float64(v)*float64(row[c]))
		}
		for _, c := range cs {
			r.delta[c] = w[c]
		}
	}
	for ; k < r.levels; k++ {
		out[k] = max(q, 0)
	}
}

// fromInputs does the same from the inputs: columns by n.
func (r *rowErrors) fromInputs(out []float64, w, in []float32, n int) {
	y, t := grow(&r.now, n), grow(&r.step, n)
	clear(y)
	r.from, r.by = r.from[:0], r.by[:0]
	for _, c := range r.order[:r.at[r.levels]] {
		r.from, r.by = append(r.from, int(c)*n), append(r.by, w[c])
	}
	q := 0.0
	for k := range r.levels {
		if lo, hi := r.at[k], r.at[k+1]; lo < hi {
			r.sum.Of(t, in, r.from[lo:hi], r.by[lo:hi])
			for i, v := range t {
				y[i] += v
			}
			q = float64(vectors.Dot(y, y))
		}
		out[k] = q
	}
}

// fromCounts does the same for index inputs.
func (r *rowErrors) fromCounts(out []float64, w []float32, f []uint16, diag []float64) {
	for c, k := range f {
		if int(k) < r.levels {
			out[k] += float64(w[c]) * float64(w[c]) * diag[c]
		}
	}
	for k := 1; k < r.levels; k++ {
		out[k] += out[k-1]
	}
}

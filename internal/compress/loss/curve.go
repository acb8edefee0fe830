package loss

import (
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// matrix is the weights of a layer with the moments of its inputs.
type matrix struct {
	*moments
	w    []float32 // rows by cols
	rows int
	// whole has for each row the sum of squares of its outputs, without bias.
	whole  []float64
	sketch *sketch // nil for none
	// flat has the energy of all slots.
	flat []float32
	// sq is the square of a group, one more than its number.
	sq   []float32
	have int
}

// squareOf is the matrix of a group.
func (x *matrix) squareOf(group int) []float32 {
	if x.have != group+1 {
		x.sq, x.have = x.square(group, x.sq), group+1
	}
	return x.sq
}

// newMatrix computes the outputs' squares.
func newMatrix(m *moments, w []float32, rows int) *matrix {
	x := &matrix{moments: m, w: w, rows: rows}
	x.whole = x.each(w)
	return x
}

// each is for each row d of a matrix the squares of its products with the inputs: d·G·dᵀ.
func (x *matrix) each(d []float32) []float64 {
	out := make([]float64, x.rows)
	outs := x.rows / x.groups
	var v []float32
	diag := []float64(nil)
	if x.counts {
		diag = x.diagonal()
	}
	for g := range x.groups {
		part := d[g*outs*x.cols:][:outs*x.cols]
		switch {
		case x.counts:
			for r := range outs {
				out[g*outs+r] = weighted(part[r*x.cols:][:x.cols], diag)
			}
		case x.kept:
			in, n := x.inputs(g)
			v = grown(&v, outs*n)
			kernel.Gemm(x.pool, kernel.GemmParams{M: outs, N: n, K: x.cols}, part, in, v)
			for r := range outs {
				out[g*outs+r] = dot64(v[r*n:][:n], v[r*n:][:n])
			}
		default:
			sq := x.squareOf(g)
			v = grown(&v, outs*x.cols)
			kernel.Gemm(x.pool, kernel.GemmParams{M: outs, N: x.cols, K: x.cols}, part, sq, v)
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

// weighted is the sum of squares with weights.
func weighted(v []float32, by []float64) float64 {
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

// errors is the squared error of the layer's output at each level.
func (x *matrix) errors(fall []uint16, levels int) []float64 {
	per := make([]float64, x.rows*levels)
	outs := x.rows / x.groups
	var diag []float64
	if x.counts {
		diag = x.diagonal()
	}
	var sq []float32
	large, grain := x.cols*x.cols >= tiledAt, 1
	if large {
		grain = tileRows
	}
	out := make([]float64, levels)
	for g := range x.groups {
		lo := g * outs
		var in []float32
		n := 0
		switch {
		case x.kept:
			in, n = x.inputs(g)
		case !x.counts:
			sq = x.squareOf(g)
		}
		if outs >= 4 && !x.counts && x.byColumn(fall, lo, outs) {
			if f := fall[lo*x.cols:][:x.cols]; x.kept {
				x.keptChannels(out, in, n, f, lo, outs)
			} else {
				x.channels(out, sq, f, lo, outs)
			}
			continue
		}
		x.pool.For(outs, grain, func(from, to int) {
			r := newRow(x.cols, levels)
			var rest []int
			for i := lo + from; i < lo+to; i++ {
				w, f, q := x.w[i*x.cols:][:x.cols], fall[i*x.cols:][:x.cols], per[i*levels:][:levels]
				switch {
				case single(f):
					for k := int(f[0]); k < levels; k++ {
						q[k] = x.whole[i]
					}
				case x.counts:
					r.counted(q, w, f, diag)
				case x.kept:
					r.sort(f)
					r.kept(q, w, in, n)
				case large:
					rest = append(rest, i)
				default:
					r.sort(f)
					r.squared(q, w, sq)
				}
			}
			x.tiled(per, sq, fall, rest, levels)
		})
	}
	for r := range x.rows {
		for k, v := range per[r*levels:][:levels] {
			out[k] += v
		}
	}
	return out
}

// single reports whether all weights fall at once.
func single(f []uint16) bool {
	for _, k := range f {
		if k != f[0] {
			return false
		}
	}
	return len(f) > 0
}

// byColumn reports whether the rows of a group fall alike.
func (x *matrix) byColumn(fall []uint16, lo, outs int) bool {
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

// channels adds the errors of rows that fall alike: every pair of columns counts from the level on at which both
// have fallen.
func (x *matrix) channels(out []float64, sq []float32, f []uint16, lo, outs int) {
	d := x.cols
	w := x.w[lo*d:][:outs*d]
	h := make([]float32, d*d)
	kernel.Gemm(x.pool, kernel.GemmParams{M: d, N: d, K: outs, TransA: true}, w, w, h)
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

// keptChannels does the same with the inputs, columns by n: the columns of a level add to all outputs.
func (x *matrix) keptChannels(out []float64, in []float32, n int, f []uint16, lo, outs int) {
	r := newRow(x.cols, len(out))
	r.sort(f)
	y, each := make([]float32, outs*n), make([]float64, outs)
	var w, some []float32
	e := 0.0
	for k := range out {
		columns := r.order[r.at[k]:r.at[k+1]]
		if m := len(columns); m > 0 {
			w, some = grown(&w, outs*m), grown(&some, m*n)
			for i, c := range columns {
				copy(some[i*n:(i+1)*n], in[int(c)*n:])
			}
			for o := range outs {
				from, to := x.w[(lo+o)*x.cols:][:x.cols], w[o*m:][:m]
				for i, c := range columns {
					to[i] = from[c]
				}
			}
			kernel.Gemm(x.pool, kernel.GemmParams{M: outs, N: n, K: m, Accumulate: true}, w, some, y)
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

// row computes the errors of one row.
type row struct {
	levels int
	delta  []float32
	order  []uint32 // columns in the order in which they fall
	at     []uint32 // where each level begins
	next   []uint32
	sum    vectors.Sum
	// from and by are where the inputs of columns begin and their weights, in that order; now and step are outputs.
	from      []int
	by        []float32
	now, step []float32
}

func newRow(cols, levels int) *row {
	return &row{levels: levels, delta: make([]float32, cols), order: make([]uint32, cols), at: make([]uint32, levels+2)}
}

func (r *row) sort(f []uint16) {
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

// squared goes from level to level by the matrix of second moments, eight columns at a time.
func (r *row) squared(out []float64, w, sq []float32) {
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
		vectors.Dots(sums[:], r.delta, sq, from[:]) // what is too much is of places before
		for x, c := range cs {
			for i+x >= int(r.at[k+1]) {
				out[k] = max(q, 0)
				k++
			}
			// With those that fell before these eight, and with those among them.
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

// kept does the same with the inputs: columns by n.
func (r *row) kept(out []float64, w, in []float32, n int) {
	y, t := grown(&r.now, n), grown(&r.step, n)
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

// counted does it where inputs are indices.
func (r *row) counted(out []float64, w []float32, f []uint16, diag []float64) {
	for c, k := range f {
		if int(k) < r.levels {
			out[k] += float64(w[c]) * float64(w[c]) * diag[c]
		}
	}
	for k := 1; k < r.levels; k++ {
		out[k] += out[k-1]
	}
}

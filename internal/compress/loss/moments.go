package loss

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// moments are sums over the inputs of a layer, group by group: of products of two columns, of columns, and for each
// run of squares.
type moments struct {
	groups, cols int
	pool         *workers.Pool
	// kept says that the inputs themselves are kept, since there are fewer than columns; counts that they are
	// indices, of which only squares are known.
	kept, counts bool
	// squares says that only energy is asked for.
	squares bool

	// sum has the products of columns i >= j of a group at i*(i+1)/2+j.
	sum [][]float64
	// part is what is not added to sum yet, rows of which the lower triangle counts, and of how many inputs.
	part    []float32
	pending int
	// few gathers inputs of runs that have few, row by row.
	few   []float32
	fewIn int // group
	// adder and some add rows.
	adder vectors.Sum
	some  []float32
	// columns gathers the same of inputs that come by columns, waits of them.
	columns []float32
	waits   int
	// lag has the channels of a depthwise convolution.
	lag *lags
	// shifts has the lines of a convolution.
	shifts *shifts
	// sketches follow how the errors of each layer differ between samples; nil where that is not asked for.
	sketches []*sketch
	// chunks are the inputs, a column a row, and in the end those of a group together.
	chunks []chunk

	// total are the sums of columns, energy those of their squares by slot of runs, of all groups.
	total  []float64
	energy [][]float32
	slot   []float32 // the current one
	run    int       // the current one, of runs
	runs   int
	n      int // inputs of a group
}

// chunk is inputs of a group: columns by n.
type chunk struct {
	group, n int
	x        []float32
}

// flushAt bounds the inputs that are summed in single precision, in blocks of a few hundred.
const flushAt = 1 << 13

func newMoments(groups, cols int, pool *workers.Pool) *moments {
	return &moments{groups: groups, cols: cols, pool: pool, total: make([]float64, groups*cols)}
}

// begin starts a run, whose squares are added to those of a slot.
func (m *moments) begin(slot int) {
	for slot >= len(m.energy) {
		m.energy = append(m.energy, make([]float32, m.groups*m.cols))
	}
	m.slot = m.energy[slot]
	m.run++
}

// enough is the number of positions above which not every line of them is taken, but lines that are spread over
// the samples. Squared errors of positions differ by a few times their mean; the mean over so many is within about 1 % of that
// of all for one output if each is on its own, and closer for outputs together and for neighbours, which are alike.
const enough = 1 << 16

// lines says which lines of positions are taken in the current run: every step-th from first on.
func (m *moments) lines(g *geometry, batch int) (first, step int) {
	step = min(max(1, g.outputs*batch*m.runs/enough), g.lines())
	// Neighbouring runs take lines far from each other.
	return m.run * (step/2 + 1) % step, step
}

// ready makes room for sums.
func (m *moments) ready() {
	if m.sum != nil || m.squares || m.kept {
		return
	}
	m.sum = make([][]float64, m.groups)
	for g := range m.sum {
		m.sum[g] = make([]float64, m.cols*(m.cols+1)/2)
	}
}

// planes adds n inputs of a group, a column a row of x. Rows are stride apart.
func (m *moments) planes(group int, x []float32, stride, n int) {
	m.ready()
	for _, s := range m.sketches {
		s.planes(group, x, stride, n)
	}
	m.linear(group, x, stride, n)
	switch {
	case m.squares:
	case m.kept:
		m.keep(group, x, stride, n)
	case m.cols <= smallCols:
		m.dots(group, x, stride, n)
	case n < 32 || n <= waitAt/4 && n < m.cols/4:
		m.settle(group)
		m.wait(x, stride, n)
	default:
		m.settle(group)
		m.triangle(x, stride, n, false)
		m.count(group, n)
	}
}

// rows adds n inputs of a group, an input a row of x. Rows are stride apart.
func (m *moments) rows(group int, x []float32, stride, n int) {
	m.ready()
	for _, s := range m.sketches {
		s.rows(group, x, stride, n)
	}
	if m.sum == nil {
		e := m.slot[group*m.cols:][:m.cols]
		for i := range n {
			for c, v := range x[i*stride:][:m.cols] {
				e[c] += v * v
			}
		}
	}
	m.add(m.total[group*m.cols:][:m.cols], x, stride, n)
	if group == 0 {
		m.n += n
	}
	switch {
	case m.squares:
	case m.kept:
		t := make([]float32, n*m.cols)
		move.Transpose(t, n, x, stride, m.cols, n)
		m.chunks = append(m.chunks, chunk{group, n, t})
	case n < 32 && m.cols > smallCols:
		m.settle(group)
		for i := range n {
			m.few = append(m.few, x[i*stride:][:m.cols]...)
		}
		m.gathered()
	case m.cols <= smallCols:
		t := make([]float32, n*m.cols)
		move.Transpose(t, n, x, stride, m.cols, n)
		m.dots(group, t, n, n)
	default:
		m.settle(group)
		m.triangle(x, stride, n, true)
		m.count(group, n)
	}
}

// add adds rows to sums of columns: as many as are summed in single precision at once.
func (m *moments) add(total []float64, x []float32, stride, n int) {
	const most = 256
	some := grown(&m.some, m.cols)
	var from [most]int
	for i := range min(n, most) {
		from[i] = i * stride
	}
	for lo := 0; lo < n; lo += most {
		k := min(most, n-lo)
		m.adder.Of(some, x[lo*stride:], from[:k], ones(k))
		for c, v := range some {
			total[c] += float64(v)
		}
	}
}

// smallCols is the number of columns up to which products are computed one by one.
const smallCols = 28

// linear adds to the sums of columns and squares.
func (m *moments) linear(group int, x []float32, stride, n int) {
	e := m.slot[group*m.cols:][:m.cols]
	total := m.total[group*m.cols:][:m.cols]
	one := ones(n)
	m.pool.For(m.cols, max(1, 1<<14/n), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			row := x[c*stride:][:n]
			if m.sum == nil {
				e[c] += vectors.Dot(row, row)
			}
			total[c] += float64(vectors.Dot(row, one))
		}
	})
	if group == 0 {
		m.n += n
	}
}

var allOnes = slices.Repeat([]float32{1}, 1<<16)

func ones(n int) []float32 {
	if n <= len(allOnes) {
		return allOnes[:n]
	}
	return slices.Repeat([]float32{1}, n)
}

// waitAt is the number of inputs at which gathered columns are multiplied: products of many columns with few inputs would take their
// time for loading and storing sums.
const waitAt = 256

// wait gathers n inputs, columns, of which there are few.
func (m *moments) wait(x []float32, stride, n int) {
	if m.waits+n > waitAt {
		m.waited()
	}
	if m.columns == nil {
		m.columns = make([]float32, m.cols*waitAt)
	}
	for c := range m.cols {
		copy(m.columns[c*waitAt+m.waits:][:n], x[c*stride:])
	}
	m.waits += n
}

// waited multiplies the gathered columns.
func (m *moments) waited() {
	n := m.waits
	m.waits = 0
	m.triangle(m.columns, waitAt, n, false)
	m.count(m.fewIn, n)
}

// keep copies inputs.
func (m *moments) keep(group int, x []float32, stride, n int) {
	t := make([]float32, n*m.cols)
	for c := range m.cols {
		copy(t[c*n:(c+1)*n], x[c*stride:])
	}
	m.chunks = append(m.chunks, chunk{group, n, t})
}

// dots adds the products of few columns.
func (m *moments) dots(group int, x []float32, stride, n int) {
	sum := m.sum[group]
	at := 0
	var some [smallCols]float32
	var from [smallCols]int
	for i := range m.cols {
		from[i] = i * stride
		many := i + 1
		if many > 2 {
			many = max(many, 8) // which are computed together
		}
		vectors.Dots(some[:many], x[i*stride:][:n], x, from[:many])
		for _, v := range some[:i+1] {
			sum[at] += float64(v)
			at++
		}
	}
}

// settle adds what belongs to another group.
func (m *moments) settle(group int) {
	if group != m.fewIn {
		m.flush()
		m.fewIn = group
	}
}

// gathered computes with the gathered inputs where they are enough.
func (m *moments) gathered() {
	if len(m.few) >= 256*m.cols {
		m.flush()
	}
}

func (m *moments) count(group, n int) {
	m.pending += n
	if m.pending >= flushAt || m.groups > 1 {
		m.flush()
	}
}

// flush adds what is pending to the sums.
func (m *moments) flush() {
	if n := len(m.few) / max(m.cols, 1); n > 0 {
		m.triangle(m.few, m.cols, n, true)
		m.few = m.few[:0]
		m.pending += n
	}
	if n := m.waits; n > 0 {
		m.waits = 0
		m.triangle(m.columns, waitAt, n, false)
		m.pending += n
	}
	if m.pending == 0 {
		return
	}
	sum := m.sum[m.fewIn]
	m.pool.For(m.cols, 16, func(lo, hi int) {
		at := lo * (lo + 1) / 2
		for i := lo; i < hi; i++ {
			row := m.part[i*m.pitch():][:m.pitch()]
			for j, v := range row[:i+1] {
				sum[at+j] += float64(v)
			}
			clear(row)
			at += i + 1
		}
	})
	m.pending = 0
}

// triangle adds products of columns to part: of n inputs, which are the columns of x, or where byRow its rows.
func (m *moments) triangle(x []float32, stride, n int, byRow bool) {
	if m.part == nil {
		m.part = make([]float32, m.cols*m.pitch())
	}
	kernel.Syrk(m.pool, m.cols, n, x, stride, byRow, m.part, m.pitch())
}

// pitch is the length of a row of part.
func (m *moments) pitch() int {
	return (m.cols + kernel.SyrkStride - 1) / kernel.SyrkStride * kernel.SyrkStride
}

// done ends the sums.
func (m *moments) done() {
	if m.sum != nil && (m.pending > 0 || len(m.few) > 0 || m.waits > 0) {
		m.flush()
	}
	if m.lag != nil {
		m.lag.done(m)
	}
	if m.shifts != nil {
		m.shifts.done(m)
	}
	if m.kept {
		m.join()
	}
	m.part, m.few, m.columns, m.lag, m.shifts = nil, nil, nil, nil, nil
}

// square is the matrix of a group in single precision, in full.
func (m *moments) square(group int, dst []float32) []float32 {
	d := m.cols
	if cap(dst) < d*d {
		dst = make([]float32, d*d)
	}
	dst = dst[:d*d]
	if m.kept {
		x, n := m.inputs(group)
		kernel.Gemm(m.pool, kernel.GemmParams{M: d, N: d, K: n, TransB: true}, x, x, dst)
		return dst
	}
	sum := m.sum[group]
	for i := range d {
		row := dst[i*d:][:i+1]
		for j, v := range sum[i*(i+1)/2:][:i+1] {
			row[j] = float32(v)
		}
	}
	const tile = 16
	for r := 0; r < d; r += tile {
		for c := 0; c <= r; c += tile {
			for i := r; i < min(r+tile, d); i++ {
				for j, v := range dst[i*d+c:][:min(tile, i-c)] {
					dst[(c+j)*d+i] = v
				}
			}
		}
	}
	return dst
}

// diagonal is the sum over runs of the squares of columns, of all groups.
func (m *moments) diagonal() []float64 {
	out := make([]float64, m.groups*m.cols)
	if m.sum != nil {
		for g, sum := range m.sum {
			for c := range m.cols {
				out[g*m.cols+c] = sum[c*(c+1)/2+c]
			}
		}
		return out
	}
	for _, e := range m.energy {
		for i, v := range e {
			out[i] += float64(v)
		}
	}
	return out
}

// means are those of the squares of columns, of all groups; nil where one is no number.
func (m *moments) means() []float32 {
	diag := m.diagonal()
	out := make([]float32, len(diag))
	for i, v := range diag {
		out[i] = float32(v / float64(max(m.n, 1)))
		if x := float64(out[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return out
}

// inputs are the kept inputs of a group, after done: columns by n.
func (m *moments) inputs(group int) (x []float32, n int) {
	c := m.chunks[group]
	return c.x, c.n
}

// join puts the kept inputs of each group together.
func (m *moments) join() {
	joined := make([]chunk, m.groups)
	for _, c := range m.chunks {
		joined[c.group].n += c.n
	}
	for g := range joined {
		joined[g].x = make([]float32, m.cols*joined[g].n)
	}
	at := make([]int, m.groups)
	for _, c := range m.chunks {
		to := &joined[c.group]
		for i := range m.cols {
			copy(to.x[i*to.n+at[c.group]:], c.x[i*c.n:][:c.n])
		}
		at[c.group] += c.n
	}
	m.chunks = joined
}

// momentBytes is the memory that sums of so many columns take.
func momentBytes(groups, cols int) int { return groups*cols*(cols+1)/2*8 + cols*cols*8 }

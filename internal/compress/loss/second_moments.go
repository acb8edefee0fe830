package loss

import (
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// moments are sums over the inputs of a layer, group by group: of products of two columns, of
// columns, and per run of squares.
type moments struct {
	groups, cols int
	pool         *workers.Pool
	// keepInputs says that the inputs themselves are stored, since there are fewer of them than
	// columns. indexInputs says that they are indices, for which only squares are known.
	keepInputs, indexInputs bool
	// squaresOnly says that only energy is needed.
	squaresOnly bool

	// sum has the products of columns i >= j of a group at i*(i+1)/2+j.
	sum [][]float64
	// part has the lower triangle of products that are not added to sum yet, pending the number
	// of their inputs.
	part    []float32
	pending int
	// pendingRows gathers the inputs of short runs, row by row.
	pendingRows  []float32
	pendingGroup int // group of the pending inputs
	// adder and some add rows.
	adder vectors.Sum
	some  []float32
	// pendingColumns gathers inputs that come by columns, pendingColumnCount of them.
	pendingColumns     []float32
	pendingColumnCount int
	// lag handles the channels of a depthwise convolution.
	lag *lagSums
	// shifts handles the rows of a convolution.
	shifts *lineShifts
	// sketches estimate how the errors of each layer differ between samples; nil where not
	// needed.
	sketches []*sketch
	// chunks are the stored inputs, a row per column, at the end joined by group.
	chunks []chunk

	// total are the sums of columns, energy the sums of their squares by slot of runs, for all
	// groups.
	total  []float64
	energy [][]float32
	slot   []float32 // energy of the current slot
	run    int       // number of the current run, of runs
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

// beginRun starts a run, whose squares are added to those of a slot.
func (m *moments) beginRun(slot int) {
	for slot >= len(m.energy) {
		m.energy = append(m.energy, make([]float32, m.groups*m.cols))
	}
	m.slot = m.energy[slot]
	m.run++
}

// maxPositions is the number of positions above which only a spread subset of rows is used.
// Squared errors of positions differ by a few times their mean. The mean over so many independent
// ones is within about 1 % of the overall mean for one output. It is closer for several outputs
// and for neighbours, which are correlated.
const maxPositions = 1 << 16

// sampledLines returns which rows of positions are used in the current run: every step-th from
// first on.
func (m *moments) sampledLines(g *geometry, batch int) (first, step int) {
	step = min(max(1, g.outputs*batch*m.runs/maxPositions), g.lines())
	// Consecutive runs use distant rows.
	return m.run * (step/2 + 1) % step, step
}

// allocate allocates the sums.
func (m *moments) allocate() {
	if m.sum != nil || m.squaresOnly || m.keepInputs {
		return
	}
	m.sum = make([][]float64, m.groups)
	for g := range m.sum {
		m.sum[g] = make([]float64, m.cols*(m.cols+1)/2)
	}
}

// planes adds n inputs of a group, with a row of x per column. Rows are stride apart.
func (m *moments) planes(group int, x []float32, stride, n int) {
	m.allocate()
	for _, s := range m.sketches {
		s.planes(group, x, stride, n)
	}
	m.addLinear(group, x, stride, n)
	switch {
	case m.squaresOnly:
	case m.keepInputs:
		t := make([]float32, n*m.cols)
		for c := range m.cols {
			copy(t[c*n:(c+1)*n], x[c*stride:])
		}
		m.chunks = append(m.chunks, chunk{group, n, t})
	case m.cols <= smallCols:
		m.addDots(group, x, stride, n)
	case n < 32 || n <= gatherSize/4 && n < m.cols/4:
		m.switchGroup(group)
		m.gatherColumns(x, stride, n)
	default:
		m.switchGroup(group)
		m.addTriangle(x, stride, n, false)
		m.countPending(group, n)
	}
}

// rows adds n inputs of a group, with a row of x per input. Rows are stride apart.
func (m *moments) rows(group int, x []float32, stride, n int) {
	m.allocate()
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
	case m.squaresOnly:
	case m.keepInputs || m.cols <= smallCols:
		t := make([]float32, n*m.cols)
		move.Transpose(t, n, x, stride, m.cols, n)
		if m.keepInputs {
			m.chunks = append(m.chunks, chunk{group, n, t})
		} else {
			m.addDots(group, t, n, n)
		}
	case n < 32:
		m.switchGroup(group)
		for i := range n {
			m.pendingRows = append(m.pendingRows, x[i*stride:][:m.cols]...)
		}
		if len(m.pendingRows) >= gatherSize*m.cols {
			m.flush()
		}
	default:
		m.switchGroup(group)
		m.addTriangle(x, stride, n, true)
		m.countPending(group, n)
	}
}

// add adds rows to sums of columns, as many at a time as single precision allows.
func (m *moments) add(total []float64, x []float32, stride, n int) {
	const most = 256
	some := grow(&m.some, m.cols)
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

// addLinear adds to the sums of columns and squares.
func (m *moments) addLinear(group int, x []float32, stride, n int) {
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

var allOnes = sync.OnceValue(func() []float32 { return slices.Repeat([]float32{1}, 1<<16) })

func ones(n int) []float32 {
	if all := allOnes(); n <= len(all) {
		return all[:n]
	}
	return slices.Repeat([]float32{1}, n)
}

// gatherSize is the number of inputs at which gathered ones are multiplied. Products of many
// columns with few inputs would be dominated by loading and storing sums.
const gatherSize = 256

// gatherColumns gathers a small number n of inputs in columns.
func (m *moments) gatherColumns(x []float32, stride, n int) {
	if m.pendingColumnCount+n > gatherSize {
		m.flushColumns()
	}
	if m.pendingColumns == nil {
		m.pendingColumns = make([]float32, m.cols*gatherSize)
	}
	for c := range m.cols {
		copy(m.pendingColumns[c*gatherSize+m.pendingColumnCount:][:n], x[c*stride:])
	}
	m.pendingColumnCount += n
}

// flushColumns multiplies the gathered columns.
func (m *moments) flushColumns() {
	n := m.pendingColumnCount
	m.pendingColumnCount = 0
	m.addTriangle(m.pendingColumns, gatherSize, n, false)
	m.countPending(m.pendingGroup, n)
}

// addDots adds the products of few columns.
func (m *moments) addDots(group int, x []float32, stride, n int) {
	sum := m.sum[group]
	at := 0
	var some [smallCols]float32
	var from [smallCols]int
	for i := range m.cols {
		from[i] = i * stride
		many := i + 1
		if many > 2 {
			many = max(many, 8) // computed together
		}
		vectors.Dots(some[:many], x[i*stride:][:n], x, from[:many])
		for _, v := range some[:i+1] {
			sum[at] += float64(v)
			at++
		}
	}
}

// switchGroup flushes the pending inputs of another group.
func (m *moments) switchGroup(group int) {
	if group != m.pendingGroup {
		m.flush()
		m.pendingGroup = group
	}
}

func (m *moments) countPending(group, n int) {
	m.pending += n
	if m.pending >= flushAt || m.groups > 1 {
		m.flush()
	}
}

// flush adds pending products to the sums.
func (m *moments) flush() {
	if n := len(m.pendingRows) / max(m.cols, 1); n > 0 {
		m.addTriangle(m.pendingRows, m.cols, n, true)
		m.pendingRows = m.pendingRows[:0]
		m.pending += n
	}
	if n := m.pendingColumnCount; n > 0 {
		m.pendingColumnCount = 0
		m.addTriangle(m.pendingColumns, gatherSize, n, false)
		m.pending += n
	}
	if m.pending == 0 {
		return
	}
	sum := m.sum[m.pendingGroup]
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

// addTriangle adds products of columns to part: of n inputs, which are the columns of x, or with
// byRow its rows.
func (m *moments) addTriangle(x []float32, stride, n int, byRow bool) {
	if m.part == nil {
		m.part = make([]float32, m.cols*m.pitch())
	}
	gemm.Syrk(m.pool, m.cols, n, x, stride, byRow, m.part, m.pitch())
}

// pitch is the length of a row of part.
func (m *moments) pitch() int {
	return (m.cols + gemm.SyrkStride - 1) / gemm.SyrkStride * gemm.SyrkStride
}

// finish completes the sums.
func (m *moments) finish() {
	if m.sum != nil && (m.pending > 0 || len(m.pendingRows) > 0 || m.pendingColumnCount > 0) {
		m.flush()
	}
	if m.lag != nil {
		m.lag.finish(m)
	}
	if m.shifts != nil {
		m.shifts.finish(m)
	}
	if m.keepInputs {
		m.joinChunks()
	}
	m.part, m.pendingRows, m.pendingColumns, m.lag, m.shifts = nil, nil, nil, nil, nil
}

// momentMatrix returns the full moment matrix of a group in single precision.
func (m *moments) momentMatrix(group int, dst []float32) []float32 {
	d := m.cols
	if cap(dst) < d*d {
		dst = make([]float32, d*d)
	}
	dst = dst[:d*d]
	if m.keepInputs {
		x, n := m.inputs(group)
		gemm.Multiply(m.pool, gemm.Params{M: d, N: d, K: n, TransB: true}, x, x, dst)
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

// diagonal returns the sum over runs of the squares of columns, of all groups.
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

// means returns the mean squares of columns, of all groups; nil if one is not finite.
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

// inputs returns the stored inputs of a group, after finish: columns by n.
func (m *moments) inputs(group int) (x []float32, n int) {
	c := m.chunks[group]
	return c.x, c.n
}

// joinChunks joins the stored inputs of each group.
func (m *moments) joinChunks() {
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

// momentBytes is the memory for the sums of that many columns.
func momentBytes(groups, cols int) int { return groups*cols*(cols+1)/2*8 + cols*cols*8 }

package gemm

import (
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// Single rows (GEMV) are faster without the products of zeros if most weights are zero. Each
// column lists its weights and their steps, and a register of columns gathers its values of the
// row. Columns of similar length share a register, because short lists are padded. Results are
// bit-exact with dense weights, except for the sign of a sum that underflowed to zero.

const (
	// columnsWindow is the number of columns that are sorted by length and computed together.
	columnsWindow = 128
	// Fixed costs in multiplications of a dense row, measured by bench/sparse: a column that is
	// moved to its place, and a value of the row that is copied and tested.
	columnsCostColumn = 24
	columnsCostStep   = 4
	// columnsMargin is the share of the dense cost that the lists may have. It covers the error of
	// the measured cost, so that lists are not slower.
	columnsMargin = 0.85
	// columnsBytes is the size of a listed weight with its step.
	columnsBytes = 4 + 2
	// columnsMost is the size of lists relative to dense weights up to which lists are used: rows
	// that wait for memory gain nothing from longer ones.
	columnsMost = 0.65
	// columnsFarBytes is the size of lists relative to the bitmask format up to which lists are
	// faster for weights that are read from memory: at about 80 % zeros.
	columnsFarBytes = 1.35
)

// columnLists is a sparse matrix for single rows.
type columnLists struct {
	f      *simd.Columns
	k, n   int
	order  []uint8  // place in its window of each column, sorted by length
	counts []uint32 // steps of each group of columns
	starts []int    // index of the first value of each window
	steps  []uint16
	values []float32
}

// strided is a matrix whose element k of column n is at n*vec+k*elem.
type strided struct {
	v         []float32
	k, n      int
	vec, elem int
}

// each calls f for the elements of columns n0 to n1 in the order of memory; those of a column come
// in the order of their steps.
func (s *strided) each(n0, n1 int, f func(n, k int, v float32)) {
	if s.elem == 1 {
		for n := n0; n < n1; n++ {
			for k, v := range s.v[n*s.vec:][:s.k] {
				f(n, k, v)
			}
		}
		return
	}
	for k := range s.k {
		for n := n0; n < n1; n++ {
			f(n, k, s.v[n*s.vec+k*s.elem])
		}
	}
}

// lengths returns the number of weights of each column.
func (s *strided) lengths() []uint32 {
	all := make([]uint32, s.n)
	for n0 := 0; n0 < s.n; n0 += columnsWindow {
		s.each(n0, min(n0+columnsWindow, s.n), func(n, _ int, v float32) {
			all[n] += uint32(isStored(v))
		})
	}
	return all
}

// isStored returns 0 for positive zero, else 1: products of negative zero have a sign.
func isStored(v float32) int32 {
	b := int32(math.Float32bits(v))
	return int32(uint32(b|-b) >> 31)
}

// newColumnLists lists the weights of a matrix. It returns nil unless that is smaller and faster
// than dense weights, which are read from memory if far is set.
func newColumnLists(s strided, far bool) *columnLists {
	f := simd.ColumnKernels()
	if f == nil || s.k == 0 || s.k > math.MaxUint16 || !sampleSparse(s.n, s.k, s.v, s.vec, s.elem) {
		return nil
	}
	m := &columnLists{f: f, k: s.k, n: s.n, order: make([]uint8, s.n)}
	listed := m.measure(&s)
	if !m.gains(listed, narrowOf(simd.FloatKernels(), s.v, len(s.v)), far) {
		return nil
	}
	m.list(&s, listed)
	return m
}

// measure sorts the columns and returns the number of their values with padding.
func (m *columnLists) measure(s *strided) (listed int) {
	lengths := s.lengths()
	for n0 := 0; n0 < s.n; n0 += columnsWindow {
		m.starts = append(m.starts, listed)
		listed += m.sort(n0, lengths[n0:min(n0+columnsWindow, s.n)])
	}
	return listed
}

// list copies the weights; listed is the result of measure.
func (m *columnLists) list(s *strided, listed int) {
	// Kernels take the address of the first value even of an empty window.
	m.steps, m.values = hugepages.Make[uint16](listed+1), hugepages.Make[float32](listed+1)
	scratch.Fill(m.steps, uint16(s.k))
	for w, at := range m.starts {
		m.fill(s, w, at)
	}
}

// gains reports whether listed weights, padding included, take less time and space than dense
// ones. far says that weights are read from memory.
func (m *columnLists) gains(listed int, narrow simd.PanelType, far bool) bool {
	values := float64(m.k) * float64(m.n)
	bytes, fill := 4*values, float64(listed)
	if narrow != simd.WideFloat32 {
		bytes = 2 * values
	}
	if columnsBytes*fill > columnsMost*bytes || far && columnsBytes*fill > columnsFarBytes*(4*fill+values/8) {
		return false
	}
	left := columnsMargin*values - float64(columnsCostColumn*m.n+columnsCostStep*m.k)
	// Costs are measured, so only where a list can gain at all.
	return fill < left && simd.ColumnCost(narrow, far || bytes >= simd.ColumnsFar)*fill <= left
}

// sort orders the columns of a window from column n0 by length, appends the steps of their groups
// and returns the number of their values with padding.
func (m *columnLists) sort(n0 int, lengths []uint32) (listed int) {
	order := m.order[n0:][:len(lengths)]
	for i := range order {
		order[i] = uint8(i)
	}
	slices.SortStableFunc(order, func(a, b uint8) int { return int(lengths[b]) - int(lengths[a]) })
	for i := 0; i < len(order); i += m.f.Lanes {
		longest := lengths[order[i]]
		m.counts = append(m.counts, longest)
		listed += int(longest) * m.f.Lanes
	}
	return listed
}

// groups returns the number of groups in a whole window.
func (m *columnLists) groups() int { return columnsWindow / m.f.Lanes }

// fill lists the weights of window w from index at.
func (m *columnLists) fill(s *strided, w, at int) {
	n0 := w * columnsWindow
	n1 := min(n0+columnsWindow, m.n)
	var next [columnsWindow]int // index of the next value of each column
	for i, c := range m.order[n0:n1] {
		next[c] = at + i%m.f.Lanes
		if i%m.f.Lanes == m.f.Lanes-1 {
			at += m.f.Lanes * int(m.counts[w*m.groups()+i/m.f.Lanes])
		}
	}
	s.each(n0, n1, func(n, k int, v float32) {
		if isStored(v) != 0 {
			i := next[n-n0]
			m.steps[i], m.values[i], next[n-n0] = uint16(k), v, i+m.f.Lanes
		}
	})
}

// name returns the kernel name.
func (m *columnLists) name() string { return "gathered/" + m.f.Set.String() }

var columnsTiles = sync.Pool{New: func() any { return new(simd.ColumnsTile) }}

func releaseColumnsTile(t *simd.ColumnsTile) {
	*t = simd.ColumnsTile{}
	columnsTiles.Put(t)
}

// run multiplies a single row.
func (m *columnLists) run(p *workers.Pool, g *Params, a, c []float32) {
	// Padding has the step behind the last one, with a zero: a value of the row may be infinite.
	s, x := scratch.Borrow(m.k + 1)
	copy(x, a[:m.k])
	x[m.k] = 0
	odd := 0
	if d := vectors.Dot(x[:m.k], x[:m.k]); d-d != 0 {
		odd = notFinite(x)
	}
	windows := len(m.starts)
	grain := max(1, workers.Grain(2)*windows/max(1, len(m.values)))
	workers.Do(p, windows, grain, columnsArgs{m, *g, x, c, odd}, columnsArgs.windows)
	scratch.Float32s.Put(s)
}

// notFinite counts the values that are infinite or NaN.
func notFinite(x []float32) (n int) {
	for _, v := range x {
		if v-v != 0 {
			n++
		}
	}
	return n
}

// columnsArgs holds the arguments of a work item of run. odd is the number of values of the row
// that are not finite.
type columnsArgs struct {
	m    *columnLists
	g    Params
	x, c []float32
	odd  int
}

// windows computes windows lo to hi.
func (q columnsArgs) windows(lo, hi int) {
	m, t := q.m, columnsTiles.Get().(*simd.ColumnsTile)
	sc, workspace := scratch.Borrow(2 * columnsWindow)
	sorted, sums := workspace[:columnsWindow], workspace[columnsWindow:]
	for w := lo; w < hi; w++ {
		n0 := w * columnsWindow
		out := q.c[n0:min(n0+columnsWindow, m.n)]
		first := w * m.groups()
		t.Groups = (len(out) + m.f.Lanes - 1) / m.f.Lanes
		t.X, t.Y, t.Counts = &q.x[0], &sorted[0], &m.counts[first]
		t.Steps, t.Values = &m.steps[m.starts[w]], &m.values[m.starts[w]]
		m.f.Row(t, q.g.Exact)
		if q.odd > 0 {
			m.spoil(sorted, q.x, w, q.odd)
		}
		for i, c := range m.order[n0:][:len(out)] {
			sums[c&(columnsWindow-1)] = sorted[i]
		}
		q.g.finishRow(sums[:len(out)], out, n0)
	}
	scratch.Float32s.Put(sc)
	releaseColumnsTile(t)
}

// spoil sets to NaN the sums of window w in which one of the odd values of the row that are not
// finite meets a weight that is zero, as products with dense weights do.
func (m *columnLists) spoil(sums, x []float32, w, odd int) {
	at, lanes := m.starts[w], m.f.Lanes
	n := min(columnsWindow, m.n-w*columnsWindow)
	for i := 0; i < n; i += lanes {
		count := int(m.counts[w*m.groups()+i/lanes])
		for lane := range min(lanes, n-i) {
			met := 0
			for k := range count {
				if v := x[m.steps[at+k*lanes+lane]]; v-v != 0 {
					met++
				}
			}
			if met < odd {
				sums[i+lane] = float32(math.NaN())
			}
		}
		at += count * lanes
	}
}

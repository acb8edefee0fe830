package loss

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// lineShifts computes second moments between taps of convolutions from inputs unfolded along rows
// only. Taps of two window rows see the same input rows, shifted by a few rows, so all row pairs
// with the same shift share one matrix product, apart from rows at the edges. With strides above
// 1 the same holds for each phase, which is every stride-th row.
type lineShifts struct {
	g        *geometry
	channels int
	vectors  int // channels times columns of the window
	pitch    int // of the rows of a product
	phases   []linePhase
	products []lineProduct
	// products that add up to those of window rows i and j <= i, in triangular order
	pairs [][]int
	// line is the length of a row of a vector, for the full number of samples multiplied
	// together; chunk of them are present.
	line, full, chunk int
	pending           int // number of inputs in products
}

// linePhase is every stride-th row from y on, h of them: vectors by rows.
type linePhase struct {
	y, h int
	buf  []float32
}

// lineKey pairs rows of phase p with those of phase q, shifted by dy.
type lineKey struct{ p, q, dy int }

// lineProduct is the product of vectors over rows y0 to y1 of a key, and their sums where a row
// is paired with itself.
type lineProduct struct {
	lineKey
	y0, y1 int
	sum    []float32
	plain  []float64
}

// span returns the rows of phase p that window row i sees while window row j sees one too.
func (s *lineShifts) span(i, j int) (key lineKey, y0, y1 int) {
	y := &s.g.axes[1]
	pi, si := y.phase(i)
	pj, sj := y.phase(j)
	of := func(at int) int { return slices.IndexFunc(s.phases, func(p linePhase) bool { return p.y == at }) }
	key = lineKey{of(pi), of(pj), sj - si}
	y0 = max(si, 0, -key.dy)
	y1 = min(si+y.out, s.phases[key.p].h, s.phases[key.q].h-key.dy)
	return key, y0, max(y0, y1)
}

// newLineShifts prepares for a geometry of two axes.
func newLineShifts(g *geometry, channels int) *lineShifts {
	y, x := &g.axes[1], &g.axes[2]
	s := &lineShifts{g: g, channels: channels, vectors: channels * x.window}
	s.pitch = (s.vectors + gemm.SyrkStride - 1) / gemm.SyrkStride * gemm.SyrkStride
	s.full = (gatherSize + g.outputs - 1) / g.outputs
	s.line = s.full * x.out
	for t := range y.window {
		at, _ := y.phase(t)
		if !slices.ContainsFunc(s.phases, func(p linePhase) bool { return p.y == at }) {
			h := phaseLength(y.in, at, y.stride)
			s.phases = append(s.phases, linePhase{at, h, make([]float32, s.vectors*h*s.line)})
		}
	}
	ends := map[lineKey][]int{}
	for i := range y.window {
		for j := range i + 1 {
			key, y0, y1 := s.span(i, j)
			ends[key] = append(ends[key], y0, y1)
		}
	}
	for i := range y.window {
		for j := range i + 1 {
			key, y0, y1 := s.span(i, j)
			slices.Sort(ends[key])
			var of []int
			for k, to := range ends[key][1:] {
				if from := ends[key][k]; from < to && y0 <= from && to <= y1 {
					of = append(of, s.product(key, from, to))
				}
			}
			s.pairs = append(s.pairs, of)
		}
	}
	return s
}

// product returns the index of the product of a key over some rows.
func (s *lineShifts) product(key lineKey, y0, y1 int) int {
	i := slices.IndexFunc(s.products, func(p lineProduct) bool { return p.lineKey == key && p.y0 == y0 })
	if i < 0 {
		i = len(s.products)
		p := lineProduct{lineKey: key, y0: y0, y1: y1, sum: make([]float32, s.vectors*s.pitch)}
		if key.p == key.q && key.dy == 0 {
			p.plain = make([]float64, s.vectors)
		}
		s.products = append(s.products, p)
	}
	return i
}

// addSample adds a sample in planar order.
func (s *lineShifts) addSample(m *moments, planes []float32) {
	y, x := &s.g.axes[1], &s.g.axes[2]
	m.pool.For(s.channels, max(1, 1<<14/(x.window*s.g.plane)), func(lo, hi int) {
		var lines move.LineCopier
		for v := lo * x.window; v < hi*x.window; v++ {
			from, to := x.seen(v % x.window)
			if from == to {
				continue
			}
			plane := planes[v/x.window*s.g.plane:][:s.g.plane]
			at := from*x.stride + v%x.window*x.dil - x.pad
			for i := range s.phases {
				if p := &s.phases[i]; p.h > 0 {
					lines.Copy(p.buf[v*p.h*s.line+s.chunk*x.out+from:], s.line, plane[p.y*x.in+at:], y.stride*x.in, x.stride, to-from, p.h)
				}
			}
		}
	})
	if s.chunk++; s.chunk == s.full {
		s.multiply(m)
	}
}

// multiply adds the products of the present samples.
func (s *lineShifts) multiply(m *moments) {
	for i := range s.products {
		p := &s.products[i]
		a, b := &s.phases[p.p], &s.phases[p.q]
		n := (p.y1 - p.y0) * s.line
		if p.plain == nil {
			g := gemm.Params{M: s.vectors, N: s.vectors, K: n, TransB: true, LDA: a.h * s.line, LDB: b.h * s.line, LDC: s.pitch, Accumulate: true}
			gemm.Multiply(m.pool, g, a.buf[p.y0*s.line:], b.buf[(p.y0+p.dy)*s.line:], p.sum)
			continue
		}
		gemm.Syrk(m.pool, s.vectors, n, a.buf[p.y0*s.line:], a.h*s.line, false, p.sum, s.pitch)
		one := ones(n)
		m.pool.For(s.vectors, max(1, 1<<14/n), func(lo, hi int) {
			for v := lo; v < hi; v++ {
				p.plain[v] += float64(vectors.Dot(a.buf[(v*a.h+p.y0)*s.line:][:n], one))
			}
		})
	}
	s.pending += s.chunk * s.g.outputs
	s.chunk = 0
	if s.pending >= flushAt {
		s.flush(m)
	}
}

// flush adds the products to the sums of m.
func (s *lineShifts) flush(m *moments) {
	wide := s.g.axes[2].window
	high := s.g.axes[1].window
	sum := m.sum[0]
	m.pool.For(s.vectors, 4, func(lo, hi int) {
		for r := lo; r < hi; r++ { // a channel and a window column
			for i := range high {
				row := r/wide*s.g.taps + i*wide + r%wide
				to := sum[row*(row+1)/2:][:row+1]
				for j := range high {
					s.add(to, r, i, j)
				}
				for _, k := range s.pairs[i*(i+1)/2+i] {
					m.total[row] += s.products[k].plain[r]
				}
			}
		}
	})
	for i := range s.products {
		clear(s.products[i].sum)
		clear(s.products[i].plain)
	}
	s.pending = 0
}

// add adds the products of vector r at window row i with all vectors at window row j to a row of
// the triangle of sums.
func (s *lineShifts) add(to []float64, r, i, j int) {
	wide := s.g.axes[2].window
	for _, k := range s.pairs[max(i, j)*(max(i, j)+1)/2+min(i, j)] {
		of, at, step := s.products[k].sum, r*s.pitch, 1
		if i < j {
			at, step = r, s.pitch
		}
		for c := 0; c < len(to); c += s.g.taps {
			for column := c + j*wide; column < min(c+(j+1)*wide, len(to)); column++ {
				to[column] += float64(of[at])
				at += step
			}
		}
	}
}

// finish adds pending products to the sums of m.
func (s *lineShifts) finish(m *moments) {
	if s.chunk > 0 {
		for i := range s.phases { // stale values of earlier samples
			for line := range slices.Chunk(s.phases[i].buf, s.line) {
				clear(line[s.chunk*s.g.axes[2].out:])
			}
		}
		s.multiply(m)
	}
	if s.pending > 0 {
		s.flush(m)
	}
}

// addConvolution adds the channels of a convolution in planar order; false where im2col is
// needed.
func (m *moments) addConvolution(g *geometry, planes []float32, channels int) bool {
	y, x := &g.axes[1], &g.axes[2]
	if m.squaresOnly || m.keepInputs || m.groups > 1 || m.cols <= smallCols || y.window < 2 || g.axes[0].out != 1 || g.axes[0].in != 1 || y.transposed || channels*x.window*y.in*x.out > maxShifted {
		return false
	}
	m.allocate()
	if m.shifts == nil || !slices.Equal(m.shifts.g.axes, g.axes) {
		if m.shifts != nil {
			m.shifts.finish(m)
		}
		m.shifts = newLineShifts(g, channels)
	}
	m.shifts.addSample(m, planes)
	m.addToSketches(g, planes, 1, channels)
	m.n += g.outputs
	return true
}

// maxShifted bounds the elements of a sample's unfolded rows.
const maxShifted = 1 << 23

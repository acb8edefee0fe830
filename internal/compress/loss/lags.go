package loss

import (
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/workers"
)

// lags finds products of taps of depthwise convolutions without unfolding their data: two taps see the same channel,
// one a few places from the other, so that all pairs of taps as far apart share one sum over the channel, but for
// places at its edge. With steps above 1 the same holds for the channel's every second row and column (phases).
//
// Channels lie in a buffer with zeros after each line and each channel, so that a sum is one inner product of
// the buffer with itself from some place on. Small channels wait until there are several.
type lags struct {
	g           *geometry
	groups      int
	pitch, size int // of a line and of a phase of a channel in the buffer
	phases      []phase
	keys        []lagKey
	rects       []rect
	pairs       []lagPair // tap i >= j, in the order of a triangle
	taps        []lagPair // sums of taps
	chunk, full int       // samples in the buffer and how many fit
	buf         []float32 // group, phase, sample
}

// phase is every step-th place of a channel from y, x on: h by w places.
type phase struct{ y, x, h, w int }

// lagKey is a sum of products of places of phase p with those of phase q, dy and dx further. q is -1 for the sum
// of the places themselves.
type lagKey struct{ p, q, dy, dx int }

// rect are places of phase p of a key, which a pair of taps does not see.
type rect struct{ key, y0, y1, x0, x1 int }

// lagPair is a sum less those over rects.
type lagPair struct {
	key   int
	rects []int
}

// newLags prepares for a geometry of two axes.
func newLags(g *geometry, groups int) *lags {
	s := &lags{g: g, groups: groups}
	y, x := &g.axes[1], &g.axes[2]
	type place struct{ phase, y, x int }
	var taps []place
	for ty := range y.window {
		for tx := range x.window {
			py, sy := y.phase(ty)
			px, sx := x.phase(tx)
			p := phase{py, px, count(y.in, py, y.stride), count(x.in, px, x.stride)}
			taps = append(taps, place{s.phaseOf(p), sy, sx})
		}
	}
	most := [2]int{}
	for _, a := range taps {
		for _, b := range taps {
			most[0], most[1] = max(most[0], a.y-b.y), max(most[1], a.x-b.x)
		}
	}
	rows := 0
	for _, p := range s.phases {
		s.pitch, rows = max(s.pitch, p.w+most[1]), max(rows, p.h+most[0])
	}
	s.size = s.pitch * rows
	for i, a := range taps {
		for _, b := range taps[:i+1] {
			k := lagKey{a.phase, b.phase, b.y - a.y, b.x - a.x}
			s.pairs = append(s.pairs, s.pair(k, a.y, a.x))
		}
		s.taps = append(s.taps, s.pair(lagKey{a.phase, -1, 0, 0}, a.y, a.x))
	}
	s.full = max(1, 1024/s.size)
	s.buf = make([]float32, groups*len(s.phases)*s.full*s.size)
	return s
}

// phase is where the inputs of a tap begin within a step, and at which of them the first output is.
func (a *axis) phase(t int) (phase, shift int) {
	at := t*a.dil - a.pad
	phase = ((at % a.stride) + a.stride) % a.stride
	return phase, (at - phase) / a.stride
}

func count(n, from, step int) int { return max(0, (n-from+step-1)/step) }

func (s *lags) phaseOf(p phase) int {
	for i, q := range s.phases {
		if p == q {
			return i
		}
	}
	s.phases = append(s.phases, p)
	return len(s.phases) - 1
}

// pair finds the places of the whole sum of a key that the outputs, whose tap is y, x further, do not see.
func (s *lags) pair(k lagKey, y, x int) lagPair {
	at := -1
	for i, have := range s.keys {
		if have == k {
			at = i
		}
	}
	if at < 0 {
		at, s.keys = len(s.keys), append(s.keys, k)
	}
	p := s.phases[k.p]
	q := p
	if k.q >= 0 {
		q = s.phases[k.q]
	}
	y0, y1 := max(0, -k.dy), min(p.h, q.h-k.dy)
	x0, x1 := max(0, -k.dx), min(p.w, q.w-k.dx)
	by0, by1 := max(y, y0), min(y+s.g.axes[1].out, y1)
	bx0, bx1 := max(x, x0), min(x+s.g.axes[2].out, x1)
	by0, bx0 = min(by0, max(y1, y0)), min(bx0, max(x1, x0))
	by1, bx1 = max(by1, by0), max(bx1, bx0)
	out := lagPair{key: at}
	for _, r := range []rect{{at, y0, by0, x0, x1}, {at, by1, y1, x0, x1}, {at, by0, by1, x0, bx0}, {at, by0, by1, bx1, x1}} {
		if r.y0 >= r.y1 || r.x0 >= r.x1 {
			continue
		}
		i := 0
		for i < len(s.rects) && s.rects[i] != r {
			i++
		}
		if i == len(s.rects) {
			s.rects = append(s.rects, r)
		}
		out.rects = append(out.rects, i)
	}
	return out
}

// part is the buffer of a phase of a group.
func (s *lags) part(group, phase int) []float32 {
	n := s.full * s.size
	return s.buf[(group*len(s.phases)+phase)*n:][:n]
}

// take copies a channel into the buffer.
func (s *lags) take(group int, plane []float32) {
	y, x := &s.g.axes[1], &s.g.axes[2]
	for i, p := range s.phases {
		to := s.part(group, i)[s.chunk*s.size:][:s.size]
		for r := range p.h {
			from := plane[(p.y+r*y.stride)*x.in:][:x.in]
			line := to[r*s.pitch:][:p.w]
			if x.stride == 1 {
				copy(line, from)
				continue
			}
			at := p.x
			for c := range line {
				line[c] = from[at]
				at += x.stride
			}
		}
	}
}

// flush adds the sums of the buffer to those of m.
func (s *lags) flush(m *moments) {
	if s.chunk == 0 {
		return
	}
	workers.Do(m.pool, s.groups, 8, s, func(s *lags, lo, hi int) {
		whole, edge := make([]float64, len(s.keys)), make([]float64, len(s.rects))
		for g := lo; g < hi; g++ {
			s.sums(g, whole, edge)
			of := func(p *lagPair) float64 {
				v := whole[p.key]
				for _, r := range p.rects {
					v -= edge[r]
				}
				return v
			}
			sum := m.sum[g]
			for i := range s.pairs {
				sum[i] += of(&s.pairs[i])
			}
			for i := range s.taps {
				m.total[g*m.cols+i] += of(&s.taps[i])
			}
		}
	})
	s.chunk = 0
}

// sums finds all sums of a group's buffer.
func (s *lags) sums(g int, whole, edge []float64) {
	n := s.chunk * s.size
	for i, k := range s.keys {
		a := s.part(g, k.p)[:n]
		if k.q < 0 {
			whole[i] = float64(kernel.Dot(a, ones(n)))
			continue
		}
		b := s.part(g, k.q)[:n]
		if off := k.dy*s.pitch + k.dx; off >= 0 {
			whole[i] = float64(kernel.Dot(a[:max(n-off, 0)], b[min(off, n):]))
		} else {
			whole[i] = float64(kernel.Dot(a[min(-off, n):], b[:max(n+off, 0)]))
		}
	}
	for i := range s.rects {
		r := &s.rects[i]
		k := s.keys[r.key]
		a, b := s.part(g, k.p), []float32(nil)
		if k.q >= 0 {
			b = s.part(g, k.q)
		}
		off := k.dy*s.pitch + k.dx
		t := float32(0)
		for at := 0; at < n; at += s.size {
			if b != nil && r.x1-r.x0 == 1 { // a column
				i := at + r.y0*s.pitch + r.x0
				for range r.y1 - r.y0 {
					t += a[i] * b[i+off]
					i += s.pitch
				}
				continue
			}
			for y := r.y0; y < r.y1; y++ {
				line := at + y*s.pitch
				if b == nil {
					for _, v := range a[line+r.x0 : line+r.x1] {
						t += v
					}
					continue
				}
				x := b[line+off+r.x0:][:r.x1-r.x0]
				for c, v := range a[line+r.x0 : line+r.x1] {
					t += v * x[c]
				}
			}
		}
		edge[i] = float64(t)
	}
}

// depthwise adds the channels of a depthwise convolution, one for each group; false where they have to be
// unfolded.
func (m *moments) depthwise(g *geometry, planes []float32) bool {
	if m.squares || m.kept || m.cols > smallCols || g.axes[0].out != 1 || g.axes[0].in != 1 || g.axes[1].transposed {
		return false
	}
	m.ready()
	if m.lag == nil || !m.lag.g.equal(g) {
		if m.lag != nil {
			m.lag.flush(m)
		}
		m.lag = newLags(g, m.groups)
	}
	s := m.lag
	workers.Do(m.pool, m.groups, max(1, 1<<14/g.plane), m, func(m *moments, lo, hi int) {
		for c := lo; c < hi; c++ {
			plane := planes[c*g.plane:][:g.plane]
			m.lag.take(c, plane)
			// What a tap sees of the energy hardly differs between taps; only shares of samples are taken from it.
			e := kernel.Dot(plane, plane)
			for t := range m.cols {
				m.slot[c*m.cols+t] += e
			}
		}
	})
	if len(m.sketches) > 0 {
		open := make([]float32, m.cols*g.outputs)
		for c := range min(m.groups, mostGroups) {
			g.unfold(open, g.outputs, planes[c*g.plane:][:g.plane], 0, g.lines(), 1)
			for _, s := range m.sketches {
				s.planes(c, open, g.outputs, g.outputs)
			}
		}
	}
	m.n += g.outputs
	if s.chunk++; s.chunk == s.full {
		s.flush(m)
	}
	return true
}

func (g *geometry) equal(o *geometry) bool {
	for i := range g.axes {
		if g.axes[i] != o.axes[i] {
			return false
		}
	}
	return true
}

package loss

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel"
)

// lags finds products of taps of depthwise convolutions without unfolding their data: two taps see the same channel,
// one a few places from the other, so that all pairs of taps as far apart share one sum over the channel, but for
// lines of places at its edges. With steps above 1 the same holds for the channel's every second row and column (phases).
//
// A channel is copied to where zeros follow each line and each phase, so that a sum is one inner product of it
// with itself from some place on. Lines at the edges are gathered until there are several.
type lags struct {
	g           *geometry
	groups      int
	pitch, size int // of a line and of a phase of a channel, with zeros
	front       int // zeros before a channel and before lines
	phases      []phase
	keys        []lagKey
	lines       []line
	edges       []edge
	points      [][2]int  // places of the channel, the second -1 for none
	pairs       []lagPair // tap i >= j, in the order of a triangle
	taps        []lagPair // sums of taps
	whole, part []bundle  // of keys and of edges
	run         int       // length of a line with zeros
	chunk, full int       // samples of lines and how many fit
	buf         []float32 // by group and line
	sums        []float64 // by group: of keys, edges and points
	workers     []lagWorker
}

// phase is every step-th place of a channel from y, x on: h by w places.
type phase struct{ y, x, h, w int }

// lagKey is a sum of products of places of phase p with those of phase q, dy and dx further. q is -1 for the sum
// of the places themselves.
type lagKey struct{ p, q, dy, dx int }

// line is row or column at of a phase.
type line struct {
	phase, at int
	column    bool
}

// edge is the sum of products of a line with another one, shift further; b is -1 for the sum of the line itself.
type edge struct{ a, b, shift int }

// lagPair is the sum of a key less those of edges, in which points are twice.
type lagPair struct {
	key           int
	edges, points []int
}

// bundle is sums of products with the same first operand: from is where the second ones begin, to the places of the sums. plain is
// that of the operand's own sum, -1 for none.
type bundle struct {
	operand, plain int
	from, to       []int
}

// lagWorker is what a worker copies channels to.
type lagWorker struct {
	lines kernel.LineCopier
	buf   []float32
	room  []float32
}

// newLags prepares for a geometry of two axes.
func newLags(g *geometry, groups, workers int) *lags {
	s := &lags{g: g, groups: groups, workers: make([]lagWorker, workers)}
	y, x := &g.axes[1], &g.axes[2]
	type place struct{ phase, y, x int }
	var taps []place
	for ty := range y.window {
		for tx := range x.window {
			py, sy := y.phase(ty)
			px, sx := x.phase(tx)
			p := phase{py, px, count(y.in, py, y.stride), count(x.in, px, x.stride)}
			taps = append(taps, place{found(&s.phases, p), sy, sx})
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
	s.size = (s.pitch*rows + 7) / 8 * 8
	s.front = most[0]*s.pitch + most[1]
	// Rows and columns lie one after the other, with zeros for the shifts of both.
	s.run = (max(s.pitch-most[1], rows-most[0]) + max(most[0], most[1]) + 7) / 8 * 8
	s.full = max(1, 128/s.run)
	for i, a := range taps {
		for _, b := range taps[:i+1] {
			k := lagKey{a.phase, b.phase, b.y - a.y, b.x - a.x}
			s.pairs = append(s.pairs, s.pair(k, a.y, a.x))
		}
		s.taps = append(s.taps, s.pair(lagKey{a.phase, -1, 0, 0}, a.y, a.x))
	}
	s.bundles()
	s.buf = make([]float32, s.front+(groups*len(s.lines)+1)*s.full*s.run)
	s.sums = make([]float64, groups*s.figures())
	for i := range s.workers {
		w := &s.workers[i]
		w.buf = make([]float32, 2*s.front+(len(s.phases)+1)*s.size)
		copy(w.buf[len(w.buf)-s.size:], ones(s.size))
		w.room = make([]float32, s.figures()+8)
	}
	return s
}

// figures is the number of sums of a group.
func (s *lags) figures() int { return len(s.keys) + len(s.edges) + len(s.points) }

// phase is where the inputs of a tap begin within a step, and at which of them the first output is.
func (a *axis) phase(t int) (phase, shift int) {
	at := t*a.dil - a.pad
	phase = ((at % a.stride) + a.stride) % a.stride
	return phase, (at - phase) / a.stride
}

func count(n, from, step int) int { return max(0, (n-from+step-1)/step) }

// found is the place of a value in a list, to which it is added where it is not there.
func found[T comparable](list *[]T, v T) int {
	i := slices.Index(*list, v)
	if i < 0 {
		i = len(*list)
		*list = append(*list, v)
	}
	return i
}

// at is the place of a phase in a channel's copy.
func (s *lags) at(phase, y, x int) int { return s.front + phase*s.size + y*s.pitch + x }

// pair finds the rows and columns of the whole sum of a key that the outputs, whose tap is y, x further, do not see.
func (s *lags) pair(k lagKey, y, x int) lagPair {
	p := s.phases[k.p]
	q := p
	if k.q >= 0 {
		q = s.phases[k.q]
	}
	y0, y1 := max(0, -k.dy), min(p.h, q.h-k.dy)
	x0, x1 := max(0, -k.dx), min(p.w, q.w-k.dx)
	unseen := func(lo, hi, from, n int) (out []int) {
		for i := lo; i < hi; i++ {
			if i < from || i >= from+n {
				out = append(out, i)
			}
		}
		return out
	}
	out := lagPair{key: found(&s.keys, k)}
	rows, cols := unseen(y0, y1, y, s.g.axes[1].out), unseen(x0, x1, x, s.g.axes[2].out)
	for _, r := range rows {
		e := edge{found(&s.lines, line{k.p, r, false}), -1, 0}
		if k.q >= 0 {
			e.b, e.shift = found(&s.lines, line{k.q, r + k.dy, false}), k.dx
		}
		out.edges = append(out.edges, found(&s.edges, e))
	}
	for _, c := range cols {
		e := edge{found(&s.lines, line{k.p, c, true}), -1, 0}
		if k.q >= 0 {
			e.b, e.shift = found(&s.lines, line{k.q, c + k.dx, true}), k.dy
		}
		out.edges = append(out.edges, found(&s.edges, e))
		for _, r := range rows {
			at := [2]int{s.at(k.p, r, c), -1}
			if k.q >= 0 {
				at[1] = s.at(k.q, r+k.dy, c+k.dx)
			}
			out.points = append(out.points, found(&s.points, at))
		}
	}
	return out
}

// bundles puts sums with the same first operand together.
func (s *lags) bundles() {
	add := func(list *[]bundle, operand, to, from int) {
		i := slices.IndexFunc(*list, func(b bundle) bool { return b.operand == operand })
		if i < 0 {
			i = len(*list)
			*list = append(*list, bundle{operand: operand, plain: -1})
		}
		b := &(*list)[i]
		if from < 0 {
			b.plain = to
			return
		}
		b.from, b.to = append(b.from, from), append(b.to, to)
	}
	for i, k := range s.keys {
		from := s.at(len(s.phases), 0, 0) + s.front // ones
		if k.q >= 0 {
			from = s.at(k.q, k.dy, k.dx)
		}
		add(&s.whole, s.at(k.p, 0, 0), i, from)
	}
	for i, e := range s.edges {
		from := -1
		if e.b >= 0 {
			from = s.front + e.b*s.full*s.run + e.shift
		}
		add(&s.part, s.front+e.a*s.full*s.run, len(s.keys)+i, from)
	}
	// Some are computed eight at a time, also where there are fewer.
	for _, list := range [][]bundle{s.whole, s.part} {
		for i := range list {
			for b := &list[i]; len(b.from) > 2 && len(b.from) < 8; {
				b.from = append(b.from, b.from[0])
			}
		}
	}
}

// add adds the sums of a bundle whose operands are n long and lie in x.
func (b *bundle) add(sums []float64, x []float32, n int, room []float32) {
	a := x[b.operand:][:n]
	kernel.Dots(room, a, x, b.from)
	for i, to := range b.to {
		sums[to] += float64(room[i])
	}
	if b.plain >= 0 {
		sums[b.plain] += float64(kernel.Dot(a, ones(n)))
	}
}

// of are the sums of a group.
func (s *lags) of(group int) []float64 { return s.sums[group*s.figures():][:s.figures()] }

// take adds a channel.
func (s *lags) take(w *lagWorker, group int, plane []float32) {
	y, x := &s.g.axes[1], &s.g.axes[2]
	for i, p := range s.phases {
		if p.h > 0 && p.w > 0 {
			w.lines.Copy(w.buf[s.at(i, 0, 0):], s.pitch, plane[p.y*x.in+p.x:], y.stride*x.in, x.stride, p.w, p.h)
		}
	}
	sums := s.of(group)
	for i := range s.whole {
		s.whole[i].add(sums, w.buf, s.size, w.room)
	}
	for i, at := range s.points {
		v := w.buf[at[0]]
		if at[1] >= 0 {
			v *= w.buf[at[1]]
		}
		sums[len(s.keys)+len(s.edges)+i] += float64(v)
	}
	for i, l := range s.lines {
		to := s.line(group, i)
		p := s.phases[l.phase]
		if !l.column {
			copy(to[:p.w], w.buf[s.at(l.phase, l.at, 0):])
			continue
		}
		from := s.at(l.phase, 0, l.at)
		for r := range to[:p.h] {
			to[r] = w.buf[from]
			from += s.pitch
		}
	}
}

// line is where a line of the current sample is gathered.
func (s *lags) line(group, i int) []float32 {
	return s.buf[s.front+((group*len(s.lines)+i)*s.full+s.chunk)*s.run:][:s.run]
}

// flush adds the sums of the lines of a group.
func (s *lags) flush(w *lagWorker, group int) {
	x := s.buf[group*len(s.lines)*s.full*s.run:]
	for i := range s.part {
		s.part[i].add(s.of(group), x, s.chunk*s.run, w.room)
	}
}

// done adds what was found to the sums of m.
func (s *lags) done(m *moments) {
	if s.chunk > 0 {
		m.pool.ForWorker(s.groups, 8, func(worker, lo, hi int) {
			w := &s.workers[worker]
			for g := lo; g < hi; g++ {
				s.flush(w, g)
			}
		})
		s.chunk = 0
	}
	for g := range s.groups {
		sums := s.of(g)
		of := func(p *lagPair) float64 {
			v := sums[p.key]
			for _, e := range p.edges {
				v -= sums[len(s.keys)+e]
			}
			for _, i := range p.points {
				v += sums[len(s.keys)+len(s.edges)+i]
			}
			return v
		}
		for i := range s.pairs {
			m.sum[g][i] += of(&s.pairs[i])
		}
		for i := range s.taps {
			m.total[g*m.cols+i] += of(&s.taps[i])
		}
	}
	clear(s.sums)
}

// depthwise adds the channels of a depthwise convolution, one for each group; false where they have to be
// unfolded.
func (m *moments) depthwise(g *geometry, planes []float32) bool {
	if m.squares || m.kept || m.cols > smallCols || g.axes[0].out != 1 || g.axes[0].in != 1 || g.axes[1].transposed {
		return false
	}
	m.ready()
	if m.lag == nil || !slices.Equal(m.lag.g.axes, g.axes) {
		if m.lag != nil {
			m.lag.done(m)
		}
		m.lag = newLags(g, m.groups, m.pool.Threads())
	}
	s := m.lag
	m.pool.ForWorker(m.groups, max(1, 1<<14/g.plane), func(worker, lo, hi int) {
		w := &s.workers[worker]
		for c := lo; c < hi; c++ {
			s.take(w, c, planes[c*g.plane:][:g.plane])
		}
	})
	if s.chunk++; s.chunk == s.full {
		m.pool.ForWorker(m.groups, max(1, 1<<14/(s.run*s.full)), func(worker, lo, hi int) {
			w := &s.workers[worker]
			for c := lo; c < hi; c++ {
				s.flush(w, c)
			}
		})
		s.chunk = 0
	}
	if len(m.sketches) > 0 {
		// Lines that are spread over the channel stand for all.
		n := min(g.lines(), max(1, places/g.width()))
		w := n * g.width()
		open := make([]float32, m.cols*w)
		for c := range min(m.groups, mostGroups) {
			g.unfold(&s.workers[0].lines, open, w, planes[c*g.plane:][:g.plane], 0, n, g.lines()/n)
			for _, k := range m.sketches {
				k.planes(c, open, w, w)
			}
		}
	}
	m.n += g.outputs
	return true
}

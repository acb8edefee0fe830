package loss

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// lags finds products of taps of depthwise convolutions without unfolding their data: two taps see the same channel,
// one a few places from the other, so that all pairs of taps as far apart share one sum over the channel, but for
// places at its edges. So sums are taken over regions of the channel, of which each pair sees some. With steps above 1 the
// same holds for the channel's every second row and column (phases).
//
// Channels are copied to where they lie side by side, block by block, and where zeros follow each line and each phase.
type lags struct {
	g           *geometry
	groups      int
	block       int // channels that are computed together
	pitch, size int // places of a line and of a phase, with zeros
	front       int // places of zeros before the first phase
	phases      []phase
	pairs       [][]int // rows of sums that make one of tap i and tap j <= i, in the order of a triangle
	taps        [][]int // of the sums of taps
	rows        int     // sums of a channel
	sums        []float32
	pending     int // inputs in sums
	workers     []lagWorker
}

// phase is every step-th place of a channel from y, x on: h by w places.
type phase struct {
	y, x, h, w int
	regions    []region
}

// region is lines y0 to y1 and columns x0 to x1 of a phase, which every tap sees as a whole or not at all.
type region struct {
	y0, y1, x0, x1 int
	keys           []lagKey
	parts          []*vectors.Lags
	row            int // of the first one of its sums, which is of the places themselves; then keys
}

// lagKey is a distance to places of phase q, dy and dx further.
type lagKey struct{ q, dy, dx int }

// lagTap is what a tap sees of a phase: a place for each output, from y, x on, some of which may lie beyond the edges.
type lagTap struct{ phase, y, x int }

// lagWorker is what a worker copies channels to.
type lagWorker struct {
	lines  move.LineCopier
	buf    []float32
	turned []float32
	adding []float64
}

// lagBlock is a few registers of channels, so that lines of them stay in the nearest cache; lagPlaces bounds the places of a part for
// the same reason.
const lagBlock, lagPlaces = 32, 96

// newLags prepares for a geometry of two axes.
func newLags(g *geometry, groups, workers int) *lags {
	s := &lags{g: g, groups: groups, workers: make([]lagWorker, workers)}
	s.block = min(lagBlock, (groups+vectors.LagLanes-1)/vectors.LagLanes*vectors.LagLanes)
	taps := s.findPhases()
	most := [2]int{}
	for _, a := range taps {
		for _, b := range taps {
			most[0], most[1] = max(most[0], a.y-b.y), max(most[1], a.x-b.x)
		}
	}
	rows := 0
	for i := range s.phases {
		p := &s.phases[i]
		s.pitch, rows = max(s.pitch, p.w+most[1]), max(rows, p.h+most[0])
	}
	s.size = s.pitch * rows
	s.front = most[0]*s.pitch + most[1]
	for i := range s.phases {
		s.cut(i, taps)
	}
	for i, a := range taps {
		for _, b := range taps[:i+1] {
			s.pairs = append(s.pairs, s.seen(a, func(r *region) int { return 1 + slices.Index(r.keys, a.to(b)) }))
		}
		s.taps = append(s.taps, s.seen(a, func(*region) int { return 0 }))
	}
	s.sums = make([]float32, (groups+s.block-1)/s.block*s.block*s.rows)
	for i := range s.workers {
		w := &s.workers[i]
		w.buf = make([]float32, (2*s.front+len(s.phases)*s.size)*s.block)
		w.adding = make([]float64, s.block)
	}
	return s
}

// findPhases finds the phases and what each tap sees of one.
func (s *lags) findPhases() []lagTap {
	y, x := &s.g.axes[1], &s.g.axes[2]
	var taps []lagTap
	for ty := range y.window {
		for tx := range x.window {
			py, sy := y.phase(ty)
			px, sx := x.phase(tx)
			i := slices.IndexFunc(s.phases, func(p phase) bool { return p.y == py && p.x == px })
			if i < 0 {
				i = len(s.phases)
				s.phases = append(s.phases, phase{y: py, x: px, h: count(y.in, py, y.stride), w: count(x.in, px, x.stride)})
			}
			taps = append(taps, lagTap{i, sy, sx})
		}
	}
	return taps
}

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

// to is the distance from what a tap sees to what another one sees.
func (a lagTap) to(b lagTap) lagKey { return lagKey{b.phase, b.y - a.y, b.x - a.x} }

// at is where a place of a phase lies in a block's copy.
func (s *lags) at(phase, y, x int) int { return (s.front + phase*s.size + y*s.pitch + x) * s.block }

// cut finds the regions of a phase: between all lines and columns at which a tap begins or ends to see something.
func (s *lags) cut(i int, taps []lagTap) {
	p := &s.phases[i]
	ys, xs := []int{}, []int{}
	for _, t := range taps {
		if t.phase == i {
			ys = append(ys, min(max(t.y, 0), p.h), min(max(t.y+s.g.axes[1].out, 0), p.h))
			xs = append(xs, min(max(t.x, 0), p.w), min(max(t.x+s.g.axes[2].out, 0), p.w))
		}
	}
	slices.Sort(ys)
	slices.Sort(xs)
	for a := range len(ys) - 1 {
		for b := range len(xs) - 1 {
			r := region{y0: ys[a], y1: ys[a+1], x0: xs[b], x1: xs[b+1], row: s.rows}
			if r.y0 == r.y1 || r.x0 == r.x1 {
				continue
			}
			for j, t := range taps {
				if t.phase == i && s.sees(t, &r) {
					for _, u := range taps[:j+1] {
						found(&r.keys, t.to(u))
					}
				}
			}
			if r.keys != nil {
				s.divide(&r, i)
				p.regions = append(p.regions, r)
				s.rows += 1 + len(r.keys)
			}
		}
	}
}

// divide makes the sums of a region of phase i, in parts that stay in the nearest cache.
func (s *lags) divide(r *region, i int) {
	var places []int
	for y := r.y0; y < r.y1; y++ {
		for x := r.x0; x < r.x1; x++ {
			places = append(places, s.at(i, y, x))
		}
	}
	distances := make([]int, len(r.keys))
	for k, key := range r.keys {
		distances[k] = s.at(key.q, key.dy, key.dx) - s.at(i, 0, 0)
	}
	for part := range slices.Chunk(places, lagPlaces) {
		r.parts = append(r.parts, vectors.NewLags(part, distances))
	}
}

// sees reports whether a tap sees a region of its phase.
func (s *lags) sees(t lagTap, r *region) bool {
	return r.y0 >= t.y && r.y1 <= t.y+s.g.axes[1].out && r.x0 >= t.x && r.x1 <= t.x+s.g.axes[2].out
}

// seen are the rows of sums of the regions that a tap sees, of each the one with a number.
func (s *lags) seen(t lagTap, number func(r *region) int) (rows []int) {
	p := &s.phases[t.phase]
	for i := range p.regions {
		if r := &p.regions[i]; s.sees(t, r) {
			rows = append(rows, r.row+number(r))
		}
	}
	return rows
}

// image is channels of which a place has the values step apart in x, neighbouring channels by; line y is the
// first one that is looked at, above the first or below the last one there are zeros.
type image struct {
	x           []float32
	by, step, y int
	lines       int
}

// take adds a block of channels, n of which there are.
func (s *lags) take(w *lagWorker, block, n int, from image) {
	y, c := &s.g.axes[1], &s.g.axes[2]
	first := min(max(from.y, 0), from.lines)
	end := max(min(from.y+y.in, from.lines), first)
	x, step := from.x, from.step
	if first < end {
		x = x[first*c.in*step:]
	}
	if from.by > 1 && first < end { // channels are apart
		turned := grown(&w.turned, s.g.plane*s.block)
		move.Transpose(turned, s.block, x, from.by, (end-first)*c.in, n)
		x, step = turned, s.block
	}
	for i := range s.phases {
		p := &s.phases[i]
		if p.w == 0 {
			continue
		}
		for r := range p.h {
			to, line := w.buf[s.at(i, r, 0):][:p.w*s.block], from.y+p.y+r*y.stride-first
			switch {
			case line < 0 || line >= end-first:
				clear(to)
			case c.stride*step == s.block: // side by side
				copy(to, x[(line*c.in+p.x)*step:])
			default:
				w.lines.Copy(to, s.block, x[(line*c.in+p.x)*step:], c.stride*step, 1, n, p.w)
			}
		}
	}
	sums := s.sums[block*s.block*s.rows:][:s.block*s.rows]
	for i := range s.phases {
		for k := range s.phases[i].regions {
			r := &s.phases[i].regions[k]
			for _, part := range r.parts {
				part.Add(sums[r.row*s.block:], w.buf, s.block)
			}
		}
	}
}

// flush adds the sums of a block to those of m.
func (s *lags) flush(w *lagWorker, m *moments, block int) {
	sums := s.sums[block*s.block*s.rows:][:s.block*s.rows]
	c0 := block * s.block
	each := func(rows []int, add func(c int, v float64)) {
		clear(w.adding)
		for _, r := range rows {
			for i, v := range sums[r*s.block:][:s.block] {
				w.adding[i] += float64(v)
			}
		}
		for i, v := range w.adding[:min(s.block, s.groups-c0)] {
			add(c0+i, v)
		}
	}
	for i, rows := range s.pairs {
		each(rows, func(c int, v float64) { m.sum[c][i] += v })
	}
	for i, rows := range s.taps {
		each(rows, func(c int, v float64) { m.total[c*m.cols+i] += v })
	}
	clear(sums)
}

// done adds what was found to the sums of m.
func (s *lags) done(m *moments) {
	if s.pending == 0 {
		return
	}
	s.pending = 0
	m.pool.ForWorker((s.groups+s.block-1)/s.block, 1, func(worker, lo, hi int) {
		for b := lo; b < hi; b++ {
			s.flush(&s.workers[worker], m, b)
		}
	})
}

// depthwise adds the channels of a depthwise convolution, one for each group, that lie one after the other, or with last
// side by side: every step-th line of positions from first on. It returns false where they have to be unfolded.
func (m *moments) depthwise(g *geometry, x []float32, last bool, first, step int) bool {
	if m.squares || m.kept || m.groups < fewGroups || m.cols > mostTaps || g.axes[0].out != 1 || g.axes[0].in != 1 || g.axes[1].transposed {
		return false
	}
	m.ready()
	seen, n := g, 1
	byLine := step > 1 || g.plane > mostPlane
	if byLine {
		seen, n = g.line(), (g.lines()-first+step-1)/step
	}
	if m.lag == nil || !slices.Equal(m.lag.g.axes, seen.axes) {
		if m.lag != nil {
			m.lag.done(m)
		}
		m.lag = newLags(seen, m.groups, m.pool.Threads())
	}
	s := m.lag
	from := image{by: g.plane, step: 1, lines: g.axes[1].in}
	apart := g.plane
	if last {
		from.by, from.step, apart = 1, m.groups, 1
	}
	m.pool.ForWorker((m.groups+s.block-1)/s.block, max(1, 1<<14/(seen.plane*n*s.block)), func(worker, lo, hi int) {
		for b := lo; b < hi; b++ {
			of := from
			of.x = x[b*s.block*apart:]
			for line := first; line < first+n*step; line += step {
				if byLine {
					of.y = line*g.axes[1].stride - g.axes[1].pad
				}
				s.take(&s.workers[worker], b, min(s.block, m.groups-b*s.block), of)
			}
		}
	})
	if s.pending += seen.outputs * n; s.pending >= lagFlush {
		s.done(m)
	}
	few := min(m.groups, mostGroups)
	if last && len(m.sketches) > 0 {
		planes := make([]float32, few*g.plane)
		move.Transpose(planes, g.plane, x, m.groups, few, g.plane)
		x = planes
	}
	m.sketched(g, x, few, 1)
	m.n += seen.outputs * n
	return true
}

// line is the geometry of a single line of positions, over the lines of the input that it sees.
func (g *geometry) line() *geometry {
	out := *g
	out.axes = slices.Clone(g.axes)
	a := &out.axes[1]
	a.in, a.out, a.stride, a.pad = (a.window-1)*a.dil+1, 1, 1, 0
	out.plane, out.outputs = a.in*out.axes[2].in, out.axes[2].out
	return &out
}

// mostTaps bounds the window, since there are up to as many regions with twice as many sums each.
const mostTaps = 64

// mostPlane bounds the places of a channel that are copied at once: lines one by one take up to three times as long.
const mostPlane = 1 << 16

// fewGroups fill too little of a register for sums side by side.
const fewGroups = 4

// lagFlush bounds the inputs whose sums are added in single precision, part by part: some hundred parts.
const lagFlush = 1 << 16

// sketched hands the windows of the first groups, of so many channels each, to the sketches: lines that are spread over the channels
// stand for all.
func (m *moments) sketched(g *geometry, x []float32, groups, channels int) {
	if len(m.sketches) == 0 {
		return
	}
	n := min(g.lines(), max(pieces, places/g.width()))
	w := n * g.width()
	open := make([]float32, m.cols*w)
	var lines move.LineCopier
	for k := range groups {
		for c := range channels {
			g.unfold(&lines, open[c*g.taps*w:], w, x[(k*channels+c)*g.plane:][:g.plane], g.lines()/n/2, n, g.lines()/n)
		}
		for _, s := range m.sketches {
			s.planes(k, open, w, w)
		}
	}
}

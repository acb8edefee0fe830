package loss

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// lagSums computes second moments between taps of depthwise convolutions without im2col. Two taps
// see the same channel, shifted by a few positions, so all tap pairs with the same shift (lag)
// share one sum over the channel, apart from its edges. Sums are therefore taken over regions of
// the channel, and each pair adds up the regions it sees. With strides above 1 the same holds for
// each phase, which is every stride-th row and column of the channel.
//
// Channels are copied block by block into an interleaved layout, with zeros after each row and
// each phase.
type lagSums struct {
	g           *geometry
	groups      int
	block       int // channels computed together
	pitch, size int // elements of a row and of a phase, with zeros
	front       int // elements of zeros before the first phase
	phases      []phase
	// rows of sums that add up to the moment of taps i and j <= i, in triangular order
	pairs   [][]int
	taps    [][]int // the same for the sums of taps
	rows    int     // sums per channel
	sums    []float32
	pending int // number of inputs in sums
	workers []lagWorker
}

// phase is every stride-th element of a channel from y, x on: h by w elements.
type phase struct {
	y, x, h, w int
	regions    []region
}

// region is rows y0 to y1 and columns x0 to x1 of a phase. Every tap sees all of it or nothing.
type region struct {
	y0, y1, x0, x1 int
	keys           []lagKey
	parts          []*vectors.Lags
	// row of its first sum, which is that of the elements themselves; the sums of keys follow
	row int
}

// lagKey is the shift to elements of phase q by dy and dx.
type lagKey struct{ q, dy, dx int }

// lagTap is the part of a phase that a tap sees: an element for each output, from y, x on,
// possibly beyond the edges.
type lagTap struct{ phase, y, x int }

// lagWorker has the buffers of a worker.
type lagWorker struct {
	lines  move.LineCopier
	buf    []float32
	turned []float32
	adding []float64
}

// lagBlock is a few vector registers of channels, so that rows stay in the L1 cache; lagPlaces
// bounds the elements of a part for the same reason.
const lagBlock, lagPlaces = 32, 96

// newLagSums prepares for a geometry of two axes.
func newLagSums(g *geometry, groups, workers int) *lagSums {
	s := &lagSums{g: g, groups: groups, workers: make([]lagWorker, workers)}
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
		s.findRegions(i, taps)
	}
	for i, a := range taps {
		for _, b := range taps[:i+1] {
			s.pairs = append(s.pairs, s.rowsSeen(a, func(r *region) int { return 1 + slices.Index(r.keys, a.distance(b)) }))
		}
		s.taps = append(s.taps, s.rowsSeen(a, func(*region) int { return 0 }))
	}
	s.sums = make([]float32, (groups+s.block-1)/s.block*s.block*s.rows)
	for i := range s.workers {
		w := &s.workers[i]
		w.buf = make([]float32, (2*s.front+len(s.phases)*s.size)*s.block)
		w.adding = make([]float64, s.block)
	}
	return s
}

// findPhases finds the phases and the part of a phase that each tap sees.
func (s *lagSums) findPhases() []lagTap {
	y, x := &s.g.axes[1], &s.g.axes[2]
	var taps []lagTap
	for ty := range y.window {
		for tx := range x.window {
			py, sy := y.phase(ty)
			px, sx := x.phase(tx)
			i := slices.IndexFunc(s.phases, func(p phase) bool { return p.y == py && p.x == px })
			if i < 0 {
				i = len(s.phases)
				s.phases = append(s.phases, phase{y: py, x: px, h: phaseLength(y.in, py, y.stride), w: phaseLength(x.in, px, x.stride)})
			}
			taps = append(taps, lagTap{i, sy, sx})
		}
	}
	return taps
}

// phase returns the offset of a tap's inputs within a stride, and the index of the first output's
// input within the phase.
func (a *axis) phase(t int) (phase, shift int) {
	at := t*a.dil - a.pad
	phase = ((at % a.stride) + a.stride) % a.stride
	return phase, (at - phase) / a.stride
}

func phaseLength(n, from, step int) int { return max(0, (n-from+step-1)/step) }

// indexOrAppend returns the index of a value in a list, appending it if necessary.
func indexOrAppend[T comparable](list *[]T, v T) int {
	i := slices.Index(*list, v)
	if i < 0 {
		i = len(*list)
		*list = append(*list, v)
	}
	return i
}

// distance returns the shift from what one tap sees to what another sees.
func (a lagTap) distance(b lagTap) lagKey { return lagKey{b.phase, b.y - a.y, b.x - a.x} }

// offset returns the offset of an element of a phase in a block's copy.
func (s *lagSums) offset(phase, y, x int) int {
	return (s.front + phase*s.size + y*s.pitch + x) * s.block
}

// findRegions splits a phase into regions, at all rows and columns where a tap's view begins or
// ends.
func (s *lagSums) findRegions(i int, taps []lagTap) {
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
						indexOrAppend(&r.keys, t.distance(u))
					}
				}
			}
			if r.keys != nil {
				s.splitRegion(&r, i)
				p.regions = append(p.regions, r)
				s.rows += 1 + len(r.keys)
			}
		}
	}
}

// splitRegion prepares the sums of a region of phase i, in parts that stay in the L1 cache.
func (s *lagSums) splitRegion(r *region, i int) {
	var places []int
	for y := r.y0; y < r.y1; y++ {
		for x := r.x0; x < r.x1; x++ {
			places = append(places, s.offset(i, y, x))
		}
	}
	distances := make([]int, len(r.keys))
	for k, key := range r.keys {
		distances[k] = s.offset(key.q, key.dy, key.dx) - s.offset(i, 0, 0)
	}
	for part := range slices.Chunk(places, lagPlaces) {
		r.parts = append(r.parts, vectors.NewLags(part, distances))
	}
}

// sees reports whether a tap sees a region of its phase.
func (s *lagSums) sees(t lagTap, r *region) bool {
	return r.y0 >= t.y && r.y1 <= t.y+s.g.axes[1].out && r.x0 >= t.x && r.x1 <= t.x+s.g.axes[2].out
}

// rowsSeen returns the rows of sums of the regions that a tap sees; number selects a sum of each.
func (s *lagSums) rowsSeen(t lagTap, number func(r *region) int) (rows []int) {
	p := &s.phases[t.phase]
	for i := range p.regions {
		if r := &p.regions[i]; s.sees(t, r) {
			rows = append(rows, r.row+number(r))
		}
	}
	return rows
}

// channelImage is a group of channels. Consecutive elements of a channel are step apart in x,
// adjacent channels are by apart. y is the first row to read; rows outside of the image are zero.
type channelImage struct {
	x           []float32
	by, step, y int
	lines       int
}

// addBlock adds a block of n channels.
func (s *lagSums) addBlock(w *lagWorker, block, n int, from channelImage) {
	y, c := &s.g.axes[1], &s.g.axes[2]
	first := min(max(from.y, 0), from.lines)
	end := max(min(from.y+y.in, from.lines), first)
	x, step := from.x, from.step
	if first < end {
		x = x[first*c.in*step:]
	}
	if from.by > 1 && first < end { // channels are not interleaved
		turned := grow(&w.turned, s.g.plane*s.block)
		move.Transpose(turned, s.block, x, from.by, (end-first)*c.in, n)
		x, step = turned, s.block
	}
	for i := range s.phases {
		p := &s.phases[i]
		if p.w == 0 {
			continue
		}
		for r := range p.h {
			to, line := w.buf[s.offset(i, r, 0):][:p.w*s.block], from.y+p.y+r*y.stride-first
			switch {
			case line < 0 || line >= end-first:
				clear(to)
			case c.stride*step == s.block: // contiguous
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
func (s *lagSums) flush(w *lagWorker, m *moments, block int) {
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

// finish adds pending sums to those of m.
func (s *lagSums) finish(m *moments) {
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

// addDepthwise adds the channels of a depthwise convolution, one per group, in planar order, or
// interleaved with last: every step-th row of positions from first on. It returns false where
// im2col is needed.
func (m *moments) addDepthwise(g *geometry, x []float32, last bool, first, step int) bool {
	if m.squaresOnly || m.keepInputs || m.groups < minLagGroups || m.cols > maxLagTaps || g.axes[0].out != 1 || g.axes[0].in != 1 || g.axes[1].transposed {
		return false
	}
	m.allocate()
	seen, n := g, 1
	byLine := step > 1 || g.plane > maxLagPlane
	if byLine {
		seen, n = g.singleLine(), (g.lines()-first+step-1)/step
	}
	if m.lag == nil || !slices.Equal(m.lag.g.axes, seen.axes) {
		if m.lag != nil {
			m.lag.finish(m)
		}
		m.lag = newLagSums(seen, m.groups, m.pool.Threads())
	}
	s := m.lag
	from := channelImage{by: g.plane, step: 1, lines: g.axes[1].in}
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
				s.addBlock(&s.workers[worker], b, min(s.block, m.groups-b*s.block), of)
			}
		}
	})
	if s.pending += seen.outputs * n; s.pending >= lagFlush {
		s.finish(m)
	}
	few := min(m.groups, maxSketchGroups)
	if last && len(m.sketches) > 0 {
		planes := make([]float32, few*g.plane)
		move.Transpose(planes, g.plane, x, m.groups, few, g.plane)
		x = planes
	}
	m.addToSketches(g, x, few, 1)
	m.n += seen.outputs * n
	return true
}

// singleLine returns the geometry of a single row of positions, over the input rows that it sees.
func (g *geometry) singleLine() *geometry {
	out := *g
	out.axes = slices.Clone(g.axes)
	a := &out.axes[1]
	a.in, a.out, a.stride, a.pad = (a.window-1)*a.dil+1, 1, 1, 0
	out.plane, out.outputs = a.in*out.axes[2].in, out.axes[2].out
	return &out
}

// maxLagTaps bounds the window: there are up to as many regions, with twice as many sums each.
const maxLagTaps = 64

// maxLagPlane bounds the elements of a channel that are copied at once; row by row takes up to
// three times as long.
const maxLagPlane = 1 << 16

// minLagGroups is the minimum number of groups: fewer fill too little of a vector register.
const minLagGroups = 4

// lagFlush bounds the inputs that are summed in single precision: some hundred parts.
const lagFlush = 1 << 16

// addToSketches passes the windows of the first groups, of the given number of channels each, to
// the sketches. Rows that are spread over the channels represent all.
func (m *moments) addToSketches(g *geometry, x []float32, groups, channels int) {
	if len(m.sketches) == 0 {
		return
	}
	n := min(g.lines(), max(sketchPieces, maxSketchInputs/g.width()))
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

package gemm

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Weights of kernels that add the products of two neighbours in 16 bits (VPMADDUBSW on AVX2).
// Neighbours with large weights of one sign would saturate. Within each window of 16 steps the
// steps of a panel are reordered so that no column has such neighbours, and activations are
// reordered in the same way when they are loaded. A few windows without such an order are split
// in two; with more of them, the weights are packed in pairs of 16-bit products.

// windowQuads is the number of 4-way groups of a window.
const windowQuads = simd.OrderWindow / 4

// splitWindow is the second part of a window that is split: the weights that the panel lacks.
type splitWindow struct {
	at      int // the first activation, within the segment
	weights [windowQuads * 4 * simd.PairColumns]int8
	order   [windowQuads * simd.OrderBytes]uint8
}

// orderPairs reorders the weights of all panels, packed in 4-way groups. It returns false, and
// leaves the weights unusable, if too many windows have no order without saturation.
func (w *IntPanels) orderPairs(p *workers.Pool, panels int) bool {
	windows := (w.Pairs() + windowQuads - 1) / windowQuads
	q := pairOrdering{w: w, order: w.spare.order, split: make([][]splitWindow, panels*w.Segs), left: new(atomic.Int64), ordered: new(atomic.Bool)}
	q.left.Store(int64(panels * w.Segs * windows / minWholeWindows))
	if w.Pairs() >= windowQuads {
		q.order = scratch.Zeroed(q.order, panels*w.Segs*w.Pairs()*simd.OrderBytes)
	}
	all := q.left.Load()
	workers.Each(p, panels, max(1, packGrain/max(1, w.panel())), q)
	left := q.left.Load()
	if left < 0 {
		return false
	}
	if q.ordered.Load() {
		w.order, w.spare.order = q.order, q.order
	}
	if left < all {
		w.split = q.split
	}
	return true
}

// minWholeWindows is the minimum number of windows for each one that is split.
const minWholeWindows = 16

// pairOrdering holds the arguments of a work item of orderPairs.
type pairOrdering struct {
	w       *IntPanels
	order   []uint8         // empty if segments are shorter than a window
	split   [][]splitWindow // for each segment
	left    *atomic.Int64   // windows that may be split
	ordered *atomic.Bool    // an order is not the natural one
}

// Piece orders panels lo to hi.
func (q pairOrdering) Piece(lo, hi int) {
	pairs := q.w.Pairs()
	var m pairWindow
	for seg := lo * q.w.Segs; seg < hi*q.w.Segs; seg++ {
		for i := 0; i < pairs; i += windowQuads {
			n, at := min(windowQuads, pairs-i), seg*pairs+i
			weights := q.w.Narrow[at*4*simd.PairColumns:][:n*4*simd.PairColumns]
			if q.left.Load() < 0 {
				return
			}
			var order []uint8
			if len(q.order) > 0 {
				order = q.order[at*simd.OrderBytes:][:n*simd.OrderBytes]
			}
			if s := q.window(&m, weights, order, 4*n); s != nil {
				s.at = 4*(i+n) - simd.OrderWindow
				q.split[seg] = append(q.split[seg], *s)
			}
		}
	}
}

// window orders the n steps of a window; m is scratch memory. An empty order permits only the
// natural one. It returns the second part if the window has to be split.
func (q pairOrdering) window(m *pairWindow, weights []int8, order []uint8, n int) *splitWindow {
	q.w.F.SplitPairs(&m.PairWindow, weights)
	places, alone := naturalPlaces, n
	if wrong := m.wrongPairs(n); wrong != 0 {
		if len(order) == 0 {
			q.left.Store(-1)
			return nil
		}
		if !m.exchange(wrong, n, &places) {
			places, alone = m.match(n)
		}
		q.ordered.Store(true)
		q.w.F.JoinPairs(weights, &m.PairWindow, &places)
	}
	// A last window of fewer steps is the end of 16.
	for i := range order {
		order[i] = places[i] + uint8(simd.OrderWindow-n)
	}
	if alone == n {
		return nil
	}
	q.left.Add(-1)
	s := &splitWindow{}
	copy(s.order[:], order)
	for k := alone + 1; k < n; k += 2 {
		for j := range simd.PairColumns {
			i := (k/4*simd.PairColumns+j)*4 + k%4
			s.weights[i], weights[i] = weights[i], 0
		}
	}
	return s
}

// runOrdered is [IntPanels.Run] for reordered weights.
func (w *IntPanels) runOrdered(t *simd.IntTile, rows int) {
	row := int(uintptr(t.B)-uintptr(unsafe.Pointer(&w.Narrow[0]))) / (4 * simd.PairColumns)
	t.Order = &w.order[row*simd.OrderBytes]
	w.F.RunOrdered(t, rows)
	if w.split == nil {
		return
	}
	was := *t
	t.K, t.Segs = windowQuads, 1
	t.SetContinue(true)
	for s := range was.Segs {
		split := w.split[row/w.Pairs()+s]
		for i := range split {
			t.A, t.B, t.Order = unsafe.Add(was.A, s*was.SegA+split[i].at), unsafe.Pointer(&split[i].weights), &split[i].order[0]
			w.F.RunOrdered(t, rows)
		}
	}
	*t = was
}

// naturalPlaces is the natural order.
var naturalPlaces = func() (p [simd.OrderWindow]uint8) {
	for i := range p {
		p[i] = uint8(i)
	}
	return p
}()

// pairWindow is a window with the test of its neighbours.
type pairWindow struct{ simd.PairWindow }

const upperBits64 = 0x8080808080808080

// saturates reports whether weights of one sign of two steps add up to [simd.MaxPair] or more in
// any column. One less than the exact limit is tested by a single bit.
func (m *pairWindow) saturates(i, j uint8) bool {
	x, y := &m.Sizes[i], &m.Sizes[j]
	return ((x[0]+y[0])|(x[1]+y[1])|(x[2]+y[2])|(x[3]+y[3]))&upperBits64 != 0
}

// wrongPairs returns the pairs of the natural order that saturate: the bits of their first steps.
func (m *pairWindow) wrongPairs(n int) uint {
	wrong := uint(0)
	for i := 0; i < n; i += 2 {
		x, y := &m.Sizes[i], &m.Sizes[i+1]
		sums := ((x[0] + y[0]) | (x[1] + y[1]) | (x[2] + y[2]) | (x[3] + y[3])) & upperBits64
		wrong |= uint((sums|-sums)>>63) << i
	}
	return wrong
}

// exchange lets the pairs of places that are wrong exchange a step with another pair so that
// neither saturates. It returns false if it finds none for a pair. That is rare, and much faster
// than an order of all steps by their weights.
func (m *pairWindow) exchange(wrong uint, n int, places *[simd.OrderWindow]uint8) bool {
next:
	for ; wrong != 0; wrong &= wrong - 1 {
		p := bits.TrailingZeros(wrong) % simd.OrderWindow
		a, b := &places[p], &places[p|1]
		if !m.saturates(*a, *b) {
			continue // exchanged with a wrong pair before
		}
		for q := 0; q < n; q += 2 {
			if q == p {
				continue
			}
			for i := q; i < q+2; i++ {
				c, d := &places[i%simd.OrderWindow], &places[(i^1)%simd.OrderWindow]
				if !m.saturates(*a, *c) && !m.saturates(*b, *d) {
					*b, *c = *c, *b
					continue next
				}
			}
		}
		return false
	}
	return true
}

// maxPairTrials limits the search for an order.
const maxPairTrials = 200

// greedy pairs the steps with the most large weights first, each with the first partner among
// those with the fewest. It returns false if a step has none, not even by changing another pair.
func (m *pairWindow) greedy(n int, places *[simd.OrderWindow]uint8) bool {
	var order, large [simd.OrderWindow]uint8 // by number of large weights, the most first
	for i := range n {
		c, at := m.Large[i], i
		for ; at > 0 && large[at-1] < c; at-- {
			large[at], order[at] = large[at-1], order[at-1]
		}
		large[at], order[at] = c, uint8(i)
	}
	steps := order[:n]
	for at := 0; at < n; at += 2 {
		first := steps[0]
		partner := m.partner(first, steps)
		for p := 0; partner == 0 && p < at; p++ {
			// Take the partner of another step that has a second choice.
			if other := places[p^1]; !m.saturates(first, places[p]) {
				if partner = m.partner(other, steps); partner > 0 {
					places[p^1], first = first, other
				}
			}
		}
		if partner == 0 {
			return false
		}
		places[at], places[at+1] = first, steps[partner]
		copy(steps[partner:], steps[partner+1:])
		steps = steps[1 : len(steps)-1]
	}
	return true
}

// partner returns the last of steps, from the second on, that does not saturate beside step i; 0
// if all do.
func (m *pairWindow) partner(i uint8, steps []uint8) int {
	for p := len(steps) - 1; p > 0; p-- {
		if !m.saturates(i, steps[p]) {
			return p
		}
	}
	return 0
}

// match returns an order of n steps whose neighbours do not saturate, up to step alone. From
// there on they may saturate if it finds no such order.
func (m *pairWindow) match(n int) (places [simd.OrderWindow]uint8, alone int) {
	if m.greedy(n, &places) {
		return places, n
	}
	var allowed [simd.OrderWindow]uint16
	for i := range n {
		for j := range i {
			if !m.saturates(uint8(i), uint8(j)) {
				allowed[i] |= 1 << j
				allowed[j] |= 1 << i
			}
		}
	}
	left, trials := uint16(1<<n-1), maxPairTrials
	if matchRest(&allowed, left, places[:0:n], &trials) {
		return places, n
	}
	// Without trials: steps that are left over come last.
	end := n
	for left != 0 {
		i := fewestPartners(&allowed, left)
		left &^= 1 << i
		if s := allowed[i] & left; s != 0 {
			j := bits.TrailingZeros16(s)
			left &^= 1 << j
			places[alone], places[alone+1] = uint8(i), uint8(j)
			alone += 2
			continue
		}
		end--
		places[end] = uint8(i)
	}
	return places, alone
}

// fewestPartners returns the step in left that has the fewest partners there.
func fewestPartners(allowed *[simd.OrderWindow]uint16, left uint16) int {
	first, fewest := 0, simd.OrderWindow+1
	for s := left; s != 0; s &= s - 1 {
		i := bits.TrailingZeros16(s)
		if n := bits.OnesCount16(allowed[i] & left); n < fewest {
			first, fewest = i, n
		}
	}
	return first
}

// matchRest appends the pairs of the steps in left. It begins with the step that has the fewest
// partners.
func matchRest(allowed *[simd.OrderWindow]uint16, left uint16, places []uint8, trials *int) bool {
	if left == 0 {
		return true
	}
	first := fewestPartners(allowed, left)
	for s := allowed[first] & left; s != 0; s &= s - 1 {
		if *trials--; *trials < 0 {
			return false
		}
		j := bits.TrailingZeros16(s)
		if matchRest(allowed, left&^(1<<first|1<<j), append(places, uint8(first), uint8(j)), trials) {
			return true
		}
	}
	return false
}

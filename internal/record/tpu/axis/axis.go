// Package axis finds out how the counters of a chip's engines stand to one another,
// from what commands waited for.
//
// Let Ts and Te be start and end of a command of the tensor engine (TIU) in cycles of its counter,
// Gs and Ge those of a copy in cycles of the copy engine's. With the ratio k of the two clocks (TIU
// over DMA) and an offset x, a time of the copy engine is k*G and one of the tensor engine T + x on
// the same axis. A tensor command that waits for a copy cannot start before it ended, Ts + x >=
// k*Ge, and a copy that waits for a tensor command k*Gs >= Te + x. So x lies between max(k*Ge - Ts)
// and min(k*Gs - Te): an interval that is narrow, and empty for a wrong k.
package axis

import (
	"math"
	"slices"
	"sort"
)

// Waits are the dependencies between two engines that were recorded with both commands' times.
type Waits struct {
	// TIUStart holds starts of tensor commands, CopyEnd the ends of the copies that
	// they waited for.
	TIUStart, CopyEnd []int64
	// CopyStart holds starts of copies, TIUEnd the ends of the tensor commands that they
	// waited for.
	CopyStart, TIUEnd []int64
}

// Len is the number of dependencies.
func (w *Waits) Len() int { return len(w.TIUStart) + len(w.CopyStart) }

// Offset is the place of a tensor engine's counter on the axis of the copies.
type Offset struct {
	// Low and High bound x for the ratio, TIU cycles; infinite where nothing bounds
	// them. Low is above High where no offset agrees with all dependencies.
	Low, High float64
	X         float64 // what was chosen
	// Violated counts dependencies that X contradicts, Waits all of them.
	Violated, Waits int
}

// Ratio says how the ratio of the clocks was found.
type Ratio struct {
	K float64 // TIU clock over copy clock
	// Solved says that it follows from dependencies: with it they agree, and there are
	// enough of them for that to mean something.
	Solved  bool
	Nominal bool // Nominal says that it is the first of those that were to be expected
	// Best is the ratio for which the interval is widest; 0 where there are too few
	// dependencies, and where one of those that were expected agrees.
	Best float64
}

// Bounds of the ratios that are looked for.
const (
	leastRatio = 0.7
	mostRatio  = 1.8
	// wakeUp is how long a command starts after what it waited for, cycles; the offset
	// lies as far above the lower bound.
	wakeUp = 4
	// enough is how many dependencies of either kind make a ratio that agrees with them
	// more than chance.
	enough = 3
	// slack is what products of counters may be off by, cycles.
	slack = 1e-3
)

// Solve finds one ratio for all groups of dependencies, which have counters of their
// own, and an offset for each group. Expected are ratios in the order of preference, at least
// one; fixed takes the first of them whatever the dependencies say.
func Solve(groups []Waits, expected []float64, fixed bool) (Ratio, []Offset) {
	s := make([]solver, len(groups))
	can := false
	for i := range groups {
		s[i].take(&groups[i])
		can = can || len(groups[i].TIUStart) >= enough && len(groups[i].CopyStart) >= enough
	}
	r := Ratio{K: expected[0], Nominal: true}
	if can {
		r.K, r.Best, r.Solved = choose(s, expected, fixed)
		r.Nominal = r.K == expected[0]
	}
	out := make([]Offset, len(groups))
	for i := range s {
		out[i] = s[i].offset(r.K)
	}
	return r, out
}

// solver holds the dependencies of a group relative to the first time of each engine,
// so that products keep their digits.
type solver struct {
	low, high  [][2]float64 // TIU time, copy time
	tiu0, dma0 int64
	n          int
}

func (s *solver) take(w *Waits) {
	first := func(lists ...[]int64) int64 {
		least := int64(math.MaxInt64)
		for _, l := range lists {
			for _, v := range l {
				least = min(least, v)
			}
		}
		return least
	}
	s.n = w.Len()
	if s.n == 0 {
		return
	}
	s.tiu0, s.dma0 = first(w.TIUStart, w.TIUEnd), first(w.CopyStart, w.CopyEnd)
	for i := range w.TIUStart {
		s.low = append(s.low, [2]float64{float64(w.TIUStart[i] - s.tiu0), float64(w.CopyEnd[i] - s.dma0)})
	}
	for i := range w.CopyStart {
		s.high = append(s.high, [2]float64{float64(w.TIUEnd[i] - s.tiu0), float64(w.CopyStart[i] - s.dma0)})
	}
}

// interval bounds the relative offset.
func (s *solver) interval(k float64) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	for _, p := range s.low {
		low = max(low, k*p[1]-p[0])
	}
	for _, p := range s.high {
		high = min(high, k*p[1]-p[0])
	}
	return low, high
}

// width is that of the narrowest interval of all groups.
func width(s []solver, k float64) float64 {
	w := math.Inf(1)
	for i := range s {
		low, high := s[i].interval(k)
		w = min(w, high-low)
	}
	return w
}

// widest finds the ratio with the widest interval. The width is the least of linear
// functions of k, so that it has one maximum.
func widest(s []solver) float64 {
	a, b := leastRatio, mostRatio
	const golden = 0.6180339887498949
	x, y := b-golden*(b-a), a+golden*(b-a)
	wx, wy := width(s, x), width(s, y)
	for range 60 {
		if wx < wy {
			a, x, wx = x, y, wy
			y = a + golden*(b-a)
			wy = width(s, y)
		} else {
			b, y, wy = y, x, wx
			x = b - golden*(b-a)
			wx = width(s, x)
		}
	}
	return (a + b) / 2
}

// choose takes the first ratio with which all dependencies agree, else the one with which most do.
func choose(s []solver, expected []float64, fixed bool) (k, best float64, agrees bool) {
	for i, k := range expected {
		if width(s, k) >= -slack {
			return k, 0, true
		}
		if i == 0 && fixed {
			return k, widest(s), false
		}
	}
	if best = widest(s); width(s, best) >= -slack {
		return best, best, true
	}
	k, least := expected[0], violated(s, expected[0])
	try := append(slices.Clone(expected[1:]), best)
	for c := leastRatio; c <= mostRatio; c += 0.05 {
		try = append(try, c)
	}
	for _, c := range try {
		if v := violated(s, c); v < least {
			k, least = c, v
		}
	}
	return k, best, false
}

func violated(s []solver, k float64) (n int) {
	for i := range s {
		n += s[i].offset(k).Violated
	}
	return n
}

// offset chooses x: just above the lower bound, or where the fewest dependencies are contradicted.
func (s *solver) offset(k float64) Offset {
	low, high := s.interval(k)
	shift := k*float64(s.dma0) - float64(s.tiu0)
	o := Offset{Low: low + shift, High: high + shift, Waits: s.n}
	var x float64
	switch {
	case s.n == 0:
		return o
	case low <= high+slack && math.IsInf(low, -1):
		x = high - wakeUp
	case low <= high+slack:
		x = low + max(0, min(wakeUp, (high-low)/2))
	default:
		x, o.Violated = s.fewest(k)
	}
	o.X = x + shift
	return o
}

// fewest finds the offset that contradicts the fewest dependencies.
func (s *solver) fewest(k float64) (x float64, bad int) {
	low, high := make([]float64, len(s.low)), make([]float64, len(s.high))
	for i, p := range s.low {
		low[i] = k*p[1] - p[0]
	}
	for i, p := range s.high {
		high[i] = k*p[1] - p[0]
	}
	sort.Float64s(low)
	sort.Float64s(high)
	bad = math.MaxInt
	j := 0
	for i, l := range low {
		for j < len(high) && high[j] < l-slack {
			j++
		}
		// Lower bounds above l and upper bounds below it are contradicted.
		if n := len(low) - 1 - i + j; n < bad {
			x, bad = l, n
		}
	}
	return x, bad
}

// Median of the differences between the times of what happened at one instant on two
// cores, in pairs; ok is false if absent.
func Median(a, b []float64) (difference float64, ok bool) {
	n := min(len(a), len(b))
	if n == 0 {
		return 0, false
	}
	d := make([]float64, n)
	for i := range d {
		d[i] = a[i] - b[i]
	}
	slices.Sort(d)
	if n%2 == 1 {
		return d[n/2], true
	}
	return (d[n/2-1] + d[n/2]) / 2, true
}

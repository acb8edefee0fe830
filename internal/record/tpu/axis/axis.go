// Package axis finds the relation of the counters of a chip's engines from the dependencies of
// commands.
//
// Let Ts and Te be start and end of a command of the tensor engine (TIU) in cycles of its counter,
// Gs and Ge those of a copy in cycles of the copy engine's. With the ratio k of the two clocks (TIU
// over DMA) and an offset x, the times k*G and T + x are on the same axis. A tensor command that
// waits for a copy cannot start before its end, Ts + x >= k*Ge. For a copy that waits for a tensor
// command, k*Gs >= Te + x. So x is between max(k*Ge - Ts) and min(k*Gs - Te): a narrow interval,
// which is empty for a wrong k.
package axis

import (
	"math"
	"slices"
)

// Waits are the dependencies between two engines with recorded times of both commands.
type Waits struct {
	// Starts of tensor commands, and the ends of the copies that they waited for.
	TIUStart, CopyEnd []int64
	// Starts of copies, and the ends of the tensor commands that they waited for.
	CopyStart, TIUEnd []int64
}

// Offset is the place of a tensor engine's counter on the axis of the copies, in TIU cycles.
type Offset struct {
	// Low and High bound x for the ratio, infinite without a bound. Low is above High if no offset
	// agrees with all dependencies.
	Low, High       float64
	X               float64 // the chosen offset
	Violated, Waits int     // dependencies that X contradicts, and all of them
}

// Ratio is the ratio of the clocks.
type Ratio struct {
	K float64 // TIU clock over copy clock
	// Solved means that enough dependencies agree with K for a statement.
	Solved  bool
	Nominal bool // K is the first expected ratio
	// Best is the ratio with the widest interval, 0 if there are too few dependencies or an expected
	// ratio agrees.
	Best float64
}

const (
	leastRatio = 0.7
	mostRatio  = 1.8
	wakeUp     = 4    // cycles from the end of a dependency to the start of a command
	enough     = 3    // dependencies of either kind that make agreement more than chance
	slack      = 1e-3 // rounding error of products of counters, cycles
)

// Solve finds one ratio for all groups of dependencies, which have counters of their own, and an
// offset for each group. expected are ratios in the order of preference, at least one. fixed uses
// the first of them in any case.
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

// solver contains the dependencies of a group relative to the first time of each engine, so that
// products keep their digits.
type solver struct {
	low, high  [][2]float64 // TIU time, copy time
	tiu0, dma0 int64
}

// least returns the smallest value of two lists, 0 for empty lists.
func least(a, b []int64) int64 {
	if all := slices.Concat(a, b); len(all) > 0 {
		return slices.Min(all)
	}
	return 0
}

func (s *solver) take(w *Waits) {
	s.tiu0, s.dma0 = least(w.TIUStart, w.TIUEnd), least(w.CopyStart, w.CopyEnd)
	pairs := func(tiu, dma []int64) (out [][2]float64) {
		for i := range tiu {
			out = append(out, [2]float64{float64(tiu[i] - s.tiu0), float64(dma[i] - s.dma0)})
		}
		return out
	}
	s.low, s.high = pairs(w.TIUStart, w.CopyEnd), pairs(w.TIUEnd, w.CopyStart)
}

// bounds returns the offset of each pair.
func bounds(pairs [][2]float64, k float64) []float64 {
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		out[i] = k*p[1] - p[0]
	}
	return out
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

func width(s []solver, k float64) float64 {
	w := math.Inf(1)
	for i := range s {
		low, high := s[i].interval(k)
		w = min(w, high-low)
	}
	return w
}

// widest finds the ratio with the widest interval by golden-section search. The width is the
// minimum of linear functions of k, so that it has one maximum.
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

// choose returns the first ratio with which all dependencies agree, else the one with the fewest
// contradictions.
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

// offset chooses x: just above the lower bound, or with the fewest contradicted dependencies.
func (s *solver) offset(k float64) Offset {
	low, high := s.interval(k)
	shift := k*float64(s.dma0) - float64(s.tiu0)
	o := Offset{Low: low + shift, High: high + shift, Waits: len(s.low) + len(s.high)}
	var x float64
	switch {
	case o.Waits == 0:
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

// fewest finds the offset with the fewest contradicted dependencies.
func (s *solver) fewest(k float64) (x float64, bad int) {
	low, high := bounds(s.low, k), bounds(s.high, k)
	slices.Sort(low)
	slices.Sort(high)
	bad = math.MaxInt
	j := 0
	for i, l := range low {
		for j < len(high) && high[j] < l-slack {
			j++
		}
		// l contradicts the lower bounds above it and the upper bounds below it.
		if n := len(low) - 1 - i + j; n < bad {
			x, bad = l, n
		}
	}
	return x, bad
}

// Median returns the median of the differences between the times of simultaneous events on two
// cores. ok is false without pairs.
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

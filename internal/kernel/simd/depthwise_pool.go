package simd

// Windows walks windows over values that lie side by side: at each place of a line it
// takes the taps of a window, for neighbouring values at once. The values are the
// channels of a position ([N,H,W,C]) or the positions of a line ([N,C,H,W]).
type Windows struct {
	Floats, Ints Set // the sets of the two kinds of loops
	// See the methods of these names.
	lanes, spread, largest, greatest, sum, copy func(t *Window)
	floats                                      int      // in a register
	few                                         *Windows // for no more values than a smaller register has
	every2                                      func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int, in, out *int32)
	copyFloats                                  [4]func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int) // in place of copy and every2; nil for none
	// Block is the number of values that IntWindow counts.
	Block               int
	intLanes, intSpread func(t *IntWindow)
	// lags are by their number, less one; nil for none.
	lags *[MostLags]func(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)
}

// WindowKernels of the current set; nil where plain Go is all there is: its loops stay
// with their callers.
func WindowKernels() *Windows { return windows.pick() }

// Window is a walk over places, each with n values; steps and offsets are in bytes. Value
// i of tap t at place p lies at Src + p*StepSrc + offs[t] + 4*i, its result at Dst +
// p*StepDst + 4*i.
type Window struct {
	Dst         *float32
	StepDst     int
	Src         *float32
	StepSrc     int
	places, n   int
	offs        *int
	taps        int
	W           *float32 // of the first tap
	StepW       int      // from tap to tap
	Bias        *float32 // one for each value, nil for none; for Spread one for all
	mask        *int32
	Min, Max    float32 // used by Largest and Greatest in any case, by others after SetClamp
	bits, flags uint32
}

// SetClamp limits the results.
func (t *Window) SetClamp(on bool, lo, hi float32) {
	t.flags = 0
	if on {
		t.flags, t.Min, t.Max = flagClamp, lo, hi
	}
}

// SetTaps says where the taps of a place lie.
func (t *Window) SetTaps(offs []int) { t.offs, t.taps = &offs[0], len(offs) }

// prepare returns the loops for n values.
func (f *Windows) prepare(t *Window, places, n int) *Windows {
	if f.few != nil && n <= f.few.floats {
		f = f.few
	}
	if places <= 0 || n <= 0 {
		return &noWindows
	}
	rest := n & (f.floats - 1) // a power of two
	t.places, t.n, t.bits, t.mask = places, n, 1<<rest-1, &masks[16-rest]
	return f
}

// noWindows does nothing.
var noWindows = func() Windows {
	no := func(*Window) {}
	return Windows{lanes: no, spread: no, largest: no, greatest: no, sum: no, copy: no}
}()

// Lanes multiplies by a weight for each value. Products and sums are rounded apart, in
// the order of the taps, and the bias comes last: exact.
func (f *Windows) Lanes(t *Window, places, n int) { f.prepare(t, places, n).lanes(t) }

// Spread multiplies by one weight for all values of a tap, begins with the bias and
// rounds once for each tap.
func (f *Windows) Spread(t *Window, places, n int) { f.prepare(t, places, n).spread(t) }

// Largest takes what compares greater than all taps before, so that what is no number
// never wins, and limits it to Min and Max: exact.
func (f *Windows) Largest(t *Window, places, n int) { f.prepare(t, places, n).largest(t) }

// Greatest is Largest, but what is no number is the result if it is among the taps. Zeros
// of both signs are equal.
func (f *Windows) Greatest(t *Window, places, n int) { f.prepare(t, places, n).greatest(t) }

// Sum adds the taps in order: exact.
func (f *Windows) Sum(t *Window, places, n int) { f.prepare(t, places, n).sum(t) }

// Copy copies the values of a single tap.
func (f *Windows) Copy(t *Window, places, n int) { f.prepare(t, places, n).copy(t) }

// CopyLines copies lines of n values; lines of dst are stepDst values apart, those of src
// stepSrc, and neighbours of src step: 1 or 2, and up to 4 where the set has a loop for that. It returns false for other steps. t is for
// its use.
func (f *Windows) CopyLines(t *Window, dst []float32, stepDst int, src []float32, stepSrc, step, n, lines int) bool {
	if n <= 0 || lines <= 0 {
		return true
	}
	_, _ = dst[(lines-1)*stepDst+n-1], src[(lines-1)*stepSrc+(n-1)*step]
	if step <= len(f.copyFloats) && f.copyFloats[step-1] != nil {
		f.copyFloats[step-1](&dst[0], 4*stepDst, &src[0], 4*stepSrc, n, lines)
		return true
	}
	switch step {
	case 1:
		t.Dst, t.StepDst, t.Src, t.StepSrc = &dst[0], 4*stepDst, &src[0], 4*stepSrc
		t.SetTaps(noOffset[:])
		f.Copy(t, lines, n)
	case 2:
		rest := (n-1)%8 + 1
		f.every2(&dst[0], 4*stepDst, &src[0], 4*stepSrc, n, lines, &masks[16-(2*rest-1)], &masks[16-rest])
	default:
		return false
	}
	return true
}

// CopiesLines tells whether [Windows.CopyLines] has a loop of its own for neighbours that lie side by side, and needs no Window.
func (f *Windows) CopiesLines() bool { return f.copyFloats[0] != nil }

var noOffset = [1]int{0}

// MostLags is how many distances [Windows.Lags] takes.
const MostLags = 8

// LagLanes divides the number of lanes of [Windows.Lags].
const LagLanes = 16

// Lags adds for each lane i the sum of x[p+i]·x[p+d+i] over places p to sums[(k+1)*step+i], for each distance d, the k-th of
// lags, and with plain the sum of x[p+i] to sums[i]. The caller answers for places that lie in x. It returns false where there are no such loops.
func (f *Windows) Lags(sums []float32, step int, x []float32, places, lags []int, lanes int, plain bool) bool {
	if f.lags == nil || len(places) == 0 || len(lags) == 0 {
		return false
	}
	_ = sums[len(lags)*step+lanes-1]
	own := 0
	if plain {
		own = 1
	}
	f.lags[len(lags)-1](&sums[step], &x[0], &places[0], len(places), &lags[0], lanes, 4*step, own)
	return true
}

// IntWindow is a walk over places, each with blocks of Block values; steps and offsets
// are in bytes. Taps come in pairs: value i of tap t at place p, a number of at most 9
// bits, lies at Src + p*StepSrc + offs[t] + 2*i, its sum at Dst + p*StepDst + 4*i.
type IntWindow struct {
	Dst            *int32
	StepDst        int
	Src            *int16
	StepSrc        int
	places, blocks int
	offs           *int
	pairs          int
	W              *int16
}

// IntLanes multiplies by a weight for each value, packed by PackLanes. offs has an even
// length.
func (f *Windows) IntLanes(t *IntWindow, places, blocks int, offs []int) {
	f.runInts(t, places, blocks, offs, f.intLanes)
}

// IntSpread multiplies by one weight for all values of a tap.
func (f *Windows) IntSpread(t *IntWindow, places, blocks int, offs []int) {
	f.runInts(t, places, blocks, offs, f.intSpread)
}

func (f *Windows) runInts(t *IntWindow, places, blocks int, offs []int, loop func(t *IntWindow)) {
	if places <= 0 || blocks <= 0 {
		return
	}
	t.places, t.blocks, t.offs, t.pairs = places, blocks, &offs[0], len(offs)/2
	loop(t)
}

// PackLanes arranges weights w [taps,n] for [Windows.IntLanes], with a tap of zeros where taps is odd.
func (f *Windows) PackLanes(taps, n int, w []int16) []int16 {
	blocks, pairs := (n+f.Block-1)/f.Block, (taps+1)/2
	dst := make([]int16, 2*blocks*pairs*f.Block)
	for t := range taps {
		from := w[t*n:][:n]
		for b := range blocks {
			// Of each lane of eight values the lower halves, then the upper halves.
			to := dst[2*(b*pairs+t/2)*f.Block+t%2:]
			for i, v := range from[b*f.Block : min(n, (b+1)*f.Block)] {
				to[i/8*8+i%4*2+i%8/4*f.Block] = v
			}
		}
	}
	return dst
}

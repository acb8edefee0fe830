package simd

// Windows holds kernels that move a window over adjacent values. At each position of a line they
// process the taps of the window, for adjacent values at once. The values are the channels of a
// position ([N,H,W,C]) or the positions of a line ([N,C,H,W]).
type Windows struct {
	Floats, Ints Set // instruction sets of the float32 and integer kernels
	// See the methods of these names.
	lanes, spread, largest, greatest, sum, copy func(t *Window)
	floats                                      int // values of a register
	// narrow is for at most as many values as a smaller register has.
	narrow *Windows
	every2 func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int, in, out *int32)
	// copyFloats replaces copy and every2; its entries are nil if absent.
	copyFloats [4]func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int)
	// Block is the unit of the value counts of IntWindow.
	Block               int
	intLanes, intSpread func(t *IntWindow)
	// lags is indexed by the number of lags minus one; nil if absent.
	lags *[MaxLags]func(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)
}

// WindowKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available. Plain Go kernels are part of the callers.
func WindowKernels() *Windows { return windowKernels.pick() }

// Window describes a walk over positions, each with n values. Steps and offsets are in bytes.
// Value i of tap t at position p is at Src + p*StepSrc + offs[t] + 4*i, its result at Dst +
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
	Bias        *float32 // one for each value, or nil; for Spread one for all
	mask        *int32
	Min, Max    float32 // used by Largest and Greatest always, by others after SetClamp
	bits, flags uint32
}

// SetClamp limits the results.
func (t *Window) SetClamp(on bool, lo, hi float32) {
	t.flags = 0
	if on {
		t.flags, t.Min, t.Max = flagClamp, lo, hi
	}
}

// SetTaps sets the offsets of the taps of a position.
func (t *Window) SetTaps(offs []int) { t.offs, t.taps = &offs[0], len(offs) }

// prepare returns the kernels for n values.
func (f *Windows) prepare(t *Window, places, n int) *Windows {
	if f.narrow != nil && n <= f.narrow.floats {
		f = f.narrow
	}
	if places <= 0 || n <= 0 {
		return &emptyWindows
	}
	rest := n & (f.floats - 1) // a register has a power of two of values
	t.places, t.n, t.bits, t.mask = places, n, 1<<rest-1, &columnMasks[16-rest]
	return f
}

// emptyWindows has kernels that do nothing.
var emptyWindows = func() Windows {
	no := func(*Window) {}
	return Windows{lanes: no, spread: no, largest: no, greatest: no, sum: no, copy: no}
}()

// Lanes multiplies each value by its own weight. Products and sums are rounded separately, in the
// order of the taps, and the bias is added last. Exact.
func (f *Windows) Lanes(t *Window, places, n int) { f.prepare(t, places, n).lanes(t) }

// Spread multiplies all values of a tap by the same weight. It starts from the bias and rounds
// once for each tap.
func (f *Windows) Spread(t *Window, places, n int) { f.prepare(t, places, n).spread(t) }

// Largest returns the maximum of the taps, limited to Min and Max. A tap replaces the result only
// if it compares greater, so NaN never wins. Exact.
func (f *Windows) Largest(t *Window, places, n int) { f.prepare(t, places, n).largest(t) }

// Greatest is Largest, but the result is NaN if a tap is NaN. Zeros of both signs are equal.
func (f *Windows) Greatest(t *Window, places, n int) { f.prepare(t, places, n).greatest(t) }

// Sum adds the taps in order. Exact.
func (f *Windows) Sum(t *Window, places, n int) { f.prepare(t, places, n).sum(t) }

// Copy copies the values of a single tap.
func (f *Windows) Copy(t *Window, places, n int) { f.prepare(t, places, n).copy(t) }

// CopyLines copies lines of n values. Lines of dst are stepDst values apart, lines of src stepSrc
// values, and neighbours in a line of src step values. It supports steps 1 and 2, some
// instruction sets also 3 and 4; it returns false for other steps. t is a workspace.
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
		f.every2(&dst[0], 4*stepDst, &src[0], 4*stepSrc, n, lines, &columnMasks[16-(2*rest-1)], &columnMasks[16-rest])
	default:
		return false
	}
	return true
}

// CopiesLines reports whether [Windows.CopyLines] has a separate kernel for step 1, which needs
// no Window.
func (f *Windows) CopiesLines() bool { return f.copyFloats[0] != nil }

var noOffset = [1]int{0}

// MaxLags is the maximum number of lags of [Windows.Lags].
const MaxLags = 8

// LagLanes divides the number of lanes of [Windows.Lags].
const LagLanes = 16

// Lags computes autocorrelations. For each lane i and each lag d, the k-th of lags, it adds the
// sum of x[p+i]·x[p+d+i] over all p of places to sums[(k+1)*step+i]. If plain is set, it also
// adds the sum of x[p+i] to sums[i]. The caller must make sure that all indices are inside x. It
// returns false if no kernel is available.
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

// IntWindow describes a walk over positions, each with blocks of Block values. Steps and offsets
// are in bytes. Taps come in pairs. Value i of tap t at position p, of at most 9 bits, is at Src
// + p*StepSrc + offs[t] + 2*i, its sum at Dst + p*StepDst + 4*i.
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

// IntLanes multiplies each value by its own weight; PackLanes packs the weights. The length of
// offs is even.
func (f *Windows) IntLanes(t *IntWindow, places, blocks int, offs []int) {
	f.runInts(t, places, blocks, offs, f.intLanes)
}

// IntSpread multiplies all values of a tap by the same weight.
func (f *Windows) IntSpread(t *IntWindow, places, blocks int, offs []int) {
	f.runInts(t, places, blocks, offs, f.intSpread)
}

func (f *Windows) runInts(t *IntWindow, places, blocks int, offs []int, kernel func(t *IntWindow)) {
	if places <= 0 || blocks <= 0 {
		return
	}
	t.places, t.blocks, t.offs, t.pairs = places, blocks, &offs[0], len(offs)/2
	kernel(t)
}

// PackLanes packs weights w [taps,n] for [Windows.IntLanes]. If taps is odd, it adds a tap of
// zeros.
func (f *Windows) PackLanes(taps, n int, w []int16) []int16 {
	blocks, pairs := (n+f.Block-1)/f.Block, (taps+1)/2
	dst := make([]int16, 2*blocks*pairs*f.Block)
	for t := range taps {
		from := w[t*n:][:n]
		for b := range blocks {
			// From each lane of eight values: the lower halves, then the upper halves.
			to := dst[2*(b*pairs+t/2)*f.Block+t%2:]
			for i, v := range from[b*f.Block : min(n, (b+1)*f.Block)] {
				to[i/8*8+i%4*2+i%8/4*f.Block] = v
			}
		}
	}
	return dst
}

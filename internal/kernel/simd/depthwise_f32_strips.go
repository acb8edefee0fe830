package simd

import (
	"math"
	"unsafe"
)

// Strips holds kernels of depthwise convolutions with strides of one or two. They walk down the
// lines of an image, one strip of adjacent values at a time. A line is read once for all results
// whose windows include it. They are bit-exact to [Windows.Lanes] and [Windows.Spread].
type Strips struct {
	Set Set
	// Width is the number of values of a register.
	Width  int
	narrow *Strips // for lines of at most one register of it; nil if absent
	masks  bool    // the instruction set has mask registers
	// Indexed by stride and window size, for strips of one and of two registers.
	lanes [3][MaxStrip + 1][2]func(t *Strip)
	// Indexed by stride and window size, for strips of one register and of more.
	spread [3][MaxStrip + 1][]spreadStrip
	// Indexed by stride, window size and number of columns.
	columns [3][MaxStrip + 1][MaxTileColumns - MinTileColumns + 1]func(t *Strip)
}

// spreadStrip holds the kernels for strips of a number of registers: of one plane, and of several
// planes at a time if any.
type spreadStrip struct {
	one    func(t *Strip)
	planes int
	more   func(t *Strip)
}

// MaxStrip is the largest window size k of [Strips].
const MaxStrip = 7

// LaneStrips returns the kernels of the current instruction set for [Strips.Lanes] with k×k
// windows, a stride of step, and lines of n values. It returns nil if they are not available.
func LaneStrips(k, step, n int) *Strips {
	return pickStrips(k, step, n, func(f *Strips) bool { return f.lanes[step][k][0] != nil })
}

// SpreadStrips returns the kernels for [Strips.Spread].
func SpreadStrips(k, step, n int) *Strips {
	return pickStrips(k, step, n, func(f *Strips) bool { return f.spread[step][k] != nil })
}

func pickStrips(k, step, n int, has func(f *Strips) bool) *Strips {
	f := stripKernels.pick()
	if f == nil || k < 0 || k > MaxStrip || step < 1 || step > 2 {
		return nil
	}
	if f.narrow != nil && n <= f.narrow.Width && has(f.narrow) {
		f = f.narrow
	}
	if !has(f) {
		return nil
	}
	return f
}

// Most returns the maximum number of values of a strip for k×k windows with a stride of step.
func (f *Strips) Most(k, step int) int {
	if f.lanes[step][k][1] != nil {
		return 2 * f.Width
	}
	return f.Width
}

// Strip describes a walk down N strips, each of at most [Strips.Most] adjacent values. Steps and
// offsets are in bytes. For strip s, line y of the results is at Dst + s*NextDst + y*LineDst. The
// input of tap x of a window line for line y is at Src + s*NextSrc + At + x*Tap + y*LineSrc.
type Strip struct {
	Dst              *float32
	LineDst, NextDst int
	Src              *float32
	LineSrc, NextSrc int
	// The weights of strip s are at W + s*NextW, line by line of the window. They are adjacent
	// (Spread) or StepW apart (Lanes).
	W            *float32
	StepW, NextW int
	Bias         *float32 // may be nil for Lanes
	NextBias     int
	N            int
	At, Tap      int
	// lines is the number of lines on which a window can end; lead of them are before the first
	// complete result.
	lead, lines int
	odd         int // lines between, for a stride of two
	end         int // results whose windows end below the last line
	masks       *int32
	Min, Max    float32
	bits        [12]uint16
	flags       uint32
	_           uint32
	// Lane masks for instruction sets without mask registers.
	wide [18][8]int32
}

// SetClamp limits the results.
func (t *Strip) SetClamp(on bool, lo, hi float32) {
	t.flags, t.Min, t.Max = flagClamp, lo, hi
	if !on {
		t.flags, t.Min, t.Max = 0, float32(math.Inf(-1)), float32(math.Inf(1))
	}
}

// Bits of Strip.flags: flagOdd if the first line does not start a window, flagWhole if all values
// of a strip exist.
const (
	flagOdd   = 1 << 4
	flagWhole = 1 << 5
)

// SetLines sets the number of lines that are read and of results of each strip. Windows have k
// lines and a stride of step. The first window starts pad lines above the first line that is
// read.
//
// SetLines returns false for cases that strips do not support: no result whose window ends on a
// line, or results whose windows contain no line. Call it after SetClamp.
func (t *Strip) SetLines(k, step, pad, in, out int) bool {
	if pad < 0 || pad >= k || in < 1 || out < 1 {
		return false
	}
	// Lines are counted from the first line of the first window. A window ends on line k-1 and on
	// each step-th line from there. k is odd if step is two.
	last := min(pad+in-1, (out-1)*step+k-1)
	every := func(below int) int { return (below + step - 1) / step } // even lines, or all
	t.lines = every(last+1) - every(pad)
	t.lead = every(k-1) - every(pad)
	t.odd = last + 1 - pad - t.lines
	t.end = out - (t.lines - t.lead)
	t.flags &^= flagOdd
	if step == 2 && pad%2 == 1 {
		t.flags |= flagOdd
	}
	return t.lead >= 0 && t.lines > t.lead && t.end >= 0 && t.end <= (k-1)/step
}

// pairOrder restores the order of the pairs of results, for registers of 16 and of 8 values. The
// selection of every other value from the quarters of two registers changes this order.
var pairOrder = [12]int64{0, 2, 4, 6, 1, 3, 5, 7, 0, 2, 1, 3} // the second case from index 8 on

// everyOther holds the indices of every other value of two registers of 16 values, then those of
// the values between. Registers of 8 values use the first half of each.
var everyOther = [32]int32{
	0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
	1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
}

// Fit returns the kernels with the fewest registers that take n values, for k×k windows with a
// stride of step: f, or f.narrow.
func (f *Strips) Fit(k, step, n int) *Strips {
	if f.narrow != nil && n <= f.narrow.Width && f.narrow.spread[step][k] != nil {
		return f.narrow
	}
	return f
}

// SpreadWidth returns the number of values of the next strip for Spread if n are left. first, gap
// and w are those of SetColumns.
func (f *Strips) SpreadWidth(k, step, n, first, gap, w int) int {
	all := f.vecs(n)
	strips := (all + len(f.spread[step][k]) - 1) / len(f.spread[step][k])
	vecs := (all + strips - 1) / strips
	if first+step*f.Width < 0 || first+(vecs-1)*step*f.Width-1+gap*(k-1) >= w {
		// Registers without a mask, all but the first and the last one, would read beyond a line.
		vecs = min(vecs, 2)
	}
	return min(n, vecs*f.Width)
}

// SetColumns sets the position of a strip of n results for Spread. The first tap of its first
// result reads column first, the next ones each gap columns further; gap is 1 for strides of two.
// Columns from 0 to w-1 exist.
func (f *Strips) SetColumns(t *Strip, k, step, n, first, gap, w int) {
	within := func(from, n int) uint32 { // mask of the existing columns among n from from on
		lo, hi := max(0, -from), min(n, w-from)
		if lo >= hi {
			return 0
		}
		return uint32(1<<hi - 1<<lo)
	}
	if !f.masks {
		f.setWide(t, k, step, n, func(from int) uint32 { return within(first+from, f.Width) }, gap)
		return
	}
	if step == 2 && k == 3 {
		// Registers from the second tap of the first window on. The value of its first tap is the
		// last value of a register.
		bits := within(first+1, 2*f.Width)
		t.bits[0], t.bits[1] = uint16(bits&(1<<f.Width-1)), uint16(bits>>f.Width)
		t.bits[2] = uint16(within(first, 1) << (f.Width - 1))
		t.bits[3] = uint16(1<<n - 1)
		t.masks = &everyOther[0]
		return
	}
	if step == 2 {
		for m := 0; m < k; m += 2 {
			bits := within(first+m, 2*f.Width)
			t.bits[m], t.bits[m+1] = uint16(bits&(1<<f.Width-1)), uint16(bits>>f.Width)
		}
		t.bits[k+1] = uint16(1<<n - 1)
		t.masks = (*int32)(unsafe.Pointer(&pairOrder[16-f.Width]))
		return
	}
	for x := range k {
		f.setMask(t, n, x, within(first+gap*x, n))
	}
	f.setMask(t, n, k, uint32(1<<n-1))
}

// setWide is SetColumns without mask registers. There are masks for the first and the last register
// of a strip, for each load of a line, and one for the last register of results.
func (f *Strips) setWide(t *Strip, k, step, n int, within func(from int) uint32, gap int) {
	last := f.vecs(n) - 1
	i := 0
	for x := range k + step - 1 {
		from := gap * x
		if step == 2 { // a pair of registers from every other tap
			from = x&^1 + x&1*f.Width
		}
		for v := 0; v <= last; v += max(1, last) {
			t.wide[i] = laneMasks[within(from+v*step*f.Width)]
			i++
		}
	}
	ends := uint32(1)<<(n-last*f.Width) - 1
	t.wide[i] = laneMasks[ends]
	if t.flags &^= flagWhole; ends == 1<<f.Width-1 {
		t.flags |= flagWhole
	}
}

// laneMasks are the masks of 8 values, by their bits.
var laneMasks = func() (m [256][8]int32) {
	for bits := range m {
		for lane := range m[bits] {
			m[bits][lane] = -int32(bits >> lane & 1)
		}
	}
	return m
}()

// SetSeen sets the taps of strips of n values for Lanes: bit x of see tells whether tap x reads
// an existing column.
func (f *Strips) SetSeen(t *Strip, k, n int, see uint) {
	all := uint32(1<<n - 1)
	for x := range k {
		f.setMask(t, n, x, all*uint32(see>>x&1))
	}
	f.setMask(t, n, k, all)
}

// HasColumns reports whether [Strips.Columns] is available.
func (f *Strips) HasColumns(k, step int) bool { return f.columns[step][k][0] != nil }

// ColumnsGain reports whether [Strips.Columns] is faster than [LaneTiles] for n channels. On a
// Xeon, tiles took 0.4 to 1.0 times as long from 32 channels on, and 1.1 times for parts of a
// register. Processors with AMX behave like this Xeon.
func ColumnsGain(n int) bool { return current != AMX || n < 2*TileLanes }

// SetSeenColumns sets the columns of strips of n channels and cols columns of results for
// Columns. Bit x of see tells whether input column x exists; see [SeenColumns].
func (f *Strips) SetSeenColumns(t *Strip, k, step, cols, n int, see uint32) {
	columns := (cols-1)*step + k
	for x := range columns {
		t.bits[x] = uint16(1<<n-1) * uint16(see>>x&1)
	}
	t.bits[columns] = uint16(1<<n - 1)
}

// Columns computes cols adjacent results of each line of a strip, of at most a register of
// channels. Input and output columns are Tap apart. The weights are those of Lanes.
func (f *Strips) Columns(t *Strip, k, step, cols int) { f.columns[step][k][cols-MinTileColumns](t) }

// setMask sets mask i of a strip of n values.
func (f *Strips) setMask(t *Strip, n, i int, bits uint32) {
	vecs := f.vecs(n)
	for v := range vecs {
		t.bits[i*vecs+v] = uint16(bits >> (v * f.Width))
	}
	if !f.masks {
		t.wide[i] = laneMasks[bits]
	}
	t.masks = &t.wide[0][0]
	if t.flags &^= flagWhole; bits == 1<<f.Width-1 {
		t.flags |= flagWhole // the mask of results is set last
	}
}

func (f *Strips) vecs(n int) int { return (n + f.Width - 1) / f.Width }

// Lanes multiplies each value of a strip of n values by its own weight; see [Windows.Lanes].
func (f *Strips) Lanes(t *Strip, k, step, n int) { f.lanes[step][k][f.vecs(n)-1](t) }

// Spread multiplies all values by the same weight; see [Windows.Spread].
func (f *Strips) Spread(t *Strip, k, step, n int) {
	q := &f.spread[step][k][f.vecs(n)-1]
	if q.planes == 0 || t.N < q.planes {
		q.one(t)
		return
	}
	n, dst, src, w, bias := t.N, t.Dst, t.Src, t.W, t.Bias
	t.N = n / q.planes
	q.more(t)
	if done := t.N * q.planes; done < n {
		skip := func(p *float32, by int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), done*by)) }
		t.N, t.Dst, t.Src, t.W, t.Bias = n-done, skip(dst, t.NextDst), skip(src, t.NextSrc), skip(w, t.NextW), skip(bias, t.NextBias)
		q.one(t)
	}
	t.N, t.Dst, t.Src, t.W, t.Bias = n, dst, src, w, bias
}

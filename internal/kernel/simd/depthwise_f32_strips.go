package simd

import (
	"math"
	"unsafe"
)

// Strips walk windows of depthwise convolutions with steps of one or two down the lines of a
// picture, a strip of neighbouring values at a time: a line is read once for all results
// whose windows it is in. They give the bits of [Windows.Lanes] and [Windows.Spread].
type Strips struct {
	Set Set
	// Width is the number of values of a register.
	Width int
	few   *Strips // for lines of at most as many values as its registers have; nil for none
	masks bool    // in registers of their own
	// For each step and size of windows, for strips of one register and of two.
	lanes, spread [3][MostStrip + 1][2]func(t *Strip)
	// For each step and size of windows, for each number of columns.
	columns [3][MostStrip + 1][MostTileColumns - LeastTileColumns + 1]func(t *Strip)
}

// MostStrip is the largest k that strips have.
const MostStrip = 7

// LaneStrips are the strips of the current set for [Strips.Lanes] with windows of k by k
// that go by steps, and lines of n values; nil where there are none.
func LaneStrips(k, step, n int) *Strips {
	return pickStrips(k, step, n, func(f *Strips) *[2]func(t *Strip) { return &f.lanes[step][k] })
}

// SpreadStrips are those for [Strips.Spread].
func SpreadStrips(k, step, n int) *Strips {
	return pickStrips(k, step, n, func(f *Strips) *[2]func(t *Strip) { return &f.spread[step][k] })
}

func pickStrips(k, step, n int, loops func(f *Strips) *[2]func(t *Strip)) *Strips {
	f := strips.pick()
	if f == nil || k < 0 || k > MostStrip || step < 1 || step > 2 {
		return nil
	}
	if f.few != nil && n <= f.few.Width && loops(f.few)[0] != nil {
		f = f.few
	}
	if loops(f)[0] == nil {
		return nil
	}
	return f
}

// Most is the number of values that a strip of windows of k by k with a step has at most.
func (f *Strips) Most(k, step int) int {
	if f.lanes[step][k][1] != nil {
		return 2 * f.Width
	}
	return f.Width
}

// Strip is a walk down N strips, each of at most [Strips.Most] values side by side; steps
// and offsets are in bytes. Of strip s, line y of the results lies at Dst + s*NextDst +
// y*LineDst, and what tap x of a window's line sees of line y at Src + s*NextSrc + At +
// x*Tap + y*LineSrc.
type Strip struct {
	Dst              *float32
	LineDst, NextDst int
	Src              *float32
	LineSrc, NextSrc int
	// Weights of strip s lie at W + s*NextW: line by line of the window, one behind the
	// other (Spread) or StepW apart (Lanes).
	W            *float32
	StepW, NextW int
	Bias         *float32 // nil for none, with Lanes
	NextBias     int
	N            int
	At, Tap      int
	lead, lines  int // lines that end windows, those before the first whole result among them
	odd          int // lines between, with steps of two
	end          int // results whose windows end below the last line
	masks        *int32
	Min, Max     float32
	bits         [12]uint16
	flags        uint32
	// Masks of lanes for sets without registers for them.
	wide [4 * 8]int32
}

// SetClamp limits the results.
func (t *Strip) SetClamp(on bool, lo, hi float32) {
	t.flags, t.Min, t.Max = flagClamp, lo, hi
	if !on {
		t.flags, t.Min, t.Max = 0, float32(math.Inf(-1)), float32(math.Inf(1))
	}
}

// Bits of Strip.flags: the first line does not begin a window; all values of a strip are there.
const (
	flagOdd   = 1 << 4
	flagWhole = 1 << 5
)

// SetLines says how many lines are read and how many results there are of each strip, for
// windows of k lines with a step, of which the first one begins pad lines above the first
// line that is read. It returns false for what strips cannot do: no result whose window
// ends on a line, or results whose windows see none. It comes after SetClamp.
func (t *Strip) SetLines(k, step, pad, in, out int) bool {
	if pad < 0 || pad >= k || in < 1 || out < 1 {
		return false
	}
	// Lines are counted from the first one of the first window; a window ends on line
	// k-1 and every step-th from there. k is odd where step is two.
	last := min(pad+in-1, (out-1)*step+k-1)
	every := func(below int) int { return (below + step - 1) / step } // lines of even numbers, of all
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

// inOrder are the places of the pairs of results, of registers of 16 values and of 8, as taking every other value of each quarter of two
// registers leaves them.
var inOrder = [12]int64{0, 2, 4, 6, 1, 3, 5, 7, 0, 2, 1, 3} // the latter from place 8 on

// everyOther are the places of every other value of two registers of 16 values, and those of the values between them; registers of 8 take the
// first half of both.
var everyOther = [32]int32{
	0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
	1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
}

// Fit are the strips that take n values with the fewest registers of windows of k by k with a step: f or those that it has for few.
func (f *Strips) Fit(k, step, n int) *Strips {
	if f.few != nil && n <= f.few.Width && f.few.spread[step][k][0] != nil {
		return f.few
	}
	return f
}

// SetColumns says where a strip of n results lies for Spread: the first tap of its first
// result sees column first, the others every gap-th from there, which is 1 with steps of two, and there are columns 0 to w.
func (f *Strips) SetColumns(t *Strip, k, step, n, first, gap, w int) {
	within := func(from, n int) uint32 { // which of n columns from there are
		lo, hi := max(0, -from), min(n, w-from)
		if lo >= hi {
			return 0
		}
		return uint32(1<<hi - 1<<lo)
	}
	if step == 2 && k == 3 {
		// Registers from the second tap of the first window on, and what its first one sees, as the last value of one.
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
		t.masks = (*int32)(unsafe.Pointer(&inOrder[16-f.Width]))
		return
	}
	for x := range k {
		f.setMask(t, n, x, within(first+gap*x, n))
	}
	f.setMask(t, n, k, uint32(1<<n-1))
}

// SetSeen says what strips of n values have for Lanes: bit x of see tells whether tap x
// sees a column that is there.
func (f *Strips) SetSeen(t *Strip, k, n int, see uint) {
	all := uint32(1<<n - 1)
	for x := range k {
		f.setMask(t, n, x, all*uint32(see>>x&1))
	}
	f.setMask(t, n, k, all)
}

// HasColumns tells whether there is [Strips.Columns].
func (f *Strips) HasColumns(k, step int) bool { return f.columns[step][k][0] != nil }

// ColumnsGain tells whether [Strips.Columns] are faster than [LaneTiles] for n channels. On a Xeon tiles, which go along the lines, took 0.4 to 1.0 times as
// long from 32 channels on, in parts of a register 1.1 times: processors with AMX are such.
func ColumnsGain(n int) bool { return current != AMX || n < 2*TileLanes }

// SetSeenColumns says what strips of n channels and so many columns of results have for Columns: bit x of see tells whether column x of
// those that the windows see is there, see [SeenColumns].
func (f *Strips) SetSeenColumns(t *Strip, k, step, cols, n int, see uint32) {
	columns := (cols-1)*step + k
	for x := range columns {
		t.bits[x] = uint16(1<<n-1) * uint16(see>>x&1)
	}
	t.bits[columns] = uint16(1<<n - 1)
}

// Columns computes cols neighbouring results of each line of a strip, of at most a register of channels; columns of both sides lie Tap
// apart. Weights are those of Lanes.
func (f *Strips) Columns(t *Strip, k, step, cols int) { f.columns[step][k][cols-LeastTileColumns](t) }

// setMask sets mask i of a strip of n values.
func (f *Strips) setMask(t *Strip, n, i int, bits uint32) {
	vecs := f.vecs(n)
	for v := range vecs {
		t.bits[i*vecs+v] = uint16(bits >> (v * f.Width))
	}
	if !f.masks {
		for lane := range f.Width {
			t.wide[8*i+lane] = -int32(bits >> lane & 1)
		}
	}
	t.masks = &t.wide[0]
	if t.flags &^= flagWhole; bits == 1<<f.Width-1 {
		t.flags |= flagWhole // the mask of results is the last one that is set
	}
}

func (f *Strips) vecs(n int) int { return (n + f.Width - 1) / f.Width }

// Lanes multiplies by a weight for each value of a strip of n values; see [Windows.Lanes].
func (f *Strips) Lanes(t *Strip, k, step, n int) { f.lanes[step][k][f.vecs(n)-1](t) }

// Spread multiplies by one weight for all values; see [Windows.Spread].
func (f *Strips) Spread(t *Strip, k, step, n int) { f.spread[step][k][f.vecs(n)-1](t) }

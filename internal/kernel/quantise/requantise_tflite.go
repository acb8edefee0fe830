package quantise

import (
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Requant requantises the 32-bit sums of output channels with TFLite's rounding.
type Requant struct {
	Bias     []int32            // one per channel, nil for none
	Mul      []fixed.Multiplier // one per channel, or one for all
	Zero     int32              // output zero point
	Min, Max int32              // clamp, after the zero point
	// Steps is the maximum number of products per sum, of two 8-bit values minus zero points that
	// also fit 8 bits; 0 if unknown.
	Steps int

	Least, Most []int32 // range of the sums of each channel without the bias; nil if unknown

	Scales simd.Scales // for the channels that were prepared, a multiple of scaleLanes
	N      int         // number of these channels
	Fusing Fusing      // whether scales has the parameters of simd.Fused
}

// Fusing is the state of the search for the parameters of [simd.Fused]. The search takes longer
// than all other first-run work of small layers and changes no result, so the second run starts
// it.
type Fusing uint8

// States of the search.
const (
	FuseNever Fusing = iota // no parameters exist, or they are not requested
	FuseLater               // in the next run
	FuseDone
)

// scaleLanes is a multiple of the lanes of every instruction set.
const scaleLanes = 16

// Multiplier returns the multiplier of a channel.
func (q *Requant) Multiplier(ch int) fixed.Multiplier { return q.Mul[wrapIndex(ch, len(q.Mul))] }

// wrapIndex returns i%n; it is fast for the usual i < n.
func wrapIndex(i, n int) int {
	if i < n {
		return i
	}
	return i % n
}

// SetSteps sets Steps for a zero point of the activations.
func (q *Requant) SetSteps(steps int, zero int32) {
	if q.Steps = 0; -128 <= zero && zero <= 255 {
		q.Steps = steps
	}
}

// SumBounds computes the range of the sums of products of weights minus zeroW and activations of
// T minus zero; some products may be missing. Weight i belongs to channel i/k%n.
func SumBounds[T int8 | uint8, W Weight](q *Requant, w []W, n, k int, zeroW, zero int32) {
	q.Least, q.Most = nil, nil
	if simd.IntKernels() == nil || len(w) == 0 {
		return
	}
	// Range of the activations.
	lo, hi := int64(min(0, 0-zero)), int64(max(0, math.MaxUint8-zero))
	if z := T(0); z-1 < z {
		lo, hi = int64(min(0, math.MinInt8-zero)), int64(max(0, math.MaxInt8-zero))
	}
	all := make([]int32, 2*n)
	least, most := all[:n:n], all[n:]
	if !weightRanges(most, least, w, k, zeroW) {
		return
	}
	for ch, above := range most {
		a, b := int64(above), int64(least[ch])
		l, m := lo*a-hi*b, hi*a-lo*b
		if l < math.MinInt32/2 || m > math.MaxInt32/2 {
			return
		}
		least[ch], most[ch] = int32(l), int32(m)
	}
	q.Least, q.Most = least, most
}

// weightRanges adds up the positive and the negative differences of weights to their zero point
// per channel: weight i belongs to channel i/k%len(above). It returns false if the sums could
// overflow.
func weightRanges[W Weight](above, below []int32, w []W, k int, zero int32) bool {
	bits, n := 8*unsafe.Sizeof(w[0]), len(above)
	if bits > 16 || zero < -(1<<(bits-1)) || zero >= 1<<bits || len(w)/n > math.MaxInt32>>(bits+1) {
		return false
	}
	var bytes []uint8
	turn := int32(0)
	switch w := any(w).(type) {
	case []int8:
		bytes, turn = Bits(w), 0x80
	case []uint8:
		bytes = w
	}
	direct := bytes != nil && k > 1 && 0 <= zero+turn && zero+turn <= math.MaxUint8
	for at := 0; at < len(w); at += n * k {
		end := min(at+n*k, len(w))
		switch part := w[at:end]; {
		case direct:
			simd.IntKernels().AddDeviations(bytes[at:end], k, uint8(turn), uint8(zero+turn), above, below)
		case k == 1:
			for ch, v := range part {
				d := int32(v) - zero
				above[ch] += max(d, 0)
				below[ch] += max(-d, 0)
			}
		default:
			for i, v := range part {
				d := int32(v) - zero
				above[i/k] += max(d, 0)
				below[i/k] += max(-d, 0)
			}
		}
	}
	return true
}

// One requantises the sum acc of channel ch.
func (q *Requant) One(acc int32, ch int) int32 {
	if q.Bias != nil {
		acc += q.Bias[ch]
	}
	v := q.Multiplier(ch).Apply(acc) + q.Zero
	return min(max(v, q.Min), q.Max)
}

// Prepare computes the scales of n channels, repeated cyclically. If they exist already, it
// searches for the parameters of [simd.Fused].
func (q *Requant) Prepare(n int) {
	if q.N == n && q.Scales.Mul != nil {
		if q.Fusing == FuseLater {
			q.fuse()
		}
		return
	}
	q.N = n
	size := scratch.RoundUp(n, scaleLanes)
	all := make([]int32, 6*size)
	part := func(i int) []int32 { return all[i*size:][:size] }
	s := simd.Scales{Mul: part(0), Up: part(1), Down: part(2), Bias: part(3), Twice: part(4), Half: part(5)}
	s.Small = q.Steps > 0 && q.Steps < 1<<15
	s.Near = s.Small
	fuse := simd.IntKernels().Fuses() && q.Least != nil && q.Min >= q.Zero && simd.EightBits(q.Zero, q.Min, q.Max)
	if q.Fusing = FuseNever; fuse {
		q.Fusing = FuseLater
	}
	for i := range n {
		m, bias := q.Multiplier(i), int32(0)
		if q.Bias != nil {
			bias = q.Bias[wrapIndex(i, len(q.Bias))]
		}
		s.Bias[i] = bias
		switch {
		case m.Shift > 31 || m.Shift < -31:
			// The shift moves all bits out of the 32-bit sum; the result is the same either way.
		case m.Shift >= 0:
			s.Mul[i], s.Up[i] = m.M, int32(m.Shift)
		default:
			s.Mul[i], s.Down[i], s.Half[i] = m.M, int32(-m.Shift), 1<<(-m.Shift-1)
		}
		most := int64(q.Steps)*383*383 + max(int64(bias), -int64(bias))
		if q.Least != nil {
			ch := wrapIndex(i, len(q.Least))
			most = max(int64(q.Most[ch])+int64(bias), -int64(q.Least[ch])-int64(bias))
			if (s.Down[i] > 20 || s.Mul[i] == 0) && most < 1<<20-1 {
				// A shift by 20 also reduces sums that small to zero.
				s.Mul[i], s.Up[i], s.Down[i], s.Half[i] = 1<<30, 0, 20, 1<<19
			}
		}
		s.Twice[i] = 2 * s.Mul[i]
		s.Near = s.Near && s.Mul[i] >= 1<<30 && s.Up[i] <= 1 && s.Down[i] <= 20 && most <= 1<<30>>s.Up[i]
		s.Small = s.Small && s.Near && s.Down[i] >= 1
		s.Doubles = s.Doubles || s.Up[i] == 1
	}
	q.Scales = s
	if FuseFirst && fuse {
		q.fuse()
	}
}

// FuseFirst starts the search in the first run, for tests that run once.
var FuseFirst bool

// fuse searches for the parameters of [simd.Fused].
func (q *Requant) fuse() {
	q.Fusing = FuseDone
	less, s, f := int32(0), &q.Scales, &q.Scales.Fused
	size := len(s.Mul)
	all := make([]int32, 3*size)
	*f = simd.FusedScales{Start: all[:size], Scale: all[size:][:size], Add: all[2*size:]}
	if q.Max > math.MaxInt8 {
		less = 128
	}
	for i := range q.N {
		if i >= len(q.Least) {
			last := i - len(q.Least)
			f.Start[i], f.Scale[i], f.Add[i] = f.Start[last], f.Scale[last], f.Add[last]
		} else if one, ok := s.Fuse(i, q.Least[i], q.Most[i], q.Zero-less, q.Min-less, q.Max-less); ok {
			f.Set(i, one)
		}
	}
}

// RequantTile requantises rows of the sums of n channels from channel ch, line apart, into 8-bit
// values from y[at], step apart.
func RequantTile(f *simd.Ints, y []uint8, sums []int32, line, rows, at, step, ch, n int, q *Requant) {
	if f.Requantise(y[at:], step, sums, line, rows, n, &q.Scales, ch, q.Zero, q.Min, q.Max) {
		return
	}
	for r := range rows {
		RequantRow(y[at+r*step:][:n], sums[r*line:], q, ch)
	}
}

// RequantRow requantises the sums of the channels from ch: Multiplier.Apply without branches.
func RequantRow[T int8 | uint8 | int16](y []T, sums []int32, q *Requant, ch int) {
	n, s := len(y), &q.Scales
	sums, mul, up, down := sums[:n], s.Mul[ch:][:n], s.Up[ch:][:n], s.Down[ch:][:n]
	bias, half := s.Bias[ch:][:n], s.Half[ch:][:n]
	zero, lo, hi := q.Zero, q.Min, q.Max
	for i := range y {
		t := (int64((sums[i]+bias[i])<<(up[i]&31))*int64(mul[i]) + 1<<30) >> 31
		// Ties round away from zero: subtract one from negative values before adding the half, if
		// there is a shift.
		t += int64(half[i]) + t>>63&int64(-half[i]>>31)
		y[i] = T(min(max(int32(t>>(down[i]&63))+zero, lo), hi))
	}
}

// RequantBlock is the maximum number of sums per call of [UniformRow].
const RequantBlock = 256

// Uniform requantises sums that share one multiplier.
type Uniform struct {
	q Requant
	f *simd.Ints
}

// NewUniform prepares the multiplier m, the output zero point and the clamp.
func NewUniform(m fixed.Multiplier, zero, lo, hi int32) *Uniform {
	u := &Uniform{q: Requant{Mul: []fixed.Multiplier{m}, Zero: zero, Min: lo, Max: hi}, f: simd.IntKernels()}
	u.q.Prepare(RequantBlock)
	return u
}

// UniformRow requantises at most [RequantBlock] sums into y.
func UniformRow[T int8 | uint8 | int16](u *Uniform, y []T, sums []int32) {
	if u.f == nil || unsafe.Sizeof(T(0)) != 1 || len(y) == 0 {
		RequantRow(y, sums, &u.q, 0)
		return
	}
	out := unsafe.Slice((*uint8)(unsafe.Pointer(&y[0])), len(y))
	RequantTile(u.f, out, sums, len(y), 1, 0, len(y), 0, len(y), &u.q)
}

// RequantRows requantises rows of sums, one channel per column, into y.
func RequantRows[T int8 | uint8 | int16](p *workers.Pool, y []T, sums []int32, channels int, q *Requant) {
	if channels == 0 {
		return
	}
	q.Prepare(channels)
	rows, grain := len(y)/channels, max(1, 4096/channels)
	if f := simd.IntKernels(); f != nil && rows > 0 && unsafe.Sizeof(y[0]) == 1 {
		requantVectors(p, rows, grain, requantArgs{f, unsafe.Slice((*uint8)(unsafe.Pointer(&y[0])), len(y)), sums, channels, q})
		return
	}
	requantPlain(p, rows, grain, y, sums, channels, q)
}

// requantArgs holds the arguments of a SIMD work item of [RequantRows].
type requantArgs struct {
	f        *simd.Ints
	y        []uint8
	sums     []int32
	channels int
	q        *Requant
}

func requantVectors(p *workers.Pool, rows, grain int, a requantArgs) {
	workers.Do(p, rows, grain, a, func(a requantArgs, lo, hi int) {
		RequantTile(a.f, a.y, a.sums[lo*a.channels:], a.channels, hi-lo, lo*a.channels, a.channels, 0, a.channels, a.q)
	})
}

func requantPlain[T int8 | uint8 | int16](p *workers.Pool, rows, grain int, y []T, sums []int32, channels int, q *Requant) {
	workers.Each(p, rows, grain, plainRequant[T]{y, sums, channels, q})
}

// plainRequant holds the arguments of a plain Go work item of [RequantRows].
type plainRequant[T int8 | uint8 | int16] struct {
	y        []T
	sums     []int32
	channels int
	q        *Requant
}

// Piece requantises rows lo to hi.
func (t plainRequant[T]) Piece(lo, hi int) {
	for r := lo; r < hi; r++ {
		RequantRow(t.y[r*t.channels:][:t.channels], t.sums[r*t.channels:], t.q, 0)
	}
}

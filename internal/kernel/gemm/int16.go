package gemm

import (
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Maximum number of steps for which products of 16-bit values and weights of 8 or 9 bits add up
// in 32 bits: 510·2^15·2^7 and 256·2^15·255 are below 2^31. Both are even.
const (
	int16Steps8 = 510
	int16Steps9 = 256
)

// Requant16 requantises the 64-bit sums of output channels to 16 bits, like the TFLite reference
// kernels with 16-bit activations.
type Requant16 struct {
	Bias     []int64            // one per channel, nil for none
	Mul      []fixed.Multiplier // one per channel, or one for all
	Zero     int32              // output zero point
	Min, Max int32              // clamp, after the zero point
	Narrow   bool               // 32-bit biases and sums, scaled with two roundings

	scales simd.Scales16 // the same for SIMD kernels; empty if they do not support it
}

// One requantises the sum acc of channel ch.
func (q *Requant16) One(acc int64, ch int) int16 {
	if q.Bias != nil {
		acc += q.Bias[ch]
	}
	m := q.Mul[0]
	if len(q.Mul) > 1 {
		m = q.Mul[ch]
	}
	var v int32
	if q.Narrow {
		v = m.Apply(int32(acc))
	} else {
		v = m.Apply64(acc)
	}
	return int16(min(max(v+q.Zero, q.Min), q.Max))
}

// prepare computes the scales of n channels.
func (q *Requant16) prepare(n int) {
	if q.Narrow {
		return
	}
	s := simd.NewScales16(n)
	for i := range n {
		f, down := q.Mul[i%len(q.Mul)].Parts64()
		if down < 1 || down > 62 || f < 0 {
			return
		}
		var bias int64
		if q.Bias != nil {
			bias = q.Bias[i]
		}
		s.Set(i, bias, f, down)
	}
	q.scales = s
}

// Int16 multiplies 16-bit rows by packed weights with 64-bit sums and requantises to 16 bits.
type Int16 struct {
	P    *PackedInt8
	q    *Requant16
	line int   // row length, rounded up to an even number
	Cuts []int // ends of the K ranges whose sums fit 32 bits
	// even holds cuts for weights that are filled later, of 8 bits and of more, whatever their
	// values.
	even [2][]int
	// low is the number of K ranges of the lower bytes of values, after those of the upper bytes:
	// for 16-bit weights, else 0.
	low int
}

// NewInt16 takes weights of [NewPackedInt16], which may be filled later. It requires
// [PackedInt8.UsesSIMD].
func NewInt16(p *PackedInt8, q *Requant16) *Int16 {
	q.prepare(p.N)
	w := &Int16{P: p, q: q, line: 2 * p.Panels.Pairs()}
	switch {
	case p.Panels.Narrow != nil:
		w.Cuts = cutsOf(p.Panels, p.Panels.Narrow)
	case p.Panels.Wide != nil:
		w.Cuts = cutsOf(p.Panels, p.Panels.Wide)
	default:
		w.even = [2][]int{w.evenly(int16Steps8), w.evenly(int16Steps9)}
	}
	return w
}

// NewInt16Dynamic is [NewInt16] for 16-bit weights that are filled later. If they do not
// all fit 8 bits, values are multiplied in two parts, the signed upper bytes and the lower bytes:
// 510·2^7·2^15 and 256·255·2^15 are below 2^31.
func NewInt16Dynamic(p *PackedInt8, q *Requant16) *Int16 {
	w := NewInt16(p, q)
	low := w.evenly(int16Steps9)
	w.even[1], w.low = append(w.evenly(int16Steps8), low...), len(low)
	return w
}

// evenly returns the ends of K ranges with the given number of steps.
func (w *Int16) evenly(steps int) (cuts []int) {
	for at := steps; at < w.line; at += steps {
		cuts = append(cuts, at)
	}
	return append(cuts, w.line)
}

// cutBlock is the number of step pairs that cutsOf checks together.
const cutBlock = 32

// cutsOf ends a K range before the next block of weights could overflow 32 bits: values are at
// most 2^15, so the weight magnitudes of a range add up to less than 2^16.
func cutsOf[T int8 | int16](p *IntPanels, w []T) (cuts []int) {
	pairs, cols := p.Pairs(), p.F.Cols
	sums, total := make([]int32, cols), int32(0)
	for k0 := 0; k0 < pairs; k0 += cutBlock {
		k1, most := min(pairs, k0+cutBlock), int32(0)
		for at := 0; at < len(w); at += p.panel() {
			clear(sums)
			for k := k0; k < k1; k++ {
				for c, row := 0, w[at+2*k*cols:][:2*cols]; c < cols; c++ {
					a, b := int32(row[2*c]), int32(row[2*c+1])
					sums[c] += max(a, -a) + max(b, -b)
				}
			}
			most = max(most, slices.Max(sums))
		}
		if total += most; total >= 1<<16 {
			cuts, total = append(cuts, 2*k0), most
		}
	}
	return append(cuts, 2*pairs)
}

// parts returns the ends of the K ranges.
func (w *Int16) parts() []int {
	switch {
	case w.Cuts != nil:
		return w.Cuts
	case w.P.Panels.Wide != nil:
		return w.even[1]
	}
	return w.even[0]
}

// RowLength returns the row length for RunRows: odd lengths are padded by one value, which is
// ignored.
func (w *Int16) RowLength() int { return w.line }

// splitsBytes reports whether rows are split into upper and lower bytes.
func (w *Int16) splitsBytes() bool { return w.low > 0 && w.P.Panels.Wide != nil }

// Run computes y[m×n] = x[m×k]·w. Concurrent calls are allowed.
func (w *Int16) Run(pool *workers.Pool, m int, x, y []int16) {
	switch {
	case m <= 0:
		return
	case w.splitsBytes():
		w.bytes(pool, m, x, y)
		return
	case w.line == w.P.K:
		w.RunRows(pool, m, x, y)
		return
	}
	sc, rows := scratch.Borrow16(m * w.line)
	for r := range m {
		copy(rows[r*w.line:], x[r*w.P.K:][:w.P.K])
	}
	w.RunRows(pool, m, rows, y)
	scratch.Float32s.Put(sc)
}

// bytes is Run for rows that are split.
func (w *Int16) bytes(pool *workers.Pool, m int, x, y []int16) {
	sc, rows := scratch.Borrow16(2 * m * w.line)
	upper, lower := rows[:m*w.line], rows[m*w.line:]
	if w.line == w.P.K {
		w.P.Panels.F.SplitBytes(upper, lower, x[:m*w.line])
	} else {
		for r := range m {
			at := r * w.line
			w.P.Panels.F.SplitBytes(upper[at:][:w.P.K], lower[at:][:w.P.K], x[r*w.P.K:][:w.P.K])
		}
	}
	w.RunRows(pool, m, rows, y)
	scratch.Float32s.Put(sc)
}

// RunRows is Run for rows of [Int16.RowLength] values; with 16-bit weights all upper bytes,
// then all lower bytes.
func (w *Int16) RunRows(pool *workers.Pool, m int, x, y []int16) {
	p, f := w.P, w.P.Panels.F
	if m <= 0 || p.N <= 0 {
		return
	}
	// The rows of a work item stay in the L1 cache.
	height := 4 * f.Rows
	panels, blocks := (p.N+f.Cols-1)/f.Cols, (m+height-1)/height
	workers.Do(pool, panels*blocks, max(1, workers.Grain(f.Rate()/4)/(p.K*f.Cols*height+1)), Int16Args{w, x, y, m, height, blocks, w.parts()}, Int16Args.blocksOf)
}

// Int16Args holds the arguments of a work item.
type Int16Args struct {
	*Int16
	x, y              []int16
	m, height, blocks int
	Cuts              []int
}

// blocksOf computes blocks lo to hi.
func (a Int16Args) blocksOf(lo, hi int) {
	p, w, f := a.P, a.P.Panels, a.P.Panels.F
	t := IntTiles.Get().(*simd.IntTile)
	size := f.Rows * f.Cols
	sc, workspace := scratch.Borrow(len(a.Cuts) * size)
	buf := scratch.AsInt32(workspace)
	t.Segs, t.RowA, t.RowC = 1, 2*a.line, 4*f.Cols
	for i := lo; i < hi; i++ {
		n, end := i/a.blocks, min(a.m, (i%a.blocks+1)*a.height)
		width := min(f.Cols, p.N-n*f.Cols)
		for r := i % a.blocks * a.height; r < end; {
			rows, from, x := simd.Evenly(end-r, f.Rows), 0, a.x[r*a.line:]
			for k, to := range a.Cuts {
				t.K, t.C = (to-from)/2, &buf[k*size]
				t.A, t.B = unsafe.Pointer(&x[from]), w.At(n, from/2)
				f.Run(t, rows, width, w.Wide != nil)
				if from = to; from == a.line && k+1 < len(a.Cuts) {
					from, x = 0, x[a.m*a.line:] // the lower bytes
				}
			}
			a.Finish(a.y[r*p.N+n*f.Cols:], p.N, buf, rows, width, n*f.Cols)
			r += rows
		}
	}
	scratch.Float32s.Put(sc)
	ReleaseIntTile(t)
}

// Finish requantises rows of sums of the channels from ch; rows of y are n values apart.
func (a Int16Args) Finish(y []int16, n int, sums []int32, rows, width, ch int) {
	q, f := a.q, a.P.Panels.F
	parts, low, size := len(a.Cuts), 0, f.Rows*f.Cols
	if a.splitsBytes() {
		low = a.low
	}
	if q.scales != nil && f.Requantise16(y, n, sums, f.Cols, rows, width, parts, low, size, q.scales, ch, q.Zero, q.Min, q.Max) {
		return
	}
	for j := range rows {
		for c := range width {
			var v int64
			for k := range parts {
				if parts-k == low {
					v <<= 8
				}
				v += int64(sums[k*size+j*f.Cols+c])
			}
			y[j*n+c] = q.One(v, ch+c)
		}
	}
}

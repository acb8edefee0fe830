package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Steps whose products of a 16-bit number by a weight of 8, or of 9, bits add up in 32 bits: 510·2^15·2^7 and
// 256·2^15·255 are below 2^31. Both are even.
const (
	wideSteps8 = 510
	wideSteps9 = 256
)

// Requant16 turns the 64-bit sums of an output channel into 16-bit values, as the reference kernels with 16-bit activations do.
type Requant16 struct {
	Bias     []int64            // one a channel, nil for none
	Mul      []fixed.Multiplier // one a channel, or a single one for all
	Zero     int32              // output zero point
	Min, Max int32              // clamp, after the zero point
	Narrow   bool               // 32-bit biases and sums, scaled with two roundings

	scales simd.Scales16 // the same for kernels in vectors; empty where they do something else
}

// One quantises the sum acc of channel ch.
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

// prepare makes the scales of n channels.
func (q *Requant16) prepare(n int) {
	if q.Narrow {
		return
	}
	size := roundUp(n, scaleLanes)
	all := make([]int64, 4*size)
	s := simd.Scales16{Mul: all[:size], Half: all[size:][:size], Down: all[2*size:][:size], Bias: all[3*size:]}
	for i := range n {
		f, down := q.Mul[i%len(q.Mul)].Parts64()
		if down < 1 || down > 62 {
			return
		}
		s.Mul[i], s.Half[i], s.Down[i] = f, 1<<(down-1), int64(down)
	}
	copy(s.Bias, q.Bias)
	q.scales = s
}

// Wide is a product of 16-bit numbers by packed weights with sums of 64 bits, which become 16-bit numbers.
type Wide struct {
	p *PackedQ
	q *Requant16
}

// NewWide takes weights of [NewPacked16], which may be filled later, in vectors only; see [PackedQ.Vectors].
func NewWide(p *PackedQ, q *Requant16) *Wide {
	q.prepare(p.n)
	return &Wide{p, q}
}

// Run computes y[m×n] = x[m×k]·w. It may be called from several goroutines.
func (w *Wide) Run(pool *workers.Pool, m int, x, y []int16) {
	p, f := w.p, w.p.panels.f
	if m <= 0 || p.n <= 0 {
		return
	}
	line := 2 * p.panels.pairs()
	if line != p.k {
		// The last of a row has a neighbour whose weight is zero.
		sc, rows := borrow16(m * line)
		defer scratch.Put(sc)
		for r := range m {
			copy(rows[r*line:], x[r*p.k:][:p.k])
			rows[(r+1)*line-1] = 0
		}
		x = rows
	}
	most := wideSteps8
	if p.panels.wide != nil {
		most = wideSteps9
	}
	// The rows of a piece stay in the first-level cache.
	height := 4 * f.Rows
	panels, blocks := (p.n+f.Cols-1)/f.Cols, (m+height-1)/height
	workers.Do(pool, panels*blocks, max(1, workers.Grain(f.Rate()/4)/(p.k*f.Cols*height+1)), wideArgs{w, x, y, m, line, most, height, blocks}, wideArgs.blocksOf)
}

// wideArgs is what a piece of a product with sums of 64 bits needs.
type wideArgs struct {
	*Wide
	x, y                          []int16
	m, line, most, height, blocks int
}

// blocksOf computes blocks lo to hi.
func (a wideArgs) blocksOf(lo, hi int) {
	p, w, f := a.p, a.p.panels, a.p.panels.f
	t := intTiles.Get().(*simd.IntTile)
	sc, room := borrow(f.Rows * f.Cols)
	buf := asInt32(room)
	t.Segs, t.RowA, t.C, t.RowC = 1, 2*a.line, &buf[0], 4*f.Cols
	var long []int64
	if a.line > a.most {
		sc, room := borrow64(f.Rows * f.Cols)
		defer scratch64.Put(sc)
		long = unsafe.Slice((*int64)(unsafe.Pointer(&room[0])), len(room))
	}
	for i := lo; i < hi; i++ {
		n, end := i/a.blocks, min(a.m, (i%a.blocks+1)*a.height)
		width := min(f.Cols, p.n-n*f.Cols)
		for r := i % a.blocks * a.height; r < end; {
			rows := evenly(end-r, f.Rows)
			clear(long)
			for k0 := 0; k0 < a.line; k0 += a.most {
				t.K = min(a.most, a.line-k0) / 2
				t.A, t.B = unsafe.Pointer(&a.x[r*a.line+k0]), w.at(n, k0/2)
				f.Run(t, rows, w.wide != nil)
				for j := range long {
					long[j] += int64(buf[j])
				}
			}
			a.finish(a.y[r*p.n+n*f.Cols:], buf, long, rows, width, n*f.Cols)
			r += rows
		}
	}
	scratch.Put(sc)
	giveIntTile(t)
}

// finish quantises rows of sums of the channels from ch on: those in long, if there are.
func (a wideArgs) finish(y []int16, sums []int32, long []int64, rows, width, ch int) {
	q, n, cols := a.q, a.p.n, a.p.panels.f.Cols
	if long == nil && q.scales.Mul != nil && a.p.panels.f.Requantise16(y, n, sums, cols, rows, width, &q.scales, ch, q.Zero, q.Min, q.Max) {
		return
	}
	for j := range rows {
		for c := range width {
			at := j*cols + c
			v := int64(sums[at])
			if long != nil {
				v = long[at]
			}
			y[j*n+c] = q.One(v, ch+c)
		}
	}
}

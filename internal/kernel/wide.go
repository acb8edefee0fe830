package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Steps whose products of a 16-bit number by a weight of 8, or of 9, bits add up in 32 bits: 510·2^15·2^7 and
// 256·2^15·255 are below 2^31. Both are even.
const (
	wideSteps8 = 510
	wideSteps9 = 256
)

// Sums64 computes y[m×n] = x[m×k]·w for rows x of 16-bit numbers, in 64 bits, exactly. It is for kernels in
// vectors only; see [PackedQ.Vectors]. The weights are those of [NewPacked16].
func (p *PackedQ) Sums64(pool *workers.Pool, m int, x []int16, y []int64) {
	w, f := p.panels, p.panels.f
	if m <= 0 || p.n <= 0 {
		return
	}
	line := 2 * w.pairs()
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
	if w.wide != nil {
		most = wideSteps9
	}
	// The rows of a piece stay in the first-level cache.
	height := 4 * f.Rows
	panels, blocks := (p.n+f.Cols-1)/f.Cols, (m+height-1)/height
	workers.Do(pool, panels*blocks, max(1, workers.Grain(f.Rate()/4)/(p.k*f.Cols*height+1)), wideArgs{p, x, y, m, line, most, height, blocks}, wideArgs.blocksOf)
}

// wideArgs is what a piece of a product with sums of 64 bits needs.
type wideArgs struct {
	p                             *PackedQ
	x                             []int16
	y                             []int64
	m, line, most, height, blocks int
}

// blocksOf computes blocks lo to hi.
func (q wideArgs) blocksOf(lo, hi int) {
	p, x, y, m, line, most, height, blocks := q.p, q.x, q.y, q.m, q.line, q.most, q.height, q.blocks
	w, f := p.panels, p.panels.f
	t := intTiles.Get().(*simd.IntTile)
	sc, room := borrow(f.Rows * f.Cols)
	buf := asInt32(room)
	t.Segs, t.RowA, t.C, t.RowC = 1, 2*line, &buf[0], 4*f.Cols
	for i := lo; i < hi; i++ {
		n, end := i/blocks, min(m, (i%blocks+1)*height)
		width := min(f.Cols, p.n-n*f.Cols)
		for r := i % blocks * height; r < end; {
			rows := evenly(end-r, f.Rows)
			for k0 := 0; k0 < line; k0 += most {
				t.K = min(most, line-k0) / 2
				t.A, t.B = unsafe.Pointer(&x[r*line+k0]), w.at(n, k0/2)
				f.Run(t, rows, w.wide != nil)
				for j := range rows {
					sums, out := buf[j*f.Cols:][:width], y[(r+j)*p.n+n*f.Cols:][:width]
					if k0 == 0 {
						for c, v := range sums {
							out[c] = int64(v)
						}
						continue
					}
					for c, v := range sums {
						out[c] += int64(v)
					}
				}
			}
			r += rows
		}
	}
	scratch.Put(sc)
	giveIntTile(t)
}

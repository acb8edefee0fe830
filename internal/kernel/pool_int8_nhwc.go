package kernel

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// PoolInt8 is a two-dimensional pooling window over 8-bit numbers in [N,H,W,C] in vectors, or ones of 16 bits: the largest, or the
// average, halves rounded away from zero. What lies outside the input does not count; a window that sees nothing
// has zero as average and the least number as the largest.
type PoolInt8 struct {
	Shape       ConvShape // without gaps; Groups and OC do not count
	Max, Signed bool
	Words       bool  // numbers of 16 bits with a sign, of which the largest alone is known, without limits
	Lo, Hi      int32 // limits of the results
	f           *simd.Pools
	line        int // numbers that a line of windows sees
	left, right int // of these inside the input
}

// Prepare tells whether kernels in vectors compute the windows.
func (b *PoolInt8) Prepare() bool {
	s := &b.Shape
	b.f = simd.PoolKernels()
	lo, hi := int32(0), int32(255)
	switch {
	case b.Words && (!b.Max || b.Lo > math.MinInt16 || b.Hi < math.MaxInt16):
		return false
	case b.Words:
		b.Lo, b.Hi, s.C = lo, hi, 2*s.C // no limits of bytes, and the bytes of a position
	case b.Signed:
		lo, hi = -128, 127
	}
	if b.Lo < lo || b.Lo > hi || b.Hi < lo || b.Hi > hi {
		return false
	}
	if b.f == nil || s.N*s.OH*s.OW == 0 || s.H*s.W*s.C == 0 || s.KH > maxTaps || s.KW > maxTaps/s.KH {
		return false
	}
	if float64(s.OW)*float64(s.StrideW)+float64(s.KW) > maxFramed/float64(s.C) {
		return false
	}
	b.line = ((s.OW-1)*s.StrideW + s.KW) * s.C
	b.left = min(max(0, s.PadL)*s.C, b.line)
	b.right = max(b.left, min(b.line, (s.PadL+s.W)*s.C))
	return true
}

// Name is the name of the kernel.
func (b *PoolInt8) Name() string { return "windows/" + b.f.Set.String() }

// poolInt8Args is what a piece of the work needs.
type poolInt8Args struct {
	b    *PoolInt8
	x, y []uint8
}

// Run pools the bits x into y: of each line of windows first down, then along.
func (b *PoolInt8) Run(p *workers.Pool, x, y []uint8) {
	s := &b.Shape
	workers.Do(p, s.N*s.OH, max(1, 1<<17/(s.OW*s.C*s.KH*s.KW+1)), poolInt8Args{b, x, y}, func(q poolInt8Args, lo, hi int) {
		b, s := q.b, &q.b.Shape
		if b.Max {
			sc, line := borrow8(b.line)
			b.fill(line)
			for r := lo; r < hi; r++ {
				b.largest(line, q.x[r/s.OH*s.H*s.W*s.C:], q.y[r*s.OW*s.C:][:s.OW*s.C], r%s.OH)
			}
			scratch.Put(sc)
			return
		}
		sc, room := borrow(b.line)
		sums := asInt32(room)
		clear(sums)
		for r := lo; r < hi; r++ {
			b.average(sums, q.x[r/s.OH*s.H*s.W*s.C:], q.y[r*s.OW*s.C:][:s.OW*s.C], r%s.OH)
		}
		scratch.Put(sc)
	})
}

// fill writes the least numbers that there are.
func (b *PoolInt8) fill(line []uint8) {
	switch {
	case b.Words:
		for i := range line {
			line[i] = uint8(i % 2 << 7)
		}
	case b.Signed:
		fill(line, 0x80)
	default:
		clear(line)
	}
}

// kind is what codes there are.
func (b *PoolInt8) kind() simd.CodeKind {
	switch {
	case b.Words:
		return simd.SignedWords
	case b.Signed:
		return simd.SignedBytes
	}
	return simd.UnsignedBytes
}

// inputRows are the lines of the input that line oy of the windows sees.
func (b *PoolInt8) inputRows(oy int) (from, n int) {
	y := oy*b.Shape.StrideH - b.Shape.PadT
	from = max(0, y)
	return from, max(0, min(b.Shape.H, y+b.Shape.KH)-from)
}

// largest pools line oy of an image into y; line has the least number where there is no input.
func (b *PoolInt8) largest(line, x, y []uint8, oy int) {
	s := &b.Shape
	from, lines := b.inputRows(oy)
	if inside := line[b.left:b.right]; lines > 0 && len(inside) > 0 {
		b.f.LargestBytes(inside, x[(from*s.W-s.PadL)*s.C+b.left:], s.W*s.C, lines, b.kind())
	} else {
		b.fill(inside)
	}
	b.f.LargestTaps(y, s.C, line, s.StrideW*s.C, s.C, s.KW, s.OW, s.C, b.kind())
	if !b.Words {
		limitBits(y, b.Lo, b.Hi, b.Signed)
	}
}

// average pools line oy of an image into y; sums are zero where there is no input.
func (b *PoolInt8) average(sums []int32, x, y []uint8, oy int) {
	s := &b.Shape
	from, lines := b.inputRows(oy)
	if inside := sums[b.left:b.right]; lines > 0 && len(inside) > 0 {
		b.f.AddBytes(inside, x[(from*s.W-s.PadL)*s.C+b.left:], s.W*s.C, lines, b.Signed)
	} else {
		clear(inside)
	}
	for ox := 0; ox < s.OW; {
		// Neighbours whose windows have the same size inside the image.
		n, end := b.columns(ox), ox+1
		for end < s.OW && b.columns(end) == n {
			end++
		}
		by := int32(max(1, lines*n))
		b.f.AverageTaps(y[ox*s.C:], s.C, sums[ox*s.StrideW*s.C:], s.StrideW*s.C, s.C, s.KW, end-ox, s.C, by, b.Lo, b.Hi)
		ox = end
	}
}

// columns is the number of columns of the input that windows at ox see.
func (b *PoolInt8) columns(ox int) int {
	x := ox*b.Shape.StrideW - b.Shape.PadL
	return max(0, min(b.Shape.W, x+b.Shape.KW)-max(0, x))
}

// limitBits limits the bits of 8-bit numbers.
func limitBits(y []uint8, lo, hi int32, signed bool) {
	if signed && lo <= -128 && hi >= 127 || !signed && lo <= 0 && hi >= 255 {
		return
	}
	done := 0
	if e := simd.ElementKernels(); e != nil {
		done = e.LimitBytes(y, y, uint8(lo), uint8(hi), signed)
	}
	for i := done; i < len(y); i++ {
		v := int32(y[i])
		if signed {
			v = int32(int8(v))
		}
		y[i] = uint8(min(max(v, lo), hi))
	}
}

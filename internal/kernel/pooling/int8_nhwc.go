package pooling

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Int8 is two-dimensional max or average pooling of 8-bit values in [N,H,W,C] with SIMD
// kernels, or max pooling of 16-bit values. Averages round half away from zero. Padding does not
// count. A window without input has average zero and the smallest value as maximum.
type Int8 struct {
	Shape       conv.Shape // without dilation; Groups and OC are ignored
	Max, Signed bool
	Words       bool  // signed 16-bit values: max pooling only, no clamp
	Lo, Hi      int32 // clamp of the results
	f           *simd.Pools
	line        int // values that a row of windows reads
	left, right int // of these, those inside the input
}

// Prepare reports whether SIMD kernels support the windows.
func (b *Int8) Prepare() bool {
	s := &b.Shape
	b.f = simd.PoolKernels()
	lo, hi := int32(0), int32(255)
	switch {
	case b.Words && (!b.Max || b.Lo > math.MinInt16 || b.Hi < math.MaxInt16):
		return false
	case b.Words:
		b.Lo, b.Hi, s.C = lo, hi, 2*s.C // no byte limits; C counts the bytes of a position
	case b.Signed:
		lo, hi = -128, 127
	}
	if b.Lo < lo || b.Lo > hi || b.Hi < lo || b.Hi > hi {
		return false
	}
	if b.f == nil || s.N*s.OH*s.OW == 0 || s.H*s.W*s.C == 0 || s.KH > conv.MaxTaps || s.KW > conv.MaxTaps/s.KH {
		return false
	}
	if float64(s.OW)*float64(s.StrideW)+float64(s.KW) > conv.MaxFramed/float64(s.C) {
		return false
	}
	b.line = ((s.OW-1)*s.StrideW + s.KW) * s.C
	b.left = min(max(0, s.PadL)*s.C, b.line)
	b.right = max(b.left, min(b.line, (s.PadL+s.W)*s.C))
	return true
}

// Name returns the kernel name.
func (b *Int8) Name() string { return "windows/" + b.f.Set.String() }

// poolInt8Args holds the arguments of a work item.
type poolInt8Args struct {
	b    *Int8
	x, y []uint8
}

// Run pools x into y: each row of windows first vertically, then horizontally.
func (b *Int8) Run(p *workers.Pool, x, y []uint8) {
	s := &b.Shape
	workers.Do(p, s.N*s.OH, max(1, 1<<17/(s.OW*s.C*s.KH*s.KW+1)), poolInt8Args{b, x, y}, func(q poolInt8Args, lo, hi int) {
		b, s := q.b, &q.b.Shape
		if b.Max {
			sc, line := scratch.Borrow8(b.line)
			b.fill(line)
			for r := lo; r < hi; r++ {
				b.largest(line, q.x[r/s.OH*s.H*s.W*s.C:], q.y[r*s.OW*s.C:][:s.OW*s.C], r%s.OH)
			}
			scratch.Float32s.Put(sc)
			return
		}
		sc, workspace := scratch.Borrow(b.line)
		sums := scratch.AsInt32(workspace)
		clear(sums)
		for r := lo; r < hi; r++ {
			b.average(sums, q.x[r/s.OH*s.H*s.W*s.C:], q.y[r*s.OW*s.C:][:s.OW*s.C], r%s.OH)
		}
		scratch.Float32s.Put(sc)
	})
}

// fill writes the smallest value.
func (b *Int8) fill(line []uint8) {
	switch {
	case b.Words:
		for i := range line {
			line[i] = uint8(i % 2 << 7)
		}
	case b.Signed:
		scratch.Fill(line, 0x80)
	default:
		clear(line)
	}
}

// kind returns the element type of the kernels.
func (b *Int8) kind() simd.PoolKind {
	switch {
	case b.Words:
		return simd.SignedWords
	case b.Signed:
		return simd.SignedBytes
	}
	return simd.UnsignedBytes
}

// inputRows returns the input rows that row oy of the windows reads.
func (b *Int8) inputRows(oy int) (from, n int) {
	y := oy*b.Shape.StrideH - b.Shape.PadT
	from = max(0, y)
	return from, max(0, min(b.Shape.H, y+b.Shape.KH)-from)
}

// largest computes row oy of max pooling of an image into y; line holds the smallest value where
// the window has no input.
func (b *Int8) largest(line, x, y []uint8, oy int) {
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

// average computes row oy of average pooling of an image into y; sums are zero where the window
// has no input.
func (b *Int8) average(sums []int32, x, y []uint8, oy int) {
	s := &b.Shape
	from, lines := b.inputRows(oy)
	if inside := sums[b.left:b.right]; lines > 0 && len(inside) > 0 {
		b.f.AddBytes(inside, x[(from*s.W-s.PadL)*s.C+b.left:], s.W*s.C, lines, b.Signed)
	} else {
		clear(inside)
	}
	for ox := 0; ox < s.OW; {
		// Neighbours whose windows cover the same number of input values.
		n, end := b.columns(ox), ox+1
		for end < s.OW && b.columns(end) == n {
			end++
		}
		by := int32(max(1, lines*n))
		b.f.AverageTaps(y[ox*s.C:], s.C, sums[ox*s.StrideW*s.C:], s.StrideW*s.C, s.C, s.KW, end-ox, s.C, by, b.Lo, b.Hi)
		ox = end
	}
}

// columns returns the number of input columns that windows at ox cover.
func (b *Int8) columns(ox int) int {
	x := ox*b.Shape.StrideW - b.Shape.PadL
	return max(0, min(b.Shape.W, x+b.Shape.KW)-max(0, x))
}

// limitBits clamps 8-bit values.
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

package kernel

import (
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/pages"
	"github.com/opmeter/opmeter/internal/workers"
)

// TransposedShape describes a transposed convolution over [N,H,W,C]: tap ky, kx of the
// input at y, x adds to the output at y*StrideH-PadT+ky, x*StrideW-PadL+kx.
type TransposedShape struct {
	N, H, W, C       int
	OC, OH, OW       int
	KH, KW           int
	StrideH, StrideW int
	PadT, PadL       int
}

// TransposedConv is a transposed convolution of float32 in vectors. Every sum takes its
// products one by one, by input position and then by channel, as the reference kernels of
// TFLite do: equal to the bit.
type TransposedConv struct {
	s TransposedShape
	f *simd.Floats
	w []float32 // for each tap the panels of its weights
}

// NewTransposedConv prepares weights [OC,KH,KW,C]; nil without vectors.
func NewTransposedConv(s TransposedShape, w []float32) *TransposedConv {
	f := simd.FloatKernels()
	if f == nil || s.N*s.OH*s.OW*s.OC == 0 || s.C == 0 {
		return nil
	}
	t := &TransposedConv{s: s, f: f}
	per, taps := roundUp(s.OC, f.Cols)*s.C, s.KH*s.KW
	t.w = pages.Make[float32](taps * per)
	for tap := range taps {
		pack(t.w[tap*per:][:per], w[tap*s.C:], s.OC, s.C, f.Cols, taps*s.C, 1)
	}
	return t
}

// Name is the name of the kernel.
func (t *TransposedConv) Name() string { return setName("direct", t.f) }

// transposedArgs is what a piece of the work needs.
type transposedArgs struct {
	t    *TransposedConv
	x, y []float32
}

// Run adds up the products of x in y.
func (t *TransposedConv) Run(p *workers.Pool, x, y []float32) {
	clear(y)
	// Images and output channels are independent of each other.
	workers.Do(p, t.s.N*((t.s.OC+t.f.Cols-1)/t.f.Cols), 1, transposedArgs{t, x, y}, func(a transposedArgs, lo, hi int) {
		t, x, y := a.t, a.x, a.y
		s, f := &t.s, t.f
		panels := (s.OC + f.Cols - 1) / f.Cols
		per := panels * f.Cols * s.C
		tile := tiles.Get().(*simd.Tile)
		tile.K, tile.Segs, tile.StepA, tile.RowA, tile.StepB, tile.RowC = s.C, 1, 4, 4*s.C, 4*f.Cols, 4*s.StrideW*s.OC
		tile.SetStart(simd.Continue)
		for i := lo; i < hi; i++ {
			n, o := i/panels, i%panels*f.Cols
			for iy := range s.H {
				for ky := range s.KH {
					oy := iy*s.StrideH - s.PadT + ky
					if uint(oy) >= uint(s.OH) {
						continue
					}
					// Of what reaches one output the later taps come from earlier positions.
					for kx := s.KW - 1; kx >= 0; kx-- {
						first, end := span(s.W, s.StrideW, kx-s.PadL, s.OW)
						tile.B = &t.w[(ky*s.KW+kx)*per+o*s.C]
						for at := first; at < end; {
							rows := evenly(end-at, f.Rows)
							tile.A = &x[((n*s.H+iy)*s.W+at)*s.C]
							tile.C = &y[((n*s.OH+oy)*s.OW+at*s.StrideW-s.PadL+kx)*s.OC+o]
							f.Run(tile, rows, min(f.Cols, s.OC-o), true)
							at += rows
						}
					}
				}
			}
		}
		giveTile(tile)
	})
}

// TransposedSums is a transposed convolution of 8-bit numbers in vectors.
type TransposedSums struct {
	s      TransposedShape
	packed *PackedQ
	table  []ByteTable
}

// NewTransposedSums prepares weights [OC,KH,KW,C], whose zero point is zeroW, and the zero point of int8 (signed) or
// uint8 input; nil without vectors.
func NewTransposedSums[W Weight](s TransposedShape, w []W, zeroW int32, signed bool, zero int32) *TransposedSums {
	taps := s.KH * s.KW
	packed := NewPackedQ(taps*s.OC, s.C)
	if !packed.Vectors() {
		return nil
	}
	turned := make([]W, len(w))
	for i := range taps * s.OC {
		copy(turned[i*s.C:][:s.C], w[(i%s.OC*taps+i/s.OC)*s.C:])
	}
	FillQ(nil, packed, turned, zeroW, s.C, 1)
	t := &TransposedSums{s: s, packed: packed, table: make([]ByteTable, 1)}
	t.table[0].Fill(signed, zero)
	return t
}

// Room is the number of products of a line of the input: the memory that Run needs.
func (t *TransposedSums) Room() int { return t.s.W * t.packed.n }

// Name is the name of the kernel.
func (t *TransposedSums) Name() string { return "direct/" + t.packed.panels.f.Set.String() }

// Run adds up the products of the bits x of 8-bit values in y.
func (t *TransposedSums) Run(p *workers.Pool, x []uint8, y, room []int32) {
	s := &t.s
	clear(y)
	for line := range s.N * s.H {
		n, iy := line/s.H, line%s.H
		GemmQ(p, s.W, x[line*s.W*s.C:][:s.W*s.C], t.table, t.packed, room)
		for ky := range s.KH {
			oy := iy*s.StrideH - s.PadT + ky
			if uint(oy) >= uint(s.OH) {
				continue
			}
			for kx := range s.KW {
				first, end := span(s.W, s.StrideW, kx-s.PadL, s.OW)
				for at := first; at < end; at++ {
					dst := y[((n*s.OH+oy)*s.OW+at*s.StrideW-s.PadL+kx)*s.OC:][:s.OC]
					src := room[at*t.packed.n+(ky*s.KW+kx)*s.OC:][:s.OC]
					for i, v := range src {
						dst[i] += v
					}
				}
			}
		}
	}
}

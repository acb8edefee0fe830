package conv

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TransposedShape describes a transposed convolution over [N,H,W,C]: tap ky, kx of the input at
// y, x adds to the output at y*StrideH-PadT+ky, x*StrideW-PadL+kx.
type TransposedShape struct {
	N, H, W, C       int
	OC, OH, OW       int
	KH, KW           int
	StrideH, StrideW int
	PadT, PadL       int
}

// columnAsRow turns an image with one column into one with one row.
func (s *TransposedShape) columnAsRow() {
	if s.W == 1 && s.OW == 1 && s.KW == 1 && s.PadL == 0 {
		s.H, s.W, s.OH, s.OW, s.KH, s.KW = 1, s.H, 1, s.OH, 1, s.KH
		s.StrideH, s.StrideW, s.PadT, s.PadL = 1, s.StrideH, 0, s.PadT
	}
}

// Transposed is a float32 transposed convolution with SIMD kernels. Each sum adds its
// products one by one, by input position and then by channel, and is bit-exact with the TFLite
// reference kernels. Taps less than a stride apart reach adjacent outputs: with their channels
// they are the columns of one GEMM.
type Transposed struct {
	s      TransposedShape
	f      *simd.Floats
	groups int // of taps of a row
	panels int // panels of the columns of a group
	per    int // weights of a group
	w      []float32
}

// NewTransposed prepares weights [OC,KH,KW,C]; nil without SIMD.
func NewTransposed(s TransposedShape, w []float32) *Transposed {
	f := simd.FloatKernels()
	if f == nil || s.N*s.OH*s.OW*s.OC == 0 || s.C*s.KH*s.KW == 0 {
		return nil
	}
	s.columnAsRow()
	together := min(s.StrideW, s.KW)
	t := &Transposed{s: s, f: f, groups: (s.KW + together - 1) / together, panels: (together*s.OC + f.Cols - 1) / f.Cols}
	t.per = t.panels * f.Cols * s.C
	// Taps in the middle of the last panel are read as a whole panel.
	t.w = hugepages.Make[float32](s.KH*t.groups*t.per + f.Cols)
	columns := make([]float32, together*s.OC*s.C)
	for ky := range s.KH {
		for g := range t.groups {
			taps := t.taps(g)
			for i := range taps * s.OC {
				tap := (i%s.OC*s.KH+ky)*s.KW + g*s.StrideW + i/s.OC
				copy(columns[i*s.C:][:s.C], w[tap*s.C:])
			}
			gemm.Pack(t.w[(ky*t.groups+g)*t.per:][:scratch.RoundUp(taps*s.OC, f.Cols)*s.C], columns, taps*s.OC, s.C, f.Cols, s.C, 1)
		}
	}
	return t
}

// taps returns the number of taps of group g.
func (t *Transposed) taps(g int) int { return min(t.s.StrideW, t.s.KW-g*t.s.StrideW) }

// Name returns the kernel name.
func (t *Transposed) Name() string { return gemm.ISAName("direct", t.f) }

// transposedArgs holds the arguments of a work item.
type transposedArgs struct {
	t    *Transposed
	x, y []float32
}

// Run sets y to the sums of the products of x.
func (t *Transposed) Run(p *workers.Pool, x, y []float32) {
	clear(y)
	t.Add(p, x, y)
}

// Add adds the products of x to y.
func (t *Transposed) Add(p *workers.Pool, x, y []float32) {
	// Images are independent, and so are panels: a column of each group reaches the same outputs.
	workers.Do(p, t.s.N*t.panels, 1, transposedArgs{t, x, y}, func(a transposedArgs, lo, hi int) {
		t, s := a.t, &a.t.s
		l := transposedLine{t: t, tile: gemm.Tiles.Get().(*simd.Tile), x: a.x, y: a.y}
		l.tile.K, l.tile.Segs, l.tile.StepA, l.tile.RowA = s.C, 1, 4, 4*s.C
		l.tile.StepB, l.tile.RowC = 4*t.f.Cols, 4*s.StrideW*s.OC
		l.tile.SetStart(simd.Continue)
		for i := lo; i < hi; i++ {
			n := i / t.panels
			for iy := range s.H {
				for ky := range s.KH {
					oy := iy*s.StrideH - s.PadT + ky
					if uint(oy) >= uint(s.OH) {
						continue
					}
					l.from, l.to = (n*s.H+iy)*s.W, (n*s.OH+oy)*s.OW-s.PadL
					// Of the contributions to one output the later taps come from earlier
					// positions.
					for g := t.groups - 1; g >= 0; g-- {
						l.group(ky, g, i%t.panels)
					}
				}
			}
		}
		gemm.ReleaseTile(l.tile)
	})
}

// transposedLine is an input row that adds to an output row.
type transposedLine struct {
	t        *Transposed
	tile     *simd.Tile
	x, y     []float32
	from, to int // start positions of the rows; the output one before padding is removed
}

// group adds the products of a panel of group g of the taps of row ky.
func (l *transposedLine) group(ky, g, panel int) {
	t, s := l.t, &l.t.s
	c0, c1 := panel*t.f.Cols, min((panel+1)*t.f.Cols, t.taps(g)*s.OC)
	if c0 >= c1 {
		return
	}
	w, k0 := t.w[(ky*t.groups+g)*t.per+c0*s.C:], g*s.StrideW
	// Positions with all taps inside, then the others, tap by tap.
	a, b := c0/s.OC, (c1-1)/s.OC
	first, _ := span(s.W, s.StrideW, k0+a-s.PadL, s.OW)
	_, end := span(s.W, s.StrideW, k0+b-s.PadL, s.OW)
	end = max(first, end)
	l.run(w, k0, 0, c0, c1, first, end)
	if a == b {
		return
	}
	for k := a; k <= b; k++ {
		from, to := max(c0, k*s.OC), min(c1, (k+1)*s.OC)
		p0, p1 := span(s.W, s.StrideW, k0+k-s.PadL, s.OW)
		l.run(w, k0, from-c0, from, to, p0, min(p1, first))
		l.run(w, k0, from-c0, from, to, max(p0, end), p1)
	}
}

// run adds the products of columns c0 to c1 for positions at to end.
func (l *transposedLine) run(w []float32, k0, in, c0, c1, at, end int) {
	s, f := &l.t.s, l.t.f
	for at < end {
		rows := simd.Evenly(end-at, f.Rows)
		l.tile.A, l.tile.B = &l.x[(l.from+at)*s.C], &w[in]
		l.tile.C = &l.y[(l.to+at*s.StrideW+k0)*s.OC+c0]
		f.Run(l.tile, rows, c1-c0, true)
		at += rows
	}
}

// TransposedSums is an 8-bit transposed convolution with SIMD kernels.
type TransposedSums struct {
	s      TransposedShape
	packed *gemm.PackedInt8
	table  []gemm.ByteTable
}

// NewTransposedSums prepares weights [OC,KH,KW,C] with zero point zeroW, for int8 (signed) or
// uint8 input with zero point zero; nil without SIMD.
func NewTransposedSums[W quantise.Weight](s TransposedShape, w []W, zeroW int32, signed bool, zero int32) *TransposedSums {
	s.columnAsRow()
	taps := s.KH * s.KW
	packed := gemm.NewPackedInt8(taps*s.OC, s.C)
	if !packed.UsesSIMD() {
		return nil
	}
	turned := make([]W, len(w))
	for i := range taps * s.OC {
		copy(turned[i*s.C:][:s.C], w[(i%s.OC*taps+i/s.OC)*s.C:])
	}
	gemm.FillInt8(nil, packed, turned, zeroW, s.C, 1)
	t := &TransposedSums{s: s, packed: packed, table: make([]gemm.ByteTable, 1)}
	t.table[0].Fill(signed, zero)
	return t
}

// ScratchSize returns the number of int32 values of scratch memory that Run needs: the products
// of an input row.
func (t *TransposedSums) ScratchSize() int { return t.s.W * t.packed.N }

// Name returns the kernel name.
func (t *TransposedSums) Name() string { return "direct/" + t.packed.Panels.F.Set.String() }

// Run sums the products of the bytes x into y.
func (t *TransposedSums) Run(p *workers.Pool, x []uint8, y, workspace []int32) {
	s := &t.s
	clear(y)
	for line := range s.N * s.H {
		n, iy := line/s.H, line%s.H
		gemm.MultiplyInt8(p, s.W, x[line*s.W*s.C:][:s.W*s.C], t.table, t.packed, workspace)
		for ky := range s.KH {
			oy := iy*s.StrideH - s.PadT + ky
			if uint(oy) >= uint(s.OH) {
				continue
			}
			row := (n*s.OH+oy)*s.OW - s.PadL
			for at := range s.W {
				// Adjacent taps reach adjacent outputs.
				left := at * s.StrideW
				k0, k1 := max(0, s.PadL-left), min(s.KW, s.OW+s.PadL-left)
				if k0 >= k1 {
					continue
				}
				dst := y[(row+left+k0)*s.OC:][:(k1-k0)*s.OC]
				element.AddTo(dst, dst, workspace[at*t.packed.N+(ky*s.KW+k0)*s.OC:])
			}
		}
	}
}

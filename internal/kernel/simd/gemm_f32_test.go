package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestTileLayout checks the field offsets that the assembly uses.
func TestTileLayout(t *testing.T) {
	t.Parallel()
	var x Tile
	for i, got := range []uintptr{
		unsafe.Offsetof(x.A), unsafe.Offsetof(x.RowA), unsafe.Offsetof(x.StepA), unsafe.Offsetof(x.SegA),
		unsafe.Offsetof(x.K), unsafe.Offsetof(x.Segs), unsafe.Offsetof(x.B), unsafe.Offsetof(x.StepB),
		unsafe.Offsetof(x.C), unsafe.Offsetof(x.RowC), unsafe.Offsetof(x.BiasN), unsafe.Offsetof(x.BiasM),
		unsafe.Offsetof(x.mask), unsafe.Offsetof(x.PanelB), unsafe.Offsetof(x.Min), unsafe.Offsetof(x.bits),
		unsafe.Offsetof(x.Offs), unsafe.Offsetof(x.Next), unsafe.Offsetof(x.Fetch), unsafe.Offsetof(x.tiles),
		unsafe.Offsetof(x.doneA), unsafe.Offsetof(x.doneC),
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}

// plain is the definition of a tile: in order for the exact kernels, fused multiply-adds for the
// others.
func plain(t *Tile, rows, width int, exact bool) {
	f := func(p *float32, off int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), off)) }
	for r := range rows {
		for j := range width {
			c := f(t.C, r*t.RowC+4*j)
			var s float32
			if t.flags&flagContinue != 0 {
				s = *c
			}
			for g := range t.Segs {
				for k := range t.K {
					x, y := *f(t.A, r*t.RowA+g*t.SegA+k*t.StepA), *f(t.B, (g*t.K+k)*t.StepB+4*j)
					if exact {
						s += float32(x * y)
					} else {
						s = fma(x, y, s)
					}
				}
			}
			if t.flags&flagAccumulate != 0 {
				s += *c
			}
			if t.BiasM != nil {
				s += *f(t.BiasM, 4*r)
			}
			if t.BiasN != nil {
				s += *f(t.BiasN, 4*j)
			}
			if t.flags&flagClamp != 0 {
				s = min(max(s, t.Min), t.Max)
			}
			*c = s
		}
	}
}

// fma rounds once. The product of two float32 values is exact in float64. The sum is corrected if
// its rounding to float64 hits the middle between two float32 values.
func fma(x, y, z float32) float32 {
	p, q := float64(x)*float64(y), float64(z)
	s := p + q
	bits := math.Float64bits(s)
	if bits&(1<<29-1) == 1<<28 { // in the middle: the error of the sum decides
		t := s - p
		rest := (p - (s - t)) + (q - t)
		if rest != 0 {
			if (rest > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
			s = math.Float64frombits(bits)
		}
	}
	return float32(s)
}

// special holds values that often reveal errors in kernels.
var special = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, math.SmallestNonzeroFloat32}

func fill(r *rand.Rand, v []float32, odd bool) {
	for i := range v {
		v[i] = float32(r.NormFloat64())
		if odd && r.IntN(20) == 0 {
			v[i] = special[r.IntN(len(special))]
		}
	}
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// everySet runs f for each instruction set of this processor.
func everySet(t *testing.T, f func(t *testing.T)) {
	for _, s := range Available() {
		t.Run(s.String(), func(t *testing.T) {
			defer Use(s)()
			f(t)
		})
	}
}

func TestTiles(t *testing.T) {
	everySet(t, func(t *testing.T) {
		fk := FloatKernels()
		if fk == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(1, 2))
		for n := range 4000 {
			exact, odd := r.IntN(2) == 0, r.IntN(4) == 0
			rows, width := 1+r.IntN(fk.Rows), 1+r.IntN(fk.Cols)
			k, segs := 1+r.IntN(9), 1+r.IntN(3)
			wide := n%10 == 0
			panels := 1
			if wide {
				rows, width, segs, panels = 1, fk.Cols*WidePanels, 1, WidePanels
			}
			stepA, rowA := 1+r.IntN(3), r.IntN(40)
			segA := r.IntN(40)
			ldb := fk.Cols + r.IntN(5)
			ldc := width + r.IntN(3)
			a := make([]float32, (rows-1)*rowA+(segs-1)*segA+(k-1)*stepA+1)
			b := make([]float32, (panels*segs*k-1)*ldb+fk.Cols)
			c := make([]float32, (rows-1)*ldc+width+2) // a value before and after
			bm, bn := make([]float32, rows), make([]float32, width)
			for _, v := range [][]float32{a, b, c, bm, bn} {
				fill(r, v, odd)
			}
			var codes [WideBFloat16 + 1][]uint16
			if wide {
				// Values that both 16-bit types can hold.
				for i, v := range b {
					if b[i] = float32(int(v*64)) / 64; v != v || math.IsInf(float64(v), 0) {
						b[i] = v
					}
					codes[WideFloat16] = append(codes[WideFloat16], tensor.F32ToF16(b[i]))
					b[i] = tensor.F16ToF32(codes[WideFloat16][i] &^ 7)
					codes[WideFloat16][i] &^= 7
					codes[WideBFloat16] = append(codes[WideBFloat16], uint16(math.Float32bits(b[i])>>16))
				}
			}
			want := append([]float32(nil), c...)
			tile := &Tile{
				A: &a[0], RowA: 4 * rowA, StepA: 4 * stepA, SegA: 4 * segA, K: k, Segs: segs,
				B: &b[0], StepB: 4 * ldb, PanelB: 4 * ldb * k, C: &c[1], RowC: 4 * ldc,
			}
			if r.IntN(2) == 0 {
				tile.BiasM = &bm[0]
			}
			if r.IntN(2) == 0 {
				tile.BiasN = &bn[0]
			}
			tile.SetStart(Start(r.IntN(3)))
			tile.SetClamp(r.IntN(2) == 0, -0.5, 1)
			ref := *tile
			ref.C = &want[1]
			if wide {
				for p := range panels {
					q := ref
					q.B, q.C = &b[p*k*ldb], &want[1+p*fk.Cols]
					if q.BiasN != nil {
						q.BiasN = &bn[p*fk.Cols]
					}
					plain(&q, 1, fk.Cols, exact)
				}
				narrow := WideFloat32
				if fk.HasNarrow() {
					narrow = PanelType(r.IntN(int(WideBFloat16) + 1))
				}
				if narrow != WideFloat32 {
					tile.B, tile.StepB, tile.PanelB = (*float32)(unsafe.Pointer(&codes[narrow][0])), tile.StepB/2, tile.PanelB/2
				}
				fk.Wide(tile, exact, narrow)
			} else {
				plain(&ref, rows, width, exact)
				fk.Run(tile, rows, width, exact)
			}
			for i := range c {
				if !same(c[i], want[i]) {
					t.Fatalf("case %d: %d rows, %d columns, k %d×%d, exact %v, wide %v, flags %b: value %d is %v, want %v", n, rows, width, segs, k, exact, wide, tile.flags, i, c[i], want[i])
				}
			}
		}
	})
}

// TestTilesBelow compares RunTiles with single tiles.
func TestTilesBelow(t *testing.T) {
	everySet(t, func(t *testing.T) {
		fk := FloatKernels()
		if fk == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(1, 3))
		for range 600 {
			exact, odd := r.IntN(2) == 0, r.IntN(4) == 0
			all, width := 1+r.IntN(6*fk.Rows), 1+r.IntN(fk.Cols)
			k, segs := 1+r.IntN(14), 1+r.IntN(3)
			rowA, segA, ldc := r.IntN(40), r.IntN(40), width+r.IntN(3)
			a := make([]float32, (all-1)*rowA+(segs-1)*segA+k)
			b := make([]float32, segs*k*fk.Cols)
			c, bias, next := make([]float32, (all-1)*ldc+width+2), make([]float32, width), make([]float32, 99)
			for _, v := range [][]float32{a, b, c, bias} {
				fill(r, v, odd)
			}
			want := append([]float32(nil), c...)
			tile := &Tile{RowA: 4 * rowA, StepA: 4, SegA: 4 * segA, K: k, Segs: segs, B: &b[0], StepB: 4 * fk.Cols, RowC: 4 * ldc}
			if r.IntN(2) == 0 {
				tile.BiasN = &bias[0]
			}
			if r.IntN(2) == 0 {
				tile.Next, tile.Fetch = unsafe.Pointer(&next[0]), r.IntN(5)
			}
			tile.SetStart(Start(r.IntN(3)))
			tile.SetClamp(r.IntN(2) == 0, -0.5, 1)
			ref := *tile
			ref.A, ref.C = &a[0], &want[1]
			plain(&ref, all, width, exact)
			for at := 0; at < all; {
				rows, tiles := fk.Split(tile, all-at)
				tile.A, tile.C = &a[at*rowA], &c[1+at*ldc]
				fk.RunTiles(tile, rows, tiles, width, exact)
				at += rows * tiles
			}
			for i := range c {
				if !same(c[i], want[i]) {
					t.Fatalf("%d rows, %d columns, k %d×%d, exact %v, flags %b: value %d is %v, want %v", all, width, segs, k, exact, tile.flags, i, c[i], want[i])
				}
			}
		}
	})
}

func TestGather(t *testing.T) {
	everySet(t, func(t *testing.T) {
		fk := FloatKernels()
		if fk == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(3, 4))
		src := make([]float32, 300)
		fill(r, src, true)
		for n := range 200 {
			offs := make([]int32, n%9)
			for i := range offs {
				offs[i] = int32(r.IntN(100))
			}
			runs := make([]Run, 0, 8)
			for c := 0; c < fk.Cols; c += 1 + r.IntN(fk.Cols) {
				runs = append(runs, Run{From: int32(r.IntN(150)), To: int32(c)})
			}
			dst := make([]float32, (len(offs)+1)*fk.Cols+1)
			fk.Gather(dst, src, offs, runs)
			for i := range len(offs) * fk.Cols {
				c := i % fk.Cols
				k := len(runs) - 1
				for int(runs[k].To) > c {
					k--
				}
				if want := src[int(offs[i/fk.Cols]+runs[k].From-runs[k].To)+c]; !same(dst[i], want) {
					t.Fatalf("%d rows, %v: value %d is %v, want %v", len(offs), runs, i, dst[i], want)
				}
			}
			if dst[len(dst)-1] != 0 {
				t.Fatal("written past the end")
			}
		}
	})
}

func TestSpread(t *testing.T) {
	everySet(t, func(t *testing.T) {
		fk := FloatKernels()
		if fk == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(5, 6))
		for n := range 6 {
			for panels := range 4 {
				line := panels*fk.Cols + r.IntN(3)
				src := make([]float32, n*line+panels*fk.Cols)
				fill(r, src, true)
				dst := make([]float32, n*panels*fk.Cols+1)
				fk.Spread(dst, src, line, n, panels)
				for i := range n * panels * fk.Cols {
					p, k, c := i/(n*fk.Cols), i/fk.Cols%n, i%fk.Cols
					if want := src[k*line+p*fk.Cols+c]; !same(dst[i], want) {
						t.Fatalf("%d lines of %d panels: value %d is %v, want %v", n, panels, i, dst[i], want)
					}
				}
				if dst[len(dst)-1] != 0 {
					t.Fatal("written past the end")
				}
			}
		}
	})
}

// TestPlaced compares rows of b at arbitrary offsets with the same rows in adjacent memory.
func TestPlaced(t *testing.T) {
	everySet(t, func(t *testing.T) {
		fk := FloatKernels()
		if !fk.HasIndirect() {
			t.Skip("no kernels in this instruction set")
		}
		r := rand.New(rand.NewPCG(7, 8))
		for n := range 2000 {
			rows, width, k, segs, exact := 1+r.IntN(fk.Rows), 1+r.IntN(3*fk.Cols), 1+r.IntN(9), 1+r.IntN(3), r.IntN(2) == 0
			from := make([]float32, 200+4*fk.Cols)
			a, c, bias := make([]float32, rows*segs*k), make([]float32, rows*width+2), make([]float32, rows)
			for _, v := range [][]float32{from, a, c, bias} {
				fill(r, v, n%4 == 0)
			}
			offs, b := make([]int32, segs*k), make([]float32, segs*k*fk.Cols)
			for i := range offs {
				offs[i] = int32(r.IntN(200))
			}
			want := append([]float32(nil), c...)
			tile := &Tile{
				A: &a[0], RowA: 4 * segs * k, StepA: 4, SegA: 4 * k, K: k, Segs: segs, B: &b[0], StepB: 4 * fk.Cols, RowC: 4 * width,
				BiasM: &bias[0],
			}
			tile.SetStart(Start(r.IntN(3)))
			tile.SetClamp(r.IntN(2) == 0, -0.5, 1)
			for p := 0; p < width; p += fk.Cols {
				for i, off := range offs {
					copy(b[i*fk.Cols:][:fk.Cols], from[int(off)+p:])
				}
				tile.C = &want[1+p]
				fk.Run(tile, rows, min(fk.Cols, width-p), exact)
			}
			tile.Offs = &offs[0]
			for p := 0; p < width; {
				tile.B, tile.C = &from[p], &c[1+p]
				p += fk.RunIndirect(tile, rows, width-p, exact)
			}
			for i := range c {
				if !same(c[i], want[i]) {
					t.Fatalf("case %d: %d rows, %d columns, k %d×%d: value %d is %v, want %v", n, rows, width, segs, k, i, c[i], want[i])
				}
			}
		}
	})
}

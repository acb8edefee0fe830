package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestIntTileLayout checks the field offsets that the assembly uses.
func TestIntTileLayout(t *testing.T) {
	t.Parallel()
	var x IntTile
	for i, got := range []uintptr{
		unsafe.Offsetof(x.A), unsafe.Offsetof(x.RowA), unsafe.Offsetof(x.SegA), unsafe.Offsetof(x.K), unsafe.Offsetof(x.Segs),
		unsafe.Offsetof(x.B), unsafe.Offsetof(x.C), unsafe.Offsetof(x.RowC), unsafe.Offsetof(x.more), unsafe.Offsetof(x.Start), unsafe.Offsetof(x.PanelB),
		unsafe.Offsetof(x.Ahead), unsafe.Offsetof(x.Order), unsafe.Offsetof(x.below),
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}

// TestPairWindow splits and joins windows, and checks the field offsets that the assembly uses.
func TestPairWindow(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		if !ik.Saturates() {
			t.Skip("no sums that saturate")
		}
		var w PairWindow
		if a, b := unsafe.Offsetof(w.Sizes), unsafe.Offsetof(w.Large); a != 256 || b != 768 {
			t.Fatalf("sizes are at %d, numbers of large ones at %d", a, b)
		}
		for quads := 1; quads <= OrderWindow/4; quads++ {
			panel := make([]int8, quads*4*PairColumns)
			for i := range panel {
				panel[i] = int8(r.Uint32())
			}
			panel[0], panel[1], panel[2] = -128, 64, -64
			ik.SplitPairs(&w, panel)
			var places [OrderWindow]uint8
			for at, k := range r.Perm(4 * quads) {
				places[at] = uint8(k)
			}
			joined := make([]int8, len(panel))
			ik.JoinPairs(joined, &w, &places)
			value := func(v []int8, k, j int) int { return int(v[(k/4*PairColumns+j)*4+k%4]) }
			for k := range 4 * quads {
				large := uint8(0)
				sizes := (*[2 * PairColumns]uint8)(unsafe.Pointer(&w.Sizes[k]))
				for j := range PairColumns {
					v := value(panel, k, j)
					if above, below := int(sizes[j]), int(sizes[PairColumns+j]); above != max(v, 0) || below != min(max(-v, 0), 127) {
						t.Fatalf("step %d, column %d: %d has sizes %d and %d", k, j, v, above, below)
					}
					if min(max(v, -v), 127) >= 64 {
						large++
					}
					if got, want := value(joined, k, j), value(panel, int(places[k]), j); got != want {
						t.Fatalf("%d groups of four: step %d, column %d is %d, want %d", quads, k, j, got, want)
					}
				}
				if w.Large[k] != large {
					t.Fatalf("step %d has %d large weights, want %d", k, w.Large[k], large)
				}
			}
		}
	})
}

// everyInts runs f for each instruction set with int8 kernels.
func everyInts(t *testing.T, f func(t *testing.T, ik *Ints, r *rand.Rand)) {
	everySet(t, func(t *testing.T) {
		ik := IntKernels()
		if ik == nil {
			t.Skip("plain Go")
		}
		f(t, ik, rand.New(rand.NewPCG(1, 2)))
	})
}

func TestIntTiles(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) { intTiles(t, ik, r, 2000) })
}

// intTiles compares n products of pairs with their definition.
func intTiles(t *testing.T, ik *Ints, r *rand.Rand, n int) {
	t.Helper()
	for n := range n {
		wide := r.IntN(2) == 0
		rows, k, segs := 1+r.IntN(4*ik.Rows), 1+r.IntN(9), 1+r.IntN(3)
		rowA, segA := r.IntN(30), r.IntN(30)
		a := make([]int16, (rows-1)*rowA+(segs-1)*segA+2*k)
		for i := range a {
			a[i] = int16(r.IntN(511) - 255)
			if n%5 == 0 {
				a[i] = []int16{-255, 255}[r.IntN(2)]
			}
		}
		b8, b16 := make([]int8, segs*k*ik.Cols*2), make([]int16, segs*k*ik.Cols*2)
		for i := range b8 {
			b16[i] = int16(r.IntN(511) - 255)
			if n%5 == 0 {
				b16[i] = []int16{-255, 255}[r.IntN(2)]
			}
			if !wide {
				b8[i] = int8(b16[i])
				b16[i] = int16(b8[i])
			}
		}
		ldc := ik.Cols + r.IntN(3)
		c := make([]int32, rows*ldc+2)
		for i := range c {
			c[i] = r.Int32() - r.Int32()
		}
		want := append([]int32(nil), c...)
		more := r.IntN(2) == 0
		for x := range rows {
			for j := range ik.Cols {
				var s int32
				if more {
					s = c[1+x*ldc+j]
				}
				for g := range segs {
					for i := range 2 * k {
						s += int32(a[x*rowA+g*segA+i]) * int32(b16[((g*k+i/2)*ik.Cols+j)*2+i%2])
					}
				}
				want[1+x*ldc+j] = s
			}
		}
		tile := &IntTile{A: unsafe.Pointer(&a[0]), RowA: 2 * rowA, SegA: 2 * segA, K: k, Segs: segs, B: unsafe.Pointer(&b8[0]), C: &c[1], RowC: 4 * ldc}
		if wide {
			tile.B = unsafe.Pointer(&b16[0])
		}
		tile.SetContinue(more)
		cols := []int{ik.Cols, ik.Cols, ik.Cols / 2}[r.IntN(3)]
		ik.Run(tile, rows, cols, wide)
		for i := range c {
			if j := (i - 1 + ldc) % ldc; j >= cols && j < ik.Cols {
				continue // may be written or not
			}
			if c[i] != want[i] {
				t.Fatalf("case %d: %d rows, %d segments of %d pairs, wide %t, more %t: value %d is %d, want %d", n, rows, segs, k, wide, more, i, c[i], want[i])
			}
		}
	}
}

func TestWiden(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		for n := range 100 {
			src, dst := make([]uint8, n), make([]int16, n+1)
			for i := range src {
				src[i] = uint8(r.Uint32())
			}
			for _, signed := range []bool{false, true} {
				zero := int16(r.IntN(256) - 128)
				ik.Widen(dst, src, signed, zero)
				for i, v := range src {
					want := int16(v) - zero
					if signed {
						want = int16(int8(v)) - zero
					}
					if dst[i] != want {
						t.Fatalf("%d values, signed %t: value %d is %d, want %d", n, signed, i, dst[i], want)
					}
				}
				if dst[n] != 0 {
					t.Fatal("written past the end")
				}
			}
		}
	})
}

func TestGatherPairs(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		src := make([]int16, 300)
		for i := range src {
			src[i] = int16(r.Uint32())
		}
		for n := range 200 {
			offs := make([]int32, n%9*2)
			for i := range offs {
				offs[i] = int32(r.IntN(100))
			}
			var runs []Run
			for c := 0; c < ik.Cols; c += 1 + r.IntN(ik.Cols) {
				runs = append(runs, Run{From: int32(r.IntN(150)), To: int32(c)})
			}
			dst := make([]int16, (len(offs)/2+1)*ik.Cols*2+1)
			ik.Gather(dst, src, offs, runs)
			for i := range len(offs) * ik.Cols {
				row, c, half := i/(2*ik.Cols), i/2%ik.Cols, i%2
				k := len(runs) - 1
				for int(runs[k].To) > c {
					k--
				}
				if want := src[int(offs[2*row+half]+runs[k].From-runs[k].To)+c]; dst[i] != want {
					t.Fatalf("%d rows, %v: value %d is %d, want %d", len(offs)/2, runs, i, dst[i], want)
				}
			}
			if dst[len(dst)-1] != 0 {
				t.Fatal("written past the end")
			}
		}
	})
}

// fuseSmall reduces sums, of columns from channel at on, until most channels have fused scales.
// It sets these scales.
func fuseSmall(s *Scales, r *rand.Rand, sums []int32, line, at int, zero, lo, hi int32) {
	n, less := len(s.Mul), int32(0)
	if hi > math.MaxInt8 {
		less = 128
	}
	s.Fused = FusedScales{make([]int32, n), make([]int32, n), make([]int32, n)}
	most := int32(1) << (8 + r.IntN(12))
	for i := range sums {
		sums[i] %= most
	}
	for ch := at; ch < n; ch++ {
		s.Bias[ch] %= most
		if r.IntN(4) > 0 {
			s.Down[ch] = 1 + r.Int32N(8)
			s.Half[ch] = 1 << (s.Down[ch] - 1)
		}
		if f, ok := s.Fuse(ch, -most, most, zero-less, lo-less, hi-less); ok && (ch-at < line/2 || r.IntN(100) > 0) {
			s.Fused.Set(ch, f)
		}
	}
}

func TestRequantise(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		edges := []int32{0, 1, -1, math.MaxInt32, math.MinInt32, 1 << 30, -1 << 30, 1<<30 - 1}
		for n := range 2000 {
			rows, ch, at := 1+r.IntN(4), ik.Lanes*(1+r.IntN(3)), ik.Lanes*r.IntN(2)
			// Half of the cases are within the limits of the kernels for small scales.
			small := r.IntN(2) == 0
			if small && (ik.requantiseSmall[0] != nil || ik.requantiseSmallAny != nil) {
				ch = 1 + r.IntN(200)
			}
			var all [6][]int32
			for i := range all {
				all[i] = make([]int32, at+ch)
			}
			s := Scales{Mul: all[0], Up: all[1], Down: all[2], Bias: all[3], Twice: all[4], Half: all[5], Small: small}
			for i := range s.Mul {
				s.Mul[i] = 1<<30 + r.Int32N(1<<30)
				if r.IntN(20) == 0 {
					s.Mul[i] = []int32{1 << 30, math.MaxInt32}[r.IntN(2)]
				}
				if !small && r.IntN(30) == 0 {
					s.Mul[i] = 0
				}
				if s.Bias[i] = r.Int32() >> 8; small {
					s.Down[i] = 1 + r.Int32N(20)
					s.Twice[i], s.Half[i] = int32(int64(s.Mul[i])*2), 1<<(s.Down[i]-1)
				} else if r.IntN(2) == 0 {
					s.Down[i] = r.Int32N(32)
				} else {
					s.Up[i] = r.Int32N(32)
				}
			}
			ldd, lds := ch+r.IntN(3), ch+r.IntN(3)
			dst, sums := make([]uint8, (rows-1)*ldd+ch+1), make([]int32, rows*lds)
			for i := range sums {
				if sums[i] = (r.Int32() - r.Int32()) >> r.IntN(31); r.IntN(10) == 0 {
					sums[i] = edges[r.IntN(len(edges))]
				}
				if most := int32(1<<30 - 1<<23); small {
					sums[i] = min(max(sums[i], -most), most) // with the bias
				}
			}
			zero, lo, hi := int32(r.IntN(256)-128), int32(-128), int32(127)
			if n%2 == 0 {
				zero, lo, hi = int32(r.IntN(256)), int32(r.IntN(10)), int32(200+r.IntN(56))
			}
			if r.IntN(3) == 0 {
				lo = min(zero, hi) // of a ReLU
			}
			if small && ik.Fuses() && lo >= zero && r.IntN(4) > 0 {
				fuseSmall(&s, r, sums, lds, at, zero, lo, hi)
			}
			ik.Requantise(dst, ldd, sums, lds, rows, ch, &s, at, zero, lo, hi)
			for x := range rows {
				for i := range ch {
					acc := (sums[x*lds+i] + s.Bias[at+i]) << s.Up[at+i]
					p := (int64(acc)*int64(s.Mul[at+i]) + 1<<30) >> 31
					if d := s.Down[at+i]; d > 0 {
						half := int64(1) << (d - 1)
						if p < 0 {
							half--
						}
						p = (p + half) >> d
					}
					if want := uint8(min(max(int32(p)+zero, lo), hi)); dst[x*ldd+i] != want {
						t.Fatalf("case %d: sum %d, bias %d, up %d, down %d, mul %d, zero %d, %d to %d: %d, want %d", n, sums[x*lds+i], s.Bias[at+i], s.Up[at+i], s.Down[at+i], s.Mul[at+i], zero, lo, hi, dst[x*ldd+i], want)
					}
				}
			}
			if dst[len(dst)-1] != 0 {
				t.Fatal("written past the end")
			}
		}
	})
}

// TestIntQuads compares 4-way dot products, in both operand orders, with their definition.
func TestIntQuads(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		if !ik.Quads() {
			t.Skip("no 4-way dot products")
		}
		intQuads(t, ik, r, 2000)
		wideQuads(t, ik, r)
		if ik.matrixTiles != nil {
			panelQuads(t, ik, r, 300)
			lineQuads(t, ik, r, 300)
		}
		if ik.Transposes() {
			gatherQuads(t, ik, r)
		}
		if ik.Saturates() {
			orderedQuads(t, ik, r, 1000)
		}
	})
}

// limitPairs changes signed weights so that of two neighbours those of one sign add up to MaxPair
// at most.
func limitPairs(r *rand.Rand, w []uint8) {
	for i := 0; i+1 < len(w); i += 2 {
		x, y := int(int8(w[i])), int(int8(w[i+1]))
		switch limit := MaxPair - max(x, -x); {
		case x*y <= 0:
		case r.IntN(2) == 0:
			w[i+1] = 0
		case y < 0:
			w[i+1] = uint8(max(y, -limit))
		default:
			w[i+1] = uint8(min(y, limit))
		}
	}
}

// orderedQuads compares n products of reordered groups of four with their definition.
func orderedQuads(t *testing.T, ik *Ints, r *rand.Rand, n int) {
	t.Helper()
	const quads = OrderWindow / 4
	for n := range n {
		rows, k, segs := 1+r.IntN(4*ik.Rows), quads+r.IntN(20), 1+r.IntN(3)
		rowA, segA := r.IntN(50), r.IntN(50)
		a, b := make([]uint8, (rows-1)*rowA+(segs-1)*segA+4*k), make([]uint8, segs*k*ik.Cols*4)
		for _, v := range [][]uint8{a, b} {
			for i := range v {
				if v[i] = uint8(r.Uint32()); n%5 == 0 {
					v[i] = []uint8{0, 127, 128, 255}[r.IntN(4)]
				}
			}
		}
		limitPairs(r, b)
		order, places := make([]uint8, segs*k*OrderBytes), make([]int, segs*k*4)
		for i := range places {
			// The window of a group of four ends with the segment at the latest.
			q := i / 4 % k
			place := r.IntN(OrderWindow)
			places[i] = min(q/quads*OrderWindow, 4*k-OrderWindow) + place
			order[i] = uint8(place)
		}
		start, c := make([]int32, ik.Cols), make([]int32, rows*ik.Cols)
		for i := range start {
			start[i] = r.Int32() - r.Int32()
		}
		tile := &IntTile{A: unsafe.Pointer(&a[0]), RowA: rowA, SegA: segA, K: k, Segs: segs, B: unsafe.Pointer(&b[0]), C: &c[0], RowC: 4 * ik.Cols, Start: &start[0], Order: &order[0]}
		ik.RunOrdered(tile, rows)
		for x := range rows {
			for j := range ik.Cols {
				want := start[j]
				for i, place := range places {
					want += int32(a[x*rowA+i/4/k*segA+place]) * int32(int8(b[(i/4*ik.Cols+j)*4+i%4]))
				}
				if got := c[x*ik.Cols+j]; got != want {
					t.Fatalf("case %d: %d segments of %d groups of four: row %d, column %d is %d, want %d", n, segs, k, x, j, got, want)
				}
			}
		}
	}
}

// intQuads compares n products of groups of four with their definition.
func intQuads(t *testing.T, ik *Ints, r *rand.Rand, n int) {
	t.Helper()
	for n := range n {
		transposed, more := ik.Transposes() && r.IntN(2) == 0, r.IntN(2) == 0
		rows, k, segs := 1+r.IntN(4*ik.Rows), 1+r.IntN(9), 1+r.IntN(3)
		if n%4 == 0 {
			k = 1 + r.IntN(50)
		}
		rowA, segA := r.IntN(50), r.IntN(50)
		a, b := make([]uint8, (rows-1)*rowA+(segs-1)*segA+4*k), make([]uint8, segs*k*ik.Cols*4)
		for _, v := range [][]uint8{a, b} {
			for i := range v {
				if v[i] = uint8(r.Uint32()); n%5 == 0 {
					v[i] = []uint8{0, 127, 128, 255}[r.IntN(4)]
				}
			}
		}
		if ik.Saturates() {
			limitPairs(r, b)
		}
		start := make([]int32, max(rows, ik.Cols))
		for i := range start {
			start[i] = r.Int32() - r.Int32()
		}
		ldc := ik.Cols + r.IntN(3)
		c := make([]int32, rows*ldc+2)
		for i := range c {
			c[i] = r.Int32() - r.Int32()
		}
		want := append([]int32(nil), c...)
		cols, done := 1+r.IntN(ik.Cols), ik.Cols
		if (transposed || ik.few != nil) && 2*cols <= ik.Cols {
			done = ik.Cols / 2
		}
		for x := range rows {
			for j := range done {
				s := start[j]
				if transposed {
					s = start[x]
				}
				if more {
					s = c[1+x*ldc+j]
				}
				for g := range segs {
					for i := range 4 * k {
						p, q := a[x*rowA+g*segA+i], b[g*k*ik.Cols*4+ik.QuadIndex(k, i, j)]
						weight, act := q, int32(p)
						if transposed {
							weight, act = p, int32(q)
						}
						if ik.Signed {
							act = int32(int8(act))
						}
						s += int32(int8(weight)) * act
					}
				}
				want[1+x*ldc+j] = s
			}
		}
		tile := &IntTile{A: unsafe.Pointer(&a[0]), RowA: rowA, SegA: segA, K: k, Segs: segs, B: unsafe.Pointer(&b[0]), C: &c[1], RowC: 4 * ldc, Start: &start[0]}
		tile.SetContinue(more)
		if transposed {
			ik.RunTransposed(tile, rows, cols)
		} else {
			ik.RunQuads(tile, rows, cols)
		}
		for i := range c {
			if c[i] != want[i] {
				t.Fatalf("case %d: %d rows, %d segments of %d groups of four, transposed %t, more %t: value %d is %d, want %d", n, rows, segs, k, transposed, more, i, c[i], want[i])
			}
		}
	}
}

// panelQuads compares rows of several panels with single panels.
func panelQuads(t *testing.T, ik *Ints, r *rand.Rand, n int) {
	t.Helper()
	for n := range n {
		rows, k, panels := 1+r.IntN(ik.Rows), 1+r.IntN(50), 1+r.IntN(4)
		line := 4*k + r.IntN(9)
		a, b := make([]uint8, (rows-1)*line+4*k), make([]uint8, panels*k*ik.Cols*4)
		for _, v := range [][]uint8{a, b} {
			for i := range v {
				v[i] = uint8(r.Uint32())
			}
		}
		start, ldc := make([]int32, panels*ik.Cols), panels*ik.Cols+r.IntN(3)
		c := make([]int32, rows*ldc+1)
		for i := range c {
			c[i] = r.Int32() - r.Int32()
		}
		for i := range start {
			start[i] = r.Int32() - r.Int32()
		}
		want := append([]int32(nil), c...)
		more := r.IntN(2) == 0
		tile := &IntTile{K: k, Segs: 1, RowC: 4 * ldc, PanelB: 4 * k * ik.Cols}
		tile.SetContinue(more)
		for p := range panels {
			tile.A, tile.RowA = unsafe.Pointer(&a[0]), line
			tile.B, tile.C, tile.Start = unsafe.Pointer(&b[p*tile.PanelB]), &want[p*ik.Cols], &start[p*ik.Cols]
			ik.RunQuads(tile, rows, ik.Cols)
		}
		tile.A, tile.B, tile.C, tile.Start = unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), &c[0], &start[0]
		if panels > 1 && r.IntN(2) == 0 {
			tile.Ahead = unsafe.Pointer(&b[tile.PanelB])
		}
		if ik.RunPanels(tile, rows, panels); !slices.Equal(c, want) {
			t.Fatalf("case %d: %d rows of %d groups of four, %d panels, more %t: results differ", n, rows, k, panels, more)
		}
	}
}

// lineQuads compares several lines of rows with single lines.
func lineQuads(t *testing.T, ik *Ints, r *rand.Rand, n int) {
	t.Helper()
	for n := range n {
		k, segs, lines := 1+r.IntN(40), 1+r.IntN(3), 1+r.IntN(5)
		rows, cols := 1+r.IntN(ik.Rows/lines), 1+r.IntN(ik.Cols)
		row, seg := 4*k+r.IntN(9), 4*k+r.IntN(9)
		apart := r.IntN(rows*row + 9)
		a, b := make([]uint8, (lines-1)*apart+(rows-1)*row+(segs-1)*seg+4*k), make([]uint8, segs*k*ik.Cols*4)
		for _, v := range [][]uint8{a, b} {
			for i := range v {
				v[i] = uint8(r.Uint32())
			}
		}
		start, c := make([]int32, ik.Cols), make([]int32, lines*rows*ik.Cols)
		for _, v := range [][]int32{start, c} {
			for i := range v {
				v[i] = r.Int32() - r.Int32()
			}
		}
		want := append([]int32(nil), c...)
		tile := &IntTile{RowA: row, SegA: seg, K: k, Segs: segs, B: unsafe.Pointer(&b[0]), RowC: 4 * ik.Cols}
		if r.IntN(3) > 0 {
			tile.Start = &start[0]
		}
		more := r.IntN(2) == 0
		tile.SetContinue(more)
		for i := range lines {
			one := *tile
			if one.A, one.C = unsafe.Pointer(&a[i*apart]), &want[i*rows*ik.Cols]; one.Start == nil && !more {
				one.Start = &make([]int32, ik.Cols)[0]
			}
			one.inRows(rows, ik.quads, 0)
		}
		tile.A, tile.C = unsafe.Pointer(&a[0]), &c[0]
		ik.RunLines(tile, rows, cols, Lines{N: lines, A: apart})
		for i, got := range c {
			if i%ik.Cols < cols && got != want[i] {
				t.Fatalf("case %d: %d lines of %d rows of %d fours, %d segments, %d columns, more %t: sum %d is %d, want %d", n, lines, rows, k, segs, cols, more, i, got, want[i])
			}
		}
	}
}

// wideQuads compares rows of several panels with their definition.
func wideQuads(t *testing.T, ik *Ints, r *rand.Rand) {
	t.Helper()
	if !ik.HasWideQuads() {
		return
	}
	for range 200 {
		k, cols := 1+r.IntN(20), WidePanels*ik.Cols
		a, b := make([]uint8, 4*k), make([]uint8, k*cols*4)
		for _, v := range [][]uint8{a, b} {
			for i := range v {
				v[i] = uint8(r.Uint32())
			}
		}
		start, c := make([]int32, cols), make([]int32, cols+1)
		for i := range start {
			start[i] = r.Int32() - r.Int32()
		}
		ik.WideQuads(&IntTile{A: unsafe.Pointer(&a[0]), K: k, B: unsafe.Pointer(&b[0]), C: &c[0], Start: &start[0], PanelB: 4 * k * ik.Cols})
		for j, got := range c {
			want := int32(0)
			if j < cols {
				want = start[j]
				for i, v := range a {
					want += int32(v) * int32(int8(b[((j/ik.Cols*k+i/4)*ik.Cols+j%ik.Cols)*4+i%4]))
				}
			}
			if got != want {
				t.Fatalf("%d fours by several panels: value %d is %d, want %d", k, j, got, want)
			}
		}
	}
}

// gatherQuads compares gathered panels with their definition.
func gatherQuads(t *testing.T, ik *Ints, r *rand.Rand) {
	t.Helper()
	for range 200 {
		src, quads := make([]uint8, 400), 1+r.IntN(5)
		for i := range src {
			src[i] = uint8(r.Uint32())
		}
		offs := make([]int32, 4*quads)
		for i := range offs {
			offs[i] = int32(r.IntN(300))
		}
		split := int32(r.IntN(ik.Cols))
		runs := []Run{{int32(r.IntN(20)), 0}, {int32(r.IntN(20)), split}}
		dst := make([]uint8, (quads+2)*ik.Cols*4)
		ik.GatherQuads(dst, src, offs, runs)
		for q := range quads {
			for j := range ik.Cols {
				from := int(runs[0].From) + j
				if j >= int(split) {
					from = int(runs[1].From) + j - int(split)
				}
				for i := range 4 {
					if got, want := dst[ik.QuadIndex(quads, 4*q+i, j)], src[int(offs[4*q+i])+from]; got != want {
						t.Fatalf("four %d, column %d, tap %d is %d, want %d", q, j, i, got, want)
					}
				}
			}
		}
	}
}

func TestFours(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, _ *rand.Rand) {
		src := make([]uint8, 141)
		for i := range src {
			src[i] = uint8(37 * i)
		}
		for n := range src {
			for _, signed := range []bool{false, true} {
				if zero := ik.QuadInputZero(signed, 5); zero != 5 && (zero-5)*(zero-5) != 128*128 || (zero != 5) != (signed != ik.Signed) {
					t.Fatalf("the zero point 5 becomes %d", zero)
				}
				dst := make([]uint8, len(src))
				ik.QuadInput(dst, src[:n], signed)
				for i, v := range dst {
					want := uint8(0)
					if i < n {
						if want = src[i]; signed != ik.Signed {
							want ^= 0x80
						}
					}
					if v != want {
						t.Fatalf("%d of %d, signed %t: %d, want %d", i, n, signed, v, want)
					}
				}
			}
		}
	})
}

// TestLines compares lines of bytes and tables with their definition, for all lengths of the last
// register. Nothing may be written outside the lines.
func TestLines(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f := IntKernels()
		if f == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(7, 8))
		for i := range 600 {
			n, lines, each, signed := 1+i%150, 1+r.IntN(4), 1+r.IntN(2), r.IntN(2) == 1
			stepDst, stepSrc := n+r.IntN(9), n*each+r.IntN(9)
			src := make([]uint8, (lines-1)*stepSrc+(n-1)*each+1) // no byte more than is read
			for i := range src {
				src[i] = uint8(r.Uint32())
			}
			const mark = 0x77
			bytes, wide := make([]uint8, lines*stepDst+80), make([]int16, lines*stepDst+80)
			for i := range bytes {
				bytes[i], wide[i] = mark, mark
			}
			zero := int16(r.IntN(256) - 128)
			if f.CopyBytes(bytes, stepDst, src, stepSrc, each, n, lines, signed) != f.WidenLines(wide, stepDst, src, stepSrc, each, n, lines, signed, zero) {
				t.Fatal("one of two")
			}
			if f.copyBytes[0] == nil {
				break
			}
			for i := range bytes {
				want, want16 := uint8(mark), int16(mark)
				if l, k := i/stepDst, i%stepDst; l < lines && k < n {
					v := src[l*stepSrc+k*each]
					want, want16 = v, int16(v)-zero
					if signed {
						want, want16 = v^0x80, int16(int8(v))-zero
					}
				}
				if bytes[i] != want || wide[i] != want16 {
					t.Fatalf("%d of %d in lines of %d, each %d, signed %v: %d and %d, want %d and %d", i, n, stepDst, each, signed, bytes[i], wide[i], want, want16)
				}
			}
		}
		if f.CopyBytes(nil, 3, nil, 3, 3, 1, 1, false) || f.WidenLines(nil, 3, nil, 3, 3, 1, 1, false, 0) {
			t.Error("every third byte")
		}
		var table [256]uint8
		src, dst := make([]uint8, 1000), make([]uint8, 1000)
		for i := range table {
			table[i] = uint8(r.Uint32())
		}
		for i := range src {
			src[i] = uint8(i)
		}
		n := f.Lookup(dst, src, &table)
		if n != 0 && n != 960 && (n != len(dst) || !f.lookupAnyLength) {
			t.Fatal(n)
		}
		for i, v := range src {
			if want := table[v]; i < n && dst[i] != want || i >= n && dst[i] != 0 {
				t.Fatalf("entry %d: %d, want %d", v, dst[i], want)
			}
		}
	})
}

// TestInterleave compares panels from rows that lie side by side, and distances from a value, for
// each instruction set with such kernels.
func TestInterleave(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 7))
	for _, s := range Available() {
		f := intKernels[s]
		if f == nil {
			continue
		}
		for range 200 {
			n, step, zero := 1+r.IntN(9), f.Cols+r.IntN(40), uint8(r.Uint32())
			src := make([]uint8, (4*n-1)*step+f.Cols)
			for i := range src {
				src[i] = uint8(r.Uint32())
			}
			dst := make([]int8, n*4*f.Cols+3)
			if !f.Interleave(dst, src, step, n, zero) {
				break
			}
			for i := range 4 * n {
				for j := range f.Cols {
					if got, want := dst[f.QuadIndex(n, i, j)], int8(src[i*step+j]-zero); got != want {
						t.Fatalf("%v, %d fours, %d apart, less %d: step %d of column %d is %d, want %d", s, n, step, zero, i, j, got, want)
					}
				}
			}
			if dst[n*4*f.Cols] != 0 {
				t.Fatalf("%v: wrote past %d groups of four", s, n)
			}
		}
	}
}

func TestApart(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 77))
	for _, s := range Available() {
		f := intKernels[s] // nil for plain Go
		for k := range 150 {
			n, more, flip, from := r.IntN(9), r.IntN(40), uint8(r.Uint32()), uint8(r.Uint32())
			v := make([]uint8, n*k+min(more, max(0, k-1))) // some bytes do not belong to a row
			got, want := make([]int32, 2*n+1), make([]int32, 2*n+1)
			for i := range got {
				got[i] = int32(i)
				want[i] = got[i]
			}
			for i := range v {
				if v[i] = uint8(r.Uint32()); k%3 == 0 {
					v[i] = flip ^ []uint8{0, 127, 128, 255}[r.IntN(4)]
				}
				if i < n*k {
					want[i/k] += int32(max(0, int(v[i]^flip)-int(from)))
					want[n+i/k] += int32(max(0, int(from)-int(v[i]^flip)))
				}
			}
			f.AddDeviations(v, k, flip, from, got[:n], got[n:2*n])
			if !slices.Equal(got, want) {
				t.Fatalf("%v, %d rows of %d bytes from %d: %d, want %d", s, n, k, from, got, want)
			}
		}
	}
}

// TestWeave checks that pairs of lines of words have the panel layout. Missing columns are 0.
func TestWeave(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 78))
	for _, s := range Available() {
		f := intKernels[s]
		for i := range 100 {
			n, pairs := 1+i%40, 1+r.IntN(5)
			if f == nil || n > f.Cols {
				continue
			}
			step := n + r.IntN(4)
			src := make([]int16, (2*pairs-1)*step+n)
			for k := range src {
				src[k] = int16(r.Uint32())
			}
			dst := make([]int16, 2*pairs*f.Cols+1)
			for k := range dst {
				dst[k] = 77
			}
			if !f.InterleavePairs(dst, src, step, n, pairs) {
				break
			}
			for k, got := range dst[:2*pairs*f.Cols] {
				line, column := k/(2*f.Cols)*2+k%2, k/2%f.Cols
				want := int16(0)
				if column < n {
					want = src[line*step+column]
				}
				if got != want {
					t.Fatalf("%v: %d pairs of %d: word %d is %d, want %d", s, pairs, n, k, got, want)
				}
			}
			if dst[2*pairs*f.Cols] != 77 {
				t.Fatalf("%v: wrote past %d pairs", s, pairs)
			}
		}
	}
}

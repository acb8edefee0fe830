package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// plainParts holds the kernels in plain Go. The products have the rounding of AMX tiles.
var plainParts = func() *Parts {
	f := &Parts{split: plainSplit, sums: plainSums}
	for i := range f.products {
		for j := range f.products[i] {
			f.products[i][j] = func(p *partProgram) { plainProducts(p, i+1, j+1) }
		}
	}
	return f
}()

// brain returns the nearest bfloat16 of a value; ties are rounded away from zero.
func brain(v float32) float32 {
	return math.Float32frombits((math.Float32bits(v) + 0x8000) & 0xffff0000)
}

func plainSplit(p *splitArgs) {
	for line := range p.lines {
		most := (*[16]uint32)(unsafe.Add(unsafe.Pointer(p.most), line*p.nextMost))
		for i := range p.n {
			src := unsafe.Add(unsafe.Pointer(p.src), line*p.nextSrc+i*p.stepSrc)
			dst := unsafe.Add(unsafe.Pointer(p.dst), line*p.nextDst+i*p.stepDst)
			first, second := (*[16]float32)(src), (*[16]float32)(unsafe.Add(src, p.gap))
			for lane := range 16 {
				for k, v := range []float32{first[lane], second[lane]} {
					most[lane] = max(most[lane], math.Float32bits(v)&^(1<<31))
					for part := range 3 {
						h := brain(v)
						if part == 2 {
							h = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
						}
						(*[32]uint16)(unsafe.Add(dst, part*p.part))[2*lane+k] = uint16(math.Float32bits(h) >> 16)
						if v -= h; part < 2 && math.Float32bits(v) != 0 {
							p.lost[part] |= 1
						}
					}
				}
			}
		}
	}
}

func plainSums(p *partSums) {
	for r := range p.rows {
		src := (*[32]float32)(unsafe.Add(unsafe.Pointer(p.src), 128*r))
		for j := range 32 {
			if p.mask>>j&1 == 0 {
				continue
			}
			dst, v := (*float32)(unsafe.Add(unsafe.Pointer(p.dst), r*p.row+4*j)), src[j]
			if p.add != 0 {
				v += *dst
			}
			if p.column != nil {
				v += *(*float32)(unsafe.Add(unsafe.Pointer(p.column), 4*r))
			}
			if p.line != nil {
				v += *(*float32)(unsafe.Add(unsafe.Pointer(p.line), 4*j))
			}
			if p.clamp != 0 {
				if v < p.least {
					v = p.least
				}
				if v > p.most {
					v = p.most
				}
			}
			*dst = v
		}
	}
}

func plainProducts(p *partProgram, rows, cols int) {
	b := unsafe.Pointer(p.b)
	for block := range p.blocks {
		a, c := unsafe.Add(unsafe.Pointer(p.a), block*p.steps*6*partTile), unsafe.Add(unsafe.Pointer(p.c), block*4*PartRows*PartCols)
		sums := (*[PartRows][PartCols]float32)(c)
		*sums = [PartRows][PartCols]float32{}
		for s := range p.steps {
			// The column tile that was used last comes first for the next part of the rows.
			last := -1
			for i := rows - 1; i >= 0; i-- {
				x, order := (*[PartRows][32]uint16)(unsafe.Add(a, (3*s+i)*2*partTile)), []int{}
				for j := range 2 * min(cols, 3-i) {
					order = append(order, j)
				}
				if last >= 0 {
					order = append([]int{last}, slices.Delete(order, last, last+1)...)
				}
				for _, last = range order {
					y := (*[PartRows][32]uint16)(unsafe.Add(b, (6*s+last)*2*partTile))
					for r := range PartRows {
						for n := range 16 {
							sums[r][last%2*16+n] += brainDots(x[r][:], func(k int) (uint16, uint16) { return y[k][2*n], y[k][2*n+1] })
						}
					}
				}
			}
		}
	}
}

// brainDots returns the value that TDPBF16PS adds to a sum. It adds the products with even and
// with odd indices separately, rounds each multiply-add once, and treats subnormal values as
// zero.
func brainDots(x []uint16, y func(k int) (even, odd uint16)) float32 {
	flushed := func(v float32) float32 {
		if math.Float32bits(v)&0x7f800000 == 0 {
			return 0
		}
		return v
	}
	number := func(v uint16) float64 { return float64(flushed(math.Float32frombits(uint32(v) << 16))) }
	var sums [2]float32
	for k := range len(x) / 2 {
		even, odd := y(k)
		for i, v := range []uint16{even, odd} {
			p, s := number(x[2*k+i])*number(v), float64(sums[i])
			t := p + s
			// The error of the float64 sum decides in the middle between two float32 values.
			b := t - s
			lost := (s - (t - b)) + (p - b)
			if bits := math.Float64bits(t); lost != 0 && bits&(1<<29-1) == 1<<28 {
				if (lost > 0) == (t > 0) {
					bits++
				} else {
					bits--
				}
				t = math.Float64frombits(bits)
			}
			sums[i] = flushed(float32(t))
		}
	}
	return flushed(sums[0] + sums[1])
}

// partValues returns values with a given number of significant bits.
func partValues(r *rand.Rand, n, bits int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Ldexp(float64(r.IntN(1<<bits)-1<<(bits-1)), r.IntN(12)-bits))
	}
	return v
}

// compareParts compares a product of random shape with sums in float64. It returns the numbers of
// parts of rows and columns.
func compareParts(t *testing.T, f *Parts, r *rand.Rand) [2]int {
	t.Helper()
	rows, steps, width := 1+r.IntN(40), 1+r.IntN(100), 1+r.IntN(PartCols)
	bits := [2]int{[]int{8, 11, 24}[r.IntN(3)], []int{8, 11, 24}[r.IntN(3)]}
	lineA, lineB, rowC := steps+r.IntN(5), PartCols+r.IntN(5), width+r.IntN(5)
	a, b := partValues(r, rows*lineA, bits[0]), partValues(r, steps*lineB, bits[1])
	blocks := (rows + PartRows - 1) / PartRows
	codes := make([]uint16, (blocks+2)*PartBlock(steps)+32)
	codes = codes[(64-int(uintptr(unsafe.Pointer(&codes[0])))&63)&63/2:]
	pb, pa := codes[:2*PartBlock(steps)], codes[2*PartBlock(steps):]
	var panel PartPanel
	var q PartBlocks
	f.Panel(&panel, pb, b, lineB, steps)
	f.Rows(&q, pa, a, rows, lineA, steps)
	to := PartSums{C: partValues(r, (rows-1)*rowC+width, 24), RowC: rowC, Width: width, Add: r.IntN(2) == 0, Clamp: r.IntN(3) == 0, Min: -20, Max: 30}
	if r.IntN(2) == 0 {
		to.BiasM = partValues(r, rows, 24)
	}
	if r.IntN(2) == 0 {
		to.BiasN = partValues(r, width, 24)
	}
	before, buf := slices.Clone(to.C), make([]float32, blocks*PartRows*PartCols)
	f.Products(&q, pa, pb, &panel, buf, rows, steps, unsafe.Slice((*uint8)(unsafe.Pointer(&b[0])), 4*len(b)), &to)
	for i, got := range to.C {
		row, col := i/rowC, i%rowC
		if col >= width {
			if got != before[i] {
				t.Fatalf("a value next to the results is overwritten")
			}
			continue
		}
		sum, size := 0.0, 0.0
		add := func(v float64) { sum, size = sum+v, size+math.Abs(v) }
		for k := range steps {
			add(float64(a[row*lineA+k]) * float64(b[k*lineB+col]))
		}
		if to.Add {
			add(float64(before[i]))
		}
		if to.BiasM != nil {
			add(float64(to.BiasM[row]))
		}
		if to.BiasN != nil {
			add(float64(to.BiasN[col]))
		}
		if to.Clamp {
			sum = min(max(sum, float64(to.Min)), float64(to.Max))
		}
		// A value takes part in about 30 additions at most, each with an error of 2^-24. The
		// omitted products are 3·2^-26 of the total.
		if math.Abs(float64(got)-sum) > size*0x1p-20+1e-30 {
			t.Fatalf("%d rows, %d steps, %d columns, %v bits: result %d of row %d is %v, want %v", rows, steps, width, bits, col, row, got, sum)
		}
	}
	return [2]int{slices.Max(q.parts), panel.parts}
}

func TestPlainParts(t *testing.T) {
	if !plainParts.check() {
		t.Error("the check at start fails")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		compareParts(t, plainParts, r)
	}
}

func TestParts(t *testing.T) {
	f := PartKernels()
	if f == nil {
		t.Skip("no bfloat16 tiles")
	}
	r, met := rand.New(rand.NewPCG(3, 4)), map[[2]int]bool{}
	for range 2000 {
		met[compareParts(t, f, r)] = true
	}
	if len(met) != 9 {
		t.Errorf("parts of rows and columns in the cases: %v", met)
	}
	// Products, bit by bit.
	for range 50 {
		steps, blocks := 1+r.IntN(3), 1+r.IntN(3)
		a, b := make([]uint16, blocks*steps*3*partTile), make([]uint16, steps*6*partTile)
		for _, v := range [][]uint16{a, b} {
			for i := range v {
				v[i] = uint16(r.UintN(1<<15)>>1 + 1<<13 + r.UintN(2)<<15)
				if r.IntN(50) == 0 {
					v[i] = uint16(r.IntN(300)) // including subnormal values
				}
			}
		}
		got, want := make([]float32, blocks*PartRows*PartCols), make([]float32, blocks*PartRows*PartCols)
		for i := range f.products {
			for j := range f.products[i] {
				p := partProgram{config: &partConfig, a: &a[0], b: &b[0], steps: steps, blocks: blocks}
				p.c = &got[0]
				f.products[i][j](&p)
				p.c = &want[0]
				plainParts.products[i][j](&p)
				for k := range got {
					if g, w := got[k], want[k]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
						t.Fatalf("%d by %d parts: sum %d is %v, want %v", i+1, j+1, k, g, w)
					}
				}
			}
		}
	}
}

// TestEmulatedParts runs the AMX kernels on any processor.
func TestEmulatedParts(t *testing.T) {
	m, f := &emulator{t: t}, *plainParts
	for i := range f.products {
		for j := range f.products[i] {
			code := disassemble(t, partKernels[AMX].products[i][j])
			f.products[i][j] = func(p *partProgram) {
				m.call(code, unsafe.Pointer(p), over(unsafe.Pointer(p), int(unsafe.Sizeof(*p))), over(unsafe.Pointer(p.config), 64),
					over(unsafe.Pointer(p.a), p.blocks*p.steps*6*partTile), over(unsafe.Pointer(p.b), p.steps*12*partTile),
					over(unsafe.Pointer(p.c), p.blocks*4*PartRows*PartCols))
			}
		}
	}
	if !f.check() {
		t.Error("the check at start fails")
	}
	r, met := rand.New(rand.NewPCG(5, 6)), map[[2]int]bool{}
	for range 40 {
		met[compareParts(t, &f, r)] = true
	}
	if len(met) != 9 {
		t.Errorf("parts of rows and columns in the cases: %v", met)
	}
	wrong := f
	wrong.products[2][2] = wrong.products[1][1]
	if wrong.check() {
		t.Error("the check at start accepts products that lack a part")
	}
}

// TestSplitParts compares parts, largest magnitudes and lost bits, bit by bit.
func TestSplitParts(t *testing.T) {
	if !slices.Contains(Available(), AVX512) {
		t.Skip("no AVX-512")
	}
	r := rand.New(rand.NewPCG(7, 8))
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126, 0x1.ffp50}
	for range 500 {
		rows, steps, bits := 1+r.IntN(40), 1+r.IntN(100), []int{8, 11, 24}[r.IntN(3)]
		line := steps + r.IntN(9)
		a := partValues(r, max(rows*line, steps*(PartCols+line)), bits)
		odd := r.IntN(2) == 0
		for i := range a {
			if odd && r.IntN(60) == 0 {
				a[i] = special[r.IntN(len(special))]
			}
		}
		size := (rows + PartRows - 1) / PartRows * PartBlock(steps)
		var got, want [2][]uint16
		var blocks [2]PartBlocks
		var panels [2]PartPanel
		for i, f := range []*Parts{{split: splitPartsAVX512}, plainParts} {
			of := [2]*[2][]uint16{&got, &want}[i]
			of[0], of[1] = make([]uint16, size), make([]uint16, 2*PartBlock(steps))
			f.Rows(&blocks[i], of[0], a, rows, line, steps)
			f.Panel(&panels[i], of[1], a, PartCols+line, steps)
		}
		if !slices.Equal(blocks[0].parts, blocks[1].parts) || panels[0].parts != panels[1].parts {
			t.Fatalf("parts are %v and %d, want %v and %d", blocks[0].parts, panels[0].parts, blocks[1].parts, panels[1].parts)
		}
		for i := range got {
			for k := range got[i] {
				// NaN has no parts.
				if usual := i == 0 && blocks[1].parts[k/PartBlock(steps)] > 0 || i == 1 && panels[1].parts > 0; usual && got[i][k] != want[i][k] {
					t.Fatalf("value %d is %x, want %x", k, got[i][k], want[i][k])
				}
			}
		}
	}
}

// TestPartSums compares rows of results, bit by bit.
func TestPartSums(t *testing.T) {
	if !slices.Contains(Available(), AVX512) {
		t.Skip("no AVX-512")
	}
	r := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		rows, width := 1+r.IntN(40), 1+r.IntN(PartCols)
		row := width + r.IntN(5)
		src, dst, column, line := partValues(r, rows*PartCols, 24), partValues(r, rows*row, 24), partValues(r, rows, 24), partValues(r, width, 24)
		dst[r.IntN(len(dst))] = float32(math.NaN())
		column[r.IntN(rows)] = float32(math.Inf(1))
		p := partSums{row: 4 * row, src: &src[0], rows: rows, mask: uint32(1<<width - 1), add: r.IntN(2), clamp: r.IntN(2), least: -3, most: 4}
		if r.IntN(2) == 0 {
			p.column = &column[0]
		}
		if r.IntN(2) == 0 {
			p.line = &line[0]
		}
		want := slices.Clone(dst)
		p.dst = &dst[0]
		partSumsAVX512(&p)
		p.dst = &want[0]
		plainSums(&p)
		for i := range dst {
			if g, w := dst[i], want[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				t.Fatalf("result %d is %v, want %v", i, g, w)
			}
		}
	}
}

// TestPartLayouts checks the field offsets that the assembly uses.
func TestPartLayouts(t *testing.T) {
	t.Parallel()
	var s splitArgs
	var p partProgram
	var q partSums
	for name, fields := range map[string][]uintptr{
		"split": {
			unsafe.Offsetof(s.dst), unsafe.Offsetof(s.stepDst), unsafe.Offsetof(s.nextDst), unsafe.Offsetof(s.part), unsafe.Offsetof(s.src), unsafe.Offsetof(s.stepSrc),
			unsafe.Offsetof(s.nextSrc), unsafe.Offsetof(s.gap), unsafe.Offsetof(s.n), unsafe.Offsetof(s.lines), unsafe.Offsetof(s.most), unsafe.Offsetof(s.nextMost), unsafe.Offsetof(s.lost),
		},
		"program": {
			unsafe.Offsetof(p.config), unsafe.Offsetof(p.a), unsafe.Offsetof(p.b), unsafe.Offsetof(p.c), unsafe.Offsetof(p.steps), unsafe.Offsetof(p.blocks),
			unsafe.Offsetof(p.ahead), unsafe.Offsetof(p.aheadLines),
		},
		"sums": {
			unsafe.Offsetof(q.dst), unsafe.Offsetof(q.row), unsafe.Offsetof(q.src), unsafe.Offsetof(q.rows), unsafe.Offsetof(q.column), unsafe.Offsetof(q.line),
			unsafe.Offsetof(q.add), unsafe.Offsetof(q.mask), unsafe.Offsetof(q.clamp), unsafe.Offsetof(q.least),
		},
	} {
		for i, got := range fields {
			if got != uintptr(8*i) {
				t.Errorf("%s: field %d is at %d", name, i, got)
			}
		}
	}
	if unsafe.Offsetof(q.most) != unsafe.Offsetof(q.least)+4 {
		t.Error("limits are not adjacent")
	}
}

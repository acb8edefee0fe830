package gemm

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Params describes c = act(opA(a)·opB(b) [+ c] + bias), with opA(a) of M×K and opB(b) of K×N,
// all row-major.
type Params struct {
	M, N, K        int
	TransA, TransB bool // a is stored K×M, b is stored N×K
	LDA, LDB, LDC  int  // row strides in elements; 0 means tight
	Accumulate     bool // add to c instead of overwriting it
	BiasN          []float32
	BiasM          []float32 // one value per row; nil for none
	Act            activation.Clamp
	// Exact requests the result of a plain loop, bit for bit: multiplications and additions are
	// rounded separately and in order, like the TFLite reference kernels.
	Exact bool
}

// PackedB is a right-hand matrix packed for the micro-kernel.
type PackedB struct {
	k, n int
	f    *simd.Floats // kernels that it is packed for; nil for the plain micro-kernel
	data []float32
	// codes replaces data when all values are exact in a 16-bit float format.
	codes  []uint16
	narrow simd.PanelType
	// sparse is the same matrix without its zeros, used for many left-hand rows; nil if skipping
	// zeros is not faster.
	sparse *SparseFloat32
	// bitmask replaces data for single rows when skipping zeros is faster.
	bitmask *bitmaskMatrix
	// columns replaces data for single rows when listing the weights is faster.
	columns *columnLists
}

// Saved returns how many bytes fewer than in float32 the values take.
func (p *PackedB) Saved() int { return 2 * len(p.codes) }

func (p *PackedB) cols() int {
	if p.f == nil {
		return ColsPanel
	}
	return p.f.Cols
}

func (p *PackedB) panels() Panels {
	return Panels{Data: p.data, codes: p.codes, narrow: p.narrow, Step: p.cols(), Next: p.cols() * p.k}
}

// Name returns the name of the kernel that [MultiplyPacked] uses.
func (p *PackedB) Name(g Params) string {
	if p.usesSparse(&g) {
		return p.sparse.Name()
	}
	if p.bitmask != nil {
		return p.bitmask.name()
	}
	if p.columns != nil {
		return p.columns.name()
	}
	return gemmWayName("packed", p.f, &g, p.narrow)
}

// gemmWayName returns the kernel name of a multiplication; name says how the matrix is packed.
func gemmWayName(name string, f *simd.Floats, g *Params, narrow simd.PanelType) string {
	if chooseSplitBF16(f, g, narrow) != nil {
		return SplitBF16Name()
	}
	return ISAName(name, f)
}

// usesSparse reports whether [MultiplyPacked] skips the zeros of p. It needs enough rows to fill
// half a panel.
func (p *PackedB) usesSparse(g *Params) bool {
	return p.sparse != nil && 2*g.M > p.f.Cols && !g.TransA && !g.Accumulate && g.BiasM == nil
}

// ISAName appends the instruction set of the kernels to name.
func ISAName(name string, f *simd.Floats) string {
	if f == nil {
		return name
	}
	return name + "/" + f.Set.String()
}

// PackB packs a K×N matrix (stored N×K when trans). ldb is the row stride, 0 for tight. The
// result is read-only and may be shared by goroutines.
func PackB(k, n int, b []float32, ldb int, trans bool) *PackedB {
	p := &PackedB{k: k, n: n, f: simd.FloatKernels()}
	if p.narrow = narrowOf(p.f, b, len(b)); p.narrow != simd.WideFloat32 {
		p.fillCodes(b, ldb, trans)
	} else {
		p.data = hugepages.Make[float32](scratch.RoundUp(n, p.cols()) * k)
		p.fill(b, ldb, trans)
	}
	vec, elem := strideOf(p.k, p.n, ldb, trans)
	p.sparse = NewSparseFloat32(n, k, b, vec, elem, 0)
	return p
}

// PackConstant is [PackB] for a matrix whose elements all equal v, which is not zero.
func PackConstant(k, n int, v float32) *PackedB {
	p := &PackedB{k: k, n: n, f: simd.FloatKernels()}
	size := scratch.RoundUp(n, p.cols()) * k
	switch p.narrow = narrowOf(p.f, []float32{v}, k*n); p.narrow {
	case simd.WideFloat32:
		p.data = hugepages.Make[float32](size)
		fillPanelsConstant(p, p.data, v)
	case simd.WideFloat16:
		p.codes = hugepages.Make[uint16](size)
		var code [1]uint16
		simd.ElementKernels().ToHalves(code[:], []float32{v})
		fillPanelsConstant(p, p.codes, code[0])
	default:
		p.codes = hugepages.Make[uint16](size)
		fillPanelsConstant(p, p.codes, uint16(math.Float32bits(v)>>16))
	}
	return p
}

// fillPanelsConstant writes v to all existing columns; the padding of the last panel stays zero.
func fillPanelsConstant[T float32 | uint16](p *PackedB, dst []T, v T) {
	cols := p.cols()
	whole := p.n / cols * cols * p.k
	scratch.Fill(dst[:whole], v)
	for at := whole; at < len(dst); at += cols {
		scratch.Fill(dst[at:][:p.n%cols], v)
	}
}

// PackForRows is [PackB] for multiplications with m left-hand rows, where a single row is
// contiguous. far says that the weights exceed the caches and are read from memory in each run.
func PackForRows(m int, far bool, k, n int, b []float32, ldb int, trans bool) *PackedB {
	if m == 1 {
		vec, elem := strideOf(k, n, ldb, trans)
		if c := newColumnLists(strided{b, k, n, vec, elem}, far); c != nil {
			return &PackedB{k: k, n: n, f: simd.FloatKernels(), columns: c}
		}
	}
	if m == 1 && far && useBitmask(k, n, b) {
		return packBitmask(k, n, b, ldb, trans)
	}
	return PackB(k, n, b, ldb, trans)
}

// packBitmask packs a matrix for single rows without its zeros.
func packBitmask(k, n int, b []float32, ldb int, trans bool) *PackedB {
	p := &PackedB{k: k, n: n, f: simd.FloatKernels()}
	p.data = make([]float32, scratch.RoundUp(n, p.cols())*k)
	p.fill(b, ldb, trans)
	p.bitmask, p.data = newBitmaskMatrix(p.data, k), nil
	return p
}

func (p *PackedB) fill(b []float32, ldb int, trans bool) {
	vec, elem := strideOf(p.k, p.n, ldb, trans)
	Pack(p.data, b, p.n, p.k, p.cols(), vec, elem)
}

// strideOf returns the distance between columns (vec) and between rows (elem) of a K×N matrix.
func strideOf(k, n, ldb int, trans bool) (vec, elem int) {
	if trans {
		return orDefault(ldb, k), 1
	}
	return 1, orDefault(ldb, n)
}

func orDefault(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

// Multiply computes a matrix multiplication; see [Params].
func Multiply(p *workers.Pool, g Params, a, b, c []float32) {
	if g.M <= 0 || g.N <= 0 {
		return
	}
	f := simd.FloatKernels()
	if useThin(g, f) {
		gemmThin(p, g, a, b, c)
		return
	}
	if f != nil {
		gemmUnpacked(p, f, &g, a, b, c)
		return
	}
	s, data := scratch.Borrow(scratch.RoundUp(g.N, ColsPanel) * g.K)
	vec, elem := strideOf(g.K, g.N, g.LDB, g.TransB)
	Pack(data, b, g.N, g.K, ColsPanel, vec, elem)
	plainPacked(p, g, a, data, c)
	scratch.Float32s.Put(s)
}

// useThin reports whether packing the right-hand matrix costs more than it gains.
func useThin(g Params, f *simd.Floats) bool {
	return g.K <= 0 || g.M <= 3 && !g.TransA && (f == nil || g.TransB)
}

// Name returns the name of the kernel that [Multiply] uses: "thin" row by row, "unpacked" if it
// packs the right-hand matrix in each run.
func Name(g Params) string {
	f := simd.FloatKernels()
	if useThin(g, f) {
		return "thin"
	}
	return gemmWayName("unpacked", f, &g, simd.WideFloat32)
}

// MultiplyPacked is [Multiply] with a packed right-hand matrix. g.TransB and g.LDB are ignored.
func MultiplyPacked(p *workers.Pool, g Params, a []float32, b *PackedB, c []float32) {
	if g.K <= 0 {
		g.TransB = false
		gemmThin(p, g, a, nil, c)
		return
	}
	if b.usesSparse(&g) {
		b.sparse.Run(p, SparseLines{
			Lines: 1, Count: g.M, StepA: orDefault(g.LDA, g.K), StepC: orDefault(g.LDC, g.N), Passes: b.sparse.whole[:],
			Bias: g.BiasN, Act: g.Act, Exact: g.Exact,
		}, a, c)
		return
	}
	if b.bitmask != nil {
		b.bitmask.run(p, &g, a, c)
		return
	}
	if b.columns != nil {
		b.columns.run(p, &g, a, c)
		return
	}
	if b.f != nil {
		gemmPanels(p, b.f, &g, a, b.panels(), c)
		return
	}
	plainPacked(p, g, a, b.data, c)
}

// plainPacked is [MultiplyPacked] without SIMD; b holds the panels.
func plainPacked(p *workers.Pool, g Params, a, b, c []float32) {
	q := plainArgs{g: g, a: a, b: b, c: c, vec: orDefault(g.LDA, g.K), elem: 1}
	if g.TransA {
		q.vec, q.elem = 1, orDefault(g.LDA, g.M)
	}
	if g.M == 1 && q.elem == 1 {
		rowPacked(p, g, a[:g.K], b, c)
		return
	}
	// With few rows split the columns instead, so that all workers have work.
	if t := p.Threads(); t > 1 && g.M <= RowsPanel*t {
		panels := (g.N + ColsPanel - 1) / ColsPanel
		workers.Do(p, panels, (panels+t-1)/t, q, plainArgs.columns)
		return
	}
	workers.Do(p, (g.M+RowsPanel-1)/RowsPanel, max(1, 1<<15/(max(1, g.N)*g.K*RowsPanel)), q, plainArgs.rows)
}

// plainArgs holds the arguments of a work item of plainPacked. vec and elem are the row and
// element strides of a.
type plainArgs struct {
	g         Params
	a, b, c   []float32
	vec, elem int
}

// rows computes row panels lo to hi.
func (q plainArgs) rows(lo, hi int) {
	q.block(lo*RowsPanel, min(hi*RowsPanel, q.g.M), 0, q.g.N)
}

// columns computes column panels lo to hi.
func (q plainArgs) columns(lo, hi int) {
	q.block(0, q.g.M, lo*ColsPanel, min(hi*ColsPanel, q.g.N))
}

// block computes rows m0 to m1 of columns n0 to n1.
func (q *plainArgs) block(m0, m1, n0, n1 int) {
	rows := max(RowsPanel, scratch.Block/q.g.K/RowsPanel*RowsPanel)
	s, pa := scratch.Borrow(scratch.RoundUp(min(rows, m1-m0), RowsPanel) * q.g.K)
	for r := m0; r < m1; r += rows {
		m := min(rows, m1-r)
		Pack(pa, q.a[r*q.vec:], m, q.g.K, RowsPanel, q.vec, q.elem)
		tile(&q.g, pa, q.b, q.c, r, m, n0, n1, orDefault(q.g.LDC, q.g.N))
	}
	scratch.Float32s.Put(s)
}

// rowPacked is plainPacked for a single row.
func rowPacked(p *workers.Pool, g Params, a, b, c []float32) {
	panels := (g.N + ColsPanel - 1) / ColsPanel
	workers.Do(p, (panels+1)/2, max(1, 1<<12/max(1, g.K)), rowArgs{g, a, b, c}, rowArgs.pairs)
}

// rowArgs holds the arguments of a work item of rowPacked.
type rowArgs struct {
	g       Params
	a, b, c []float32
}

// pairs computes panel pairs lo to hi.
func (q rowArgs) pairs(lo, hi int) {
	g, k, panels := &q.g, q.g.K, (q.g.N+ColsPanel-1)/ColsPanel
	var acc [8]float32
	for i := lo; i < hi; i++ {
		n := 2 * i * ColsPanel
		second := min(2*i+1, panels-1) * ColsPanel
		microRow(k, q.a, q.b[n*k:][:ColsPanel*k], q.b[second*k:][:ColsPanel*k], &acc)
		row := q.c[n:min(n+2*ColsPanel, g.N)]
		for j := range row {
			v := acc[j]
			if g.BiasM != nil {
				v += g.BiasM[0]
			}
			if g.BiasN != nil {
				v += g.BiasN[n+j]
			}
			if g.Accumulate {
				v += row[j]
			}
			row[j] = v
		}
		if g.Act.On {
			element.Bound(row, g.Act.Min, g.Act.Max)
		}
	}
}

// tile multiplies m packed rows, the first of which is row r, by columns n0 to n1.
func tile(g *Params, pa, b, c []float32, r, m, n0, n1, ldc int) {
	var acc [8]float32
	k := g.K
	for n := n0; n < n1; n += ColsPanel {
		pb := b[n*k : (n+ColsPanel)*k]
		w := min(ColsPanel, n1-n)
		for i := 0; i < m; i += RowsPanel {
			Micro(k, pa[i*k:(i+RowsPanel)*k], pb, &acc)
			for x := range min(RowsPanel, m-i) {
				row := c[(r+i+x)*ldc+n:][:w]
				var bm float32
				if g.BiasM != nil {
					bm = g.BiasM[r+i+x]
				}
				for y := range row {
					v := acc[x*ColsPanel+y] + bm
					if g.BiasN != nil {
						v += g.BiasN[n+y]
					}
					if g.Accumulate {
						v += row[y]
					}
					row[y] = v
				}
				if g.Act.On {
					element.Bound(row, g.Act.Min, g.Act.Max)
				}
			}
		}
	}
}

// Inf is +Inf in float32.
var Inf = float32(math.Inf(1))

// gemmThin computes multiplications with up to three rows, where packing b costs more than it
// saves. a is not transposed.
func gemmThin(p *workers.Pool, g Params, a, b, c []float32) {
	workers.Do(p, g.N, max(16, 1<<15/max(1, g.K)), thinArgs{g, a, b, c}, thinArgs.columns)
}

// thinArgs holds the arguments of a work item of gemmThin.
type thinArgs struct {
	g       Params
	a, b, c []float32
}

// columns computes columns lo to hi.
func (q thinArgs) columns(lo, hi int) {
	g, a, b, c := &q.g, q.a, q.b, q.c
	lda, ldc := orDefault(g.LDA, g.K), orDefault(g.LDC, g.N)
	for m := range g.M {
		row := c[m*ldc+lo : m*ldc+hi]
		if !g.Accumulate {
			clear(row)
		}
		x := a[m*lda:][:g.K]
		if g.TransB {
			dotRows(row, x, b[lo*orDefault(g.LDB, g.K):], orDefault(g.LDB, g.K))
		} else {
			ldb := orDefault(g.LDB, g.N)
			k := 0
			for ; k+4 <= g.K; k += 4 {
				x0, x1, x2, x3 := x[k], x[k+1], x[k+2], x[k+3]
				b0 := b[k*ldb+lo:][:len(row)]
				b1 := b[(k+1)*ldb+lo:][:len(row)]
				b2 := b[(k+2)*ldb+lo:][:len(row)]
				b3 := b[(k+3)*ldb+lo:][:len(row)]
				for j := range row {
					// in order
					row[j] = row[j] + float32(x0*b0[j]) + float32(x1*b1[j]) + float32(x2*b2[j]) + float32(x3*b3[j])
				}
			}
			for ; k < g.K; k++ {
				x0, b0 := x[k], b[k*ldb+lo:][:len(row)]
				for j := range row {
					row[j] += float32(x0 * b0[j])
				}
			}
		}
		for j := range row {
			if g.BiasN != nil {
				row[j] += g.BiasN[lo+j]
			}
			if g.BiasM != nil {
				row[j] += g.BiasM[m]
			}
		}
		if g.Act.On {
			element.Bound(row, g.Act.Min, g.Act.Max)
		}
	}
}

// dotRows adds the dot products of x with the rows of b, stride ldb, to dst. It handles eight
// rows at a time and sums each one strictly in order. That is as fast as partial sums within a
// row and bit-exact with the TFLite reference kernels.
func dotRows(dst, x, b []float32, ldb int) {
	n := len(x)
	for len(dst) >= 8 {
		b0, b1, b2, b3 := b[:n], b[ldb:][:n], b[2*ldb:][:n], b[3*ldb:][:n]
		b4, b5, b6, b7 := b[4*ldb:][:n], b[5*ldb:][:n], b[6*ldb:][:n], b[7*ldb:][:n]
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for i, v := range x {
			s0 += float32(v * b0[i])
			s1 += float32(v * b1[i])
			s2 += float32(v * b2[i])
			s3 += float32(v * b3[i])
			s4 += float32(v * b4[i])
			s5 += float32(v * b5[i])
			s6 += float32(v * b6[i])
			s7 += float32(v * b7[i])
		}
		d := dst[:8]
		d[0] += s0
		d[1] += s1
		d[2] += s2
		d[3] += s3
		d[4] += s4
		d[5] += s5
		d[6] += s6
		d[7] += s7
		dst = dst[8:]
		if len(dst) > 0 {
			b = b[8*ldb:]
		}
	}
	for j := range dst {
		var s float32
		for i, v := range b[j*ldb:][:n] {
			s += float32(x[i] * v)
		}
		dst[j] += s
	}
}

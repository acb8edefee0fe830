package kernel

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Products in vectors: the rows of a are read where they lie, the panels of b are
// packed (or read where they lie, where few rows make use of them), and a tile of c is
// finished in registers.

const (
	// kBlock bounds the steps of a pass over a panel, so that the panel stays in the
	// first-level cache while the rows go by.
	kBlock = 320
	// rowBlock bounds the rows of a pass: rowBlock·kBlock values of a stay in the
	// second-level cache while the panels go by.
	rowBlock = 160
	// Rows that lie a multiple of sameLines bytes apart fall into one set of a first-level cache of 64, which holds 8 to 12
	// lines: where apartPanels panels or more read them they are copied, apart values further from each other than
	// they are long.
	sameLines   = 4096
	apart       = 16
	apartPanels = 4
)

var tiles = sync.Pool{New: func() any { return new(simd.Tile) }}

// giveTile forgets the matrices that a tile points to.
func giveTile(t *simd.Tile) {
	*t = simd.Tile{}
	tiles.Put(t)
}

// panels is a right-hand matrix as tiles read it: panel i begins at i*next, its rows
// lie step apart. A last panel that is not whole lies in tail, if that is set. Packed panels may have codes in place of data.
type panels struct {
	data       []float32
	codes      []uint16
	narrow     simd.Narrow
	step, next int
	tail       []float32
	few        *FewBits // in place of all else, if set
	conv       *Conv    // gathers panels from data, its frames, if set
}

// widens tells whether panels are widened part by part.
func (b *panels) widens() bool {
	return b.few != nil || b.conv != nil || b.narrow != simd.WideFloat32
}

// widen writes steps from k0 on of a panel in float32. Frames are gathered over the end of a panel, by two rows at most.
func (b *panels) widen(dst []float32, panel, cols, k0, steps int) {
	if b.few != nil {
		b.few.widen(dst, panel, k0, steps)
		return
	}
	if b.conv != nil {
		runs := runRooms.Get().(*[]simd.Run)
		*runs = b.conv.gather(dst, *runs, b.data, k0, steps, panel, panel+1)
		runRooms.Put(runs)
		return
	}
	widenPanel(dst[:steps*cols], b.codes[panel*b.next+k0*cols:], b.narrow)
}

func (b *panels) panel(i, cols, n int) (data []float32, step int) {
	if b.tail != nil && (i+1)*cols > n {
		return b.tail, cols
	}
	return b.data[i*b.next:], b.step
}

// ahead is a part of b that comes next. While the tiles of the part before it are computed, each brings as much of it near: weights are
// read once or a few times, and memory would else be waited for where arithmetic is not.
type ahead struct {
	data []uint8
	step int // bytes for each step of a tile
}

// ahead is what fetches rows k0 to k1 of a panel in so many tiles; nothing where rows lie apart.
func (b *panels) ahead(panel, cols, n, k0, k1, tiles int) ahead {
	if b.few != nil || b.conv != nil {
		return ahead{}
	}
	if b.narrow != simd.WideFloat32 {
		codes := b.codes[panel*b.next:][k0*cols : k1*cols]
		return ahead{unsafe.Slice((*uint8)(unsafe.Pointer(&codes[0])), 2*len(codes)), min(64, (2*cols+tiles-1)/tiles)}
	}
	data, step := b.panel(panel, cols, n)
	if step != cols {
		return ahead{}
	}
	return aheadOf(data[k0*step:k1*step], min(64, (4*cols+tiles-1)/tiles))
}

// aheadOf fetches v, step bytes each step.
func aheadOf(v []float32, step int) ahead {
	if len(v) == 0 {
		return ahead{}
	}
	return ahead{unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), 4*len(v)), step}
}

// fetch sets a tile, whose steps are set, to fetch the next piece.
func (h *ahead) fetch(t *simd.Tile) {
	t.Next, t.Fetch = nil, 0
	if h != nil && len(h.data) > 0 {
		t.Next, t.Fetch = unsafe.Pointer(&h.data[0]), h.step
		h.data = h.data[min(h.step*t.K*t.Segs, len(h.data)):]
	}
}

// jobsOf is the number of pieces into which to cut so many products, of which a thread computes rate in a nanosecond.
func jobsOf(p *workers.Pool, products int, rate float64) int {
	if p.Taking() == 1 {
		return 1
	}
	t := p.Taking()
	grain := workers.Grain(rate)
	jobs := max(1, min(4*t, products/grain))
	if products > grain {
		jobs = max(2, jobs) // two halves
	}
	if jobs > t {
		jobs -= jobs % t // each thread has as many
	}
	return jobs
}

// rateOfRows is the rate at which m rows are multiplied by weights of so many bytes: few wait for the weights.
func rateOfRows(rate float64, m, bytes int) float64 {
	const read = 20 // bytes that a thread reads in a nanosecond from the caches that it shares
	return min(rate, read/float64(bytes)*float64(m))
}

// portion is part i of so many: from begin to end of all, the same for each to an element.
func portion(i, of, all int) (begin, end int) {
	if of == 1 { // divisions take as long as small products
		return 0, all
	}
	return i * all / of, (i + 1) * all / of
}

// tapered is [portion] of what a loop is cut from, by so many threads, if of is a multiple of them: each has the same in all, in pieces that get
// shorter (see [workers.Taper]).
func tapered(i, of, threads, all int) (begin, end int) {
	if of%threads > 0 {
		return portion(i, of, all)
	}
	each := of / threads
	lo, hi := portion(i/each, threads, all)
	return lo + workers.Taper(i%each, each, hi-lo), lo + workers.Taper(i%each+1, each, hi-lo)
}

// rowPortion is [portion] of the panels of a single row, for so many threads, if of is a multiple of them. Pieces of a thread are whole groups of
// [simd.WidePanels], which are multiplied together, and what is left. With groups threads have whole groups, too: else each has the
// same to a panel. A piece may be empty.
func rowPortion(i, of, threads, all int, groups bool) (begin, end int) {
	const group = simd.WidePanels
	if of == 1 {
		return 0, all
	}
	each := 1
	if of%threads == 0 {
		each = of / threads
	}
	if groups {
		begin, end = portion(i/each, of/each, (all+group-1)/group)
		begin, end = group*begin, min(group*end, all)
	} else {
		begin, end = portion(i/each, of/each, all)
	}
	n0, n1 := portion(i%each, each, (end-begin)/group)
	if i%each < each-1 {
		end = begin + group*n1
	}
	return begin + group*n0, end
}

// product is a matrix product in vectors; see [GemmParams].
func product(p *workers.Pool, f *simd.Floats, g *GemmParams, a []float32, b panels, c []float32) {
	if k := inParts(f, g, b.narrow); k != nil {
		productInParts(p, k, f, g, a, b, c)
		return
	}
	ldc := or(g.LDC, g.N)
	vec, elem := or(g.LDA, g.K), 1
	if g.TransA {
		vec, elem = 1, or(g.LDA, g.M)
	}
	all := (g.N + f.Cols - 1) / f.Cols
	jobs := jobsOf(p, g.M*g.N*g.K, rateOfRows(f.Rate(), g.M, 4))
	// Work is cut by rows, if there are enough for whole tiles, else by panels, and by both where these are few.
	t := p.Taking()
	byRows, byCols := 1, min(jobs, all)
	if byCols > t {
		byCols -= byCols % t
	}
	switch tilesM := (g.M + f.Rows - 1) / f.Rows; {
	case tilesM >= 2*jobs:
		byRows, byCols = jobs, 1
	case jobs > 1 && all < 2*jobs && tilesM >= 2*t:
		byRows, byCols = t, min(max(1, jobs/t), all)
	}
	workers.Do(p, byRows*byCols, 1, productArgs{f, *g, a, b, c, vec, elem, ldc, all, byRows, byCols, t}, func(q productArgs, lo, hi int) {
		t := tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			m0, m1 := portion(i/q.byCols, q.byRows, q.g.M)
			n0, n1 := portion(i%q.byCols, q.byCols, q.all)
			if q.g.M == 1 {
				n0, n1 = rowPortion(i, q.byCols, q.threads, q.all, q.b.widens())
			}
			productPart(q.f, &q.g, t, q.a, q.b, q.c, q.vec, q.elem, q.ldc, m0, m1, n0, n1)
		}
		giveTile(t)
	})
}

// productArgs is what a piece of a product needs.
type productArgs struct {
	f                   *simd.Floats
	g                   GemmParams
	a                   []float32
	b                   panels
	c                   []float32
	vec, elem, ldc      int
	all, byRows, byCols int
	threads             int
}

// productPart computes rows m0 to m1 of panels n0 to n1.
func productPart(f *simd.Floats, g *GemmParams, t *simd.Tile, a []float32, b panels, c []float32, vec, elem, ldc, m0, m1, n0, n1 int) {
	t.Segs, t.StepA, t.RowC = 1, 4*elem, 4*ldc
	if g.M == 1 && n1-n0 >= simd.WidePanels && b.few == nil {
		n0 = productRow(f, g, t, a, b, c, n0, n1)
	}
	block := kBlock
	switch {
	case g.Exact && g.Accumulate || g.M == 1:
		// What c holds comes after the whole sum; and equal columns must give equal
		// results, whether productRow computes them or what is left of it.
		block = g.K
	case b.few == nil: // which are widened by whole lines
		block = simd.Evenly(max(g.K, 1), kBlock)
	}
	var copies []float32
	if elem == 1 && 4*vec%sameLines == 0 && n1-n0 >= apartPanels && m1-m0 > f.Rows/2 {
		sc, room := borrow(roundUp(min(rowBlock, m1-m0), f.Rows) * (block + apart))
		defer scratch.Put(sc)
		copies = room
	}
	var wide []float32
	if b.widens() && n0 < n1 {
		sc, room := borrow(roundUp(min(block, g.K), FewBitLine) * f.Cols)
		defer scratch.Put(sc)
		wide = room
	}
	for r0 := m0; r0 < m1; {
		r1 := r0 + roundUp(simd.Evenly(m1-r0, rowBlock), f.Rows)
		r1 = min(r1, m1)
		for k0 := 0; k0 < g.K; k0 += block {
			last := k0+block >= g.K
			t.K = min(block, g.K-k0)
			rows, line := a[r0*vec+k0*elem:], vec
			if copies != nil {
				line = block + apart
				for r := range r1 - r0 {
					copy(copies[r*line:][:t.K], rows[r*vec:])
				}
				rows = copies
			}
			t.RowA = 4 * line
			setStart(t, g.Exact, g.Accumulate, k0 == 0)
			setClamp(t, g.Act, last)
			for n := n0; n < n1; n++ {
				if wide != nil {
					b.widen(wide, n, f.Cols, k0, t.K)
					t.B, t.StepB = &wide[0], 4*f.Cols
				} else {
					pb, step := b.panel(n, f.Cols, g.N)
					t.B, t.StepB = &pb[k0*step], 4*step
				}
				var next ahead
				switch tiles := (r1 - r0 + f.Rows - 1) / f.Rows; {
				case n+1 < n1:
					next = b.ahead(n+1, f.Cols, g.N, k0, k0+t.K, tiles)
				case !last:
					next = b.ahead(n0, f.Cols, g.N, k0+block, min(k0+2*block, g.K), tiles)
				}
				productRows(f, g, t, rows, line, c, ldc, r0, r0, r1, n, last, &next)
			}
		}
		r0 = r1
	}
}

// productRows computes rows r to end of panel n, to which t is set; those of a at rows begin with row r0.
func productRows(f *simd.Floats, g *GemmParams, t *simd.Tile, rows []float32, line int, c []float32, ldc, r0, r, end, n int, last bool, next *ahead) {
	t.BiasN, t.BiasM = nil, nil
	if last && g.BiasN != nil {
		t.BiasN = &g.BiasN[n*f.Cols]
	}
	for width := min(f.Cols, g.N-n*f.Cols); r < end; {
		height := simd.Evenly(end-r, f.Rows)
		next.fetch(t)
		t.A = &rows[(r-r0)*line]
		t.C = &c[r*ldc+n*f.Cols]
		if last && g.BiasM != nil {
			t.BiasM = &g.BiasM[r]
		}
		f.Run(t, height, width, g.Exact)
		r += height
	}
}

// setStart says how a pass over a block of steps begins. Exact sums go on in order,
// others are closer to the truth when the blocks are summed apart.
func setStart(t *simd.Tile, exact, accumulate, first bool) {
	switch {
	case first && !accumulate:
		t.SetStart(simd.FromZero)
	case exact && !first:
		t.SetStart(simd.Continue)
	default:
		t.SetStart(simd.Accumulate)
	}
}

func setClamp(t *simd.Tile, act activation.Clamp, last bool) {
	t.SetClamp(act.On && last, act.Min, act.Max)
}

// productRow computes a single row, several whole panels at a time; it returns the
// first panel that is left.
func productRow(f *simd.Floats, g *GemmParams, t *simd.Tile, a []float32, b panels, c []float32, n0, n1 int) int {
	t.K = g.K
	t.SetStart(simd.FromZero)
	if g.Accumulate {
		t.SetStart(simd.Accumulate)
	}
	setClamp(t, g.Act, true)
	t.A, t.PanelB, t.StepB = &a[0], 4*b.next, 4*b.step
	if b.narrow != simd.WideFloat32 {
		t.PanelB, t.StepB = 2*b.next, 2*b.step
	}
	t.BiasM = nil
	if g.BiasM != nil {
		t.BiasM = &g.BiasM[0]
	}
	for ; n0+simd.WidePanels <= n1 && (n0+simd.WidePanels)*f.Cols <= g.N; n0 += simd.WidePanels {
		if b.narrow != simd.WideFloat32 {
			t.B = (*float32)(unsafe.Pointer(&b.codes[n0*b.next]))
		} else {
			t.B = &b.data[n0*b.next]
		}
		t.C, t.BiasN = &c[n0*f.Cols], nil
		if g.BiasN != nil {
			t.BiasN = &g.BiasN[n0*f.Cols]
		}
		f.Wide(t, g.Exact, b.narrow)
	}
	return n0
}

// unpacked is Gemm in vectors: b is packed in each run, or read where it lies if few
// rows use it.
func unpacked(p *workers.Pool, f *simd.Floats, g *GemmParams, a, b, c []float32) {
	ldb := or(g.LDB, g.N)
	if g.TransB || g.M > 2*f.Rows {
		s, data := borrow(roundUp(g.N, f.Cols) * g.K)
		pb := &PackedB{k: g.K, n: g.N, f: f, data: data}
		pb.fill(b, g.LDB, g.TransB)
		product(p, f, g, a, pb.panels(), c)
		scratch.Put(s)
		return
	}
	whole := g.N / f.Cols * f.Cols
	if rest := g.N - whole; rest == 0 || f.Taken(rest) == rest { // no column is read beyond the last
		product(p, f, g, a, panels{data: b, step: ldb, next: f.Cols}, c)
		return
	}
	s, tail := borrow(f.Cols * g.K)
	pack(tail, b[whole:], g.N-whole, g.K, f.Cols, 1, ldb)
	product(p, f, g, a, panels{data: b, step: ldb, next: f.Cols, tail: tail}, c)
	scratch.Put(s)
}

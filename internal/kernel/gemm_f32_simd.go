package kernel

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Float32 GEMM with SIMD kernels. The rows of a are read in place. The panels of b are packed, or
// read in place if few rows use them. A tile of c is finished in registers.

const (
	// kBlock bounds the K steps of a pass over a panel, so that the panel stays in the L1 cache
	// while the rows pass.
	kBlock = 320
	// rowBlock bounds the rows of a pass: rowBlock·kBlock values of a stay in the L2 cache while
	// the panels pass.
	rowBlock = 160
	// Rows whose distance is a multiple of sameLines bytes map to one set of an L1 cache with 64
	// sets, which holds 8 to 12 lines. If apartPanels panels or more read such rows, they are
	// copied with a stride of their length plus apart values.
	sameLines   = 4096
	apart       = 16
	apartPanels = 4
)

var tiles = sync.Pool{New: func() any { return new(simd.Tile) }}

// releaseTile clears the pointers of a tile and returns it to the pool.
func releaseTile(t *simd.Tile) {
	*t = simd.Tile{}
	tiles.Put(t)
}

// panels describes a right-hand matrix as tiles read it: panel i begins at i*next with row stride
// step. A partial last panel is in tail, if set. Packed panels may have 16-bit codes instead of
// data.
type panels struct {
	data       []float32
	codes      []uint16
	narrow     simd.Narrow
	step, next int
	tail       []float32
	few        *LowBitMatrix // if set, it replaces all other fields
	gatherer   panelGatherer // if set, it gathers the panels from data
}

// panelGatherer writes K steps of a panel from k0: a convolution, from its padded input copies.
type panelGatherer interface {
	gatherPanel(dst, data []float32, k0, steps, panel int)
}

// widens reports whether panels are converted to float32 block by block.
func (b *panels) widens() bool {
	return b.few != nil || b.gatherer != nil || b.narrow != simd.WideFloat32
}

// widen writes K steps of a panel from k0 in float32. Gathering from padded copies writes up to
// two rows beyond the end of a panel.
func (b *panels) widen(dst []float32, panel, cols, k0, steps int) {
	if b.few != nil {
		b.few.widen(dst, panel, k0, steps)
		return
	}
	if b.gatherer != nil {
		b.gatherer.gatherPanel(dst, b.data, k0, steps, panel)
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

// prefetch is the part of b that is needed next. Each tile of the current part prefetches a share
// of it: weights are read once or a few times, so the kernels would otherwise wait for memory.
type prefetch struct {
	data []uint8
	step int // bytes per K step of a tile
}

// prefetch returns the prefetch of rows k0 to k1 of a panel, spread over the given number of
// tiles. It is empty if rows are not contiguous.
func (b *panels) prefetch(panel, cols, n, k0, k1, tiles int) prefetch {
	if b.few != nil || b.gatherer != nil {
		return prefetch{}
	}
	if b.narrow != simd.WideFloat32 {
		codes := b.codes[panel*b.next:][k0*cols : k1*cols]
		return prefetch{unsafe.Slice((*uint8)(unsafe.Pointer(&codes[0])), 2*len(codes)), min(64, (2*cols+tiles-1)/tiles)}
	}
	data, step := b.panel(panel, cols, n)
	if step != cols {
		return prefetch{}
	}
	return prefetchOf(data[k0*step:k1*step], min(64, (4*cols+tiles-1)/tiles))
}

// prefetchOf returns a prefetch of v with step bytes per K step.
func prefetchOf(v []float32, step int) prefetch {
	if len(v) == 0 {
		return prefetch{}
	}
	return prefetch{unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), 4*len(v)), step}
}

// fetch makes tile t, whose K is set, prefetch the next share.
func (h *prefetch) fetch(t *simd.Tile) {
	t.Next, t.Fetch = nil, 0
	if h != nil && len(h.data) > 0 {
		t.Next, t.Fetch = unsafe.Pointer(&h.data[0]), h.step
		h.data = h.data[min(h.step*t.K*t.Segs, len(h.data)):]
	}
}

// jobCount returns the number of work items for a number of multiplications, of which a thread
// computes rate per nanosecond.
func jobCount(p *workers.Pool, products int, rate float64) int {
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
		jobs -= jobs % t // the same number for each thread
	}
	return jobs
}

// rateForRows returns the multiplication rate for m rows and weights of the given size: few rows
// are bound by reading the weights.
func rateForRows(rate float64, m, bytes int) float64 {
	const read = 20 // bytes per nanosecond that a thread reads from the shared caches
	return min(rate, read/float64(bytes)*float64(m))
}

// portion returns part i of the given number of equal parts (within one element) of all.
func portion(i, of, all int) (begin, end int) {
	if of == 1 { // a division takes as long as a small multiplication
		return 0, all
	}
	return i * all / of, (i + 1) * all / of
}

// tapered is [portion] for a loop that threads share, if of is a multiple of threads: each thread
// gets the same total in shrinking pieces (see [workers.Taper]).
func tapered(i, of, threads, all int) (begin, end int) {
	if of%threads > 0 {
		return portion(i, of, all)
	}
	each := of / threads
	lo, hi := portion(i/each, threads, all)
	return lo + workers.Taper(i%each, each, hi-lo), lo + workers.Taper(i%each+1, each, hi-lo)
}

// rowPortion is [portion] for the panels of a single row, if of is a multiple of threads. The
// pieces of a thread are whole groups of [simd.WidePanels] panels, which are multiplied together,
// and a remainder. With groups each thread gets whole groups; otherwise the totals differ by at
// most one panel. A piece may be empty.
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

// gemmPanels computes a matrix multiplication with SIMD kernels; see [GemmParams].
func gemmPanels(p *workers.Pool, f *simd.Floats, g *GemmParams, a []float32, b panels, c []float32) {
	if k := chooseSplitBF16(f, g, b.narrow); k != nil {
		gemmSplitBF16(p, k, f, g, a, b, c)
		return
	}
	ldc := orDefault(g.LDC, g.N)
	vec, elem := orDefault(g.LDA, g.K), 1
	if g.TransA {
		vec, elem = 1, orDefault(g.LDA, g.M)
	}
	all := (g.N + f.Cols - 1) / f.Cols
	jobs := jobCount(p, g.M*g.N*g.K, rateForRows(f.Rate(), g.M, 4))
	// Split by rows if there are enough whole tiles, else by panels, or by both if there are few
	// of each.
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
	workers.Do(p, byRows*byCols, 1, gemmPanelsArgs{f, *g, a, b, c, vec, elem, ldc, all, byRows, byCols, t}, func(q gemmPanelsArgs, lo, hi int) {
		t := tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			m0, m1 := portion(i/q.byCols, q.byRows, q.g.M)
			n0, n1 := portion(i%q.byCols, q.byCols, q.all)
			if q.g.M == 1 {
				n0, n1 = rowPortion(i, q.byCols, q.threads, q.all, q.b.widens())
			}
			gemmBlock(q.f, &q.g, t, q.a, q.b, q.c, q.vec, q.elem, q.ldc, m0, m1, n0, n1)
		}
		releaseTile(t)
	})
}

// gemmPanelsArgs holds the arguments of a work item of gemmPanels.
type gemmPanelsArgs struct {
	f                   *simd.Floats
	g                   GemmParams
	a                   []float32
	b                   panels
	c                   []float32
	vec, elem, ldc      int
	all, byRows, byCols int
	threads             int
}

// gemmBlock computes rows m0 to m1 of panels n0 to n1.
func gemmBlock(f *simd.Floats, g *GemmParams, t *simd.Tile, a []float32, b panels, c []float32, vec, elem, ldc, m0, m1, n0, n1 int) {
	t.Segs, t.StepA, t.RowC = 1, 4*elem, 4*ldc
	if g.M == 1 && n1-n0 >= simd.WidePanels && b.few == nil {
		n0 = gemmSingleRow(f, g, t, a, b, c, n0, n1)
	}
	block := kBlock
	switch {
	case g.Exact && g.Accumulate || g.M == 1:
		// The old value of c is added after the whole sum. Equal columns must give equal results,
		// whether gemmSingleRow or the remainder loop computes them.
		block = g.K
	case b.few == nil: // low-bit panels are widened by whole blocks
		block = simd.Evenly(max(g.K, 1), kBlock)
	}
	var copies []float32
	if elem == 1 && 4*vec%sameLines == 0 && n1-n0 >= apartPanels && m1-m0 > f.Rows/2 {
		sc, workspace := borrow(roundUp(min(rowBlock, m1-m0), f.Rows) * (block + apart))
		defer scratch.Put(sc)
		copies = workspace
	}
	var wide []float32
	if b.widens() && n0 < n1 {
		sc, workspace := borrow(roundUp(min(block, g.K), LowBitBlock) * f.Cols)
		defer scratch.Put(sc)
		wide = workspace
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
				var next prefetch
				switch tiles := (r1 - r0 + f.Rows - 1) / f.Rows; {
				case n+1 < n1:
					next = b.prefetch(n+1, f.Cols, g.N, k0, k0+t.K, tiles)
				case !last:
					next = b.prefetch(n0, f.Cols, g.N, k0+block, min(k0+2*block, g.K), tiles)
				}
				gemmTileRows(f, g, t, rows, line, c, ldc, r0, r0, r1, n, last, &next)
			}
		}
		r0 = r1
	}
}

// gemmTileRows computes rows r to end of panel n, which t is set to; rows holds those of a from
// row r0.
func gemmTileRows(f *simd.Floats, g *GemmParams, t *simd.Tile, rows []float32, line int, c []float32, ldc, r0, r, end, n int, last bool, next *prefetch) {
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

// setStart sets the initial accumulators of a pass over a K block. Exact sums continue in order;
// others are more accurate if the blocks are summed separately.
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

// gemmSingleRow computes a single row, several whole panels at a time. It returns the first panel
// that is not computed.
func gemmSingleRow(f *simd.Floats, g *GemmParams, t *simd.Tile, a []float32, b panels, c []float32, n0, n1 int) int {
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

// gemmUnpacked is [Gemm] with SIMD kernels: it packs b in each run, or reads it in place if few
// rows use it.
func gemmUnpacked(p *workers.Pool, f *simd.Floats, g *GemmParams, a, b, c []float32) {
	ldb := orDefault(g.LDB, g.N)
	if g.TransB || g.M > 2*f.Rows {
		s, data := borrow(roundUp(g.N, f.Cols) * g.K)
		pb := &PackedB{k: g.K, n: g.N, f: f, data: data}
		pb.fill(b, g.LDB, g.TransB)
		gemmPanels(p, f, g, a, pb.panels(), c)
		scratch.Put(s)
		return
	}
	whole := g.N / f.Cols * f.Cols
	// the kernels read no column beyond the last
	if rest := g.N - whole; rest == 0 || f.Taken(rest) == rest {
		gemmPanels(p, f, g, a, panels{data: b, step: ldb, next: f.Cols}, c)
		return
	}
	s, tail := borrow(f.Cols * g.K)
	pack(tail, b[whole:], g.N-whole, g.K, f.Cols, 1, ldb)
	gemmPanels(p, f, g, a, panels{data: b, step: ldb, next: f.Cols, tail: tail}, c)
	scratch.Put(s)
}

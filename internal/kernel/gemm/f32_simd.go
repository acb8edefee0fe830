package gemm

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Float32 GEMM with SIMD kernels. The rows of a are read in place. The panels of b are packed, or
// read in place if few rows use them. A tile of c is finished in registers.

const (
	// KBlock bounds the K steps of a pass over a panel, so that the panel stays in the L1 cache
	// while the rows pass.
	KBlock = 320
	// RowBlock bounds the rows of a pass: RowBlock·KBlock values of a stay in the L2 cache while
	// the panels pass.
	RowBlock = 160
	// SameLines is a distance in bytes: rows at multiples of it map to one set of an L1 cache
	// with 64 sets, which holds 8 to 12 lines. If apartPanels panels or more read such rows, they
	// are copied with a stride of their length plus Apart values.
	SameLines   = 4096
	apartPanels = 4
	// Apart is the number of values added to the stride of such rows.
	Apart = 16
)

// Tiles lends tiles; [ReleaseTile] returns them.
var Tiles = sync.Pool{New: func() any { return new(simd.Tile) }}

// ReleaseTile clears the pointers of a tile and returns it to the pool.
func ReleaseTile(t *simd.Tile) {
	*t = simd.Tile{}
	Tiles.Put(t)
}

// Panels describes a right-hand matrix as tiles read it: panel i begins at i*Next with row stride
// Step. A partial last panel is in Tail, if set. Packed panels may have 16-bit values in codes
// instead of Data.
type Panels struct {
	Data       []float32
	codes      []uint16
	narrow     simd.PanelType
	Step, Next int
	Tail       []float32
	few        *LowBitMatrix // if set, it replaces all other fields
	Gatherer   panelGatherer // if set, it gathers the panels from Data
}

// panelGatherer writes K steps of a panel from k0: a convolution, from its padded input copies.
type panelGatherer interface {
	GatherPanel(dst, data []float32, k0, steps, panel int)
}

// widens reports whether panels are converted to float32 block by block.
func (b *Panels) widens() bool {
	return b.few != nil || b.Gatherer != nil || b.narrow != simd.WideFloat32
}

// widen writes K steps of a panel from k0 in float32. Gathering from padded copies writes up to
// two rows beyond the end of a panel.
func (b *Panels) widen(dst []float32, panel, cols, k0, steps int) {
	if b.few != nil {
		b.few.widen(dst, panel, k0, steps)
		return
	}
	if b.Gatherer != nil {
		b.Gatherer.GatherPanel(dst, b.Data, k0, steps, panel)
		return
	}
	widenPanel(dst[:steps*cols], b.codes[panel*b.Next+k0*cols:], b.narrow)
}

func (b *Panels) panel(i, cols, n int) (data []float32, step int) {
	if b.Tail != nil && (i+1)*cols > n {
		return b.Tail, cols
	}
	return b.Data[i*b.Next:], b.Step
}

// Prefetch is the part of b that is needed next. Each tile of the current part prefetches a share
// of it: weights are read once or a few times, so the kernels would otherwise wait for memory.
type Prefetch struct {
	data []uint8
	step int // bytes per K step of a tile
}

// prefetch returns the prefetch of rows k0 to k1 of a panel, spread over the given number of
// tiles. It is empty if rows are not contiguous.
func (b *Panels) prefetch(panel, cols, n, k0, k1, tiles int) Prefetch {
	if b.few != nil || b.Gatherer != nil {
		return Prefetch{}
	}
	if b.narrow != simd.WideFloat32 {
		codes := b.codes[panel*b.Next:][k0*cols : k1*cols]
		return Prefetch{unsafe.Slice((*uint8)(unsafe.Pointer(&codes[0])), 2*len(codes)), min(64, (2*cols+tiles-1)/tiles)}
	}
	data, step := b.panel(panel, cols, n)
	if step != cols {
		return Prefetch{}
	}
	return PrefetchOf(data[k0*step:k1*step], min(64, (4*cols+tiles-1)/tiles))
}

// PrefetchOf returns a prefetch of v with step bytes per K step.
func PrefetchOf(v []float32, step int) Prefetch {
	if len(v) == 0 {
		return Prefetch{}
	}
	return Prefetch{unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), 4*len(v)), step}
}

// Fetch makes a number of tiles by t, whose K is set, prefetch the next share.
func (h *Prefetch) Fetch(t *simd.Tile, tiles int) {
	t.Next, t.Fetch = nil, 0
	if h != nil && len(h.data) > 0 {
		t.Next, t.Fetch = unsafe.Pointer(&h.data[0]), h.step
		h.data = h.data[min(h.step*t.K*t.Segs*tiles, len(h.data)):]
	}
}

// JobCount returns the number of work items for a number of multiplications, of which a thread
// computes rate per nanosecond.
func JobCount(p *workers.Pool, products int, rate float64) int {
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

// Portion returns part i of the given number of equal parts (within one element) of all.
func Portion(i, of, all int) (begin, end int) {
	if of == 1 { // a division takes as long as a small multiplication
		return 0, all
	}
	return i * all / of, (i + 1) * all / of
}

// Tapered is [Portion] for a loop that threads share, if of is a multiple of threads: each thread
// gets the same total in shrinking pieces (see [workers.Taper]).
func Tapered(i, of, threads, all int) (begin, end int) {
	if of%threads > 0 {
		return Portion(i, of, all)
	}
	each := of / threads
	lo, hi := Portion(i/each, threads, all)
	return lo + workers.Taper(i%each, each, hi-lo), lo + workers.Taper(i%each+1, each, hi-lo)
}

// rowPortion is [Portion] for the panels of a single row, if of is a multiple of threads. The
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
		begin, end = Portion(i/each, of/each, (all+group-1)/group)
		begin, end = group*begin, min(group*end, all)
	} else {
		begin, end = Portion(i/each, of/each, all)
	}
	n0, n1 := Portion(i%each, each, (end-begin)/group)
	if i%each < each-1 {
		end = begin + group*n1
	}
	return begin + group*n0, end
}

// gemmPanels computes a matrix multiplication with SIMD kernels; see [Params].
func gemmPanels(p *workers.Pool, f *simd.Floats, g *Params, a []float32, b Panels, c []float32) {
	if k := chooseSplitBF16(f, g, b.narrow); k != nil {
		SplitBF16(p, k, f, g, a, b, c)
		return
	}
	ldc := orDefault(g.LDC, g.N)
	vec, elem := orDefault(g.LDA, g.K), 1
	if g.TransA {
		vec, elem = 1, orDefault(g.LDA, g.M)
	}
	all := (g.N + f.Cols - 1) / f.Cols
	jobs := JobCount(p, g.M*g.N*g.K, rateForRows(f.Rate(), g.M, 4))
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
		t := Tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			m0, m1 := Portion(i/q.byCols, q.byRows, q.g.M)
			n0, n1 := Portion(i%q.byCols, q.byCols, q.all)
			if q.g.M == 1 {
				n0, n1 = rowPortion(i, q.byCols, q.threads, q.all, q.b.widens())
			}
			gemmBlock(q.f, &q.g, t, q.a, q.b, q.c, q.vec, q.elem, q.ldc, m0, m1, n0, n1)
		}
		ReleaseTile(t)
	})
}

// gemmPanelsArgs holds the arguments of a work item of gemmPanels.
type gemmPanelsArgs struct {
	f                   *simd.Floats
	g                   Params
	a                   []float32
	b                   Panels
	c                   []float32
	vec, elem, ldc      int
	all, byRows, byCols int
	threads             int
}

// gemmBlock computes rows m0 to m1 of panels n0 to n1.
func gemmBlock(f *simd.Floats, g *Params, t *simd.Tile, a []float32, b Panels, c []float32, vec, elem, ldc, m0, m1, n0, n1 int) {
	t.Segs, t.StepA, t.RowC = 1, 4*elem, 4*ldc
	if g.M == 1 && n1-n0 >= simd.WidePanels && b.few == nil {
		n0 = gemmSingleRow(f, g, t, a, b, c, n0, n1)
	}
	block := KBlock
	switch {
	case g.Exact && g.Accumulate || g.M == 1:
		// The old value of c is added after the whole sum. Equal columns must give equal results,
		// whether gemmSingleRow or the remainder loop computes them.
		block = g.K
	case b.few == nil: // low-bit panels are widened by whole blocks
		block = simd.Evenly(max(g.K, 1), KBlock)
	}
	var copies []float32
	if elem == 1 && 4*vec%SameLines == 0 && n1-n0 >= apartPanels && m1-m0 > f.Rows/2 {
		sc, workspace := scratch.Borrow(scratch.RoundUp(min(RowBlock, m1-m0), f.Rows) * (block + Apart))
		defer scratch.Float32s.Put(sc)
		copies = workspace
	}
	var wide []float32
	if b.widens() && n0 < n1 {
		sc, workspace := scratch.Borrow(scratch.RoundUp(min(block, g.K), LowBitBlock) * f.Cols)
		defer scratch.Float32s.Put(sc)
		wide = workspace
	}
	for r0 := m0; r0 < m1; {
		r1 := r0 + scratch.RoundUp(simd.Evenly(m1-r0, RowBlock), f.Rows)
		r1 = min(r1, m1)
		for k0 := 0; k0 < g.K; k0 += block {
			last := k0+block >= g.K
			t.K = min(block, g.K-k0)
			rows, line := a[r0*vec+k0*elem:], vec
			if copies != nil {
				line = block + Apart
				for r := range r1 - r0 {
					copy(copies[r*line:][:t.K], rows[r*vec:])
				}
				rows = copies
			}
			t.RowA = 4 * line
			SetStart(t, g.Exact, g.Accumulate, k0 == 0)
			SetClamp(t, g.Act, last)
			for n := n0; n < n1; n++ {
				if wide != nil {
					b.widen(wide, n, f.Cols, k0, t.K)
					t.B, t.StepB = &wide[0], 4*f.Cols
				} else {
					pb, step := b.panel(n, f.Cols, g.N)
					t.B, t.StepB = &pb[k0*step], 4*step
				}
				var next Prefetch
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
func gemmTileRows(f *simd.Floats, g *Params, t *simd.Tile, rows []float32, line int, c []float32, ldc, r0, r, end, n int, last bool, next *Prefetch) {
	t.BiasN, t.BiasM = nil, nil
	if last && g.BiasN != nil {
		t.BiasN = &g.BiasN[n*f.Cols]
	}
	for width := min(f.Cols, g.N-n*f.Cols); r < end; {
		height, tiles := f.Split(t, end-r)
		if g.BiasM != nil {
			height, tiles = simd.Evenly(end-r, f.Rows), 1
		}
		next.Fetch(t, tiles)
		t.A = &rows[(r-r0)*line]
		t.C = &c[r*ldc+n*f.Cols]
		if last && g.BiasM != nil {
			t.BiasM = &g.BiasM[r]
		}
		f.RunTiles(t, height, tiles, width, g.Exact)
		r += height * tiles
	}
}

// SetStart sets the initial accumulators of a pass over a K block. Exact sums continue in order;
// others are more accurate if the blocks are summed separately.
func SetStart(t *simd.Tile, exact, accumulate, first bool) {
	switch {
	case first && !accumulate:
		t.SetStart(simd.FromZero)
	case exact && !first:
		t.SetStart(simd.Continue)
	default:
		t.SetStart(simd.Accumulate)
	}
}

// SetClamp clamps the results of a tile that has the last K steps.
func SetClamp(t *simd.Tile, act activation.Clamp, last bool) {
	t.SetClamp(act.On && last, act.Min, act.Max)
}

// gemmSingleRow computes a single row, several whole panels at a time. It returns the first panel
// that is not computed.
func gemmSingleRow(f *simd.Floats, g *Params, t *simd.Tile, a []float32, b Panels, c []float32, n0, n1 int) int {
	t.K = g.K
	t.SetStart(simd.FromZero)
	if g.Accumulate {
		t.SetStart(simd.Accumulate)
	}
	SetClamp(t, g.Act, true)
	t.A, t.PanelB, t.StepB = &a[0], 4*b.Next, 4*b.Step
	if b.narrow != simd.WideFloat32 {
		t.PanelB, t.StepB = 2*b.Next, 2*b.Step
	}
	t.BiasM = nil
	if g.BiasM != nil {
		t.BiasM = &g.BiasM[0]
	}
	for ; n0+simd.WidePanels <= n1 && (n0+simd.WidePanels)*f.Cols <= g.N; n0 += simd.WidePanels {
		if b.narrow != simd.WideFloat32 {
			t.B = (*float32)(unsafe.Pointer(&b.codes[n0*b.Next]))
		} else {
			t.B = &b.Data[n0*b.Next]
		}
		t.C, t.BiasN = &c[n0*f.Cols], nil
		if g.BiasN != nil {
			t.BiasN = &g.BiasN[n0*f.Cols]
		}
		f.Wide(t, g.Exact, b.narrow)
	}
	return n0
}

// gemmUnpacked is [Multiply] with SIMD kernels: it packs b in each run, or reads it in place if few
// rows use it.
func gemmUnpacked(p *workers.Pool, f *simd.Floats, g *Params, a, b, c []float32) {
	ldb := orDefault(g.LDB, g.N)
	if g.TransB || g.M > 2*f.Rows {
		s, data := scratch.Borrow(scratch.RoundUp(g.N, f.Cols) * g.K)
		pb := &PackedB{k: g.K, n: g.N, f: f, data: data}
		pb.fill(b, g.LDB, g.TransB)
		gemmPanels(p, f, g, a, pb.panels(), c)
		scratch.Float32s.Put(s)
		return
	}
	whole := g.N / f.Cols * f.Cols
	// the kernels read no column beyond the last
	if rest := g.N - whole; rest == 0 || f.Taken(rest) == rest {
		gemmPanels(p, f, g, a, Panels{Data: b, Step: ldb, Next: f.Cols}, c)
		return
	}
	s, tail := scratch.Borrow(f.Cols * g.K)
	Pack(tail, b[whole:], g.N-whole, g.K, f.Cols, 1, ldb)
	gemmPanels(p, f, g, a, Panels{Data: b, Step: ldb, Next: f.Cols, Tail: tail}, c)
	scratch.Float32s.Put(s)
}

package gemm

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Float32 GEMM with bfloat16 tiles (AMX); see [simd.Parts]. Each float32 value is split into a
// sum of bfloat16 values. A block of rows is split once, a panel of columns once per block.
// Values that tiles cannot represent go through float32 kernels.

const (
	splitKBlock   = 1024    // maximum K steps of a pass over a panel
	splitRowBlock = 1 << 17 // maximum values of a row block: split, it stays in an L2 cache of 2 MB
	// Minimum panels of a work item, since it splits its rows, and minimum row blocks, since it
	// splits its panels.
	splitMinPanels = 6
	splitMinBlocks = 8
	// SplitFrameMax is the maximum number of values of the padded input of a convolution.
	SplitFrameMax = 1 << 19
	// multiplications per nanosecond while others use the tile unit of the same core
	splitRate = 75
)

// splitScratch holds the scratch memory of a work item.
type splitScratch struct {
	panel  simd.PartPanel
	blocks simd.PartBlocks
	to     simd.PartSums
	tile   simd.Tile
}

var splitPool = sync.Pool{New: func() any { return new(splitScratch) }}

// chooseSplitBF16 returns the kernels of a split multiplication; nil if float32 kernels are
// faster or required.
func chooseSplitBF16(f *simd.Floats, g *Params, narrow simd.PanelType) *simd.Parts {
	if f == nil || f.Cols != simd.PartCols || g.Exact || g.TransA || g.M <= 2*f.Rows {
		return nil
	}
	m, n, steps := float64(scratch.RoundUp(g.M, simd.PartRows)), float64(scratch.RoundUp(g.N, simd.PartCols)), float64(scratch.RoundUp(g.K, simd.PartSteps))
	// Nanoseconds on an Emerald Rapids Xeon, between an idle one and one whose cores are shared:
	// multiplications, splitting rows and panels, sums, the rest; and float32 multiplications,
	// which widen 16-bit weights first.
	parts, floats := m*n*steps/86, float64(g.M)*n*float64(g.K)/60
	if narrow != simd.WideFloat32 {
		parts *= 5. / 6
		floats += 0.05 * n * float64(g.K)
		if narrow == simd.WideBFloat16 {
			parts *= 3. / 5
		}
	}
	if parts+0.25*float64(g.K)*(m+n)+0.15*m*n+1000 > 0.9*floats {
		return nil
	}
	return simd.PartKernels() // called last: the first call runs a test computation
}

// SplitBF16Name returns the kernel name.
func SplitBF16Name() string { return "parts/" + simd.AMX.String() }

// SplitBF16 is [gemmPanels] with split kernels.
func SplitBF16(p *workers.Pool, k *simd.Parts, f *simd.Floats, g *Params, a []float32, b Panels, c []float32) {
	all := (g.N + f.Cols - 1) / f.Cols
	jobs := JobCount(p, g.M*g.N*g.K, splitRate)
	byRows, byCols := 1, min(jobs, max(1, all/splitMinPanels))
	t := p.Taking()
	if byCols > t {
		byCols -= byCols % t
	}
	blocks := (g.M + simd.PartRows - 1) / simd.PartRows
	if byCols < jobs {
		byRows = min(max(1, jobs/byCols), max(1, blocks/splitMinBlocks))
	}
	// Rather than leave threads idle, make smaller work items along the axis that duplicates less
	// splitting.
	if most := min(jobs, t); byRows*byCols < most {
		if g.M < g.N {
			byCols = min(most/byRows, all)
		} else {
			byRows = min(most/byCols, blocks)
		}
	}
	workers.Do(p, byRows*byCols, 1, splitArgs{k, gemmPanelsArgs{f, *g, a, b, c, orDefault(g.LDA, g.K), 1, orDefault(g.LDC, g.N), all, byRows, byCols, t}, blocks}, func(q splitArgs, lo, hi int) {
		r := splitPool.Get().(*splitScratch)
		for i := lo; i < hi; i++ {
			m0, m1 := Portion(i/q.byCols, q.byRows, q.blocks)
			n0, n1 := Portion(i%q.byCols, q.byCols, q.all)
			q.run(r, m0*simd.PartRows, min(m1*simd.PartRows, q.g.M), n0, n1)
		}
		r.to, r.tile = simd.PartSums{}, simd.Tile{}
		splitPool.Put(r)
	})
}

// splitArgs holds the arguments of a work item.
type splitArgs struct {
	k *simd.Parts
	gemmPanelsArgs
	blocks int
}

// run computes rows m0 to m1 of panels n0 to n1.
func (q *splitArgs) run(workspace *splitScratch, m0, m1, n0, n1 int) {
	if m0 >= m1 || n0 >= n1 {
		return
	}
	f, g, b := q.f, &q.g, &q.b
	steps := scratch.RoundUp(simd.Evenly(g.K, splitKBlock), max(simd.PartSteps, LowBitBlock))
	high := scratch.RoundUp(simd.Evenly(m1-m0, max(simd.PartRows, splitRowBlock/steps/simd.PartRows*simd.PartRows)), simd.PartRows)
	size := simd.PartBlock(min(steps, g.K))
	// 64 bytes more per buffer, so that tile rows are whole cache lines.
	blocks := (min(high, m1-m0) + simd.PartRows - 1) / simd.PartRows
	sc, free := scratch.Borrow((blocks+2)*size/2 + blocks*simd.PartRows*simd.PartCols + 16)
	defer scratch.Float32s.Put(sc)
	free = free[-(int(uintptr(unsafe.Pointer(&free[0])))/4)&15:]
	sums, free := free[:blocks*simd.PartRows*simd.PartCols], free[blocks*simd.PartRows*simd.PartCols:]
	codes := unsafe.Slice((*uint16)(unsafe.Pointer(&free[0])), 2*len(free))
	pb, pa := codes[:2*size], codes[2*size:]
	var wide []float32
	if b.widens() {
		sw, r := scratch.Borrow((scratch.RoundUp(min(steps, g.K), LowBitBlock) + 2) * f.Cols)
		defer scratch.Float32s.Put(sw)
		wide = r
	}
	t, to := &workspace.tile, &workspace.to
	t.Segs, t.StepA, t.RowC = 1, 4, 4*q.ldc
	for r0 := m0; r0 < m1; r0 += high {
		r1 := min(r0+high, m1)
		for k0 := 0; k0 < g.K; k0 += steps {
			n, first, last := min(steps, g.K-k0), k0 == 0, k0+steps >= g.K
			rows := q.a[r0*q.vec+k0:]
			q.k.Rows(&workspace.blocks, pa, rows, r1-r0, q.vec, n)
			*to = simd.PartSums{RowC: q.ldc, Add: !first || g.Accumulate, Clamp: g.Act.On && last, Min: g.Act.Min, Max: g.Act.Max}
			if last && g.BiasM != nil {
				to.BiasM = g.BiasM[r0:]
			}
			for j := n0; j < n1; j++ {
				data, step := wide, f.Cols
				if wide != nil {
					b.widen(wide, j, f.Cols, k0, n)
				} else {
					data, step = b.panel(j, f.Cols, g.N)
					data = data[k0*step:]
				}
				q.k.Panel(&workspace.panel, pb, data, step, n)
				to.C, to.Width = q.c[r0*q.ldc+j*f.Cols:], min(f.Cols, g.N-j*f.Cols)
				to.BiasN = nil
				if last && g.BiasN != nil {
					to.BiasN = g.BiasN[j*f.Cols:]
				}
				if workspace.panel.Supported() {
					var next Prefetch
					if j+1 < n1 {
						next = b.prefetch(j+1, f.Cols, g.N, k0, k0+n, 1)
					}
					q.k.Products(&workspace.blocks, pa, pb, &workspace.panel, sums, r1-r0, n, next.data, to)
				}
				for i := range (r1 - r0 + simd.PartRows - 1) / simd.PartRows {
					if workspace.panel.Supported() && workspace.blocks.Supported(i) {
						continue
					}
					t.K, t.B, t.StepB = n, &data[0], 4*step
					t.RowA = 4 * q.vec
					SetStart(t, false, g.Accumulate, first)
					SetClamp(t, g.Act, last)
					gemmTileRows(f, g, t, rows, q.vec, q.c, q.ldc, r0, r0+i*simd.PartRows, min(r0+(i+1)*simd.PartRows, r1), j, last, nil)
				}
			}
		}
	}
}

package gemm

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Single rows (GEMV) wait for the weights to arrive from memory. If many weights are zero, only
// the others are stored, with a bitmask, and are expanded as they are read. Results are bit-exact
// with dense weights.

// bitmaskMin is the minimum number of weights to store in this format.
const bitmaskMin = 1 << 16

// useBitmask reports whether a single row is faster with the bitmask format.
func useBitmask(k, n int, b []float32) bool {
	f, e := simd.FloatKernels(), simd.ExpandKernels()
	if e == nil || f == nil || f.Cols != e.Columns || k*n < bitmaskMin || !sampleSparse(n, k, b, k, 1) {
		return false
	}
	zeros := 0
	for _, v := range b {
		if v == 0 {
			zeros++
		}
	}
	share := float64(zeros) / float64(len(b))
	return share >= e.Zeros && (share >= e.Narrow || narrowOf(f, b, k*n) == simd.WideFloat32)
}

// bitmaskMatrix is a packed matrix without its zeros.
type bitmaskMatrix struct {
	f      *simd.Expand
	k      int
	masks  []uint8 // one bit per column, step by step and panel by panel
	values []float32
	starts []int // index of the first value of each panel
}

// newBitmaskMatrix compresses packed panels of k steps.
func newBitmaskMatrix(data []float32, k int) *bitmaskMatrix {
	f, some := simd.ExpandKernels(), 0
	for _, v := range data {
		if math.Float32bits(v) != 0 {
			some++
		}
	}
	m := &bitmaskMatrix{f: f, k: k, masks: hugepages.Make[uint8](len(data) / 8), values: hugepages.Make[float32](some + f.Columns)}
	at := 0
	for i := range m.masks {
		if i*8%(k*f.Columns) == 0 {
			m.starts = append(m.starts, at)
		}
		bits := uint8(0)
		for c, v := range data[i*8:][:8] {
			if math.Float32bits(v) != 0 { // keeps negative zero
				bits |= 1 << c
				m.values[at] = v
				at++
			}
		}
		m.masks[i] = bits
	}
	return m
}

var expandTiles = sync.Pool{New: func() any { return new(simd.ExpandTile) }}

func releaseExpandTile(t *simd.ExpandTile) {
	*t = simd.ExpandTile{}
	expandTiles.Put(t)
}

// name returns the kernel name.
func (m *bitmaskMatrix) name() string { return "expanded/" + m.f.Set.String() }

// run multiplies a single row.
func (m *bitmaskMatrix) run(p *workers.Pool, g *Params, a, c []float32) {
	panels := (g.N + m.f.Columns - 1) / m.f.Columns
	grain := max(1, workers.Grain(8)/(m.f.Columns*m.k))
	workers.Do(p, panels, grain, expandArgs{m, *g, a, c}, expandArgs.panels)
}

// expandArgs holds the arguments of a work item of run.
type expandArgs struct {
	m    *bitmaskMatrix
	g    Params
	a, c []float32
}

// panels computes panels lo to hi.
func (q expandArgs) panels(lo, hi int) {
	g, cols := &q.g, q.m.f.Columns
	t := expandTiles.Get().(*simd.ExpandTile)
	sc, workspace := scratch.Borrow(cols)
	for i := lo; i < hi; i++ {
		t.Masks, t.Values, t.Steps = &q.m.masks[i*g.K*cols/8], &q.m.values[q.m.starts[i]], g.K
		t.X, t.Y = &q.a[0], &workspace[0]
		q.m.f.Row(t, g.Exact)
		out := q.c[i*cols : min((i+1)*cols, g.N)]
		sums := workspace[:len(out)]
		g.finishRow(sums, out, i*cols)
	}
	scratch.Float32s.Put(sc)
	releaseExpandTile(t)
}

// finishRow writes the sums of a single row from column n, with what g adds, to out.
func (g *Params) finishRow(sums, out []float32, n int) {
	e := simd.ElementKernels()
	if g.Accumulate {
		e.Add(sums, sums, out)
	}
	if g.BiasN != nil {
		e.Add(sums, sums, g.BiasN[n:][:len(out)])
	}
	if g.BiasM != nil {
		for j := range sums {
			sums[j] += g.BiasM[0]
		}
	}
	if g.Act.On {
		e.Clamp(sums, sums, g.Act.Min, g.Act.Max)
	}
	copy(out, sums)
}

package kernel

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Weights of single rows are waited for in memory: where many of them are zero only the others are kept, with a bit for each weight, and are put
// in their places as they are read. Results are those of all weights to the bit.

// expandLeast is the least number of weights that are kept so.
const expandLeast = 1 << 16

// expands tells whether a row gains by it.
func expands(k, n int, b []float32) bool {
	f, e := simd.FloatKernels(), simd.ExpandKernels()
	if e == nil || f == nil || f.Cols != e.Columns || k*n < expandLeast || !mayBeSparse(n, k, b, k, 1) {
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

// expanded is a matrix in panels without its zeros.
type expanded struct {
	f      *simd.Expand
	k      int
	masks  []uint8 // a bit a column, step by step and panel by panel
	values []float32
	starts []int // in values, of each panel
}

// newExpanded keeps panels of k steps.
func newExpanded(data []float32, k int) *expanded {
	f, some := simd.ExpandKernels(), 0
	for _, v := range data {
		if math.Float32bits(v) != 0 {
			some++
		}
	}
	m := &expanded{f: f, k: k, masks: hugepages.Make[uint8](len(data) / 8), values: hugepages.Make[float32](some + f.Columns)}
	at := 0
	for i := range m.masks {
		if i*8%(k*f.Columns) == 0 {
			m.starts = append(m.starts, at)
		}
		bits := uint8(0)
		for c, v := range data[i*8:][:8] {
			if math.Float32bits(v) != 0 { // a negative zero is kept
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

func giveExpand(t *simd.ExpandTile) {
	*t = simd.ExpandTile{}
	expandTiles.Put(t)
}

// name is that of the way of computing.
func (m *expanded) name() string { return "expanded/" + m.f.Set.String() }

// run computes a single row.
func (m *expanded) run(p *workers.Pool, g *GemmParams, a, c []float32) {
	panels := (g.N + m.f.Columns - 1) / m.f.Columns
	grain := max(1, workers.Grain(8)/(m.f.Columns*m.k))
	workers.Do(p, panels, grain, expandArgs{m, *g, a, c}, expandArgs.panels)
}

// expandArgs is what a piece of a row needs.
type expandArgs struct {
	m    *expanded
	g    GemmParams
	a, c []float32
}

// panels computes panels lo to hi.
func (q expandArgs) panels(lo, hi int) {
	g, e, cols := &q.g, simd.ElementKernels(), q.m.f.Columns
	t := expandTiles.Get().(*simd.ExpandTile)
	sc, room := borrow(cols)
	for i := lo; i < hi; i++ {
		t.Masks, t.Values, t.Steps = &q.m.masks[i*g.K*cols/8], &q.m.values[q.m.starts[i]], g.K
		t.X, t.Y = &q.a[0], &room[0]
		q.m.f.Row(t, g.Exact)
		out := q.c[i*cols : min((i+1)*cols, g.N)]
		sums := room[:len(out)]
		if g.Accumulate {
			e.Add(sums, sums, out)
		}
		if g.BiasN != nil {
			e.Add(sums, sums, g.BiasN[i*cols:][:len(out)])
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
	scratch.Put(sc)
	giveExpand(t)
}

package gemm

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// GEMM kernels with fused requantisation: sums become quantised values while they are in
// registers; see [simd.CodeTile].

// CodeTiles lends tiles with quantised results; [ReleaseCodeTile] returns them.
var CodeTiles = sync.Pool{New: func() any { return new(simd.CodeTile) }}

// ReleaseCodeTile clears the pointers of a tile and returns it to the pool.
func ReleaseCodeTile(t *simd.CodeTile) {
	t.IntTile, t.Out, t.Scales = simd.IntTile{}, nil, nil
	CodeTiles.Put(t)
}

// FusedRequant holds the requantisation parameters of tiles: initial accumulators, the
// multipliers of each panel, and how it rounds.
type FusedRequant struct {
	Start, Scales []int32
	Rounds        []uint8
	Fusing        quantise.Fusing   // state for which they were packed
	Fixed         *quantise.Rescale // or the ONNX parameters whose biases start includes
}

// RunRescaled is [IntPanels.Run] with requantisation by per-column scales.
func (w *IntPanels) RunRescaled(t *simd.CodeTile, rows int) {
	if w.Sparse4of8 != nil {
		w.Sparse4of8.Rescaled(t, rows)
		return
	}
	w.F.QuadsRescaled(t, rows)
}

// RunRequant is [IntPanels.Run] with requantisation in TFLite's rounding.
func (w *IntPanels) RunRequant(t *simd.CodeTile, rows int) {
	if w.Sparse4of8 != nil {
		w.Sparse4of8.Requantised(t, rows)
		return
	}
	w.F.QuadsRequantised(t, rows)
}

// gemmEpilogue receives the sums of a multiplication, or writes y requantised by r, which is
// small.
type gemmEpilogue struct {
	sums   []int32
	r      *quantise.Rescale
	y      []uint8
	scales []float32 // of each column, or of the columns of any panel
}

// columns writes the initial accumulators of n columns, including their biases, to the front of
// workspace. If all columns have one scale it writes that scale for the cols columns of a panel
// after them.
func (k *gemmEpilogue) columns(n, cols int, start []int32, workspace []float32) {
	to := scratch.AsInt32(workspace[:len(start)])
	copy(to, start)
	if len(k.r.Scales) > 1 || n == 1 {
		for i, b := range k.r.Bias[:n] {
			to[i] += b
		}
		k.scales = k.r.Scales
		return
	}
	for i := range to[:n] {
		to[i] += k.r.Bias[0]
	}
	k.scales = workspace[len(start):][:cols]
	scratch.Fill(k.scales, k.r.Scales[0])
}

// fusesRequant reports whether tiles requantise m rows: a single row computes several panels at a
// time instead.
func (p *PackedInt8) fusesRequant(m int, tables []ByteTable, q *quantise.Rescale) bool {
	return m > 1 && p.Panels != nil && p.Panels.Sums != nil && p.bitmask == nil && len(tables) == 1 && !p.UsesSparse(m) && q.SmallScales() && p.Panels.F.HasRequantised()
}

// fusedPieces computes work items lo to hi with fused requantisation.
func (q *intArgs) fusedPieces(lo, hi int) {
	w, n := q.p.Panels, q.p.N
	f, panels := w.F, (n+w.F.Cols-1)/w.F.Cols
	t := CodeTiles.Get().(*simd.CodeTile)
	t.SetRescaling(&q.to.r.Q)
	t.K, t.Segs, t.RowA, t.RowC, t.RowOut = w.Pairs(), 1, q.line, 4*f.Cols, n
	workspace, fs := scratch.Borrow(f.Rows * f.Cols)
	t.C = &scratch.AsInt32(fs)[0]
	for i := lo; i < hi; i++ {
		m0, m1 := Portion(i/q.parts, q.blocks, q.m)
		n0, n1 := Portion(i%q.parts, q.parts, panels)
		for at := n0 * f.Cols; at < min(n1*f.Cols, n); at += f.Cols {
			cols := min(f.Cols, n-at)
			t.SetColumns(cols)
			t.B, t.Start, t.Ahead = w.At(at/f.Cols, 0), &q.start[at], w.NextPanel(at/f.Cols, n1)
			t.Scales = (*int32)(unsafe.Pointer(&q.to.scales[at%len(q.to.scales):][:cols][0]))
			for r := m0; r < m1; {
				rows := f.Part(m1 - r)
				t.A = unsafe.Pointer(&q.a[r*q.line])
				t.Out = &q.to.y[r*n+at:][:(rows-1)*n+cols][0]
				w.RunRescaled(t, rows)
				t.Ahead = nil
				r += rows
			}
		}
	}
	scratch.Float32s.Put(workspace)
	ReleaseCodeTile(t)
}

package gemm

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Bitmask format of sparse_f32_bitmask.go for 8-bit weights of single rows. Sums are exact.

// bitmaskMatrixInt8 is a packed 8-bit matrix without its zeros.
type bitmaskMatrixInt8 struct {
	f      *simd.ExpandInts
	n      int
	fours  int // groups of four K steps
	masks  []uint64
	values []int8
	starts []int // index of the first value of each panel
}

// newBitmaskMatrixInt8 compresses panels of 4-way groups with n columns and k steps. It returns
// nil if that is not faster.
func newBitmaskMatrixInt8(w *IntPanels, n, k int) *bitmaskMatrixInt8 {
	f := simd.ExpandIntKernels()
	if f == nil || w.Sums == nil || w.F.QuadPairs || w.F.Cols != simd.ExpandIntColumns || n*k < bitmaskMin {
		return nil
	}
	codes := quantise.Bits(w.Narrow)
	some := 0
	for i := 0; i < len(codes); i += 8 {
		some += bits.OnesCount64(nonZeroBytes(binary.LittleEndian.Uint64(codes[i:])))
	}
	if float64(some) > (1-f.Zeros)*float64(n*k) {
		return nil
	}
	const each = 64 // weights per mask
	m := &bitmaskMatrixInt8{f: f, n: n, fours: w.Pairs(), masks: hugepages.Make[uint64](len(codes) / each), values: hugepages.Make[int8](some + each)}
	at := 0
	for i := range m.masks {
		if i*each%w.panel() == 0 {
			m.starts = append(m.starts, at)
		}
		mask := uint64(0)
		for c, v := range w.Narrow[i*each:][:each] {
			if v != 0 {
				mask |= 1 << c
				m.values[at] = v
				at++
			}
		}
		m.masks[i] = mask
	}
	return m
}

var expandIntTiles = sync.Pool{New: func() any { return new(simd.ExpandIntTile) }}

// name returns the kernel name.
func (m *bitmaskMatrixInt8) name() string { return "expanded/" + m.f.Set.String() }

// run multiplies rows of 4-way groups, line bytes apart.
func (m *bitmaskMatrixInt8) run(p *workers.Pool, rows int, a []uint8, line int, start, y []int32) {
	panels := (m.n + simd.ExpandIntColumns - 1) / simd.ExpandIntColumns
	grain := max(1, workers.Grain(32)/(4*m.fours*simd.ExpandIntColumns))
	for r := range rows {
		workers.Do(p, panels, grain, expandIntArgs{m, a[r*line:], start, y[r*m.n:][:m.n]}, expandIntArgs.panels)
	}
}

// expandIntArgs holds the arguments of a work item of run.
type expandIntArgs struct {
	m        *bitmaskMatrixInt8
	a        []uint8
	start, y []int32
}

// panels computes panels lo to hi.
func (q expandIntArgs) panels(lo, hi int) {
	const cols = simd.ExpandIntColumns
	t := expandIntTiles.Get().(*simd.ExpandIntTile)
	sc, workspace := scratch.Borrow(cols)
	sums := scratch.AsInt32(workspace)
	for i := lo; i < hi; i++ {
		t.Masks, t.Values, t.Steps = &q.m.masks[2*i*q.m.fours], &q.m.values[q.m.starts[i]], q.m.fours
		t.X, t.Y, t.Start = unsafe.Pointer(&q.a[0]), &sums[0], &q.start[i*cols]
		q.m.f.Row(t)
		copy(q.y[i*cols:], sums[:cols])
	}
	scratch.Float32s.Put(sc)
	*t = simd.ExpandIntTile{}
	expandIntTiles.Put(t)
}

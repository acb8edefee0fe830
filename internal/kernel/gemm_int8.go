package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Plain Go int8 GEMM runs on the float64 micro-kernel with two output channels per value: the
// weights of a channel pair are added, the upper one scaled by lane. One multiplication then
// computes two products and one addition adds both. All numbers are integers below 2^53, so
// nothing is rounded while each sum fits its 26 bits. Before a sum can overflow, the partial sums
// are added up as integers.
const (
	laneBits = 26
	lane     = 1 << laneBits
)

// PackedQ holds integer weights of n channels with k steps each, packed for the micro-kernel. It
// is for 8-bit activations.
type PackedQ struct {
	n, k   int
	panels *intPanels // SIMD panels; nil for the float64 micro-kernel
	chunk  int        // steps that cannot overflow a lane
	data   []float64
	// initial accumulators of 4-way kernels for zero; nil before [PackedQ.PrepareZero]
	start []int32
	zero  int32 // unsigned zero point that start is for
	// sparse is the same matrix without its zeros, used for many rows; nil if skipping zeros is
	// not faster.
	sparse *sparseInts
	// bitmask replaces panels for single rows if skipping zeros is faster.
	bitmask *bitmaskMatrixInt8
	alone   bool // see [PackedQ.SetRows]
}

// SetRows announces, before weights are packed, that multiplications have m rows. far says that
// the weights exceed the caches and are read from memory in each run. Other numbers of rows give
// the same results.
func (p *PackedQ) SetRows(m int, far bool) *PackedQ {
	p.alone = m == 1 && far
	return p
}

// PrepareZero returns the same weights prepared for activations of table t, so that repeated
// multiplications start faster. The weights must be set.
func (p *PackedQ) PrepareZero(t *ByteTable) *PackedQ {
	if p.panels == nil || p.panels.sums == nil {
		return p
	}
	e := *p
	e.zero, e.start = p.panels.f.FoursZero(t.signed, t.zero), make([]int32, len(p.panels.sums))
	zeroPointSums(e.start, p.panels.sums, e.zero)
	return &e
}

// NewPackedQ allocates weights; see [FillQ].
func NewPackedQ(n, k int) *PackedQ {
	if f := simd.IntKernels(); f != nil && k > 0 {
		return &PackedQ{n: n, k: k, panels: &intPanels{f: f, segs: 1, seg: k, fours: true}}
	}
	return &PackedQ{n: n, k: k, data: hugepages.Make[float64](roundUp(n, 4) / 2 * k)}
}

// NewPackedInt16 allocates weights for 16-bit activations; without SIMD it is [NewPackedQ].
func NewPackedInt16(n, k int) *PackedQ {
	p := NewPackedQ(n, k)
	if p.panels != nil {
		p.panels.fours = false
	}
	return p
}

// Fill packs weights that have their zero point subtracted; see [FillQ].
func (p *PackedQ) Fill(w []int32, vec, elem int) { FillQ(nil, p, w, 0, vec, elem) }

// FillQ packs weights minus their zero point: step i of channel j is w[j*vec+i*elem] - zero. Its
// magnitude is at most 510, or 16 bits for [NewGemmInt16Dynamic].
func FillQ[W Weight](pool *workers.Pool, p *PackedQ, w []W, zero int32, vec, elem int) {
	p.start, p.sparse, p.bitmask = nil, nil, nil
	if p.panels != nil {
		// weights that change between runs are not converted to sparse
		first := p.panels.narrow == nil && p.panels.wide == nil
		fillPanels(pool, p.panels, p.n, w, zero, vec, elem)
		switch {
		case !first || !p.panels.fours:
		case p.alone:
			if p.bitmask = newBitmaskMatrixInt8(p.panels, p.n, p.k); p.bitmask != nil {
				p.panels.narrow, p.panels.spare.narrow = nil, nil
			}
		default:
			gain := gain4of8(source[W]{w, zero, p.n, vec, elem}, p.k, p.k)
			if p.sparse = newSparseInts(p.n, p.k, 0, w, zero, vec, elem, gain); gain > 1 {
				p.panels.pack4of8()
			}
		}
		return
	}
	largest := int32(1)
	clear(p.data)
	for j := range p.n {
		scale := float64(1)
		if j%2 == 1 {
			scale = lane
		}
		d := p.data[j/4*2*p.k:][:2*p.k]
		at := j * vec
		for i := range p.k {
			v := int32(w[at+i*elem]) - zero
			largest = max(largest, v, -v)
			d[2*i+j/2%2] += float64(v) * scale
		}
	}
	// |x - zero| is at most 255.
	p.chunk = max(1, (lane/2-1)/(255*int(largest)))
	if p.chunk > 8 {
		p.chunk = p.chunk / 8 * 8
	}
}

// sums multiplies a panel of four interleaved activation vectors by the four channels from
// channel o: sum[4*vector+channel].
func (p *PackedQ) sums(o int, x []float64, sum *[16]int32) {
	w := p.data[o/4*2*p.k:][:2*p.k]
	var acc [8]float64
	*sum = [16]int32{}
	for k0 := 0; k0 < p.k; k0 += p.chunk {
		kc := min(p.chunk, p.k-k0)
		micro(kc, w[2*k0:], x[4*k0:], &acc)
		for i := range 4 {
			lo, hi := lanes(acc[i])
			sum[4*i] += lo
			sum[4*i+1] += hi
			lo, hi = lanes(acc[4+i])
			sum[4*i+2] += lo
			sum[4*i+3] += hi
		}
	}
}

func lanes(v float64) (lo, hi int32) {
	i := int64(v)
	l := i << (64 - laneBits) >> (64 - laneBits)
	return int32(l), int32((i - l) >> laneBits)
}

// Name returns the name of the kernel that [GemmQ] uses for m rows.
func (p *PackedQ) Name(m int) string {
	switch {
	case p.panels == nil:
		return "packed"
	case p.usesSparse(m):
		return p.sparse.name()
	case p.bitmask != nil:
		return p.bitmask.name()
	}
	return p.panels.name("packed")
}

// usesSparse reports whether a multiplication of m rows skips the zeros of p. It needs enough
// rows to fill half a panel.
func (p *PackedQ) usesSparse(m int) bool { return p.sparse != nil && 2*m >= p.sparse.f.Cols }

// ByteTable maps each 8-bit value to its difference to a zero point.
type ByteTable struct {
	signed bool
	zero   int32
	values [256]float64 // only without SIMD
}

// Fill makes the table for int8 (signed) or uint8 values.
func (t *ByteTable) Fill(signed bool, zero int32) {
	t.signed, t.zero = signed, zero
	if simd.IntKernels() != nil {
		return
	}
	for i := range t.values {
		v := int32(i)
		if signed {
			v = int32(int8(i))
		}
		t.values[i] = float64(v - zero)
	}
}

// GemmQ computes y[m×n] = x[m×k]·w for 8-bit rows x. Row r uses table r, or the only one.
func GemmQ(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedQ, y []int32) {
	if m <= 0 || w.n <= 0 {
		return
	}
	if w.k == 0 {
		clear(y[:m*w.n])
		return
	}
	if w.usesSparse(m) {
		w.sparse.gemm(p, m, x, tables, y)
		return
	}
	if w.panels != nil {
		gemmInts(p, m, x, tables, w, y)
		return
	}
	// Split few rows by channels as well, so that all workers have work.
	parts := 1
	panels := (m + 3) / 4
	if t := p.Threads(); panels < 4*t {
		parts = min(4*t/panels, (w.n+3)/4)
	}
	step := roundUp((w.n+parts-1)/parts, 4)
	workers.Do(p, panels*parts, max(1, 1<<13/max(1, w.k*step)), plainQ{m, parts, step, x, tables, w, y}, plainQ.pieces)
}

// plainQ holds the arguments of a work item of [GemmQ] in plain Go: groups of four rows, and
// channel parts of step.
type plainQ struct {
	m, parts, step int
	x              []uint8
	tables         []ByteTable
	w              *PackedQ
	y              []int32
}

func (q plainQ) pieces(lo, hi int) {
	s, buf := borrow64(4 * q.w.k)
	packed := -1
	var sum [16]int32
	for i := lo; i < hi; i++ {
		panel, part := i/q.parts, i%q.parts
		r := panel * 4
		rows := min(4, q.m-r)
		if panel != packed {
			packRows(buf, q.x[r*q.w.k:][:rows*q.w.k], q.w.k, q.tables, r)
			packed = panel
		}
		for o := part * q.step; o < min((part+1)*q.step, q.w.n); o += 4 {
			q.w.sums(o, buf, &sum)
			n := min(4, q.w.n-o)
			for j := range rows {
				copy(q.y[(r+j)*q.w.n+o:][:n], sum[4*j:])
			}
		}
	}
	scratch64.Put(s)
}

// packRows interleaves up to four rows of length k; missing rows are zero.
func packRows(dst []float64, x []uint8, k int, tables []ByteTable, r int) {
	for j := range 4 {
		d := dst[j:]
		if j*k >= len(x) {
			for i := range k {
				d[4*i] = 0
			}
			continue
		}
		t := &tables[min(r+j, len(tables)-1)]
		for i, v := range x[j*k:][:k] {
			d[4*i] = t.values[v]
		}
	}
}

// Bits views 8-bit values as bytes.
func Bits[T int8 | uint8](v []T) []uint8 {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), len(v))
}

package gemm

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
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

// PackedInt8 holds integer weights of n channels with k steps each, packed for the micro-kernel. It
// is for 8-bit activations.
type PackedInt8 struct {
	N, K   int
	Panels *IntPanels // SIMD panels; nil for the float64 micro-kernel
	chunk  int        // steps that cannot overflow a lane
	data   []float64
	// initial accumulators of 4-way kernels for zero; nil before [PackedInt8.PrepareZero]
	start []int32
	zero  int32 // unsigned zero point that start is for
	// sparse is the same matrix without its zeros, used for many rows; nil if skipping zeros is not
	// faster.
	sparse *SparseInt8
	// bitmask replaces panels for single rows if skipping zeros is faster.
	bitmask *bitmaskMatrixInt8
	alone   bool // see [PackedInt8.SetRows]
}

// SetRows announces, before weights are packed, that multiplications have m rows. far says that
// the weights exceed the caches and are read from memory in each run. Other numbers of rows give
// the same results.
func (p *PackedInt8) SetRows(m int, far bool) *PackedInt8 {
	p.alone = m == 1 && far
	return p
}

// PrepareZero returns the same weights prepared for activations of table t, so that repeated
// multiplications start faster. The weights must be set.
func (p *PackedInt8) PrepareZero(t *ByteTable) *PackedInt8 {
	if p.Panels == nil || p.Panels.Sums == nil {
		return p
	}
	e := *p
	e.zero, e.start = p.Panels.F.QuadInputZero(t.signed, t.zero), make([]int32, len(p.Panels.Sums))
	ZeroPointSums(e.start, p.Panels.Sums, e.zero)
	return &e
}

// NewPackedInt8 allocates weights; see [FillInt8].
func NewPackedInt8(n, k int) *PackedInt8 {
	if f := simd.IntKernels(); f != nil && k > 0 {
		return &PackedInt8{N: n, K: k, Panels: &IntPanels{F: f, Segs: 1, Seg: k, Fours: true}}
	}
	return &PackedInt8{N: n, K: k, data: hugepages.Make[float64](scratch.RoundUp(n, 4) / 2 * k)}
}

// NewPackedInt16 allocates weights for 16-bit activations; without SIMD it is [NewPackedInt8].
func NewPackedInt16(n, k int) *PackedInt8 {
	p := NewPackedInt8(n, k)
	if p.Panels != nil {
		p.Panels.Fours = false
	}
	return p
}

// Fill packs weights that have their zero point subtracted; see [FillInt8].
func (p *PackedInt8) Fill(w []int32, vec, elem int) { FillInt8(nil, p, w, 0, vec, elem) }

// FillInt8 packs weights minus their zero point: step i of channel j is w[j*vec+i*elem] - zero. Its
// magnitude is at most 510, or 16 bits for [NewInt16Dynamic].
func FillInt8[W quantise.Weight](pool *workers.Pool, p *PackedInt8, w []W, zero int32, vec, elem int) {
	p.start, p.sparse, p.bitmask = nil, nil, nil
	if p.Panels != nil {
		// weights that change between runs are not converted to sparse
		first := p.Panels.Narrow == nil && p.Panels.Wide == nil
		FillPanels(pool, p.Panels, p.N, w, zero, vec, elem)
		switch {
		case !first || !p.Panels.Fours:
		case p.alone:
			if p.bitmask = newBitmaskMatrixInt8(p.Panels, p.N, p.K); p.bitmask != nil {
				p.Panels.Narrow, p.Panels.spare.narrow = nil, nil
			}
		default:
			gain := Gain4of8(Source[W]{w, zero, p.N, vec, elem}, p.K, p.K)
			if p.sparse = NewSparseInt8(p.N, p.K, 0, w, zero, vec, elem, gain); gain > 1 {
				p.Panels.Pack4of8()
			}
		}
		return
	}
	largest := int32(1)
	clear(p.data)
	for j := range p.N {
		scale := float64(1)
		if j%2 == 1 {
			scale = lane
		}
		d := p.data[j/4*2*p.K:][:2*p.K]
		at := j * vec
		for i := range p.K {
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

// Sums multiplies a panel of four interleaved activation vectors by the four channels from
// channel o: sum[4*vector+channel].
func (p *PackedInt8) Sums(o int, x []float64, sum *[16]int32) {
	w := p.data[o/4*2*p.K:][:2*p.K]
	var acc [8]float64
	*sum = [16]int32{}
	for k0 := 0; k0 < p.K; k0 += p.chunk {
		kc := min(p.chunk, p.K-k0)
		Micro(kc, w[2*k0:], x[4*k0:], &acc)
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

// Name returns the name of the kernel that [MultiplyInt8] uses for m rows.
func (p *PackedInt8) Name(m int) string {
	switch {
	case p.Panels == nil:
		return "packed"
	case p.UsesSparse(m):
		return p.sparse.Name()
	case p.bitmask != nil:
		return p.bitmask.name()
	}
	return p.Panels.Name("packed")
}

// UsesSparse reports whether a multiplication of m rows skips the zeros of p. It needs enough
// rows to fill half a panel.
func (p *PackedInt8) UsesSparse(m int) bool { return p.sparse != nil && 2*m >= p.sparse.F.Cols }

// ByteTable maps each 8-bit value to its difference to a zero point.
type ByteTable struct {
	signed bool
	zero   int32
	Values [256]float64 // only without SIMD
}

// Fill makes the table for int8 (signed) or uint8 values.
func (t *ByteTable) Fill(signed bool, zero int32) {
	t.signed, t.zero = signed, zero
	if simd.IntKernels() != nil {
		return
	}
	for i := range t.Values {
		v := int32(i)
		if signed {
			v = int32(int8(i))
		}
		t.Values[i] = float64(v - zero)
	}
}

// MultiplyInt8 computes y[m×n] = x[m×k]·w for 8-bit rows x. Row r uses table r, or the only one.
func MultiplyInt8(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedInt8, y []int32) {
	if m <= 0 || w.N <= 0 {
		return
	}
	if w.K == 0 {
		clear(y[:m*w.N])
		return
	}
	if w.UsesSparse(m) {
		w.sparse.gemm(p, m, x, tables, y)
		return
	}
	if w.Panels != nil {
		gemmInts(p, m, x, tables, w, y)
		return
	}
	// Split few rows by channels as well, so that all workers have work.
	parts := 1
	panels := (m + 3) / 4
	if t := p.Threads(); panels < 4*t {
		parts = min(4*t/panels, (w.N+3)/4)
	}
	step := scratch.RoundUp((w.N+parts-1)/parts, 4)
	workers.Do(p, panels*parts, max(1, 1<<13/max(1, w.K*step)), plainQ{m, parts, step, x, tables, w, y}, plainQ.pieces)
}

// plainQ holds the arguments of a work item of [MultiplyInt8] in plain Go: groups of four rows, and
// channel parts of step.
type plainQ struct {
	m, parts, step int
	x              []uint8
	tables         []ByteTable
	w              *PackedInt8
	y              []int32
}

func (q plainQ) pieces(lo, hi int) {
	s, buf := scratch.Borrow64(4 * q.w.K)
	packed := -1
	var sum [16]int32
	for i := lo; i < hi; i++ {
		panel, part := i/q.parts, i%q.parts
		r := panel * 4
		rows := min(4, q.m-r)
		if panel != packed {
			packRows(buf, q.x[r*q.w.K:][:rows*q.w.K], q.w.K, q.tables, r)
			packed = panel
		}
		for o := part * q.step; o < min((part+1)*q.step, q.w.N); o += 4 {
			q.w.Sums(o, buf, &sum)
			n := min(4, q.w.N-o)
			for j := range rows {
				copy(q.y[(r+j)*q.w.N+o:][:n], sum[4*j:])
			}
		}
	}
	scratch.Float64s.Put(s)
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
			d[4*i] = t.Values[v]
		}
	}
}

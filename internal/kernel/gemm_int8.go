package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Products of small integers run on the float64 micro-kernel, two channels to a
// number: the weights of a pair are added with the upper one moved up by lane, so
// that one multiplication makes two products and one addition adds both. All
// numbers are whole and below 2^53, so nothing is rounded as long as neither sum
// leaves its 26 bits; before that could happen they are added up in integers.
const (
	laneBits = 26
	lane     = 1 << laneBits
)

// PackedQ holds integer weights of n channels, k steps each, in the layout of
// the micro-kernel. It serves for 8-bit activations.
type PackedQ struct {
	n, k   int
	panels *intPanels // in vectors; nil for the float64 micro-kernel
	chunk  int        // steps that cannot overflow a lane
	data   []float64
	start  []int32 // what sums of fours begin with for zero; nil before [PackedQ.Expect]
	zero   int32   // of fours
	// sparse is the same matrix without its zeros, for many rows; nil where leaving them out gains nothing.
	sparse *sparseInts
	// bitmask takes the place of panels for single rows, where leaving zeros out saves time.
	bitmask *bitmaskMatrixInt8
	alone   bool // see [PackedQ.Rows]
}

// SetRows says, before weights are packed, that products have m rows, and with far that weights come from memory in each run, since all together are more than
// caches hold. Products of other numbers of rows give the same results.
func (p *PackedQ) SetRows(m int, far bool) *PackedQ {
	p.alone = m == 1 && far
	return p
}

// PrepareZero gives the same weights for products with activations of table t, which may come many times: they begin sooner. The weights must be there.
func (p *PackedQ) PrepareZero(t *ByteTable) *PackedQ {
	if p.panels == nil || p.panels.sums == nil {
		return p
	}
	e := *p
	e.zero, e.start = p.panels.f.FoursZero(t.signed, t.zero), make([]int32, len(p.panels.sums))
	start8(e.start, p.panels.sums, e.zero)
	return &e
}

// NewPackedQ makes room for weights; see [FillQ].
func NewPackedQ(n, k int) *PackedQ {
	if f := simd.IntKernels(); f != nil && k > 0 {
		return &PackedQ{n: n, k: k, panels: &intPanels{f: f, segs: 1, seg: k, fours: true}}
	}
	return &PackedQ{n: n, k: k, data: hugepages.Make[float64](roundUp(n, 4) / 2 * k)}
}

// NewPackedInt16 makes room for weights of [PackedQ.Sums64]; without vectors it is NewPackedQ.
func NewPackedInt16(n, k int) *PackedQ {
	p := NewPackedQ(n, k)
	if p.panels != nil {
		p.panels.fours = false
	}
	return p
}

// Fill packs weights that are differences to their zero point, see [FillQ].
func (p *PackedQ) Fill(w []int32, vec, elem int) { FillQ(nil, p, w, 0, vec, elem) }

// FillQ packs weights less their zero point: step i of channel j is w[j*vec+i*elem] - zero, of at most 510 in size, or of
// 16 bits for [NewWords].
func FillQ[W Weight](pool *workers.Pool, p *PackedQ, w []W, zero int32, vec, elem int) {
	p.start, p.sparse, p.bitmask = nil, nil, nil
	if p.panels != nil {
		first := p.panels.narrow == nil && p.panels.wide == nil // weights that come again and again are not listed
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

// sums multiplies a panel of four vectors of activations, interleaved, by the
// four channels from channel o on: sum[4*vector+channel].
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

// Name tells the way in which [GemmQ] computes m rows.
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

// usesSparse tells whether a product of m rows leaves out the zeros of p: panels want rows enough to fill half of one.
func (p *PackedQ) usesSparse(m int) bool { return p.sparse != nil && 2*m >= p.sparse.f.Cols }

// ByteTable gives the difference of every 8-bit value to a zero point.
type ByteTable struct {
	signed bool
	zero   int32
	values [256]float64 // without vectors only
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

// GemmQ computes y[m×n] = x[m×k]·w for 8-bit rows x. Row r takes table r, or the
// only one.
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
	// Few rows are cut by channels as well, so that all workers have work.
	parts := 1
	panels := (m + 3) / 4
	if t := p.Threads(); panels < 4*t {
		parts = min(4*t/panels, (w.n+3)/4)
	}
	step := roundUp((w.n+parts-1)/parts, 4)
	workers.Do(p, panels*parts, max(1, 1<<13/max(1, w.k*step)), plainQ{m, parts, step, x, tables, w, y}, plainQ.pieces)
}

// plainQ is what a piece of [GemmQ] in plain Go needs: rows in fours, and channels in parts of step.
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

// packRows interleaves up to four rows of length k; the missing ones are zero.
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

// Bits reads 8-bit values as their bits.
func Bits[T int8 | uint8](v []T) []uint8 {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), len(v))
}

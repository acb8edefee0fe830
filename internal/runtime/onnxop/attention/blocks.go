package attention

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
)

// float32 attention works block by block, so that the scores of some query rows of a head stay in
// the second-level cache: GEMM with all keys that they may see, softmax, and GEMM with the
// values. Keys and values of a head are packed once for all consecutive blocks. For few rows they
// are read in place.

const (
	// blockScores bounds the scores of a block: a quarter of a usual second-level cache, which
	// also holds keys and values.
	blockScores = 1 << 16
	// blockLines is the number that the rows of a block are a multiple of (a tile of the largest
	// kernels), and blockMost their maximum: weights of keys that only some of its rows may see
	// are computed for all. Neither depends on the number of threads, because results must not.
	blockLines, blockMost = 12, 60
	// fewLines is the minimum number of rows per head's keys for which packing pays off.
	fewLines = 8
	// fewKeys is the number of keys that stay in the first-level cache while the lines of a block
	// pass.
	fewKeys = 64
	// pieceWork is the number of multiply-accumulates of a work item, pieceCopy the number of
	// values copied: some microseconds.
	pieceWork, pieceCopy = 1 << 16, 1 << 14
)

// blockArgs holds the arguments of a work item. A unit is the heads of a batch entry that share
// keys. Its blocks are those of each head or, for single rows, one of all heads.
type blockArgs struct {
	a            *Attend[float32]
	q, k, v, y   Heads[float32]
	group        int
	lines        int  // of a head or, if heads, the heads of a group
	lineQ, lineY int  // from line to line
	heads        bool // lines are heads
	step, blocks int  // lines of a block, blocks of a head
	unit         int  // blocks of a unit
	pack         bool
}

// block is the scratch memory of a worker.
type block struct {
	scores, query, scales []float32
	wide                  [2][]float32 // keys and values of halves
	from                  []int
	keys, values          gemm.RepackedB
	packed                int // the unit whose keys are packed, and one more
}

var blocks = sync.Pool{New: func() any { return new(block) }}

// runBlocks is Run for float32.
func runBlocks(p *workers.Pool, t blockArgs) {
	a := t.a
	t.group = a.Heads / max(a.KVHeads, 1)
	t.lines, t.lineQ, t.lineY = a.Rows, t.q.Row, t.y.Row
	if t.heads = a.Rows == 1 && t.group > 1; t.heads {
		t.lines, t.lineQ, t.lineY = t.group, t.q.Head, t.y.Head
	}
	if a.Batch*a.Heads*a.Rows == 0 {
		return
	}
	a.setLimits(p)
	t.step = max(1, min(blockMost, blockScores/max(a.Total, 1))/blockLines) * blockLines
	t.blocks = (t.lines + t.step - 1) / t.step
	t.step = (t.lines + t.blocks - 1) / t.blocks
	if t.blocks > 1 {
		t.step = min(t.lines, (t.step+blockLines-1)/blockLines*blockLines)
		t.blocks = (t.lines + t.step - 1) / t.step
	}
	t.unit, t.pack = t.blocks, t.lines >= fewLines
	if !t.heads {
		t.unit *= t.group
		t.pack = a.Rows*t.group >= fewLines
	}
	grain := max(1, pieceWork/max(1, t.step*a.Total*(a.Size+a.VSize)))
	if units := a.Batch * a.KVHeads; units >= 4*p.Threads() {
		grain = max(grain, t.unit) // who packs the keys of a unit computes all of it
	}
	workers.Do(p, a.Batch*a.KVHeads*t.unit, grain, t, blockArgs.pieces)
}

func (t blockArgs) pieces(lo, hi int) {
	r := blocks.Get().(*block)
	r.packed = 0
	for n := lo; n < hi; n++ {
		unit, at := n/t.unit, n%t.unit
		if t.pack && r.packed != unit+1 {
			t.packUnit(r, unit)
		}
		t.piece(r, unit, at/t.blocks, at%t.blocks*t.step)
	}
	r.keys.Release()
	r.values.Release()
	blocks.Put(r)
}

// keysOf and valuesOf return n rows of a unit, starting at a key. 16-bit ones are widened to the
// worker's scratch memory.
func (t *blockArgs) keysOf(r *block, unit, from, n int) []float32 {
	if t.a.Products {
		return rowsOf(&r.wide[0], t.k, unit, t.a.KVHeads, from, n)
	}
	return rowsOf(&r.wide[0], t.k, unit, t.a.KVHeads, from*t.k.Row, n*t.k.Row)
}

func (t *blockArgs) valuesOf(r *block, unit, from, n int) []float32 {
	return rowsOf(&r.wide[1], t.v, unit, t.a.KVHeads, from*t.v.Row, n*t.v.Row)
}

// rowsOf returns the elements of a unit from an offset on; 16-bit ones are widened, n of them, to
// workspace.
func rowsOf(workspace *[]float32, v Heads[float32], unit, heads, from, n int) []float32 {
	from += unit/heads*v.Batch + unit%heads*v.Head
	if v.Halves == nil {
		return v.Data[from:]
	}
	*workspace = elem.Grow(*workspace, n)
	elem.ReadHalves(*workspace, v.Halves, from)
	return *workspace
}

// packUnit packs the keys and values that the rows of a unit may see.
func (t *blockArgs) packUnit(r *block, unit int) {
	a := t.a
	total := a.Total
	if a.limits != nil {
		total = 0
		for i := range a.Rows {
			total = max(total, a.limits[unit/a.KVHeads*a.Rows+i][1])
		}
	}
	if total > 0 {
		r.keys.Pack(a.Size, total, t.keysOf(r, unit, 0, total), t.k.Row, !a.Products)
		r.values.Pack(total, a.VSize, t.valuesOf(r, unit, 0, total), t.v.Row, false)
	}
	r.packed = unit + 1
}

// piece computes the lines from l0 on of the head of a unit.
func (t *blockArgs) piece(r *block, unit, head, l0 int) {
	a, n := t.a, min(t.step, t.lines-l0)
	b := unit / a.KVHeads
	h0, i0, stepH, stepI := unit%a.KVHeads*t.group+head, l0, 0, 1
	if t.heads {
		h0, i0, stepH, stepI = unit%a.KVHeads*t.group+l0, 0, 1, 0
	}
	from, to := t.seen(b, i0, max(1, n*stepI))
	if t.pack && from < to {
		from -= from % r.keys.ColumnStep()
	}
	width := to - from
	y := t.y.Data[b*t.y.Batch+h0*t.y.Head+i0*t.y.Row:]
	if width <= 0 {
		for l := range n {
			line := y[l*t.lineY:][:a.VSize]
			if clear(line); a.Products {
				element.Fill(line, float32(math.NaN()))
			}
		}
		return
	}
	q := t.q.Data[b*t.q.Batch+h0*t.q.Head+i0*t.q.Row:]
	r.query, r.scores, r.scales = elem.Grow(r.query, n*a.Size), elem.Grow(r.scores, n*width), elem.Grow(r.scales, n)
	for l := range n {
		element.Scale(r.query[l*a.Size:][:a.Size], q[l*t.lineQ:][:a.Size], float32(a.Scale))
	}
	if t.pack {
		r.keys.Multiply(gemm.Params{M: n, N: width, K: a.Size}, r.query, from, 0, r.scores)
	} else {
		t.fewScores(r, unit, n, from, width)
	}
	scaled := t.normalise(r, b, h0, i0, n, width, stepH, stepI)
	for l := 0; l < n && !scaled; l++ {
		s, lo, hi := r.scores[l*width:][:width], 0, width
		if a.limits != nil {
			// Weights outside are zero.
			limit := a.limits[b*a.Rows+i0+l*stepI]
			lo, hi = min(max(limit[0]-from, 0), width), min(max(limit[1]-from, 0), width)
			hi = max(lo, hi)
			clear(s[:lo])
			clear(s[hi:])
		}
		r.scales[l] = a.finish(b, h0+l*stepH, i0+l*stepI, from+lo, s[lo:hi])
	}
	g := gemm.Params{M: n, N: a.VSize, K: width, LDC: t.lineY}
	if t.pack {
		r.values.Multiply(g, r.scores, 0, from, y)
	} else {
		t.fewResults(r, g, unit, from, y)
	}
	if scaled {
		return
	}
	for l, s := range r.scales {
		line := y[l*t.lineY:][:a.VSize]
		element.Scale(line, line, s)
	}
}

// normalise computes the weights of all scores of a block at once. It returns false if rows
// differ in their limits, or are not of the supported kind.
func (t *blockArgs) normalise(r *block, b, h0, i0, n, width, stepH, stepI int) bool {
	a := t.a
	c := simd.CurveKernels()
	if !a.Products || a.limits != nil || a.Softcap > 0 || a.Sink != nil || a.Trace != nil || a.Span != nil || !c.HasSoftmaxRows(width) {
		return false
	}
	for l := range n {
		a.add(b, h0+l*stepH, i0+l*stepI, 0, r.scores[l*width:][:width])
	}
	return c.SoftmaxRows(r.scores[:n*width], r.scores, width)
}

// fewScores multiplies few lines by the keys in place.
func (t *blockArgs) fewScores(r *block, unit, n, from, width int) {
	size := t.a.Size
	if t.a.Products {
		gemm.Multiply(nil, gemm.Params{M: n, N: width, K: size, LDB: t.k.Row}, r.query, t.keysOf(r, unit, from, width), r.scores)
		return
	}
	r.from = elem.Grow(r.from, min(fewKeys, width))
	for j := range r.from {
		r.from[j] = j * t.k.Row
	}
	for j := 0; j < width; j += fewKeys {
		at := r.from[:min(fewKeys, width-j)]
		keys := t.keysOf(r, unit, from+j, len(at))
		for l := range n {
			vectors.Dots(r.scores[l*width+j:][:len(at)], r.query[l*size:][:size], keys, at)
		}
	}
}

// fewResults multiplies few lines of scores by the values in place: 16-bit ones are widened some
// at a time.
func (t *blockArgs) fewResults(r *block, g gemm.Params, unit, from int, y []float32) {
	g.LDB, g.LDA = t.v.Row, g.K
	step := g.K
	if t.v.Halves != nil {
		step = min(step, 4*fewKeys)
	}
	for k0 := 0; k0 < g.LDA; k0 += step {
		g.K = min(step, g.LDA-k0)
		gemm.Multiply(nil, g, r.scores[k0:], t.valuesOf(r, unit, from+k0, g.K), y)
		g.Accumulate = true
	}
}

// seen returns the range of keys that at least one of n rows may see.
func (t *blockArgs) seen(b, i, n int) (from, to int) {
	if t.a.limits == nil {
		return 0, t.a.Total
	}
	from = t.a.Total
	for _, l := range t.a.limits[b*t.a.Rows+i:][:n] {
		if l[0] < l[1] {
			from, to = min(from, l[0]), max(to, l[1])
		}
	}
	return from, to
}

// setLimits finds the first and last valid key of each row: other keys are outside its span, or
// masked out for all heads.
func (a *Attend[T]) setLimits(p *workers.Pool) {
	trims, every := a.Span != nil, a.Trace != nil
	for n := range a.Added {
		d := &a.Added[n]
		trims = trims || d.trims()
		// If all keys of a span have the lowest number, those outside have the same weight.
		every = every || a.Span != nil && !math.IsInf(float64(a.Outside), -1) && d.Data != nil && !d.trims()
	}
	if !trims || every {
		a.limits = nil
		return
	}
	a.limits = elem.Grow(a.limits, a.Batch*a.Rows)
	workers.Each(p, len(a.limits), max(1, pieceCopy/max(1, a.Total)), limiting[T]{a})
}

// trims reports whether the bias may mask out keys for all heads.
func (d *Added[T]) trims() bool { return d.Data != nil && d.Head == 0 && d.Key == 1 }

// limiting finds the limits of an attention.
type limiting[T tensor.Real] struct{ a *Attend[T] }

// Piece finds the limits of rows lo to hi.
func (l limiting[T]) Piece(lo, hi int) {
	for a, n := l.a, lo; n < hi; n++ {
		a.limits[n] = a.limit(n/a.Rows, n%a.Rows)
	}
}

// limit returns the range of valid keys for a row. A bias of the lowest finite number makes a
// weight zero only if another key has a larger score: it masks keys out as long as one is left
// that is not masked for any head.
func (a *Attend[T]) limit(b, i int) [2]int {
	from, to := a.span(b, i, a.Total)
	// low says that the lowest finite number, not -Inf, has masked a key out.
	low := (from > 0 || to < a.Total) && !math.IsInf(float64(a.Outside), -1)
	least := -math.MaxFloat32
	for n := range a.Added {
		if d := &a.Added[n]; d.Data != nil && d.Key == 1 && !d.trims() {
			least = math.Inf(-1) // any head may have no other key
		}
	}
	for n := range a.Added {
		d := &a.Added[n]
		if !d.trims() || from >= to {
			continue
		}
		row := d.at(b, 0, i, 0)
		for ; from < to && float64(row[from]) <= least; from++ {
			low = low || !math.IsInf(float64(row[from]), -1)
		}
		for ; from < to && float64(row[to-1]) <= least; to-- {
			low = low || !math.IsInf(float64(row[to-1]), -1)
		}
	}
	switch {
	case low && !a.anyLeft(b, i, from, to):
		return [2]int{0, a.Total}
	case from >= to:
		return [2]int{}
	}
	return [2]int{from, to}
}

// anyLeft reports whether one of keys from to to of a row has more than the lowest number in
// every bias for all heads.
func (a *Attend[T]) anyLeft(b, i, from, to int) bool {
	for j := from; j < to; j++ {
		left := true
		for n := range a.Added {
			if d := &a.Added[n]; d.trims() {
				left = left && d.at(b, 0, i, 0)[j] > -math.MaxFloat32
			}
		}
		if left {
			return true
		}
	}
	return false
}

package attention

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/workers"
)

// Attention of float32 goes block by block: some query rows of a head, whose scores stay in the second-level cache, times all
// keys, and the softmax of these times all values, as products of matrices. Keys that no row of a block may see are left out.

const (
	// blockScores bounds the scores of a block: half of a usual second-level cache, with what is added to them.
	blockScores = 1 << 16
	// blockLines is the least number of rows of a block, if there are so many: a tile of the largest kernels.
	blockLines = 12
	// pieceWork is the number of products of a piece of work for a thread: some microseconds.
	pieceWork = 1 << 16
)

// blockArgs is what a piece of the work needs. The lines of a unit share keys: the rows of a head or, of a single row, the heads
// of a group.
type blockArgs struct {
	a            *Attend[float32]
	q, k, v, y   Heads[float32]
	units, group int
	lines        int
	lineQ, lineY int // from line to line
	heads        bool
	step, blocks int // lines of a block, blocks of a unit
}

// block is the room of a worker.
type block struct{ scores, bias, query []float32 }

var blocks = sync.Pool{New: func() any { return new(block) }}

// runBlocks is Run for float32.
func runBlocks(p *workers.Pool, t blockArgs) {
	a := t.a
	t.group = a.Heads / max(a.KVHeads, 1)
	t.units, t.lines, t.lineQ, t.lineY = a.Heads, a.Rows, t.q.Row, t.y.Row
	if t.heads = a.Rows == 1 && t.group > 1; t.heads {
		t.units, t.lines, t.lineQ, t.lineY = a.KVHeads, t.group, t.q.Head, t.y.Head
	}
	units := a.Batch * t.units
	if units*t.lines == 0 {
		return
	}
	t.step = min(t.lines, max(blockLines, blockScores/max(a.Total, 1)))
	if n := p.Threads(); n > 1 && units < 2*n {
		// Every thread gets a part.
		t.step = min(t.step, max(blockLines, (t.lines*units+2*n-1)/(2*n)))
	}
	t.blocks = (t.lines + t.step - 1) / t.step
	t.step = (t.lines + t.blocks - 1) / t.blocks
	workers.Do(p, units*t.blocks, max(1, pieceWork/max(1, t.step*a.Total*(a.Size+a.VSize))), t, blockArgs.pieces)
}

func (t blockArgs) pieces(lo, hi int) {
	r := blocks.Get().(*block)
	for n := lo; n < hi; n++ {
		unit, at := n/t.blocks, n%t.blocks
		t.piece(r, unit/t.units, unit%t.units, at*t.step, min(t.lines, (at+1)*t.step))
	}
	blocks.Put(r)
}

// of is the head and the row of a line of a unit.
func (t *blockArgs) of(unit, line int) (h, i int) {
	if t.heads {
		return unit*t.group + line, 0
	}
	return unit, line
}

// piece computes lines l0 to l1 of a unit.
func (t *blockArgs) piece(r *block, b, unit, l0, l1 int) {
	a, n := t.a, l1-l0
	total := a.Total
	if a.Keys != nil {
		total = min(total, a.Keys(b))
	}
	h0, i0 := t.of(unit, l0)
	kv := h0 / t.group
	y := t.y.Data[b*t.y.Batch+h0*t.y.Head+i0*t.y.Row:]
	from, to := 0, total
	if a.Bias != nil {
		r.bias = elem.Grow(r.bias, n*total)
		clear(r.bias)
		for l := range n {
			h, i := t.of(unit, l0+l)
			a.Bias(b, h, i, r.bias[l*total:][:total])
		}
		if a.Trace == nil {
			from, to = seen(r.bias, total)
		}
	}
	width := to - from
	if width <= 0 {
		for l := range n {
			clear(y[l*t.lineY:][:a.VSize])
		}
		return
	}
	q := t.q.Data[b*t.q.Batch+h0*t.q.Head+i0*t.q.Row:]
	r.query, r.scores = elem.Grow(r.query, n*a.Size), elem.Grow(r.scores, n*width)
	for l := range n {
		element.Scale(r.query[l*a.Size:][:a.Size], q[l*t.lineQ:][:a.Size], float32(a.Scale))
	}
	kernel.Gemm(nil, kernel.GemmParams{M: n, N: width, K: a.Size, TransB: true, LDB: t.k.Row}, r.query, t.k.Data[b*t.k.Batch+kv*t.k.Head+from*t.k.Row:], r.scores)
	for l := range n {
		h, i := t.of(unit, l0+l)
		var bias []float32
		if a.Bias != nil {
			bias = r.bias[l*total+from:][:width]
		}
		a.finish(b, h, i, r.scores[l*width:][:width], bias)
	}
	kernel.Gemm(nil, kernel.GemmParams{M: n, N: a.VSize, K: width, LDB: t.v.Row, LDC: t.lineY}, r.scores, t.v.Data[b*t.v.Batch+kv*t.v.Head+from*t.v.Row:], y)
}

// seen is the range of keys that some line may see. What is added to others makes their weights nothing, unless all of a line
// have the same: the lowest number is one of the masks.
func seen(bias []float32, total int) (from, to int) {
	from = total
	for at := 0; at < len(bias); at += total {
		line, lo, hi := bias[at:][:total], 0, total
		for lo < hi && line[lo] <= -math.MaxFloat32 {
			lo++
		}
		if lo == hi {
			for _, v := range line {
				if v == -math.MaxFloat32 {
					return 0, total
				}
			}
			continue
		}
		for line[hi-1] <= -math.MaxFloat32 {
			hi--
		}
		from, to = min(from, lo), max(to, hi)
	}
	return from, to
}

package kernel

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Rescale turns 32-bit sums of channels into 8-bit codes as ONNX has it: the sum with its bias, as float32, times the scale of
// the channel, rounded to the nearest whole number, ties to even, plus the zero point, between Lo and Hi.
type Rescale struct {
	Scales []float32 // one a channel
	Bias   []int32   // one a channel
	Zero   int32
	Lo, Hi float32 // limits of codes
	Signed bool    // codes are int8 and not uint8
	Fixed  bool    // all of it stays the same from run to run

	plain bool // loops in vectors do not do it
	q     simd.Rescaling
}

// Prepare looks at all scales and limits, before the first codes of a run.
func (q *Rescale) Prepare() {
	least, most := int32(0), int32(math.MaxUint8)
	if q.Signed {
		least, most = math.MinInt8, math.MaxInt8
	}
	lo, hi := int32(q.Lo), int32(q.Hi)
	codes := float32(lo) == q.Lo && float32(hi) == q.Hi && least <= lo && lo <= hi && hi <= most && least <= q.Zero && q.Zero <= most
	small, finite := true, true
	for _, s := range q.Scales {
		small = small && -0.5 < s && s < 0.5
		finite = finite && s-s == 0
	}
	// Scales that are no numbers have no order of limits.
	q.plain = !codes || !finite || simd.ElementKernels() == nil
	q.q = simd.Rescaling{Lo: lo, Hi: hi, Zero: q.Zero, Signed: q.Signed, Small: small}
}

// one is the code of a sum of channel ch.
func (q *Rescale) one(sum int32, ch int) uint8 {
	v := math.RoundToEven(float64(float32(sum+q.Bias[ch])*q.Scales[ch])) + float64(q.Zero)
	return uint8(int32(min(max(v, float64(q.Lo)), float64(q.Hi))))
}

// Rows writes the codes of rows of n sums from y[at] on, rows are channels from ch on; they lie step apart, those of the sums line.
func (q *Rescale) Rows(y []uint8, at, step int, sums []int32, line, rows, n, ch int) {
	done := 0
	if !q.plain {
		done = simd.ElementKernels().RescaleRows(y[at:], step, sums, line, rows, n, q.Scales[ch:], q.Bias[ch:], q.q)
	}
	for r := 0; done < n && r < rows; r++ {
		out, in := y[at+r*step:][:n], sums[r*line:][:n]
		for i := done; i < n; i++ {
			out[i] = q.one(in[i], ch+r)
		}
	}
}

// columns is [Rescale.Rows] for rows whose columns are n channels from ch on.
func (q *Rescale) columns(y []uint8, step int, sums []int32, line, rows, n, ch int) {
	if q.plain {
		for r := range rows {
			out, in := y[r*step:][:n], sums[r*line:][:n]
			for i, v := range in {
				out[i] = q.one(v, ch+i)
			}
		}
		return
	}
	e := simd.ElementKernels()
	if e.RescaleColumns(y, step, sums, line, rows, n, q.Scales[ch:], q.Bias[ch:], q.q) {
		return
	}
	s := scaledPool.Get().(*scaled)
	for r := range rows {
		for at := 0; at < n; at += len(s.reals) {
			k := min(len(s.reals), n-at)
			q.inFloats(e, s, y[r*step+at:][:k], sums[r*line+at:], ch+at)
		}
	}
	scaledPool.Put(s)
}

// scaled is room for sums on their way to codes.
type scaled struct {
	sums  [256]int32
	reals [256]float32
}

var scaledPool = sync.Pool{New: func() any { return new(scaled) }}

// inFloats writes a row of codes of channels from ch on, for sets without a loop for it: what is scaled already is quantised by one.
func (q *Rescale) inFloats(e *simd.Elements, s *scaled, y []uint8, sums []int32, ch int) {
	n := len(y)
	for i, b := range q.Bias[ch:][:n] {
		s.sums[i] = sums[i] + b
	}
	done := e.ToFloats(s.reals[:n], s.sums[:n])
	for i := done; i < n; i++ {
		s.reals[i] = float32(s.sums[i])
	}
	e.Mul(s.reals[:n], s.reals[:n], q.Scales[ch:])
	zero := float32(q.Zero)
	for i := e.Quantise(y, s.reals[:n], 1, q.Lo-zero, q.Hi-zero, q.Zero); i < n; i++ {
		y[i] = q.one(sums[i], ch+i)
	}
}

// RescaleMatrix writes the codes of all sums: rows whose columns are the channels of q, which is prepared. A single
// scale is that of all columns, and has a single bias.
func RescaleMatrix(p *workers.Pool, y []uint8, sums []int32, q *Rescale) {
	n := len(q.Scales)
	if n == 0 || len(sums) == 0 {
		return
	}
	if n == 1 {
		workers.Do(p, len(sums), rescaleGrain, rescaleArgs{q, y, sums}, func(a rescaleArgs, lo, hi int) {
			a.q.Rows(a.y[lo:hi], 0, hi-lo, a.sums[lo:hi], hi-lo, 1, hi-lo, 0)
		})
		return
	}
	workers.Do(p, len(sums)/n, max(1, rescaleGrain/n), rescaleArgs{q, y, sums}, func(a rescaleArgs, lo, hi int) {
		n := len(a.q.Scales)
		a.q.columns(a.y[lo*n:hi*n], n, a.sums[lo*n:hi*n], n, hi-lo, n, 0)
	})
}

// rescaleGrain is the least number of sums that are worth a piece of work.
const rescaleGrain = 1 << 14

// rescaleArgs is what a piece of RescaleMatrix needs.
type rescaleArgs struct {
	q    *Rescale
	y    []uint8
	sums []int32
}

// GemmScratch is the number of sums that [GemmCodes] should have room for: rows that the second-level caches of the threads hold.
func GemmScratch(p *workers.Pool, m, n int) int {
	rows := max(gemmRows, gemmSums/max(n, 1)/gemmRows*gemmRows) * p.Threads()
	if 2*m <= 3*rows {
		rows = m
	}
	return rows * n
}

// gemmSums are about as many sums as stay in the cache until they are codes, gemmRows a multiple of the rows of tiles.
const (
	gemmSums = 1 << 16
	gemmRows = 48
)

// GemmRescaled is [GemmQ] whose sums become codes by q, which is prepared: some rows after the other, as many as sums has room for.
func GemmRescaled(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedQ, sums []int32, q *Rescale, y []uint8) {
	if m <= 0 || w.n <= 0 {
		return
	}
	if w.codesInTiles(m, tables, q) {
		gemmFours(p, m, x, tables, w, productSink{r: q, y: y})
		return
	}
	rows := max(1, len(sums)/w.n)
	for r := 0; r < m; r += rows {
		h, t := min(rows, m-r), tables
		if len(t) > 1 {
			t = t[r:]
		}
		GemmQ(p, h, x[r*w.k:], t, w, sums[:h*w.n])
		RescaleMatrix(p, y[r*w.n:][:h*w.n], sums[:h*w.n], q)
	}
}

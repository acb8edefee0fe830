package quantise

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// SmallScales reports whether tiles can multiply by the scales.
func (q *Rescale) SmallScales() bool { return !q.plain && q.Q.Small }

// Rescale requantises 32-bit sums of channels as ONNX defines it: the sum with its bias, as
// float32, times the channel scale, rounded to the nearest integer, ties to even, plus the zero
// point, clamped to Lo and Hi.
type Rescale struct {
	Scales []float32 // one per channel
	Bias   []int32   // one per channel
	Zero   int32
	Lo, Hi float32 // clamp of the results
	Signed bool    // results are int8, not uint8
	Fixed  bool    // all parameters are the same in every run

	plain bool // SIMD kernels do not support it
	Q     simd.Rescaling
}

// Prepare checks all scales and limits; call it before the first use in a run.
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
	// The SIMD kernels do not define the clamp of NaN results, so scales that are not finite use
	// plain Go.
	q.plain = !codes || !finite || simd.ElementKernels() == nil
	q.Q = simd.Rescaling{Lo: lo, Hi: hi, Zero: q.Zero, Signed: q.Signed, Small: small}
}

// Quantise requantises a sum of channel ch.
func (q *Rescale) Quantise(sum int32, ch int) uint8 {
	v := math.RoundToEven(float64(float32(sum+q.Bias[ch])*q.Scales[ch])) + float64(q.Zero)
	return uint8(int32(min(max(v, float64(q.Lo)), float64(q.Hi))))
}

// Rows requantises rows of n sums; the rows are channels from ch. Results begin at y[at] and are
// step apart, sums are line apart.
func (q *Rescale) Rows(y []uint8, at, step int, sums []int32, line, rows, n, ch int) {
	done := 0
	if !q.plain {
		done = simd.ElementKernels().RescaleRows(y[at:], step, sums, line, rows, n, q.Scales[ch:], q.Bias[ch:], q.Q)
	}
	for r := 0; done < n && r < rows; r++ {
		out, in := y[at+r*step:][:n], sums[r*line:][:n]
		for i := done; i < n; i++ {
			out[i] = q.Quantise(in[i], ch+r)
		}
	}
}

// Columns is [Rescale.Rows] for rows whose columns are n channels from ch.
func (q *Rescale) Columns(y []uint8, step int, sums []int32, line, rows, n, ch int) {
	if q.plain {
		for r := range rows {
			out, in := y[r*step:][:n], sums[r*line:][:n]
			for i, v := range in {
				out[i] = q.Quantise(v, ch+i)
			}
		}
		return
	}
	e := simd.ElementKernels()
	if e.RescaleColumns(y, step, sums, line, rows, n, q.Scales[ch:], q.Bias[ch:], q.Q) {
		return
	}
	s := scaledPool.Get().(*scaled)
	for r := range rows {
		for at := 0; at < n; at += len(s.reals) {
			k := min(len(s.reals), n-at)
			q.viaFloat(e, s, y[r*step+at:][:k], sums[r*line+at:], ch+at)
		}
	}
	scaledPool.Put(s)
}

// scaled is scratch memory for sums and their scaled values.
type scaled struct {
	sums  [256]int32
	reals [256]float32
}

var scaledPool = sync.Pool{New: func() any { return new(scaled) }}

// viaFloat is the fallback for instruction sets without a kernel: it requantises a row of
// channels from ch by scaling, then quantising with scale one.
func (q *Rescale) viaFloat(e *simd.Elements, s *scaled, y []uint8, sums []int32, ch int) {
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
		y[i] = q.Quantise(sums[i], ch+i)
	}
}

// RescaleMatrix requantises all sums: rows whose columns are the channels of q, which must be
// prepared. A single scale applies to all columns, with a single bias.
func RescaleMatrix(p *workers.Pool, y []uint8, sums []int32, q *Rescale) {
	n := len(q.Scales)
	if n == 0 || len(sums) == 0 {
		return
	}
	if n == 1 {
		workers.Do(p, len(sums), RescaleGrain, rescaleArgs{q, y, sums}, func(a rescaleArgs, lo, hi int) {
			a.q.Rows(a.y[lo:hi], 0, hi-lo, a.sums[lo:hi], hi-lo, 1, hi-lo, 0)
		})
		return
	}
	workers.Do(p, len(sums)/n, max(1, RescaleGrain/n), rescaleArgs{q, y, sums}, func(a rescaleArgs, lo, hi int) {
		n := len(a.q.Scales)
		a.q.Columns(a.y[lo*n:hi*n], n, a.sums[lo*n:hi*n], n, hi-lo, n, 0)
	})
}

// RescaleGrain is the minimum number of sums per work item.
const RescaleGrain = 1 << 14

// rescaleArgs holds the arguments of a work item of [RescaleMatrix].
type rescaleArgs struct {
	q    *Rescale
	y    []uint8
	sums []int32
}

// GemmSums is about the number of sums that stay in the cache until they are requantised;
// GemmRows is a multiple of the rows of tiles.
const (
	GemmSums = 1 << 16
	GemmRows = 48
)

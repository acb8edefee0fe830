package kernel

import (
	"math"

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

// Columns is [Rescale.Rows] for rows whose columns are n channels from ch on, from y[0] on.
func (q *Rescale) Columns(y []uint8, step int, sums []int32, line, rows, n, ch int) {
	if !q.plain && simd.ElementKernels().RescaleColumns(y, step, sums, line, rows, n, q.Scales[ch:], q.Bias[ch:], q.q) {
		return
	}
	for r := range rows {
		out, in := y[r*step:][:n], sums[r*line:][:n]
		for i, v := range in {
			out[i] = q.one(v, ch+i)
		}
	}
}

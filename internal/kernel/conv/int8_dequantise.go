package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// Floats convolves x with the given zero point and dequantises the sums into y with f and the
// input scale.
func (c *Int8[T]) Floats(p *workers.Pool, x []T, zero int32, y []float32, f *quantise.FloatScale, scale float32) {
	n := c.s.OC
	if c.lines == nil {
		// The sums are written to the memory of the results.
		c.Sums(p, x, zero, scratch.AsInt32(y))
		if n > 0 {
			workers.Do(p, len(y)/n, max(1, quantise.RescaleGrain/n), floatsArgs{f, y, n, scale}, floatsArgs.rows)
		}
		return
	}
	c.setInputZero(zero)
	c.lines.run(p, &c.s, c.og, quantise.Bits(x), c.signed, zero, epilogue{floats: y, h: f, scale: scale})
}

// floatsArgs holds the arguments of a work item of Floats.
type floatsArgs struct {
	f     *quantise.FloatScale
	y     []float32
	n     int
	scale float32
}

// rows dequantises rows lo to hi in place.
func (a floatsArgs) rows(lo, hi int) {
	y := a.y[lo*a.n : hi*a.n]
	a.f.Rows(y, a.n, scratch.AsInt32(y), a.n, hi-lo, a.n, 0, nil, a.scale)
}

package tflm

import (
	"math"

	"github.com/opmeter/opmeter/internal/record/tflm"
)

// clock bounds the frequency of the device's clock. Printed milliseconds are ticks divided by it
// and truncated, so each line gives a lower and an upper bound. A line that contradicts most
// others is damaged.
type clock struct {
	recent [64][2]float64 // of lines with milliseconds
	n      int
	lo, hi float64 // of the lines that were accepted
	lines  int64   // with a bound on both sides
}

// accept reports whether a line is plausible, and updates the bounds.
func (c *clock) accept(e tflm.Event) bool {
	if e.MS < 0 || e.Ticks <= 0 {
		return e.Ticks >= 0
	}
	// Firmware divides in single precision.
	const room = 1e-6
	lo, hi := float64(e.Ticks)*1e3/float64(e.MS+1)*(1-room), math.Inf(1)
	if e.MS > 0 {
		hi = float64(e.Ticks) * 1e3 / float64(e.MS) * (1 + room)
	}
	known := min(c.n, len(c.recent))
	against := 0
	for _, r := range c.recent[:known] {
		if lo > r[1] || hi < r[0] {
			against++
		}
	}
	c.recent[c.n%len(c.recent)] = [2]float64{lo, hi}
	c.n++
	if known >= 5 && 5*against >= 4*known {
		return false
	}
	if c.lo == 0 {
		c.hi = math.Inf(1)
	}
	if against == 0 {
		c.lo, c.hi = max(c.lo, lo), min(c.hi, hi)
	}
	if !math.IsInf(hi, 1) {
		c.lines++
	}
	return true
}

// bounds returns the bounds of the frequency in hertz; ok says that lines agree.
func (c *clock) bounds() (lo, hi float64, ok bool) {
	return c.lo, c.hi, c.lines > 0 && c.lo > 0 && c.lo < c.hi && !math.IsInf(c.hi, 1)
}

package loop

import (
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// Clock is a monotonic clock with known properties.
type Clock struct {
	now func() int64
	// Resolution is the smallest step observed between two readings, Cost the time of one
	// reading, both in seconds.
	Resolution, Cost float64
}

var epoch = time.Now()

// NewClock returns the system's monotonic clock after measuring its cost and resolution, which
// takes about a millisecond.
func NewClock() *Clock {
	c := &Clock{now: func() int64 { return int64(time.Since(epoch)) }}
	const reads, rounds = 1000, 15
	costs := make([]float64, rounds)
	step := int64(1 << 62)
	for r := range costs {
		start := c.now()
		last := start
		for range reads {
			t := c.now()
			if d := t - last; d > 0 && d < step {
				step = d
			}
			last = t
		}
		costs[r] = float64(last-start) / reads / 1e9
	}
	slices.Sort(costs)
	// The median is robust against a round that was interrupted.
	c.Cost = costs[rounds/2]
	for try := 0; step == 1<<62 && try < 1e6; try++ { // a coarse clock: wait for a tick
		start := c.now()
		if d := c.now() - start; d > 0 {
			step = d
		}
	}
	c.Resolution = float64(step) / 1e9
	return c
}

// SimulatedClock returns a clock that reads now, with the given properties in seconds, for tests
// and for replaying records.
func SimulatedClock(now func() int64, resolution, cost float64) *Clock {
	return &Clock{now: now, Resolution: resolution, Cost: cost}
}

// Now reads the clock, in nanoseconds from an arbitrary start.
func (c *Clock) Now() int64 { return c.now() }

// Batch returns how many calls of a function with a duration of each seconds must be timed
// together, so that reading the clock adds less than one per cent and the resolution is less than
// one per cent of the total.
func (c *Clock) Batch(each float64) int {
	least := 100 * max(c.Cost, c.Resolution)
	if each >= least {
		return 1
	}
	const most = 1 << 20
	if each <= 0 {
		return most
	}
	return int(min(most, math.Ceil(least/each-1e-9)))
}

// PerCall times n calls of f as a whole, rounds times, and returns the seconds per call for each
// round. With an f that records an empty event it calibrates the cost of recording one.
func (c *Clock) PerCall(n, rounds int, f func()) []float64 {
	out := make([]float64, rounds)
	for r := range out {
		start := c.now()
		for range n {
			f()
		}
		out[r] = float64(c.now()-start) / float64(n) / 1e9
	}
	return out
}

// EventCost calibrates the profiling overhead: the time to read the clock at the boundary of a
// step and store it, measured on events with nothing between them, in seconds.
func (c *Clock) EventCost() stats.Summary {
	const events, rounds = 256, 101
	bounds := make([]int64, events)
	i := 0
	return stats.Summarize(c.PerCall(events, rounds, func() {
		bounds[i%events] = c.now()
		i++
	}))
}

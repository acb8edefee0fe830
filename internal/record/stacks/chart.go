package stacks

import (
	"cmp"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/track"
)

// Chart makes bars of consecutive samples. A function has one bar for as long as it is on the
// stack at the same depth.
type Chart struct {
	Set   *Set
	Trace *track.Trace
	// Track is the number of the track of the bars. Their layers are functions until [Finish]
	// replaces them.
	Track int32

	open []entry
	path []int32
	last int64
	any  bool
}

type entry struct {
	function int32
	since    int64
}

// Sample sets the stack from a time (nanoseconds) until the next sample. A time before the last
// one counts as the same time.
func (c *Chart) Sample(ts int64, place int32) {
	if c.any {
		ts = max(ts, c.last)
	}
	c.any, c.last = true, ts
	c.path = c.Set.Path(place, c.path[:0])
	same := 0
	for same < len(c.open) && same < len(c.path) && c.open[same].function == c.path[same] {
		same++
	}
	c.close(same, ts)
	for _, f := range c.path[same:] {
		c.open = append(c.open, entry{f, ts})
	}
}

// End ends all bars.
func (c *Chart) End(ts int64) {
	c.close(0, max(ts, c.last))
	c.any = false
}

func (c *Chart) close(to int, ts int64) {
	for i := len(c.open) - 1; i >= to; i-- {
		e := c.open[i]
		if d := ts - e.since; d > 0 {
			c.Trace.Add(c.Track, track.Slice{Start: e.since, Dur: d, Bytes: -1, Layer: e.function, Iteration: -1, Label: -1, Type: -1})
		}
	}
	c.open = c.open[:to]
}

// Weighted is a sample with a time in nanoseconds.
type Weighted struct {
	At    int64
	Place int32
}

// Spread adds the time between samples to a column and makes their bars. A sample lasts until the
// next one, the last sample for last nanoseconds. A negative column makes bars only. Samples may
// come in any order.
func (c *Chart) Spread(column int, samples []Weighted, last int64) {
	sorting.Stable(samples, func(a, b Weighted) int { return cmp.Compare(a.At, b.At) })
	for i, w := range samples {
		c.Sample(w.At, w.Place)
		d := last
		if i+1 < len(samples) {
			d = samples[i+1].At - w.At
		}
		if w.Place >= 0 && column >= 0 {
			c.Set.Add(column, w.Place, float64(d))
		}
		if i+1 == len(samples) {
			c.End(w.At + last)
		}
	}
}

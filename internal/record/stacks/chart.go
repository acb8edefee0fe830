package stacks

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/record/track"
)

// Chart makes bars of samples that follow one another: a function lasts as long as it is
// on the stack at the same depth of every sample.
type Chart struct {
	Set   *Set
	Trace *track.Trace
	// Track is where the bars go. Their layers are functions, until [Relabel] gives them
	// the numbers of layers.
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

// Sample says that a stack is there from a point in time on, nanoseconds: until the
// next sample. One before the last is taken for the same time.
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

// End closes all bars.
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

// Weighted is a sample whose time is known.
type Weighted struct {
	At    int64
	Place int32
}

// Spread adds the time between samples to a column and makes its bars. Each sample lasts until
// the next one, the last one for last nanoseconds. A column below 0 only makes bars. Samples may
// come in any order.
func (c *Chart) Spread(column int, samples []Weighted, last int64) {
	slices.SortStableFunc(samples, func(a, b Weighted) int { return cmp.Compare(a.At, b.At) })
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

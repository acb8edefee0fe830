package track

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile/timeline"
)

// MaxPoints bounds the values of all counters of a record, maxCounters their number.
const (
	MaxPoints   = 500_000
	maxCounters = 10_000
)

// Counter is a figure over time.
type Counter struct {
	Group, Name, Unit string
	// Series and Key are the reader's.
	Series, Key string
	points      []point
}

type point struct {
	ts int64
	v  float64
}

// Counter makes a counter. Beyond a bound it gives nil, for which [Trace.Value] counts what
// is left out.
func (t *Trace) Counter(group, name, unit string) *Counter {
	if len(t.Counters) >= maxCounters {
		return nil
	}
	c := &Counter{Group: group, Name: name, Unit: unit}
	t.Counters = append(t.Counters, c)
	return c
}

// Value adds a value that holds from a point in time, nanoseconds.
func (t *Trace) Value(c *Counter, ts int64, v float64) {
	switch {
	case c == nil || t.points >= MaxPoints:
		t.Dropped.Add("values of counters beyond the first 500,000", 1)
	case ts < -most || ts > most || math.IsNaN(v) || math.IsInf(v, 0):
		t.Dropped.Add("counter values that are not numbers", 1)
	default:
		t.points++
		c.points = append(c.points, point{ts, v})
	}
}

// Most is the largest value, ok is false for none.
func (c *Counter) Most() (v float64, ok bool) {
	for i, p := range c.points {
		if i == 0 || p.v > v {
			v = p.v
		}
		ok = true
	}
	return v, ok
}

// counter makes the counter of a timeline that begins at origin.
func (c *Counter) counter(origin int64) (k timeline.Counter, late int64) {
	k = timeline.Counter{Name: cmp.Or(c.Name, "counter"), Unit: c.Unit, Group: c.Group, Times: []float64{}, Values: []float64{}}
	slices.SortStableFunc(c.points, func(a, b point) int { return cmp.Compare(a.ts, b.ts) })
	for _, p := range c.points {
		if p.ts-origin > maxSpan {
			late++
			continue
		}
		k.Times, k.Values = append(k.Times, seconds(p.ts-origin)), append(k.Values, p.v)
	}
	return k, late
}

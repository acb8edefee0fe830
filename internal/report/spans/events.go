package spans

import (
	"cmp"
	"container/heap"
	"iter"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile/timeline"
)

// cursor walks the bars of a lane.
type cursor struct {
	l     *timeline.Lane
	lane  int
	i     int
	open  []around
	floor int64 // nothing starts before it
	bar   Bar
}

// around is a bar that others may lie in.
type around struct {
	end   float64 // as it stands in the profile
	endNs int64
}

// load takes the next bar and reports whether there was one.
func (c *cursor) load() bool {
	if c.i >= len(c.l.Starts) {
		return false
	}
	s, d := c.l.Starts[c.i], c.l.Durations[c.i]
	// The same slack as in the check of profiles.
	for n := len(c.open); n > 0 && c.open[n-1].end <= s+0.5e-9; n = len(c.open) {
		c.floor = max(c.floor, c.open[n-1].endNs)
		c.open = c.open[:n-1]
	}
	b := Bar{Lane: c.lane, Index: c.i, Start: max(Nanos(s), c.floor), Depth: len(c.open)}
	b.End = max(b.Start, Nanos(s+d))
	if n := len(c.open); n > 0 {
		b.Start = min(b.Start, c.open[n-1].endNs)
		b.End = min(b.End, c.open[n-1].endNs)
	}
	c.floor = b.Start
	c.open = append(c.open, around{s + d, b.End})
	c.bar = b
	c.i++
	return true
}

// stall is the waiting part of the bar just loaded, when nothing else lies in it.
func (c *cursor) stall() (Bar, bool) {
	i := c.bar.Index
	if i >= len(c.l.Stalls) || c.l.Stalls[i] <= 0 {
		return Bar{}, false
	}
	if n := i + 1; n < len(c.l.Starts) && c.l.Starts[n]+0.5e-9 < c.l.Starts[i]+c.l.Durations[i] {
		return Bar{}, false
	}
	b := c.bar
	b.Depth++
	b.Stall = true
	b.End = min(b.End, b.Start+Nanos(c.l.Stalls[i]))
	return b, true
}

// EventKind says what happens.
type EventKind uint8

// Kinds of events.
const (
	Begin    EventKind = iota // a bar begins
	End                       // a bar ends
	Value                     // a counter has a new value
	LinkFrom                  // an arrow leaves a bar
	LinkTo                    // an arrow reaches a bar
)

// Event is one thing that happens in a timeline.
type Event struct {
	Kind EventKind
	At   int64 // nanoseconds
	Bar  Bar   // of Begin and End
	// Item is the counter of Value, the link of LinkFrom and LinkTo.
	Item int
	// Index is the value's place in its counter.
	Index int
}

// source yields events in order of time.
type source struct {
	next  func() (Event, bool)
	event Event
	order int
}

type sources []*source

func (s sources) Len() int { return len(s) }
func (s sources) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[i].event.At, s[j].event.At), cmp.Compare(s[i].order, s[j].order)) < 0
}
func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)   { *s = append(*s, x.(*source)) }
func (s *sources) Pop() any {
	old := *s
	x := old[len(old)-1]
	*s = old[:len(old)-1]
	return x
}

// Events walks everything in order of time. On one lane a bar begins before those
// within it and ends after them; arrows come after the bars that begin with them,
// and leave before they arrive.
func (v *View) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var all sources
		add := func(next func() (Event, bool)) {
			if e, ok := next(); ok {
				all = append(all, &source{next: next, event: e, order: len(all)})
			}
		}
		for i := range v.Lanes {
			add(v.laneEvents(i))
		}
		for i := range v.Counters {
			k, at := &v.Counters[i], 0
			add(func() (Event, bool) {
				if at >= len(k.Times) {
					return Event{}, false
				}
				at++
				return Event{Kind: Value, At: Nanos(k.Times[at-1]), Item: i, Index: at - 1}, true
			})
		}
		links, at := v.linkEvents(), 0
		add(func() (Event, bool) {
			if at >= len(links) {
				return Event{}, false
			}
			at++
			return links[at-1], true
		})
		heap.Init(&all)
		for len(all) > 0 {
			s := all[0]
			if !yield(s.event) {
				return
			}
			if e, ok := s.next(); ok {
				s.event = e
				heap.Fix(&all, 0)
			} else {
				heap.Pop(&all)
			}
		}
	}
}

// laneEvents opens and closes the bars of a lane.
func (v *View) laneEvents(lane int) func() (Event, bool) {
	c := &cursor{l: &v.Lanes[lane], lane: lane}
	var open []Bar
	var stall Bar
	waiting, loaded, more := false, false, true
	begin := func(b Bar) (Event, bool) {
		open = append(open, b)
		return Event{Kind: Begin, At: b.Start, Bar: b}, true
	}
	return func() (Event, bool) {
		if waiting {
			waiting = false
			return begin(stall)
		}
		if !loaded && more {
			more = c.load()
			loaded = more
		}
		if n := len(open); n > 0 && (!loaded || open[n-1].Depth >= c.bar.Depth) {
			b := open[n-1]
			open = open[:n-1]
			return Event{Kind: End, At: b.End, Bar: b}, true
		}
		if !loaded {
			return Event{}, false
		}
		stall, waiting = c.stall()
		loaded = false
		return begin(c.bar)
	}
}

// linkEvents lists the ends of all arrows by time. An arrow leaves with the start
// of its bar and arrives with the start of the other, or later where that one
// began to wait before. Arrows that could only arrive after their bar are left out.
func (v *View) linkEvents() []Event {
	if len(v.Links) == 0 {
		return nil
	}
	wanted := map[[2]int32]Bar{}
	for _, l := range v.Links {
		wanted[[2]int32{l.FromLane, l.FromBar}] = Bar{}
		wanted[[2]int32{l.ToLane, l.ToBar}] = Bar{}
	}
	for i := range v.Lanes {
		for b := range v.Bars(i) {
			k := [2]int32{int32(i), int32(b.Index)}
			if _, ok := wanted[k]; ok {
				wanted[k] = b
			}
		}
	}
	var out []Event
	for i, l := range v.Links {
		from, to := wanted[[2]int32{l.FromLane, l.FromBar}], wanted[[2]int32{l.ToLane, l.ToBar}]
		at := max(from.Start, to.Start)
		if at > to.End {
			continue
		}
		out = append(out, Event{Kind: LinkFrom, At: from.Start, Bar: from, Item: i}, Event{Kind: LinkTo, At: at, Bar: to, Item: i})
	}
	sorting.Stable(out, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return out
}

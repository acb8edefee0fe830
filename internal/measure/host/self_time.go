package host

import (
	"math"

	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// selfTimes computes the self time of every slot from one run's timing, so that the slots add up
// to the run.
type selfTimes struct {
	slots  []plan.Slot
	owners map[int][]int // slots that run a graph
	inside map[int][]int // slots listed in a graph
	raw    []int64       // time including nested slots
	self   []int64
	calls  []int64
}

func newSelfTimes(ss []plan.Slot) *selfTimes {
	c := &selfTimes{slots: ss, owners: map[int][]int{}, inside: map[int][]int{}, raw: make([]int64, len(ss)), self: make([]int64, len(ss)), calls: make([]int64, len(ss))}
	for i, s := range ss {
		for _, g := range s.Bodies {
			c.owners[g] = append(c.owners[g], i)
		}
		if s.Graph != 0 {
			c.inside[s.Graph] = append(c.inside[s.Graph], i)
		}
	}
	return c
}

// read evaluates one run.
func (c *selfTimes) read(t *engine.Timing) {
	for i, s := range c.slots {
		n := s.Node.Index
		if s.Graph == 0 {
			c.raw[i], c.calls[i] = t.Bounds[n+1]-t.Bounds[n]-t.Waits[n], 1
			continue
		}
		b := t.Bodies[s.Graph][n]
		c.raw[i], c.calls[i] = b.Nanoseconds, b.Calls
	}
	copy(c.self, c.raw)
	for g, own := range c.owners {
		var inner, outer int64
		for _, i := range c.inside[g] {
			inner += c.raw[i]
		}
		for _, i := range own {
			outer += c.raw[i]
		}
		if inner == 0 || outer == 0 {
			continue
		}
		for _, i := range own {
			// The time of a body that several steps share is distributed in proportion to their
			// times. Clock resolution and rounding could make the rest negative: it is clamped to
			// 0.
			c.self[i] = max(0, c.self[i]-int64(math.Round(float64(inner)*float64(c.raw[i])/float64(outer))))
		}
	}
}

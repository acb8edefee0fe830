package estimate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/tflm"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/runtime/describe"
)

// estimateGraphs runs the cycle model on every graph, and determines how often each graph runs.
func (b *builder) estimateGraphs() error {
	model, ok := models[b.rt.Model()]
	if !ok {
		return fmt.Errorf("this version has no cycle model %q", b.rt.Model())
	}
	b.costs = make([]*chip.Costs, len(b.m.Graphs))
	b.taken = make([]bool, len(b.m.Graphs))
	for i := range b.slots {
		g := b.slots[i].Graph
		if b.costs[g] != nil {
			continue
		}
		c, err := model.Costs(b.m, b.m.Graphs[g], b.t, b.rt, b.opt)
		if err != nil {
			return err
		}
		if len(c.Layers) != len(b.m.Graphs[g].Nodes) {
			return fmt.Errorf("the cycle model answered for %d of %d layers of graph %d", len(c.Layers), len(b.m.Graphs[g].Nodes), g)
		}
		b.costs[g], b.taken[g] = c, true
	}
	if b.costs[0] == nil { // a model without layers
		c, err := model.Costs(b.m, b.m.Main(), b.t, b.rt, b.opt)
		if err != nil {
			return err
		}
		b.costs[0] = c
	}
	b.refuse()
	b.assumed = describe.Assume(b.m, b.slots, func(slot int) float64 {
		s := &b.slots[slot]
		if c := b.costs[s.Graph]; c != nil {
			if f := c.Layers[s.Node.Index].Latency; f != nil {
				return f.Value
			}
		}
		return 0
	})
	b.passes = b.assumed.Passes()
	for i := range b.slots {
		s := &b.slots[i]
		open := func(c count.Calls) bool { return c.Times == nil }
		if !describe.Branching(s.Node.Op) && slices.ContainsFunc(describe.Bodies(b.m, s), open) {
			b.once = append(b.once, int64(i))
		}
	}
	for i := range b.slots {
		// Its graph runs in the first inference only: the figures describe later ones.
		if b.slots[i].Node.Op == "CALL_ONCE" {
			for _, g := range b.slots[i].Bodies {
				b.taken[g] = false
			}
		}
	}
	return nil
}

// place is a node in a graph.
type place struct{ graph, node int }

// micro reports whether the runtime is TensorFlow Lite Micro, whose supported operators are
// known.
func (b *builder) micro() bool {
	return b.m.Format == "tflite" && (b.rt.Arena != "" || b.rt.Cortexm != nil && strings.HasPrefix(b.rt.Cortexm.Family, "tflm-"))
}

// refuse finds the nodes that the runtime does not support.
func (b *builder) refuse() {
	if !b.micro() {
		return
	}
	year := int(b.rt.Release)
	if year == 0 {
		year = tflm.Latest
	}
	list, needs := tflm.Refused(b.m, year)
	b.needs = needs
	b.refused = map[place]tflm.Refusal{}
	for _, r := range list {
		b.refused[place{r.Graph, r.Node}] = r
		if c := b.costs[r.Graph]; c != nil && r.Node < len(c.Layers) {
			// Whole-model figures would include it: use the sum of the other layers instead.
			c.Layers[r.Node] = chip.LayerCost{Simulated: -1}
			c.Latency, c.CPU, c.Accelerator, c.Energy = nil, nil, nil, nil
		}
	}
}

// pass returns the time of one pass through a graph, including nested graphs, in processor
// cycles; nil if nothing is known. A recursive call counts as nothing.
func (b *builder) pass(g int) *chip.Figure {
	if b.costs[g] == nil {
		return nil
	}
	if b.pace == nil {
		b.pace = map[int]*chip.Figure{}
	}
	if f, ok := b.pace[g]; ok {
		return f
	}
	b.pace[g] = nil
	var f *chip.Figure
	for i := range b.slots {
		if b.slots[i].Graph == g {
			f = plus(plus(f, b.costs[g].Layers[b.slots[i].Node.Index].Latency, 1), b.bodyTime(i), 1)
		}
	}
	b.pace[g] = f
	return f
}

// unentered reports whether a slot is a loop that is known to have no iterations.
func (b *builder) unentered(slot int) bool {
	calls := describe.Bodies(b.m, &b.slots[slot])
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(c count.Calls) bool { return c.Times == nil || *c.Times > 0 })
}

// bodyTime returns the time of the graphs that one execution of a slot runs, nil if it is unknown
// or the slot runs none.
func (b *builder) bodyTime(slot int) *chip.Figure {
	s := &b.slots[slot]
	if len(s.Bodies) == 0 || s.Node.Op == "CALL_ONCE" {
		return nil
	}
	if b.unentered(slot) {
		return &chip.Figure{}
	}
	calls := describe.Bodies(b.m, s)
	var sum *chip.Figure
	greatest := b.assumed.Greatest(slot)
	for k, c := range calls {
		if c.Graph <= 0 || c.Graph >= len(b.costs) || c.Times != nil && *c.Times == 0 || describe.Branching(s.Node.Op) && k != greatest {
			continue
		}
		f := b.pass(c.Graph)
		times := 1.0
		if c.Times != nil {
			times = float64(*c.Times)
		}
		sum = plus(sum, f, times)
	}
	return sum
}

// includeFasterBranches widens the bands of totals to include the faster branches, if the model
// does not determine which one runs.
func (b *builder) includeFasterBranches(totals ...*chip.Figure) {
	of := []func(*chip.LayerCost) *chip.Figure{
		func(l *chip.LayerCost) *chip.Figure { return l.Latency },
		func(l *chip.LayerCost) *chip.Figure { return l.CPU },
	}
	for i := range b.slots {
		s := &b.slots[i]
		if !describe.Branching(s.Node.Op) || !b.taken[s.Graph] {
			continue
		}
		for k, f := range totals {
			if f == nil {
				continue
			}
			long, short := 0.0, math.Inf(1)
			for _, c := range describe.Bodies(b.m, s) {
				if c.Times != nil || c.Graph <= 0 || c.Graph >= len(b.costs) || b.costs[c.Graph] == nil {
					continue
				}
				v := 0.0
				for n := range b.costs[c.Graph].Layers {
					if x := of[k](&b.costs[c.Graph].Layers[n]); x != nil {
						v += x.Low
					}
				}
				long, short = max(long, v), min(short, v)
			}
			if long > short {
				f.Low = max(0, f.Low-(long-short)*b.passes[s.Graph])
			}
		}
	}
}

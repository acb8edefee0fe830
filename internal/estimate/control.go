package estimate

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/count"
	"github.com/opmeter/opmeter/internal/graph"
)

// body is the estimate of one pass through a graph that control flow runs.
type body struct {
	cost            chip.LayerCost
	layers, missing int
	open            bool // control flow inside runs as often as the data says
}

// bodies estimates graphs once each, however often they are referred to. A graph
// that runs itself counts as nothing within itself.
type bodies struct {
	model chip.CycleModel
	t     *chip.Target
	rt    *chip.Runtime
	opt   chip.Options
	done  map[int]*body
}

// of estimates graph g of m.
func (c *bodies) of(m *graph.Model, g int) (*body, error) {
	if b := c.done[g]; b != nil {
		return b, nil
	}
	b := &body{}
	c.done[g] = b
	costs, err := c.model.Costs(m, m.Graphs[g], c.t, c.rt, c.opt)
	if err != nil {
		return nil, err
	}
	once, err := c.apply(m, m.Graphs[g], costs)
	if err != nil {
		return nil, err
	}
	r := body{layers: len(costs.Layers), open: len(once) > 0}
	for i := range costs.Layers {
		l := &costs.Layers[i]
		if l.Missing != nil {
			r.missing++
		}
		r.cost.Latency, r.cost.CPU, r.cost.Accelerator = plus(r.cost.Latency, l.Latency, 1), plus(r.cost.CPU, l.CPU, 1), plus(r.cost.Accelerator, l.Accelerator, 1)
	}
	*b = r
	return b, nil
}

// apply gives each control-flow operator of graph g the sum of what it runs.
// It returns the layers whose number of passes depends on the data: they stand for
// one.
func (c *bodies) apply(m *graph.Model, g *graph.Graph, costs *chip.Costs) (once []int64, err error) {
	for i, n := range g.Nodes {
		calls := count.Bodies(m, n, count.Declared(g, n.Inputs), count.Declared(g, n.Outputs))
		if len(calls) == 0 {
			continue
		}
		l := &costs.Layers[i]
		if n.Op == "CALL_ONCE" && l.Latency != nil {
			costs.Remarks = append(costs.Remarks, fmt.Sprintf("layer %d (CALL_ONCE) runs its graph in the first inference only: figures are those of later ones", i))
			continue
		}
		sum := chip.LayerCost{Simulated: l.Simulated, Kernel: "control flow", Verdict: l.Verdict, Reason: l.Reason}
		either := n.Op == "IF" || n.Op == "If" || n.Op == "STABLEHLO_CASE"
		open, missing, layers := false, 0, 0
		for _, call := range calls {
			if call.Graph <= 0 || call.Graph >= len(m.Graphs) {
				continue
			}
			b, err := c.of(m, call.Graph)
			if err != nil {
				return nil, err
			}
			times := 1.0
			switch {
			case call.Times != nil:
				times = float64(*call.Times)
			case !either && n.Op != "CALL" && n.Op != "CALL_ONCE":
				open = true
			}
			open, layers, missing = open || b.open, layers+b.layers, missing+b.missing
			if either {
				// Which branch runs is known with the data: the band holds both.
				sum.Latency, sum.CPU, sum.Accelerator = longer(sum.Latency, b.cost.Latency), longer(sum.CPU, b.cost.CPU), longer(sum.Accelerator, b.cost.Accelerator)
				continue
			}
			sum.Latency, sum.CPU, sum.Accelerator = plus(sum.Latency, b.cost.Latency, times), plus(sum.CPU, b.cost.CPU, times), plus(sum.Accelerator, b.cost.Accelerator, times)
		}
		if sum.Latency == nil {
			continue // nothing in the bodies has an estimate
		}
		if missing > 0 {
			costs.Remarks = append(costs.Remarks, fmt.Sprintf("%d of %d layers in the bodies of layer %d (%s) have no estimate: its figures are too small", missing, layers, i, n.Op))
			open = true
		}
		costs.Latency, costs.CPU = widen(costs.Latency, sum.Latency), widen(costs.CPU, sum.CPU)
		// What the operator itself costs is in the totals already.
		sum.Latency, sum.CPU, sum.Accelerator = plus(sum.Latency, l.Latency, 1), plus(sum.CPU, l.CPU, 1), plus(sum.Accelerator, l.Accelerator, 1)
		*l = sum
		if open {
			once = append(once, int64(i))
		}
	}
	return once, nil
}

// plus adds times f to total.
func plus(total, f *chip.Figure, times float64) *chip.Figure {
	if f == nil {
		return total
	}
	return sum(total, &chip.Figure{Value: f.Value * times, Low: f.Low * times, High: f.High * times})
}

// widen adds a layer to a total that the cycle model made without it.
func widen(total, f *chip.Figure) *chip.Figure {
	if total == nil {
		return nil // the layers are summed
	}
	return plus(&chip.Figure{Value: total.Value, Low: total.Low, High: total.High}, f, 1)
}

// longer is the larger of two branches with a band that holds both.
func longer(a, b *chip.Figure) *chip.Figure {
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a
	}
	return &chip.Figure{Value: max(a.Value, b.Value), Low: min(a.Low, b.Low), High: max(a.High, b.High)}
}

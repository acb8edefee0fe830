package estimate

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/count"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/target"
)

// deepest bounds nested control flow; real models stay below five.
const deepest = 8

// bodies estimates the graphs that control-flow operators run and gives each such
// operator the sum. It returns the layers whose number of iterations depends on
// the data: they stand for one pass through their bodies.
func (b *builder) bodies(model target.CycleModel, opt target.Options, depth int) (once []int64, err error) {
	g := b.m.Main()
	for i, n := range g.Nodes {
		calls := count.Bodies(b.m, n, count.Declared(g, n.Inputs), count.Declared(g, n.Outputs))
		if len(calls) == 0 || depth >= deepest {
			continue
		}
		sum := target.LayerCost{Simulated: b.costs.Layers[i].Simulated, Kernel: "control flow", Verdict: b.costs.Layers[i].Verdict, Reason: b.costs.Layers[i].Reason}
		either := n.Op == "IF" || n.Op == "If" || n.Op == "STABLEHLO_CASE"
		open := false
		missing, layers := 0, 0
		for _, c := range calls {
			if c.Graph <= 0 || c.Graph >= len(b.m.Graphs) {
				continue
			}
			body := *b.m
			body.Graphs = append([]*graph.Graph{b.m.Graphs[c.Graph]}, b.m.Graphs[1:]...)
			inner := &builder{m: &body, t: b.t, rt: b.rt}
			if inner.costs, err = model.Costs(&body, b.t, b.rt, opt); err != nil {
				return nil, err
			}
			deeper, err := inner.bodies(model, opt, depth+1)
			if err != nil {
				return nil, err
			}
			times := 1.0
			switch {
			case c.Times != nil:
				times = float64(*c.Times)
			case !either && n.Op != "CALL" && n.Op != "CALL_ONCE":
				open = true
			}
			open = open || len(deeper) > 0
			one := target.LayerCost{Simulated: -1}
			for k := range inner.costs.Layers {
				l := &inner.costs.Layers[k]
				layers++
				if l.Missing != "" {
					missing++
				}
				one.Latency, one.CPU, one.Accelerator = sum2(one.Latency, l.Latency, times), sum2(one.CPU, l.CPU, times), sum2(one.Accelerator, l.Accelerator, times)
			}
			if either {
				// Which branch runs is known with the data: the band holds both.
				sum.Latency, sum.CPU, sum.Accelerator = longer(sum.Latency, one.Latency), longer(sum.CPU, one.CPU), longer(sum.Accelerator, one.Accelerator)
				continue
			}
			sum.Latency, sum.CPU, sum.Accelerator = sum2(sum.Latency, one.Latency, 1), sum2(sum.CPU, one.CPU, 1), sum2(sum.Accelerator, one.Accelerator, 1)
		}
		if sum.Latency == nil {
			continue // nothing in the bodies has an estimate
		}
		if missing > 0 {
			b.costs.Remarks = append(b.costs.Remarks, fmt.Sprintf("%d of %d layers in the bodies of layer %d (%s) have no estimate: its figures are too small", missing, layers, i, n.Op))
			open = true
		}
		b.costs.Latency, b.costs.CPU = widen(b.costs.Latency, sum.Latency), widen(b.costs.CPU, sum.CPU)
		b.costs.Layers[i] = sum
		if open {
			once = append(once, int64(i))
		}
	}
	return once, nil
}

// sum2 adds times f to total.
func sum2(total, f *target.Figure, times float64) *target.Figure {
	if f == nil {
		return total
	}
	return sum(total, &target.Figure{Value: f.Value * times, Low: f.Low * times, High: f.High * times})
}

// widen adds a layer to a total that the cycle model made without it.
func widen(total, f *target.Figure) *target.Figure {
	if total == nil {
		return nil // the layers are summed
	}
	return sum2(&target.Figure{Value: total.Value, Low: total.Low, High: total.High}, f, 1)
}

// longer is the larger of two branches with a band that holds both.
func longer(a, b *target.Figure) *target.Figure {
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a
	}
	return &target.Figure{Value: max(a.Value, b.Value), Low: min(a.Low, b.Low), High: max(a.High, b.High)}
}

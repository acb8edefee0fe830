package describe

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// Branching reports whether an operator runs one of its graphs.
func Branching(op string) bool { return op == "IF" || op == "If" || op == "STABLEHLO_CASE" }

// Bodies lists the graphs that one execution of a slot runs and how often, as far as the model
// determines it by constant conditions, trip counts and counters.
func Bodies(m *graph.Model, s *plan.Slot) []count.Calls {
	if s.Calls != nil || len(s.Bodies) == 0 {
		return s.Calls
	}
	return count.Bodies(m, s.Node, known(m.Graphs[s.Graph], s.Node.Inputs, s.In), s.Out)
}

// Passes returns for each graph how often it runs in one inference, over all steps that run it.
// open returns the number of passes that one execution of a slot makes through a graph, entry k
// of its [Bodies], if the model does not determine it, NaN if unknown. For a recursive graph only
// the calls from outside count.
func Passes(m *graph.Model, slots []plan.Slot, open func(slot, k int) float64) []float64 {
	type run struct {
		in    int // graph of the step
		times float64
	}
	runs := make([][]run, len(m.Graphs))
	for i := range slots {
		s := &slots[i]
		for k, c := range Bodies(m, s) {
			if c.Graph <= 0 || c.Graph >= len(runs) {
				continue
			}
			var t float64
			if c.Times != nil {
				t = float64(*c.Times)
			} else {
				t = open(i, k)
			}
			runs[c.Graph] = append(runs[c.Graph], run{s.Graph, t})
		}
	}
	out := make([]float64, len(m.Graphs))
	state := make([]uint8, len(m.Graphs)) // 1 while being computed, 2 when done
	var of func(g int) float64
	of = func(g int) float64 {
		if state[g] != 0 {
			return out[g] // recursive: nothing yet
		}
		state[g] = 1
		sum := 0.0
		if g == 0 {
			sum = 1
		}
		for _, r := range runs[g] {
			if r.times == 0 {
				continue
			}
			sum += of(r.in) * r.times
		}
		out[g], state[g] = sum, 2
		return sum
	}
	for g := range out {
		of(g)
	}
	return out
}

// Assumed are the passes through graphs that are assumed where the model does not determine them:
// one iteration of a loop, and the branch that costs most.
type Assumed struct {
	m     *graph.Model
	slots []plan.Slot
	cost  func(slot int) float64 // of one execution of a slot without its graphs
	steps [][]int                // slots by graph
	pace  map[int]float64        // cost of a pass by graph
}

// Assume makes the assumptions for the cost of slots, which must not be negative.
func Assume(m *graph.Model, slots []plan.Slot, cost func(slot int) float64) *Assumed {
	a := &Assumed{m: m, slots: slots, cost: cost, steps: make([][]int, len(m.Graphs)), pace: map[int]float64{}}
	for i := range slots {
		a.steps[slots[i].Graph] = append(a.steps[slots[i].Graph], i)
	}
	return a
}

// Passes is [Passes] with the assumptions.
func (a *Assumed) Passes() []float64 {
	return Passes(a.m, a.slots, func(slot, k int) float64 {
		if s := &a.slots[slot]; !Branching(s.Node.Op) || a.Greatest(slot) == k {
			return 1
		}
		return 0
	})
}

// Unreached returns why the totals leave out the layers of a graph without passes.
func (a *Assumed) Unreached(g int) *profile.Cause {
	text := "not reached"
	for i := range a.slots {
		for _, c := range Bodies(a.m, &a.slots[i]) {
			switch {
			case c.Graph != g:
			case c.Times == nil && Branching(a.slots[i].Node.Op):
				return &profile.Cause{Code: profile.ByData, Text: "not counted: another branch costs more"}
			case c.Times != nil && *c.Times == 0:
				text = "never runs: constants determine that"
			}
		}
	}
	return &profile.Cause{Code: profile.ByData, Text: text}
}

// Greatest returns the branch of a slot that costs most, an index into its [Bodies]; -1 for none.
func (a *Assumed) Greatest(slot int) int {
	best, most := -1, -1.0
	for k, c := range Bodies(a.m, &a.slots[slot]) {
		if c.Times == nil || *c.Times > 0 {
			if v := a.Pass(c.Graph); v > most {
				best, most = k, v
			}
		}
	}
	return best
}

// Pass returns the cost of one pass through a graph with the graphs that it runs. A recursive
// call costs nothing.
func (a *Assumed) Pass(g int) float64 {
	if g <= 0 || g >= len(a.steps) {
		return 0
	}
	if v, ok := a.pace[g]; ok {
		return v
	}
	a.pace[g] = 0
	sum := 0.0
	for _, i := range a.steps[g] {
		sum += a.cost(i)
		greatest := a.Greatest(i)
		for k, c := range Bodies(a.m, &a.slots[i]) {
			switch {
			case c.Times != nil:
				sum += a.Pass(c.Graph) * float64(*c.Times)
			case !Branching(a.slots[i].Node.Op) || k == greatest:
				sum += a.Pass(c.Graph)
			}
		}
	}
	a.pace[g] = sum
	return sum
}

// short formats a count with three digits.
func short(v float64) string {
	unit := ""
	for _, u := range []string{" k", " M", " G", " T", " P"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "" {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	digits := 2
	for limit := 9.995; v >= limit && digits > 0; limit *= 10 {
		digits--
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + unit
}

// maxShownLoops is the maximum number of loops, and of branches, that findings list.
const maxShownLoops = 8

// Findings explains the assumptions, with the counts of one pass. Their IDs begin with kind;
// severity is that of iterations.
func (a *Assumed) Findings(p *profile.Profile, kind string, severity profile.Severity) []profile.Finding {
	work := func(of func(w *count.Work) *int64) *Assumed {
		return Assume(a.m, a.slots, func(i int) float64 {
			w := Work(a.m, &a.slots[i])
			if n := of(&w); n != nil {
				return float64(*n)
			}
			return 0
		})
	}
	macs, ops := work(func(w *count.Work) *int64 { return w.MACs }), work(func(w *count.Work) *int64 { return w.Ops })
	show := func(graphs ...int) string {
		m, o := 0.0, 0.0
		for _, g := range graphs {
			m, o = m+macs.Pass(g), o+ops.Pass(g)
		}
		if m == 0 {
			return short(o) + " ops"
		}
		return short(m) + " MACs, " + short(o) + " ops"
	}
	var loops, branches []string
	var looping, branching []int64
	for i := range a.slots {
		s := &a.slots[i]
		calls := Bodies(a.m, s)
		open := slices.ContainsFunc(calls, func(c count.Calls) bool { return c.Times == nil })
		name := fmt.Sprintf("#%d %s %q", i, s.Node.Op, p.Layers[i].Name)
		switch {
		case !open:
		case Branching(s.Node.Op):
			greatest := a.Greatest(i)
			var each []string
			for k, c := range calls {
				text := branchName(s.Node, k) + ": " + show(c.Graph)
				if k == greatest {
					text += ", in the totals"
				}
				each = append(each, text)
			}
			branches, branching = append(branches, name+" ("+strings.Join(each, "; ")+")"), append(branching, int64(i))
		default:
			var graphs []int
			for _, c := range calls {
				graphs = append(graphs, c.Graph)
			}
			loops, looping = append(loops, fmt.Sprintf("%s: %s per iteration (--iterations %s)", name, show(graphs...), shellword.Quote(iterationName(p, i)+"=N"))), append(looping, int64(i))
		}
	}
	var out []profile.Finding
	if len(loops) > 0 {
		out = append(out, profile.Finding{
			ID: kind + ".iterations", Severity: severity, Layers: looping,
			Text: "Iterations depend on data: totals hold one iteration of each such loop. Set the number with --iterations NAME=N. " + shorten(loops) + ".",
		})
	}
	if len(branches) > 0 {
		out = append(out, profile.Finding{
			ID: kind + ".branches", Severity: profile.Info, Layers: branching,
			Text: "Which branch runs depends on data: totals hold the branch that costs most. " + shorten(branches) + ".",
		})
	}
	return out
}

func shorten(list []string) string {
	left := len(list) - maxShownLoops
	if left <= 0 {
		return strings.Join(list, "; ")
	}
	return strings.Join(list[:maxShownLoops], "; ") + fmt.Sprintf("; and %d more", left)
}

// branchName names a graph that a node runs by its attribute.
func branchName(n *graph.Node, k int) string {
	var names []string
	for name, a := range n.Attrs {
		if _, ok := a.(graph.GraphRef); ok {
			names = append(names, strings.TrimSuffix(name, "_subgraph_index"))
		}
	}
	slices.Sort(names)
	if k < len(names) {
		return names[k]
	}
	return "branch " + strconv.Itoa(k)
}

// iterationName is the name by which the iterations of a layer are set: its own, or its index.
func iterationName(p *profile.Profile, i int) string {
	name := p.Layers[i].Name
	if name == "" || slices.ContainsFunc(p.Layers[:i], func(l profile.Layer) bool { return l.Name == name }) {
		return "#" + strconv.Itoa(i)
	}
	return name
}

// Iterate sets the iterations of loops that the model does not determine. Keys are the names of
// layers, or their index after "#". The error is an [inputs.OptionError].
func Iterate(m *graph.Model, slots []plan.Slot, iterations map[string]int64) error {
	used := map[string]bool{}
	for i := range slots {
		s := &slots[i]
		key := name(m.Graphs[s.Graph], s.Node)
		n, ok := iterations[key]
		if !ok {
			key = "#" + strconv.Itoa(i)
			if n, ok = iterations[key]; !ok {
				continue
			}
		}
		calls := slices.Clone(Bodies(m, s))
		if len(calls) == 0 || Branching(s.Node.Op) {
			continue
		}
		for k := range calls {
			v := n
			if r, is := s.Node.Attrs.Graph("cond_subgraph_index"); is && r == calls[k].Graph {
				v++
			} else if t := calls[k].Times; t != nil && *t != n {
				return &inputs.OptionError{Option: "iterations", Text: fmt.Sprintf("loop %q runs %d times, as the model determines: leave its iterations out", key, *t)}
			}
			calls[k].Times = &v
		}
		s.Calls, used[key] = calls, true
	}
	for key := range iterations {
		if !used[key] {
			return &inputs.OptionError{Option: "iterations", Text: fmt.Sprintf("the model has no loop %q; it has %s", key, loopNames(m, slots))}
		}
	}
	return nil
}

func loopNames(m *graph.Model, slots []plan.Slot) string {
	var names []string
	for i := range slots {
		s := &slots[i]
		if calls := Bodies(m, s); len(calls) > 0 && !Branching(s.Node.Op) && calls[0].Times == nil {
			names = append(names, strconv.Quote(cmp.Or(name(m.Graphs[s.Graph], s.Node), "#"+strconv.Itoa(i))))
		}
	}
	if len(names) == 0 {
		return "none whose iterations depend on data"
	}
	return shorten(names)
}

// calls sets how often layers of bodies run, if that follows from the model alone, and scales
// their counts to one inference.
func (d *describer) calls(ls []profile.Layer) {
	passes := Passes(d.m, d.slots, func(int, int) float64 { return math.NaN() })
	for i := range d.slots {
		if c := passes[d.slots[i].Graph]; d.slots[i].Parent >= 0 && !math.IsNaN(c) && c != 1 && c <= 1<<53 {
			ls[i].Calls = &c
			ls[i].ScaleCounts(c)
		}
	}
}

package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
)

// Pass is one decision about the nodes of a graph.
type Pass struct {
	Name string
	Doc  string // one sentence
	Run  func(*Graph)
}

// Passes lists the passes in the order in which they run.
func Passes() []Pass {
	return []Pass{
		{"fold", "Infer types and shapes; what reads constants only is computed once.", (*Graph).Settle},
		{"activation", "Join a clamp to the operator before it, so that it costs no pass over memory.", activations},
	}
}

// readers counts the readers of each value among the tasks that run or fold; graph
// outputs and captured values count as more than one, because they must keep their
// own memory.
func (g *Graph) readers() []int {
	uses := make([]int, len(g.Values))
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		for _, id := range t.Node.Inputs {
			if id >= 0 {
				uses[id]++
			}
		}
		for _, id := range g.Captured(t.Node) {
			uses[id] += 2
		}
	}
	for _, id := range g.File.Outputs {
		if id >= 0 {
			uses[id] += 2
		}
	}
	return uses
}

// replace lets task i run another node, and itself compute the tasks of with. Tasks
// must be settled afterwards.
func (g *Graph) replace(i int, n *graph.Node, with ...int) {
	t := &g.Tasks[i]
	t.Node, t.settled, t.Ready = n, false, false
	for _, j := range with {
		u := &g.Tasks[j]
		if u.State == Fused {
			continue
		}
		u.State, u.Into, u.Err, u.Ready = Fused, i, nil, false
		t.Fused = append(t.Fused, j)
	}
	slices.Sort(t.Fused)
}

// Revert goes back to the nodes of the file for a lowered task and those that it
// computes. It returns the first task that has changed.
func (g *Graph) Revert(i int) int {
	t := &g.Tasks[i]
	first := i
	for _, j := range append(t.Fused, i) {
		u := &g.Tasks[j]
		u.Node, u.State, u.settled, u.asIs, u.Ready = g.File.Nodes[j], Runs, false, true, false
		first = min(first, j)
	}
	t.Fused, t.Lowered = nil, false
	g.Settle()
	return first
}

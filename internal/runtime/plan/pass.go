package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// Pass is one decision about the nodes of a graph.
type Pass struct {
	Name string
	Doc  string // one sentence
	// Rounds tells that results may differ from those of the file's operators one by one: see [Options.Exact].
	Rounds bool
	Run    func(*Graph)
}

// Passes lists the passes in the order in which they run.
func Passes() []Pass {
	return []Pass{
		{"fold", "Infer types and shapes; what reads constants only is computed once.", false, (*Graph).Settle},
		{"unread", "Leave out outputs that an operator need not make and that nothing reads, and a Dropout that does not train.", false, unread},
		{"rows", "Set a row of a list where the file joins the parts of it before and behind the row with the new one.", false, rows},
		{"together", "Multiply rows of one value, which the file multiplies by the same weights one by one, in one product.", false, together},
		{"qdq", "Compute operators between DequantizeLinear and QuantizeLinear in 8-bit integers.", true, qdq},
		{"widen", "Keep halves in float32 between operators that compute in float32.", true, widen},
		{"curves", "Compute a curve that the file writes as several operators, such as SiLU or GELU, in one pass over memory.", true, curves},
		{"norms", "Compute a normalisation of rows that the file writes as several operators row by row.", true, norms},
		{"lengths", "Compute a sum of squares, or its root, that the file writes as several operators, in one pass over memory.", true, lengths},
		{"attention", "Compute attention that the file writes as products and a softmax block by block.", true, attentions},
		{"channels", "Compute a product over the channels, which the file moves to the end for it and back, as a convolution.", true, channels},
		{"bias", "Join the addition of a constant to the convolution or product before it.", true, biases},
		{"codes", "Multiply by weights that DequantizeLinear makes of constant codes as they are in the file.", true, codedWeights},
		{"batchnorm", "Join a batch normalisation to the convolution before it, whose weights take its factors.", true, batchNorms},
		{"borders", "Let a convolution see zeros around its picture that the file puts there with an operator of its own.", true, borders},
		{"activation", "Join a clamp to the operator before it, so that it costs no pass over memory.", false, activations},
		{"last", "Keep the channels of pictures of 8-bit codes last in memory between operators that are faster so.", false, channelsLast},
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

// any reports whether a task is so.
func (g *Graph) any(so func(*Task) bool) bool {
	for i := range g.Tasks {
		if so(&g.Tasks[i]) {
			return true
		}
	}
	return false
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

// Revert goes back to the nodes of the file for a lowered task, for those that it
// computes and for conversions that it needs again. It returns the first task that
// has changed.
func (g *Graph) Revert(i int) int {
	first := i
	var back func(j int)
	back = func(j int) {
		u := &g.Tasks[j]
		if u.asIs {
			return
		}
		fused, pair := u.Fused, u.pair
		if u.State == Fused {
			o := &g.Tasks[u.Into]
			o.Fused = slices.DeleteFunc(slices.Clone(o.Fused), func(k int) bool { return k == j })
		}
		u.Node, u.State, u.settled, u.asIs, u.Ready = g.File.Nodes[j], Runs, false, true, false
		wide := u.wide
		u.Fused, u.Lowered, u.wide, u.pair, u.act = nil, false, false, 0, activation.Clamp{}
		first = min(first, j)
		for _, k := range fused {
			back(k)
		}
		if pair > 0 {
			back(pair - 1)
		}
		for _, id := range u.Node.Inputs {
			if id >= 0 && g.maker[id] > 0 && g.Tasks[g.maker[id]-1].State == Fused {
				back(g.maker[id] - 1)
			}
		}
		if !wide {
			return
		}
		// Others read and make twins that hang on this one.
		for k := range g.Tasks {
			if g.Tasks[k].wide {
				back(k)
			}
		}
	}
	back(i)
	g.Settle()
	return min(first, g.relast())
}

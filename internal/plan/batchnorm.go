package plan

import (
	"maps"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/tensor"
)

// batchNorms joins a batch normalisation to the convolution before it, whose weights and bias take its factors
// and terms when they are prepared: the inputs of the normalisation follow the convolution's own, and its epsilon
// is one more attribute.
func batchNorms(g *Graph) {
	if g.model.Format != "onnx" {
		return
	}
	uses := g.readers()
	for j := range g.Tasks {
		u := &g.Tasks[j]
		n := u.Node
		if u.State != Runs || u.asIs || u.Lowered && !u.wide || n.Domain != graph.ONNX || n.Op != "BatchNormalization" || n.Version < 7 ||
			len(n.Inputs) != 5 || len(n.Outputs) != 1 || n.Attrs.Bool("training_mode", false) {
			continue
		}
		i := g.maker[n.Inputs[0]] - 1
		if i < 0 || uses[n.Inputs[0]] != 1 {
			continue
		}
		t := &g.Tasks[i]
		c := t.Node
		if t.State != Runs || t.asIs || t.act.On || t.wide != u.wide || t.Lowered && !t.wide || t.Dynamic || c.Domain != graph.ONNX || c.Op != "Conv" ||
			len(c.Inputs) > 3 || !g.scales(c.Inputs[1:], t.wide) || !g.scales(n.Inputs[1:], t.wide) {
			continue
		}
		m := *c
		m.Inputs = append([]int{c.Inputs[0], c.Inputs[1], -1}, n.Inputs[1:]...)
		if len(c.Inputs) > 2 {
			m.Inputs[2] = c.Inputs[2]
		}
		if m.Attrs = maps.Clone(c.Attrs); m.Attrs == nil {
			m.Attrs = graph.Attrs{}
		}
		m.Attrs["epsilon"] = n.Attrs.Float("epsilon", 1e-5)
		m.Outputs = n.Outputs
		g.replace(i, &m, j)
		t.Lowered = true
	}
	g.Settle()
}

// scales tells whether values are constants in float32, or halves of a task that is computed in it.
func (g *Graph) scales(ids []int, wide bool) bool {
	for _, id := range ids {
		if id < 0 {
			continue
		}
		x := g.Values[id]
		if x == nil || !g.Fixed[id] || x.Type != tensor.Float32 && !(wide && x.Type.IsHalf()) {
			return false
		}
	}
	return true
}

package host

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/count"
	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/plan"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
)

// slot is a place in the list of layers: a step of the main graph or of a body.
type slot struct {
	step   engine.Step
	parent int   // slot of the control-flow step around it, -1 in the main graph
	bodies []int // graphs that the step runs
}

// slots lists the main graph's steps with those of the bodies after their owner.
func slots(s *engine.Session) []slot {
	var out []slot
	for _, p := range plan.List(s.Model, s.GraphSteps) {
		out = append(out, slot{step: p.Step, parent: p.Parent, bodies: p.Bodies})
	}
	return out
}

// clockwork turns one run's timing into the self time of every slot, so that the
// slots add up to the run.
type clockwork struct {
	slots  []slot
	owners map[int][]int // slots that run a graph
	inside map[int][]int // slots listed in a graph
	raw    []int64       // time with what runs inside
	self   []int64
	calls  []int64
}

func newClockwork(ss []slot) *clockwork {
	c := &clockwork{slots: ss, owners: map[int][]int{}, inside: map[int][]int{}, raw: make([]int64, len(ss)), self: make([]int64, len(ss)), calls: make([]int64, len(ss))}
	for i, s := range ss {
		for _, g := range s.bodies {
			c.owners[g] = append(c.owners[g], i)
		}
		if s.step.Graph != 0 {
			c.inside[s.step.Graph] = append(c.inside[s.step.Graph], i)
		}
	}
	return c
}

// read takes over one run.
func (c *clockwork) read(t *engine.Timing) {
	for i, s := range c.slots {
		n := s.step.Node.Index
		if s.step.Graph == 0 {
			c.raw[i], c.calls[i] = t.Bounds[n+1]-t.Bounds[n], 1
			continue
		}
		b := t.Bodies[s.step.Graph][n]
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
			// A body that several steps share is charged by their times.
			// The clock steps and the division round: what is left is never below 0.
			c.self[i] = max(0, c.self[i]-int64(math.Round(float64(inner)*float64(c.raw[i])/float64(outer))))
		}
	}
}

// layer describes a slot without its times.
func (b *builder) layer(i int, s slot) profile.Layer {
	n := s.step.Node
	l := profile.Layer{Index: int64(i), Op: n.Op, Version: new(int64(n.Version)), Options: count.Options(n)}
	switch n.Domain {
	case graph.ONNX, graph.TFLite:
	case graph.TFLiteCustom:
		l.Domain = "custom"
	default:
		l.Domain = n.Domain
	}
	g := b.m.Graphs[s.step.Graph]
	l.Name = layerName(g, n)
	l.Scope = scope(g, n)
	if s.parent >= 0 {
		l.Parent = new(int64(s.parent))
		l.Graph = cmp.Or(g.Name, fmt.Sprintf("graph %d", g.Index))
	}
	for k, t := range s.step.In {
		l.Inputs = append(l.Inputs, port(g, n.Inputs[k], t))
	}
	for k, t := range s.step.Out {
		if n.Outputs[k] >= 0 {
			l.Outputs = append(l.Outputs, port(g, n.Outputs[k], t))
		}
	}
	switch s.step.State {
	case engine.Folded:
		l.Folded = true
	case engine.Fused:
		l.FusedInto = new(int64(b.slotOf(s.step.Graph, s.step.Into)))
	case engine.Unsupported, engine.Skipped, engine.Failed:
		l.Unsupported = s.step.State == engine.Unsupported
		l.Reason = s.step.Err.Error()
	}
	l.Kernel = s.step.Kernel
	l.Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: b.sources(s)}
	b.work(&l, s)
	return l
}

// sources names the nodes of the file that the slot stands for: its own, and
// those fused into it.
func (b *builder) sources(s slot) []profile.SourceNode {
	g := b.m.Graphs[s.step.Graph]
	node := func(i int) profile.SourceNode {
		n := g.Nodes[i]
		return profile.SourceNode{Graph: int64(g.Index), Node: int64(i), Name: n.Name, Op: n.Op}
	}
	out := []profile.SourceNode{node(s.step.Node.Index)}
	for _, i := range s.step.Fused {
		out = append(out, node(i))
	}
	return out
}

func (b *builder) slotOf(g, node int) int {
	for i, s := range b.slots {
		if s.step.Graph == g && s.step.Node.Index == node {
			return i
		}
	}
	return -1
}

// work fills in what internal/count knows.
func (b *builder) work(l *profile.Layer, s slot) {
	w := count.Count(b.m, b.m.Graphs[s.step.Graph], s.step.Node, s.step.In, s.step.Out)
	l.Ops, l.MACs, l.MACsExecuted = w.Ops, w.MACs, w.MACsExecuted
	l.MLTKOps, l.MLTKMACs = w.MLTKOps, w.MLTKMACs
	l.Params, l.WeightsBytes = w.Params, w.WeightBytes
	l.BytesRead, l.BytesWritten = w.BytesRead, w.BytesWritten
	l.Sparsity = count.WeightZeros(b.m.Graphs[s.step.Graph], s.step.Node, &b.zeros)
}

// layerName is the node's own name, or that of its first output.
func layerName(g *graph.Graph, n *graph.Node) string {
	if n.Name != "" {
		return n.Name
	}
	for _, id := range n.Outputs {
		if id >= 0 {
			// A converter joins the names of all operators that it fused.
			name, _, _ := strings.Cut(g.Values[id].Name, ";")
			return name
		}
	}
	return ""
}

// scope is the path in front of the name's last part, or the functions that the
// node was inlined from.
func scope(g *graph.Graph, n *graph.Node) string {
	if len(n.Function) > 0 {
		return strings.Join(n.Function, "/")
	}
	name := strings.Trim(layerName(g, n), "/")
	if !strings.Contains(name, "/") {
		return ""
	}
	return path.Dir(name)
}

// port describes one input or output.
func port(g *graph.Graph, id int, t *tensor.Tensor) profile.Tensor {
	if id < 0 {
		return profile.Tensor{Absent: true}
	}
	v := g.Values[id]
	p := profile.Tensor{Name: v.Name, Constant: v.Const != nil && !v.Variable}
	switch {
	case t != nil:
		p.DType, p.Shape = t.Type.String(), dims(t.Shape)
		if !t.Type.IsContainer() && t.Type != tensor.String && t.Type.Bits() > 0 && !slices.ContainsFunc(t.Shape, func(d int) bool { return d < 0 }) {
			p.Bytes = new(int64(t.Bytes()))
		}
	default:
		if v.Type != tensor.Invalid {
			p.DType = v.Type.String()
		}
		if v.HasShape {
			p.Shape = dims(v.Shape)
		}
	}
	if q := v.Quant; q != nil && len(q.Scale) == 1 && len(q.Zero) >= 1 {
		p.Scale, p.ZeroPoint = new(float64(q.Scale[0])), new(q.Zero[0])
	}
	return p
}

func dims(s []int) []int64 {
	out := make([]int64, len(s))
	for i, d := range s {
		out[i] = int64(d)
	}
	return out
}

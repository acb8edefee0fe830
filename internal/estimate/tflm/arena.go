package tflm

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// Arena is the memory of one model.
type Arena struct {
	// Plan is the planned part: activations and scratch buffers. It is nil if it cannot be
	// planned; Problem then says why.
	Plan    *memplan.Plan
	Problem string
	// Scratch are the scratch buffers that operators request.
	Scratch []memplan.Scratch
	// PersistentBytes is the memory that lives as long as the model is loaded, by formula.
	PersistentBytes int
	// NodeBytes is the memory of tensors and scratch buffers in use while each node of the main
	// graph runs, each buffer rounded up as planned.
	NodeBytes []int
	// PeakBytes is the largest of them: no plan is smaller.
	PeakBytes int
	// Unknown lists operators whose scratch memory is unknown.
	Unknown []string
}

// Total is the required arena size, 0 if unknown.
func (a *Arena) Total() int {
	if a.Plan == nil {
		return 0
	}
	return a.Plan.Bytes + a.PersistentBytes
}

// Plan plans the memory of a TFLite model for a family of kernels.
func Plan(m *graph.Model, k Kernels) (*Arena, error) {
	if m.Format != "tflite" {
		return nil, fmt.Errorf("TensorFlow Lite Micro runs .tflite models, this one is %s", m.Format)
	}
	if len(m.Graphs) == 0 {
		return nil, fmt.Errorf("the model has no graph")
	}
	m = stored(m)
	a := &Arena{PersistentBytes: persistent(m, k)}
	a.Scratch, a.Unknown = scratch(m, k)
	plan, err := memplan.TFLM(m, a.Scratch)
	if err != nil {
		a.Problem = err.Error()
		return a, nil //nolint:nilerr // the rest of the arena is known
	}
	a.Plan = plan
	a.NodeBytes = inUse(m.Main(), plan)
	a.PeakBytes = slices.Max(append([]int{0}, a.NodeBytes...))
	return a, nil
}

// stored gives values without a shape the one that the runtime assumes: a scalar.
func stored(m *graph.Model) *graph.Model {
	whole := true
	for _, g := range m.Graphs {
		for _, v := range g.Values {
			whole = whole && v.HasShape
		}
	}
	if whole {
		return m
	}
	c := *m
	c.Graphs = slices.Clone(m.Graphs)
	for i, g := range c.Graphs {
		gc := *g
		gc.Values = slices.Clone(g.Values)
		for j, v := range gc.Values {
			if !v.HasShape {
				vc := *v
				vc.HasShape, vc.Shape = true, nil
				gc.Values[j] = &vc
			}
		}
		c.Graphs[i] = &gc
	}
	return &c
}

// inUse sums the planned buffers that are live while each node of the main graph runs. Lifetimes
// count allocation scopes. In models without control flow these are in node order; otherwise the
// values read and written show the nodes.
func inUse(g *graph.Graph, p *memplan.Plan) []int {
	first, last := map[int]int{}, map[int]int{}
	for _, id := range g.Inputs {
		first[id], last[id] = -1, -1
	}
	for i, n := range g.Nodes {
		for _, id := range n.Inputs {
			last[id] = i
		}
		for _, id := range n.Outputs {
			if _, ok := first[id]; !ok {
				first[id] = i
			}
			last[id] = max(last[id], i)
		}
	}
	for _, id := range g.Outputs {
		last[id] = len(g.Nodes)
	}
	out := make([]int, len(g.Nodes))
	align := func(n int) int { return (n + memplan.TFLMAlign - 1) / memplan.TFLMAlign * memplan.TFLMAlign }
	scope := scratchNodes(g, p)
	for i, e := range p.Entries {
		if e.Graph != g.Index {
			continue
		}
		from := first[e.Value]
		to, used := last[e.Value]
		if e.Value < 0 {
			from, to, used = scope[i], scope[i], true
		}
		if !used {
			continue // planned, and in use while no node runs
		}
		for n := max(from, 0); n <= to && n < len(out); n++ {
			out[n] += align(e.Bytes)
		}
	}
	return out
}

// scratchNodes finds the node of each scratch buffer by its scope: the main graph's nodes open
// scopes 1, 2, … unless bodies come in between.
func scratchNodes(g *graph.Graph, p *memplan.Plan) map[int]int {
	m := map[int]int{}
	for i, e := range p.Entries {
		if e.Value < 0 {
			m[i] = min(max(e.First-1, 0), max(len(g.Nodes)-1, 0))
		}
	}
	return m
}

// layout holds the sizes of the runtime's own structures for a family of kernels, in bytes.
type layout struct {
	channel float64 // per output channel of convolutions
	output  float64 // per output of fully connected layers
	conv    float64 // per convolution
	dense   float64 // per fully connected layer
	other   float64 // per other operator
	fixed   float64
}

// Fitted to the memory that the MLTK profiler found by search on devices (within 0.5 % above 30
// kB, 5 % below), and for the reference kernels to the allocation record of person_detect on a
// 32-bit device.
var layouts = map[Kernels]layout{
	MVP:       {channel: 4.3, output: 1.9, conv: 191.1, dense: 189.5, other: 177.4, fixed: 441.2},
	MVPFirst:  {channel: 7.06, output: 2.11, conv: 251.2, dense: 199.8, other: 80.5, fixed: 625.6},
	CMSISNN:   {channel: 8, conv: 195, dense: 195, other: 150, fixed: 450},
	CMSISMVE:  {channel: 8, conv: 195, dense: 195, other: 150, fixed: 450},
	Reference: {channel: 8, conv: 195, dense: 195, other: 150, fixed: 450},
}

func persistent(m *graph.Model, k Kernels) int {
	l, ok := layouts[k]
	if !ok {
		l = layouts[Reference]
	}
	v := l.fixed
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			channels := 0.0
			if out := count.Declared(g, n.Outputs); len(out) > 0 && out[0] != nil && out[0].Rank() > 0 {
				channels = float64(max(out[0].Shape[out[0].Rank()-1], 0))
			}
			switch n.Op {
			case "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV":
				v += l.conv + l.channel*channels
			case "FULLY_CONNECTED":
				v += l.dense + l.output*channels
			default:
				v += l.other
			}
			if in := count.Declared(g, n.Inputs); n.Op == "SOFTMAX" && len(in) > 0 && in[0] != nil && in[0].Type == tensor.Int16 {
				v += softmaxTables
			}
		}
		for _, val := range g.Values {
			if val.Variable {
				v += float64(count.Declared(g, []int{val.ID})[0].Bytes())
			}
		}
	}
	return int(v+0.5) + variables(m)
}

// softmaxTables is the size of the lookup tables of softmax with 16-bit activations: the
// exponential and the reciprocal at 513 points of 16 bits each.
const softmaxTables = 2 * 513 * 2

// variables returns the memory of resource variables: the runtime keeps one buffer for each name,
// as large as the values read from it or assigned to it.
func variables(m *graph.Model) int {
	type name struct{ container, shared string }
	sizes := map[name]int{}
	for _, g := range m.Graphs {
		handles := map[int]name{}
		for _, n := range g.Nodes {
			at := func(ids []int) int {
				if len(ids) == 0 {
					return -1
				}
				return ids[0]
			}
			switch n.Op {
			case "VAR_HANDLE":
				handles[at(n.Outputs)] = name{n.Attrs.Str("container", ""), n.Attrs.Str("shared_name", "")}
			case "READ_VARIABLE", "ASSIGN_VARIABLE":
				of, ok := handles[at(n.Inputs)]
				values := n.Outputs
				if n.Op == "ASSIGN_VARIABLE" && len(n.Inputs) > 1 {
					values = n.Inputs[1:]
				}
				if t := count.Declared(g, values); ok && len(t) > 0 && t[0] != nil {
					sizes[of] = max(sizes[of], t[0].Bytes())
				}
			}
		}
	}
	sum := 0
	for _, b := range sizes {
		sum += (b + memplan.TFLMAlign - 1) / memplan.TFLMAlign * memplan.TFLMAlign
	}
	return sum
}

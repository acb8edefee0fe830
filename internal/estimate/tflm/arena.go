package tflm

import (
	"fmt"
	"slices"

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
	// PersistentBytes is the memory that lives as long as the model is loaded.
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
	a := &Arena{}
	a.Scratch, a.Unknown = scratch(m, k)
	if l, ok := fits[k]; ok {
		a.PersistentBytes = l.bytes(m)
	} else {
		a.PersistentBytes = persistent(m, a.Scratch, device(k))
	}
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

// fit approximates the persistent memory of kernels whose structures are not public, in bytes.
type fit struct {
	channel float64 // per output channel of convolutions
	output  float64 // per output of fully connected layers
	conv    float64 // per convolution
	dense   float64 // per fully connected layer
	other   float64 // per other operator
	fixed   float64
}

// fits agree with the memory that the MLTK profiler found by search on devices: within 0.5 %
// above 30 kB, 5 % below.
var fits = map[Kernels]fit{
	MVP:      {channel: 4.3, output: 1.9, conv: 191.1, dense: 189.5, other: 177.4, fixed: 441.2},
	MVPFirst: {channel: 7.06, output: 2.11, conv: 251.2, dense: 199.8, other: 80.5, fixed: 625.6},
}

// bytes returns the persistent memory of a model. The buffers that operators without a kernel of
// the vendor request are exact.
func (l fit) bytes(m *graph.Model) int {
	t := &tail{abi: device("").abi}
	v := l.fixed
	t.each(m, func(o *operands, k kernel) {
		channels := 0.0
		if out := o.output(0); out.Rank() > 0 {
			channels = float64(max(out.Shape[out.Rank()-1], 0))
		}
		if t := o.input(0).Type; t == tensor.Float32 {
			channels = 0 // arrays of channels are for quantised kernels
		}
		switch o.n.Op {
		case "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV":
			v += l.conv + l.channel*channels
		case "FULLY_CONNECTED":
			v += l.dense + l.output*channels
		default:
			v += l.other
			if k.prepare != nil {
				k.prepare(o)
			}
		}
	})
	_, sizes := variables(m)
	for _, n := range sizes {
		t.buffer(n)
	}
	t.variableTensors(m)
	return int(v+0.5) + t.used
}

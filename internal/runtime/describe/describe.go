package describe

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// Model makes the profile of a planned model before any source has added to it: the model, its
// layers with those of bodies after their owner, and the totals of their counts. Layers follow
// the slots, which belong to the plan. Every layer is in the state [profile.Ran]; the source that
// runs or estimates the model sets the actual state. The source also sets target and settings;
// until then a name says what the profile describes. The model's identity, nil if unknown, is
// requested last, so that it can be computed concurrently until then.
func Model(p *plan.Plan, slots []plan.Slot, identity func() (*Identity, error)) (*profile.Profile, error) {
	m := p.Model
	d := &describer{m: m, slots: slots, zeros: ZerosBudget, made: map[int][]*graph.Node{}}
	out := &profile.Profile{
		Schema: profile.SchemaV1, Model: file(m, p.Remarks()),
		Target: profile.Target{ID: "none", Kind: profile.TargetSimulator},
		Layers: make([]profile.Layer, len(slots)),
	}
	g := m.Main()
	for _, i := range g.Inputs {
		out.Model.Inputs = append(out.Model.Inputs, input(g, i, p.Main.Known(i)))
	}
	for _, i := range g.Outputs {
		if i >= 0 {
			out.Model.Outputs = append(out.Model.Outputs, Port(g, i, p.Main.Known(i)))
		}
	}
	for i := range slots {
		out.Layers[i] = d.layer(i)
	}
	d.layerWeights(out.Layers)
	d.calls(out.Layers)
	out.Memory = d.memory(out.Layers, p)
	out.Totals.Params, out.Totals.WeightsBytes = parameters(m)
	if n := countPrecomputed(m, slots); n > 0 {
		out.Totals.ComputedParams = &n
	}
	if m.FileBytes > 0 {
		out.Totals.FlashBytes = new(m.FileBytes + m.BesideBytes)
	}
	for _, text := range m.Notes {
		out.Findings = append(out.Findings, profile.Finding{ID: "file.contents", Severity: profile.Info, Text: text})
	}
	language(out, m.Language)
	if identity == nil {
		return out, nil
	}
	id, err := identity()
	if err != nil {
		return nil, err
	}
	out.Model.SHA256, out.Model.StructureSHA256, out.Model.WeightsSHA256 = id.File, id.Structure, id.Weights
	return out, nil
}

type describer struct {
	m     *graph.Model
	slots []plan.Slot
	zeros int64 // number of weights that may still be scanned for zeros
	made  map[int][]*graph.Node
}

// producers returns the nodes that produce the values of a graph.
func (d *describer) producers(at int) []*graph.Node {
	made, ok := d.made[at]
	if !ok {
		made = weights.Producers(d.m.Graphs[at])
		d.made[at] = made
	}
	return made
}

// file describes the model file.
func file(m *graph.Model, remarks []string) profile.Model {
	d := profile.Model{
		Name: m.ShortName(), Path: m.Path, Format: m.Format, Producer: m.Producer, Description: m.Description, Warnings: slices.Concat(m.Warnings, remarks),
	}
	if m.FileBytes > 0 && m.Absent == nil {
		d.FileBytes = new(m.FileBytes + m.BesideFileBytes)
	}
	if m.IRVersion > 0 {
		d.FormatVersion = new(int64(m.IRVersion))
	}
	if entries := m.Entries(); len(entries) > 1 {
		for _, e := range entries {
			d.Signatures = append(d.Signatures, e.Keys[0])
			if e.Graph == 0 {
				d.Signature = e.Keys[0]
			}
		}
	}
	for dom, v := range m.Opsets {
		if d.Opsets == nil {
			d.Opsets = map[string]int64{}
		}
		d.Opsets[cmp.Or(dom, "ai.onnx")] = int64(v)
	}
	return d
}

// layer describes a slot.
func (d *describer) layer(i int) profile.Layer {
	s := &d.slots[i]
	n, g := s.Node, d.m.Graphs[s.Graph]
	l := profile.Layer{Index: int64(i), Op: n.Op, Version: new(int64(n.Version)), Options: append(Options(n), bounds(g, n)...), OptionTable: n.Table, State: profile.Ran, Constant: s.State == plan.Folded}
	switch n.Domain {
	case graph.ONNX, graph.TFLite:
	case graph.TFLiteCustom:
		l.Domain = "custom"
	default:
		l.Domain = n.Domain
	}
	l.Name, l.Scope = name(g, n), scope(g, n)
	if s.Parent >= 0 {
		l.Parent = new(int64(s.Parent))
		l.Graph = cmp.Or(g.Name, fmt.Sprintf("graph %d", g.Index))
	}
	l.Inputs, l.Outputs = Ports(g, s)
	l.Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{Source(g, n)}}
	w := Work(d.m, s)
	l.Ops, l.MACs, l.MACsExecuted = w.Ops, w.MACs, w.MACsExecuted
	l.MLTKOps, l.MLTKMACs = w.MLTKOps, w.MLTKMACs
	l.Params, l.WeightsBytes = w.Params, w.WeightBytes
	l.BytesRead, l.BytesWritten = w.BytesRead, w.BytesWritten
	read := weights.ReadingOf(g, d.producers(s.Graph), n)
	l.Weights, l.Sparsity = weightsOf(g, read), weightZeros(g, read, &d.zeros)
	return l
}

// Work counts the operations of one execution of a step.
func Work(m *graph.Model, s *plan.Slot) count.Work {
	g := m.Graphs[s.Graph]
	return count.Count(m, g, s.Node, known(g, s.Node.Inputs, s.In), s.Out)
}

// Source refers to a node of the file.
func Source(g *graph.Graph, n *graph.Node) profile.SourceNode {
	return profile.SourceNode{Graph: int64(g.Index), Node: int64(n.Index), Name: n.Name, Op: n.Op}
}

// name returns the node's own name, or the name of its first output.
func name(g *graph.Graph, n *graph.Node) string {
	if n.Name != "" {
		return n.Name
	}
	for _, id := range n.Outputs {
		if id >= 0 {
			// Converters join the names of all operators that they fuse with semicolons.
			s, _, _ := strings.Cut(g.Values[id].Name, ";")
			return s
		}
	}
	return ""
}

// scope returns the module that the file names for the node, the functions that it was inlined
// from, or the path before the last part of its name.
func scope(g *graph.Graph, n *graph.Node) string {
	if n.Scope != "" {
		return n.Scope
	}
	if len(n.Function) > 0 {
		return strings.Join(n.Function, "/")
	}
	s := strings.Trim(name(g, n), "/")
	if !strings.Contains(s, "/") {
		return ""
	}
	return path.Dir(s)
}

// Ports describes the inputs and outputs of a step; outputs that the node does not produce are
// omitted.
func Ports(g *graph.Graph, s *plan.Slot) (in, out []profile.Tensor) {
	for k, t := range s.In {
		in = append(in, Port(g, s.Node.Inputs[k], t))
	}
	for k, t := range s.Out {
		if s.Node.Outputs[k] >= 0 {
			out = append(out, Port(g, s.Node.Outputs[k], t))
		}
	}
	return in, out
}

// Port describes a value of a graph by its known type and shape, else by the file's declaration.
// A negative id is an absent input or output.
func Port(g *graph.Graph, id int, t *tensor.Tensor) profile.Tensor {
	if id < 0 || id >= len(g.Values) {
		return profile.Tensor{Absent: true}
	}
	v := g.Values[id]
	p := profile.Tensor{Name: v.Name, Constant: v.Const != nil && !v.Variable}
	switch {
	case t != nil && t.Type != tensor.Invalid:
		p.DType, p.Shape = t.Type.String(), dims(t.Shape)
		p.Bytes = size(t)
	default:
		if v.Type != tensor.Invalid {
			p.DType = v.Type.String()
		}
		if v.HasShape {
			p.Shape = dims(v.Shape)
		}
	}
	if q := v.Quant; q != nil && len(q.Scale) == 1 && len(q.Zero) >= 1 && !math.IsNaN(float64(q.Scale[0])) && !math.IsInf(float64(q.Scale[0]), 0) {
		p.Scale, p.ZeroPoint = new(float64(q.Scale[0])), new(q.Zero[0])
	} else if q != nil && len(q.Scale) > 1 && q.Block == 0 && q.Axis >= 0 {
		// Both are NaN if one scale is.
		if low, high := slices.Min(q.Scale), slices.Max(q.Scale); low >= 0 && !math.IsInf(float64(high), 0) {
			p.ChannelScales, p.ChannelAxis = &[2]float64{float64(low), float64(high)}, new(int64(q.Axis))
		}
	}
	return p
}

// input is Port with the declared shape if dimensions were open.
func input(g *graph.Graph, id int, t *tensor.Tensor) profile.Tensor {
	p := Port(g, id, t)
	if v := g.Values[id]; v.HasShape && slices.ContainsFunc(v.Shape, func(n int) bool { return n < 0 }) {
		p.Declared = dims(v.Shape)
		if slices.ContainsFunc(v.DimNames, func(s string) bool { return s != "" }) {
			p.DimNames = make([]string, len(v.Shape))
			copy(p.DimNames, v.DimNames)
		}
	}
	return p
}

// size returns the bytes of a value's elements, nil if they are not known.
func size(t *tensor.Tensor) *int64 {
	if t == nil || t.Type.IsContainer() || t.Type == tensor.String || t.Type.Bits() <= 0 {
		return nil
	}
	n, err := tensor.CheckShape(t.Type, t.Shape)
	if err != nil {
		return nil
	}
	return new(int64(t.Type.Bytes(n)))
}

func dims(s []int) []int64 {
	out := make([]int64, len(s))
	for i, d := range s {
		out[i] = int64(d)
	}
	return out
}

// known returns a step's inputs, with the elements of constants.
func known(g *graph.Graph, ids []int, in []*tensor.Tensor) []*tensor.Tensor {
	in = slices.Clone(in)
	for k, id := range ids {
		if k < len(in) && id >= 0 && g.Values[id].Const != nil && !g.Values[id].Variable {
			in[k] = g.Values[id].Const
		}
	}
	return in
}

// parameters counts weights and their stored size, each constant once regardless of how many
// nodes and graphs read it.
func parameters(m *graph.Model) (params, bytes *int64) {
	var n, size int64
	var counted constants
	for _, g := range m.Graphs {
		for _, node := range g.Nodes {
			for k, id := range node.Inputs {
				if id < 0 || id >= len(g.Values) {
					continue
				}
				if v := g.Values[id]; count.Weight(node, k, v) && counted.first(v.Const) {
					n += count.Params(node, k, v)
					size += v.StoredBytes()
				}
			}
		}
	}
	return &n, &size
}

package estimate

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/tflm"
	"github.com/opmeter/opmeter/internal/count"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
)

type builder struct {
	m       *graph.Model
	t       *chip.Target
	rt      *chip.Runtime
	clock   float64
	costs   *chip.Costs
	kernels tflm.Kernels // "" when the runtime is not TensorFlow Lite Micro
	p       *profile.Profile
	missing []int64 // layers without an estimate
	once    []int64 // control flow that is estimated for one pass through its bodies
}

// describe fills in model, target and settings.
func (b *builder) describe(opt chip.Options) {
	m, t := b.m, b.t
	name := cmp.Or(opt.Name, m.ShortName())
	p := &profile.Profile{Schema: profile.SchemaV1}
	p.Model = profile.Model{Name: name, Path: m.Path, Format: m.Format, Producer: m.Producer, Description: m.Description, Warnings: m.Warnings}
	if m.FileBytes > 0 {
		p.Model.FileBytes = new(m.FileBytes)
	}
	if m.IRVersion > 0 {
		p.Model.FormatVersion = new(int64(m.IRVersion))
	}
	g := m.Main()
	p.Model.Inputs, p.Model.Outputs = ports(g, g.Inputs), ports(g, g.Outputs)
	p.Target = profile.Target{ID: t.ID, Kind: profile.TargetSimulator, ClockHz: new(b.clock), Description: t.Name, Engine: b.rt.Name}
	if t.Accelerator != nil {
		p.Target.Accelerator = t.Accelerator.Name
	}
	b.peaks(&p.Target)
	p.Settings.Engine, p.Settings.EngineVersion = b.rt.Name, b.rt.Versions
	p.Layers = []profile.Layer{}
	b.p = p
}

// peaks fills in the roofline where the target file has what it takes.
func (b *builder) peaks(p *profile.Target) {
	var how []string
	macs, unit := b.t.Core.PeakMACs, b.t.Core.Name
	clock := b.clock
	if a := b.t.Accelerator; a != nil {
		macs, unit = a.PeakMACs, strings.ToUpper(a.Name)
		if a.Clock > 0 {
			clock = float64(a.Clock)
		}
	}
	if macs > 0 {
		p.PeakOpsPerSecond = new(2 * macs * clock)
		how = append(how, fmt.Sprintf("%g multiply-accumulates of 8-bit integers per cycle of %s", macs, unit))
	}
	// An accelerator has memory ports of its own.
	if v := b.t.Core.LoadBytes; v > 0 && b.t.Accelerator == nil {
		p.PeakBytesPerSecond = new(v * b.clock)
		how = append(how, fmt.Sprintf("%g bytes loaded per cycle without waiting", v))
	}
	if len(how) > 0 {
		p.PeakMethod = "target file: " + strings.Join(how, ", ")
	}
}

func ports(g *graph.Graph, ids []int) []profile.Tensor {
	list := make([]profile.Tensor, 0, len(ids))
	ts := count.Declared(g, ids)
	for i, id := range ids {
		if id < 0 || id >= len(g.Values) {
			list = append(list, profile.Tensor{Absent: true})
			continue
		}
		v, t := g.Values[id], ts[i]
		p := profile.Tensor{Name: v.Name, Constant: v.Const != nil && !v.Variable}
		if t.Type != tensor.Invalid {
			p.DType = t.Type.String()
		}
		if v.HasShape || v.Const != nil {
			p.Shape = make([]int64, len(t.Shape))
			whole := true
			for k, d := range t.Shape {
				p.Shape[k] = int64(d)
				whole = whole && d >= 0
			}
			_, err := tensor.CheckShape(t.Type, t.Shape)
			if whole && err == nil && t.Type != tensor.Invalid && !t.Type.IsContainer() && t.Type.Bits() > 0 {
				p.Bytes = new(int64(t.Type.Bytes(tensor.Elements(t.Shape))))
			}
		}
		if q := v.Quant; q != nil && len(q.Scale) == 1 && len(q.Zero) >= 1 {
			p.Scale, p.ZeroPoint = new(float64(q.Scale[0])), new(q.Zero[0])
		}
		list = append(list, p)
	}
	return list
}

// layers fills in the nodes of the main graph.
func (b *builder) layers() {
	g := b.m.Main()
	budget := int64(count.ZerosBudget)
	for i, n := range g.Nodes {
		c := &b.costs.Layers[i]
		l := profile.Layer{Index: int64(i), Op: n.Op, Version: new(int64(n.Version)), Options: count.Options(n), Kernel: c.Kernel}
		switch n.Domain {
		case graph.ONNX, graph.TFLite:
		case graph.TFLiteCustom:
			l.Domain = "custom"
		default:
			l.Domain = n.Domain
		}
		l.Name = layerName(g, n)
		if s := strings.Trim(l.Name, "/"); strings.Contains(s, "/") {
			l.Scope = path.Dir(s)
		}
		l.Inputs, l.Outputs = ports(g, n.Inputs), ports(g, n.Outputs)
		w := count.Count(b.m, g, n, count.Declared(g, n.Inputs), count.Declared(g, n.Outputs))
		l.Ops, l.MACs, l.MACsExecuted = w.Ops, w.MACs, w.MACsExecuted
		l.MLTKOps, l.MLTKMACs = w.MLTKOps, w.MLTKMACs
		l.Params, l.WeightsBytes = w.Params, w.WeightBytes
		l.BytesRead, l.BytesWritten = w.BytesRead, w.BytesWritten
		l.Sparsity = count.WeightZeros(g, n, &budget)
		l.Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Graph: int64(g.Index), Node: int64(n.Index), Name: n.Name, Op: n.Op}}}
		b.cost(&l, c)
		b.p.Layers = append(b.p.Layers, l)
	}
}

// cost moves a layer's cycles into the profile.
func (b *builder) cost(l *profile.Layer, c *chip.LayerCost) {
	how := b.costs.Method
	l.CPUCycles = metric(c.CPU, 1, how)
	l.AcceleratorCycles = metric(c.Accelerator, 1, how)
	if c.Simulated >= 0 && c.Accelerator != nil {
		l.SimulatorCycles = profile.Value(profile.Simulated, float64(c.Simulated), "counted instructions and stalls")
	}
	l.AcceleratorCounts = c.Counts
	l.Latency = metric(c.Latency, 1/b.clock, how)
	l.Energy = metric(b.energy(l, c), 1, b.energyMethod())
	switch c.Verdict {
	case chip.Accelerated:
		l.Accelerated = "yes"
	case chip.NotOperator, chip.WrongType:
		l.Accelerated, l.Reason = "no", c.Reason
	case chip.Limit:
		l.Accelerated, l.Reason = "no", "limit exceeded: "+c.Reason
	}
	if c.Missing != nil {
		b.missing = append(b.missing, l.Index)
		if l.Reason != "" {
			l.Reason += "; "
		}
		l.Reason += "no estimate: " + c.Missing.Text
	}
}

// energy is the power model applied to one layer.
func (b *builder) energy(l *profile.Layer, c *chip.LayerCost) *chip.Figure {
	return b.t.Energy.Layer(c, b.clock, l.MACsExecuted)
}

func (b *builder) energyMethod() string {
	if b.t.Energy == nil {
		return b.costs.Method
	}
	s := "total supply"
	if b.t.Energy.Reference == "above-idle" {
		s = "above idle"
	}
	if v := b.t.Supply; v != nil {
		s += " at " + trim(v.Volts) + " V"
	}
	return s
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

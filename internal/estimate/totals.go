package estimate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/tflm"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/memplan"
	"github.com/opmeter/opmeter/internal/plan"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
)

// layers writes "1 layer has" and "2 layers have".
func layers(n int, one, more string) string {
	if n == 1 {
		return "1 layer " + one
	}
	return fmt.Sprintf("%d layers %s", n, more)
}

func trim(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// totals sums the layers.
func (b *builder) totals() {
	t := &b.p.Totals
	t.Layers = new(int64(len(b.p.Layers)))
	var uncounted, unsupported int64
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		for _, f := range []struct{ to, v **int64 }{
			{&t.Ops, &l.Ops},
			{&t.MACs, &l.MACs},
			{&t.MACsExecuted, &l.MACsExecuted},
			{&t.MLTKOps, &l.MLTKOps},
			{&t.MLTKMACs, &l.MLTKMACs},
			{&t.Params, &l.Params},
			{&t.WeightsBytes, &l.WeightsBytes},
			{&t.BytesRead, &l.BytesRead},
			{&t.BytesWritten, &l.BytesWritten},
		} {
			if *f.v == nil {
				continue
			}
			if *f.to == nil {
				*f.to = new(int64(0))
			}
			**f.to += **f.v
		}
		if l.Ops == nil {
			uncounted++
		}
		if b.costs.Layers[i].Verdict == chip.Limit {
			unsupported++
		}
	}
	if uncounted > 0 {
		t.UncountedLayers = &uncounted
	}
	if b.t.Accelerator != nil {
		t.UnsupportedLayers = &unsupported
	}
	if b.m.FileBytes > 0 {
		t.FlashBytes = new(b.m.FileBytes)
	}
	b.cycles()
}

// cycles sums what the cycle model said.
func (b *builder) cycles() {
	c, t := b.costs, &b.p.Totals
	var latency, cpu, acc, energy *chip.Figure
	var latencySpread, cpuSpread, energySpread spread
	var simulated int64
	var any bool
	for i := range c.Layers {
		l := &c.Layers[i]
		latency, cpu, acc = sum(latency, l.Latency), sum(cpu, l.CPU), sum(acc, l.Accelerator)
		e := b.energy(&b.p.Layers[i], l)
		energy = sum(energy, e)
		latencySpread.add(l.Latency, l.Carried)
		cpuSpread.add(l.CPU, l.Carried)
		energySpread.add(e, l.Carried)
		if l.Simulated >= 0 {
			simulated += l.Simulated
			any = true
		}
	}
	how := c.Method
	if cal := b.rt.Calibration; cal != nil && cal.Band != nil {
		// Errors of layers partly cancel: the band of whole models is narrower.
		narrow(latency, cal.Band, latencySpread)
		narrow(cpu, cal.Band, cpuSpread)
		if b.t.Energy != nil && b.t.Energy.Band != nil {
			narrow(energy, &[2]float64{cal.Band[0] * b.t.Energy.Band[0], cal.Band[1] * b.t.Energy.Band[1]}, energySpread)
		}
	}
	if len(b.missing) > 0 {
		how += fmt.Sprintf("; incomplete: %d of %d layers", len(c.Layers)-len(b.missing), len(c.Layers))
	}
	for _, f := range []struct{ v, own **chip.Figure }{{&latency, &c.Latency}, {&cpu, &c.CPU}, {&acc, &c.Accelerator}, {&energy, &c.Energy}} {
		if *f.own != nil {
			*f.v = *f.own
		}
	}
	t.Latency, t.CPUCycles, t.AcceleratorCycles = metric(latency, 1/b.clock, how), metric(cpu, 1, how), metric(acc, 1, how)
	t.Energy = metric(energy, 1, b.energyMethod())
	if any {
		t.SimulatorCycles = profile.Value(profile.Simulated, float64(simulated), "counted instructions and stalls")
	}
	if latency != nil && latency.Value > 0 {
		for i := range b.p.Layers {
			if v, ok := b.p.Layers[i].Latency.Best(); ok {
				b.p.Layers[i].Share = new(min(v*b.clock/latency.Value, 1))
			}
		}
	}
}

// spread adds up the layers' distances to the ends of their bands: squares of
// errors that are independent, and errors that go together as they are.
type spread struct{ below, above, belowAll, aboveAll float64 }

func (s *spread) add(f *chip.Figure, together bool) {
	switch {
	case f == nil:
	case together:
		s.belowAll += f.Value - f.Low
		s.aboveAll += f.High - f.Value
	default:
		s.below += (f.Value - f.Low) * (f.Value - f.Low)
		s.above += (f.High - f.Value) * (f.High - f.Value)
	}
}

// narrow gives a sum the band of whole models, but no narrower than the errors of
// its layers make it: one badly known layer may be most of the time. The low end
// stays above zero: a twentieth of the value.
func narrow(f *chip.Figure, band *[2]float64, s spread) {
	if f != nil {
		f.Low = max(min(f.Value*band[0], f.Value-math.Hypot(math.Sqrt(s.below), s.belowAll)), f.Value/20)
		f.High = max(f.Value*band[1], f.Value+math.Hypot(math.Sqrt(s.above), s.aboveAll))
	}
}

// memory plans the arena.
func (b *builder) memory() {
	k := b.kernels
	own := k != ""
	if !own {
		k = tflm.CMSISNN
	}
	if b.m.Format == "onnx" {
		b.onnxMemory()
		return
	}
	a, err := tflm.Plan(b.m, k)
	if err != nil {
		b.find("target.memory", profile.Warning, "Memory is not estimated: "+err.Error()+".")
		return
	}
	if a.Plan == nil {
		b.find("target.memory", profile.Warning, "The arena cannot be planned: "+a.Problem+".")
		return
	}
	mem := &profile.Memory{PeakBytes: new(int64(a.PeakBytes))}
	b.p.Memory = mem
	for i, n := range a.NodeBytes {
		b.p.Layers[i].LiveBytes = new(int64(n))
	}
	if !own {
		// Another runtime plans by rules of its own: the activations alive at one time
		// are all that follows from the model.
		return
	}
	mem.Planner, mem.AlignBytes = "tflm", new(int64(memplan.TFLMAlign))
	mem.ArenaBytes = new(int64(a.Plan.Bytes))
	mem.PersistentBytes = new(int64(a.PersistentBytes))
	scratch := 0
	for _, s := range a.Scratch {
		scratch = max(scratch, s.Bytes)
	}
	mem.ScratchBytes = new(int64(scratch))
	for _, n := range a.Plan.Nodes {
		mem.StepLayers = append(mem.StepLayers, int64(n))
	}
	for _, e := range a.Plan.Entries {
		pl := profile.Placement{Bytes: int64(e.Bytes), Offset: int64(e.Offset), First: int64(e.First), Last: int64(e.Last), Scratch: e.Value < 0}
		if e.Value >= 0 {
			pl.Name = b.m.Graphs[e.Graph].Values[e.Value].Name
		} else if s := a.Scratch[min(e.Scratch, len(a.Scratch)-1)]; s.Node < len(b.m.Graphs[s.Graph].Nodes) {
			pl.Name = "scratch of " + b.m.Graphs[s.Graph].Nodes[s.Node].Op
		}
		mem.Plan = append(mem.Plan, pl)
	}
	b.p.Totals.RAMBytes = new(int64(a.Total()))
	if len(a.Unknown) > 0 {
		b.find("target.memory", profile.Warning, "The working memory of "+strings.Join(a.Unknown, ", ")+" is not known; the arena may be larger.")
	}
}

func constants(g *graph.Graph, ids []int) bool {
	for _, id := range ids {
		if id >= 0 && g.Values[id].Const == nil {
			return false
		}
	}
	return len(ids) > 0
}

// onnxMemory tells the activations that are alive at one time, with operators in
// 8-bit integers where a converter computes in them. What a runtime needs beyond
// that depends on its own file of the model.
func (b *builder) onnxMemory() {
	g := b.m.Main()
	integer, gone := plan.Quantised(g)
	main := *g
	main.Values, main.Nodes, main.Outputs = slices.Clone(g.Values), nil, slices.Clone(g.Outputs)
	same := map[int]int{} // a conversion that disappears makes what it reads
	at := func(id int) int {
		if to, ok := same[id]; ok {
			return to
		}
		return id
	}
	for _, n := range g.Nodes {
		c := *n
		c.Inputs, c.Outputs = make([]int, len(n.Inputs)), slices.Clone(n.Outputs)
		for i, id := range n.Inputs {
			c.Inputs[i] = at(id)
		}
		if gone[n] {
			same[n.Outputs[0]] = c.Inputs[0]
			continue
		}
		if constants(&main, c.Inputs) { // computed before deployment
			for _, id := range n.Outputs {
				if id >= 0 {
					v := *main.Values[id]
					v.Const = &tensor.Tensor{Type: v.Type, Shape: v.Shape}
					main.Values[id] = &v
				}
			}
			continue
		}
		for _, id := range n.Outputs {
			if id >= 0 && integer[n] {
				v := *main.Values[id]
				v.Type = tensor.Int8
				main.Values[id] = &v
			}
		}
		c.Index = len(main.Nodes)
		main.Nodes = append(main.Nodes, &c)
	}
	for i, id := range main.Outputs {
		main.Outputs[i] = at(id)
	}
	used := map[int]bool{}
	for _, n := range main.Nodes {
		for _, id := range slices.Concat(n.Inputs, n.Outputs) {
			used[id] = true
		}
	}
	for id, v := range main.Values {
		if !used[id] && v.Const == nil && !slices.Contains(g.Inputs, id) {
			gone := *v
			gone.Const = &tensor.Tensor{Type: v.Type, Shape: v.Shape}
			main.Values[id] = &gone
		}
	}
	plan, err := memplan.TFLM(&graph.Model{Format: b.m.Format, Graphs: []*graph.Graph{&main}}, nil)
	if err != nil {
		b.find("target.memory", profile.Warning, "Memory is not estimated: "+err.Error()+".")
		return
	}
	b.p.Memory = &profile.Memory{PeakBytes: new(int64(plan.Bytes))}
	b.find("target.memory", profile.Info, fmt.Sprintf("At least %s of RAM for activations; what the runtime needs beside them is not known for a file of ONNX.", sized(int64(plan.Bytes))))
}

func (b *builder) find(id string, s profile.Severity, text string, layers ...int64) {
	b.p.Findings = append(b.p.Findings, profile.Finding{ID: id, Severity: s, Text: text, Layers: layers})
}

// findings says what a reader should know first.
func (b *builder) findings() {
	if len(b.missing) > 0 {
		seen := map[string]bool{}
		var names []string
		for _, i := range b.missing {
			if op := b.m.Main().Nodes[i].Key(); !seen[op] {
				seen[op] = true
				names = append(names, op)
			}
		}
		text := fmt.Sprintf("%d of %s no estimate (%s): totals are incomplete and too small.", len(b.missing), layers(len(b.p.Layers), "has", "have"), strings.Join(names, ", "))
		if len(b.missing) == len(b.p.Layers) {
			text = fmt.Sprintf("No layer has an estimate (%s): nothing can be said of time.", strings.Join(names, ", "))
		}
		b.find("target.incomplete", profile.Problem, text, b.missing...)
		b.p.Incomplete = text
	}
	if len(b.once) > 0 {
		text := fmt.Sprintf("%s graphs as often as the data says: one pass through each is estimated, so that totals are per iteration.", layers(len(b.once), "runs", "run"))
		b.find("target.iterations", profile.Problem, text, b.once...)
		if b.p.Incomplete != "" {
			text = b.p.Incomplete + " " + text
		}
		b.p.Incomplete = text
	}
	b.format()
	b.types()
	b.accelerator()
	b.fit("target.ram", "RAM", "The arena of %s", b.p.Totals.RAMBytes, b.t.RAM)
	if _, ok := b.t.Flash(); ok {
		b.fit("target.flash", "flash", "The model of %s (program code not counted)", b.p.Totals.FlashBytes, b.t.Flash)
	} else {
		b.fit("target.flash", "external flash", "The model of %s (program code not counted)", b.p.Totals.FlashBytes, b.t.ExternalFlash)
	}
	if c := b.rt.Calibration; c != nil && c.From != "" {
		b.find("target.transferred", profile.Warning, fmt.Sprintf("%s was not measured itself; figures are those of %s.", b.t.Name, c.From))
	}
	for _, r := range b.costs.Remarks {
		b.find("target.remark", profile.Info, r)
	}
}

// types names layers with weights in element types whose kernels were not measured:
// they have the figures of int8.
func (b *builder) types() {
	by := map[tensor.Type][]int64{}
	g := b.m.Main()
	for i, n := range g.Nodes {
		m := b.p.Layers[i].MACs
		if m == nil || *m == 0 || len(n.Inputs) == 0 || n.Inputs[0] < 0 || b.p.Layers[i].Latency == nil {
			continue
		}
		if t := g.Values[n.Inputs[0]].Type; t == tensor.Uint8 || t == tensor.Int16 {
			by[t] = append(by[t], int64(i))
		}
	}
	for _, t := range []tensor.Type{tensor.Uint8, tensor.Int16} {
		if l := by[t]; len(l) > 0 {
			b.find("target.types", profile.Warning, fmt.Sprintf("%s in %s, which was not measured: figures are those of int8.", layers(len(l), "computes", "compute"), t), l...)
		}
	}
}

// format says what figures for a file of ONNX mean.
func (b *builder) format() {
	if b.m.Format != "onnx" {
		return
	}
	text := ""
	if b.kernels != "" {
		text = "TensorFlow Lite Micro takes .tflite files, not ONNX: figures are of the same operators in a .tflite file with channels last; transposes that a conversion may add are not counted."
	}
	if integer, _ := plan.Quantised(b.m.Main()); len(integer) > 0 {
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf("%d operators between DequantizeLinear and QuantizeLinear count as int8, as converters make them.", len(integer))
	}
	if text != "" {
		b.find("target.format", profile.Info, text)
	}
}

// fit compares a need with the largest memory of the chip.
func (b *builder) fit(id, what, need string, bytes *int64, size func() (chip.Bytes, bool)) {
	if bytes == nil {
		return
	}
	most, ok := size()
	if !ok {
		return
	}
	text := fmt.Sprintf(need, sized(*bytes))
	if *bytes > int64(most) {
		b.find(id, profile.Problem, fmt.Sprintf("%s does not fit: %s has %s of %s, %s too little.", text, b.t.Name, sized(int64(most)), what, sized(*bytes-int64(most))))
		return
	}
	b.find(id, profile.Info, fmt.Sprintf("%s fits: %s has %s of %s.", text, b.t.Name, sized(int64(most)), what))
}

// sized writes bytes with three significant digits, as the tables do.
func sized(n int64) string {
	v, unit := float64(n), " B"
	for _, u := range []string{" KiB", " MiB", " GiB"} {
		if v < 1023.5 {
			break
		}
		v, unit = v/1024, u
	}
	decimals := 0
	switch {
	case unit == " B" || v >= 99.95:
	case v >= 9.995:
		decimals = 1
	default:
		decimals = 2
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + unit
}

// accelerator says why layers are not accelerated, by reason.
func (b *builder) accelerator() {
	if b.t.Accelerator == nil {
		return
	}
	group := map[chip.Verdict][]int64{}
	for i := range b.costs.Layers {
		v := b.costs.Layers[i].Verdict
		group[v] = append(group[v], int64(i))
	}
	name := strings.ToUpper(b.t.Accelerator.Name)
	if l := group[chip.WrongType]; len(l) > 0 {
		text := fmt.Sprintf("%s an operator of %s but not its type, which is int8: left to the processor.", layers(len(l), "has", "have"), name)
		if len(group[chip.Accelerated]) == 0 {
			text = fmt.Sprintf("Nothing is accelerated: %s takes int8, and this model computes in other types. Quantise it to int8.", name)
		}
		b.find("target.type", profile.Warning, text, l...)
	}
	if l := group[chip.Limit]; len(l) > 0 {
		b.find("target.limit", profile.Warning, fmt.Sprintf("%s a limit of %s, so that the processor does the work, the first: %s", layers(len(l), "exceeds", "exceed"), name, b.costs.Layers[l[0]].Reason), l...)
	}
}

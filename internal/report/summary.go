package report

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// fact is one line of the summary.
type fact struct{ label, value string }

// summary lists all figures of the model that are known.
func summary(p *profile.Profile) []fact {
	var fs []fact
	add := func(label, value string) {
		if value != "" {
			fs = append(fs, fact{label, text.Clean(value)}) // parts of it come from files
		}
	}
	add("Model", text.Clean(p.Model.Name)+origin(p))
	add("Signature", signature(&p.Model))
	add("Target", target(p))
	for i, t := range p.Model.Inputs {
		if i == 4 {
			add("", "and "+words.Plural(int64(len(p.Model.Inputs)-i), "more input"))
			break
		}
		add(onlyFirst(i, "Input"), describe(t))
	}
	for i, t := range p.Model.Outputs {
		if i == 4 {
			add("", "and "+words.Plural(int64(len(p.Model.Outputs)-i), "more output"))
			break
		}
		add(onlyFirst(i, "Output"), describe(t))
	}
	t := p.Totals
	add("Layers", layers(p))
	params := pair(t.Params, Count, t.WeightsBytes, Bytes)
	if t.ComputedParams != nil && params != "" {
		params += fmt.Sprintf(", and %s computed at load (not in the file)", Count(*t.ComputedParams))
	}
	add("Parameters", params)
	add("Operations", incomplete(t.Ops, t.UncountedLayers))
	macs := incomplete(t.MACs, t.UncountedLayers)
	if t.MACs != nil && t.MACsExecuted != nil && *t.MACs != *t.MACsExecuted {
		macs += fmt.Sprintf(" (%s without padding)", Count(*t.MACsExecuted))
	}
	add("MACs", macs)
	add("Flash", flash(p))
	for _, m := range memories(p) {
		add(m.label, m.value+m.note)
	}
	for _, f := range tokenFacts(p) {
		add(f.label, f.value)
	}
	add("Latency", latency(p))
	add("Recommended", recommended(p))
	add("Normalised", normalised(p))
	add("Quality", quality(p.Trust))
	add("Speeds", words.Modes(p, Duration))
	add("Under load", underLoad(p))
	add("Response", response(p))
	add("Cold", cold(p))
	add("Throughput", rates(p))
	add("Bottleneck", bottleneck(p))
	add("Peak", peaks(p))
	add("CPU cycles", metric(t.CPUCycles, ""))
	add("Accelerator cycles", metric(t.AcceleratorCycles, ""))
	if v, ok := t.SimulatorCycles.Best(); ok && v > 0 {
		add("Simulator cycles", metric(t.SimulatorCycles, "")+" in the vendor's simulator")
	}
	add("Instructions", metric(t.Figure("instructions"), ""))
	add("Ticks", metric(t.Figure("ticks"), ""))
	add("Energy", metric(t.Energy, "J"))
	add("Startup", start(p.Phases))
	add("Layer sum", reconcile(p.Reconcile))
	return fs
}

func onlyFirst(i int, s string) string {
	if i == 0 {
		return s
	}
	return ""
}

func origin(p *profile.Profile) string {
	var s []string
	if p.Model.Format != "" {
		s = append(s, p.Model.Format)
	}
	if p.Model.FileBytes != nil {
		s = append(s, Bytes(*p.Model.FileBytes))
	}
	if len(s) == 0 {
		return ""
	}
	return " (" + strings.Join(s, ", ") + ")"
}

func target(p *profile.Profile) string {
	s := []string{text.Clean(p.Target.ID)}
	if h := p.Host; h != nil && h.CPUModel != "" {
		s = append(s, text.Clean(h.CPUModel))
	}
	if n := p.Settings.Threads; n != nil {
		s = append(s, words.Plural(*n, "thread"))
	}
	if p.Target.Engine != "" {
		s = append(s, "engine "+text.Clean(p.Target.Engine))
	}
	if p.Target.ClockHz != nil {
		s = append(s, Quantity(*p.Target.ClockHz, "Hz"))
	}
	return strings.Join(s, ", ")
}

// runs is a number of runs, short for large ones.
func runs(n int64) string {
	if n < 10000 {
		return words.Plural(n, "run")
	}
	return Count(n) + " runs"
}

func describe(t profile.Tensor) string {
	dims := words.Taken(&t)
	switch t.DType {
	case "sequence", "optional", "map":
		dims = ""
	}
	s := strings.TrimSpace(fmt.Sprintf("%s %s %s", text.Clean(t.Name), t.DType, dims))
	if made := words.Made(&t); made != "" {
		s += ", fed " + made
	}
	return s
}

func layers(p *profile.Profile) string {
	if p.Totals.Layers == nil {
		return ""
	}
	s := Count(*p.Totals.Layers)
	n := map[profile.State]int{}
	for i := range p.Layers {
		n[p.Layers[i].State]++
	}
	var parts []string
	if k := n[profile.Folded]; k > 0 {
		parts = append(parts, fmt.Sprintf("%d computed once at load", k))
	}
	if k := n[profile.Fused]; k > 0 {
		parts = append(parts, fmt.Sprintf("%d fused into others", k))
	}
	parts = append(parts, words.Blanks(p)...)
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return s
}

// flash is the storage of the model, and what comes on top.
func flash(p *profile.Profile) string {
	n := p.Totals.FlashBytes
	switch {
	case n == nil:
		return ""
	case onChip(p):
		return Bytes(*n) + " (model) + program code"
	}
	return Bytes(*n) + " (model)"
}

// onChip reports whether a profile is of a microcontroller.
func onChip(p *profile.Profile) bool {
	return p.Target.Kind == profile.TargetSimulator && p.Target.ID != "none" || p.Target.Kind == profile.TargetDevice
}

// memoryFigure is a figure of working memory: its label, its name in a sentence, and what the
// details add to the value.
type memoryFigure struct{ label, name, value, note string }

// memories lists the figures of working memory, each by one definition. On a chip it is the RAM
// that the runtime plans. Elsewhere the peak of the activations says what any runtime needs.
func memories(p *profile.Profile) (out []memoryFigure) {
	m, ram := p.Memory, p.Totals.RAMBytes
	if m == nil {
		m = &profile.Memory{}
	}
	parts := func(name string, more *int64) string {
		if m.ArenaBytes == nil || more == nil {
			return ""
		}
		return fmt.Sprintf(" (arena %s, %s %s)", Bytes(*m.ArenaBytes), name, Bytes(*more))
	}
	if onChip(p) && ram != nil {
		return []memoryFigure{{"RAM", "RAM", Bytes(*ram) + parts("persistent", m.PersistentBytes), ""}}
	}
	if m.PeakBytes != nil {
		out = append(out, memoryFigure{"Activations", "peak activations", Bytes(*m.PeakBytes), " at the peak"})
	}
	if ram != nil {
		label := "RAM"
		if p.Target.Kind == profile.TargetHost {
			label = "Engine RAM"
		}
		out = append(out, memoryFigure{label, "RAM", Bytes(*ram), parts("scratch", m.ScratchBytes)})
	}
	if m.TFLMArenaBytes != nil && !onChip(p) {
		out = append(out, memoryFigure{"TFLM arena", "TFLM tensor arena", Bytes(*m.TFLMArenaBytes) + " + persistent part", " (see --on TARGET)"})
	}
	return out
}

func pair(n *int64, show func(int64) string, b *int64, showB func(int64) string) string {
	switch {
	case n == nil:
		return ""
	case b == nil:
		return show(*n)
	}
	return show(*n) + ", " + showB(*b)
}

func incomplete(n, missing *int64) string {
	if n == nil {
		if missing != nil && *missing > 0 {
			return fmt.Sprintf("unknown: %s cannot be counted", words.Plural(*missing, "layer"))
		}
		return ""
	}
	if missing != nil && *missing > 0 {
		return fmt.Sprintf("%s, %s not counted", Count(*n), words.Plural(*missing, "layer"))
	}
	return Count(*n)
}

// latency is the median of all runs with its spread, and the layers that it leaves out.
func latency(p *profile.Profile) string {
	m, without := p.Totals.Latency, words.Without(p)
	v, ok := m.Best()
	if !ok {
		return ""
	}
	s := Duration(v)
	if o := words.Origin(p); o != "" && p.Trust == nil {
		s = o + ": " + s
	}
	if by := m.Estimator(); by != "value" {
		s += " " + by
	}
	switch iv := m.Interval(); {
	case iv == nil:
	case iv == m.Band:
		s += ", 90 % band " + inSeconds(iv)
	default:
		s += ", " + words.Interval(p.Trust) + " " + inSeconds(iv)
	}
	var parts []string
	for _, x := range []struct {
		name string
		v    *float64
	}{{"min", m.Min}, {"p90", m.P90}, {"p99", m.P99}, {"max", m.Max}} {
		if x.v != nil {
			parts = append(parts, x.name+" "+Duration(*x.v))
		}
	}
	if m.N != nil {
		parts = append(parts, words.Plural(*m.N, "run"))
	}
	if len(parts) > 0 {
		s += "; " + strings.Join(parts, ", ")
	}
	if without != "" {
		s += "; " + without
	}
	return s
}

func metric(m *profile.Metric, unit string) string {
	v, ok := m.Best()
	if !ok {
		return ""
	}
	s := Quantity(v, unit)
	if m.Band != nil {
		s += ", 90 % band " + Range(m.Band[0], m.Band[1], func(v float64) string { return Quantity(v, unit) })
	}
	return s
}

func rates(p *profile.Profile) string {
	r := p.Rates()
	if r.InferencesPerSecond == nil {
		return ""
	}
	s := []string{perSecond(*r.InferencesPerSecond) + " inferences/s"}
	for _, x := range []struct {
		v    *float64
		unit string
	}{{r.OpsPerSecond, "op/s"}, {r.MACsPerSecond, "MAC/s"}, {r.JoulesPerOp, "J/op"}, {r.JoulesPerMAC, "J/MAC"}} {
		if x.v != nil && *x.v > 0 {
			s = append(s, Quantity(*x.v, x.unit))
		}
	}
	return strings.Join(s, ", ")
}

// quality says what the measurement is good for, with all reasons.
func quality(t *profile.Trust) string {
	if t == nil {
		return ""
	}
	s := words.Fit(t)
	if why := words.Doubts(t); why != "" {
		s += " · " + why
	}
	return s
}

func start(ph *profile.Phases) string {
	if ph == nil {
		return ""
	}
	var s []string
	for _, x := range []struct {
		name string
		v    *float64
	}{{"load", ph.LoadS}, {"compile", ph.PlanS}, {"first run", ph.FirstRunS}} {
		if x.v != nil {
			s = append(s, x.name+" "+Duration(*x.v))
		}
	}
	if w := ph.Warmup; w != nil && w.Count != nil && w.TimeS != nil {
		s = append(s, fmt.Sprintf("warm-up %s in %s", runs(*w.Count), Duration(*w.TimeS)))
	}
	return strings.Join(s, ", ")
}

// signature says which signature of the file the profile is of, and how to see others.
func signature(m *profile.Model) string {
	var others []string
	for _, s := range m.Signatures {
		if s != m.Signature {
			others = append(others, s)
		}
	}
	if len(others) == 0 {
		return m.Signature
	}
	const most = 4
	rest := ""
	if len(others) > most {
		rest = " and " + words.Plural(int64(len(others)-most), "more")
		others = others[:most]
	}
	name := m.Signature
	if name == "" {
		name = "none"
	}
	return fmt.Sprintf("%s; the file also has %s%s: choose with --signature NAME", name, strings.Join(others, ", "), rest)
}

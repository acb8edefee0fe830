package estimate

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/tflm"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// builder estimates one model on one target.
type builder struct {
	*Model
	t     *chip.Target
	rt    *chip.Runtime
	clock float64
	opt   chip.Options
	to    source.Sink

	refused map[place]tflm.Refusal // nodes that the runtime does not take
	needs   int                    // year of the first releases that take the rest
	idle    []int64                // layers of them
	costs   []*chip.Costs          // by graph, nil for those that nothing runs
	passes  []float64              // by graph: runs in one inference
	assumed *describe.Assumed      // passes that the model does not determine
	taken   []bool                 // by graph: false for one that runs in the first inference only
	pace    map[int]*chip.Figure   // by graph: time of one pass with what it runs
	kernels tflm.Kernels           // "" when the runtime is not TensorFlow Lite Micro
	p       *profile.Profile
	missing []int64 // layers without an estimate
	once    []int64 // control flow that is estimated for one pass through its bodies
	out     []profile.Finding
}

// report sends everything.
func (b *builder) report() error {
	b.describe()
	steps := []func() error{b.layers, b.totals, b.memory, b.findings}
	if err := b.to.Send(profile.Event{Described: b.p}); err != nil {
		return err
	}
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	for i := range b.out {
		if err := b.to.Send(profile.Event{Found: &b.out[i]}); err != nil {
			return err
		}
	}
	return b.to.Send(profile.Event{Done: &profile.Done{Incomplete: b.incomplete()}})
}

// describe completes the description with target and settings.
func (b *builder) describe() {
	t := b.t
	p := *b.base
	p.Model.Name = cmp.Or(b.opt.Name, p.Model.Name)
	p.Target = profile.Target{ID: t.ID, Kind: profile.TargetSimulator, ClockHz: new(b.clock), Description: t.Name, Engine: b.rt.Name}
	if t.Accelerator != nil {
		p.Target.Accelerator = t.Accelerator.Name
	}
	b.peaks(&p.Target)
	p.Settings = profile.Settings{Engine: b.rt.Name, EngineVersion: b.rt.Versions, TargetSHA256: t.SHA256}
	if w := b.rt.Build(b.opt.Build); w != nil {
		p.Settings.EngineVersion = strings.TrimPrefix(p.Settings.EngineVersion+", "+cmp.Or(w.Title, w.Name), ", ")
	}
	if c := b.rt.Code; c != nil {
		p.Totals.CodeBytes = &[2]int64{int64(c[0]), int64(c[1])}
	}
	p.Layers = append([]profile.Layer{}, b.base.Layers...)
	b.p = &p
}

// peaks sets the roofline peaks if the target file has the required data.
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
	// The accelerator has its own memory ports.
	if v := b.t.Core.LoadBytes; v > 0 && b.t.Accelerator == nil {
		p.PeakBytesPerSecond = new(v * b.clock)
		how = append(how, fmt.Sprintf("%g bytes loaded per cycle without waiting", v))
	}
	if len(how) > 0 {
		p.PeakMethod = "target file: " + strings.Join(how, ", ")
	}
}

// cost returns the cycle model's result for a slot.
func (b *builder) cost(i int) *chip.LayerCost {
	s := &b.slots[i]
	return &b.costs[s.Graph].Layers[s.Node.Index]
}

// layers sends the figures of each layer.
func (b *builder) layers() error {
	for i := range b.slots {
		if err := b.layer(i); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) layer(i int) error {
	s, l := &b.slots[i], &b.p.Layers[i]
	passes := b.passes[s.Graph]
	e := profile.Refined{Layer: int64(i), State: profile.Ran}
	if b.costs[s.Graph] == nil || !b.taken[s.Graph] || passes == 0 {
		e.State = profile.NotReached
		e.Cause = &profile.Cause{Code: profile.ByData}
		if passes == 0 {
			e.Cause = b.assumed.Unreached(s.Graph)
		}
		return b.refine(l, &e)
	}
	if r, ok := b.refused[place{s.Graph, s.Node.Index}]; ok {
		b.idle = append(b.idle, int64(i))
		e.State = profile.Unsupported
		e.Cause = &profile.Cause{Code: unsupportedCause(r.Code), Text: r.Text}
		return b.refine(l, &e)
	}
	c := b.cost(i)
	e.Kernel = c.Kernel
	e.Placement = placement(b.t, c)
	total := b.bodyTime(i)
	if c.Missing != nil && total == nil {
		b.missing = append(b.missing, int64(i))
		e.State = profile.NoEstimate
		e.Cause = &profile.Cause{Code: missingCause(c.Missing.Code), Text: c.Missing.Text}
	}
	if c.Missing != nil && total != nil && b.unentered(i) {
		e.State = profile.NoEstimate
		e.Cause = &profile.Cause{Code: missingCause(c.Missing.Code), Text: "0 iterations, and the time of the loop itself is not known"}
	}
	if err := b.refine(l, &e); err != nil {
		return err
	}
	how := b.costs[s.Graph].Method
	figures := []struct {
		key string
		m   *profile.Metric
	}{
		{"cpu_cycles", metric(c.CPU, passes, how)},
		{"accelerator_cycles", metric(c.Accelerator, passes, how)},
		{"latency_s", metric(c.Latency, passes/b.clock, how)},
		{"energy_j", metric(b.energy(l, c), passes, b.energyMethod())},
		{"total_s", metric(plus(total, c.Latency, 1), passes/b.clock, how)},
	}
	if total == nil {
		figures = figures[:4]
	}
	if c.Simulated >= 0 && c.Accelerator != nil {
		figures = append(figures, struct {
			key string
			m   *profile.Metric
		}{"simulator_cycles", profile.Value(profile.Simulated, passes*float64(c.Simulated), "counted instructions and stalls")})
	}
	for _, f := range figures {
		if f.m != nil {
			if err := b.figure(i, f.key, f.m); err != nil {
				return err
			}
		}
	}
	for name, n := range c.Counts {
		if err := b.figure(i, "accelerator_"+name, profile.Value(profile.Simulated, passes*float64(n), "")); err != nil {
			return err
		}
	}
	// The number of passes through a body is an assumption if the model does not determine it.
	if l.Calls == nil && passes != 1 {
		return b.figure(i, "calls", profile.Value(profile.Estimated, passes, "passes that the estimate assumes"))
	}
	return nil
}

func (b *builder) refine(l *profile.Layer, e *profile.Refined) error {
	l.State, l.Cause, l.Placement = e.State, e.Cause, e.Placement
	return b.to.Send(profile.Event{Refined: e})
}

func (b *builder) figure(layer int, key string, m *profile.Metric) error {
	f := &profile.Figure{Quantity: key, Metric: m}
	if layer >= 0 {
		f.Layer = new(int64(layer))
		if err := b.p.Layers[layer].Set(key, m); err != nil {
			return err
		}
	} else if err := b.p.Totals.Set(key, m); err != nil {
		return err
	}
	return b.to.Send(profile.Event{Counted: f})
}

// placement returns the unit that executes a layer, nil for targets with one unit.
func placement(t *chip.Target, c *chip.LayerCost) *profile.Placement {
	switch c.Verdict {
	case chip.Accelerated:
		p := &profile.Placement{On: t.Accelerator.Name}
		if c.Refused != "" {
			p.Cause, p.Text = profile.ByLimit, c.Refused
		}
		return p
	case chip.NotOperator:
		return &profile.Placement{On: profile.CPU, Cause: profile.ByOperator, Text: c.Reason}
	case chip.WrongType:
		return &profile.Placement{On: profile.CPU, Cause: profile.ByType, Text: c.Reason}
	case chip.Limit:
		return &profile.Placement{On: profile.CPU, Cause: profile.ByLimit, Text: c.Reason}
	}
	return nil
}

// unsupportedCause converts the code of an unsupported operator.
func unsupportedCause(code tflm.RefusalCode) profile.CauseCode {
	switch code {
	case tflm.RefusedType:
		return profile.ByType
	case tflm.RefusedMixture:
		return profile.ByUse
	}
	return profile.ByOperator
}

// missingCause converts the code of a missing estimate.
func missingCause(code chip.MissingCode) profile.CauseCode {
	switch code {
	case chip.MissingType:
		return profile.ByType
	case chip.MissingShape:
		return profile.ByShape
	case chip.MissingData:
		return profile.ByNoFigures
	}
	return profile.ByOperator
}

// energy applies the power model to one pass through a layer.
func (b *builder) energy(l *profile.Layer, c *chip.LayerCost) *chip.Figure {
	macs := l.MACsExecuted
	if macs != nil && l.Calls != nil && *l.Calls > 0 {
		macs = new(int64(math.Round(float64(*macs) / *l.Calls))) // counts cover all calls
	}
	return b.t.Energy.Layer(c, b.clock, macs)
}

func (b *builder) energyMethod() string {
	if b.t.Energy == nil {
		return b.costs[0].Method
	}
	s := "total supply"
	if b.t.Energy.Reference == "above-idle" {
		s = "above idle"
	}
	if v := b.t.Supply; v != nil {
		s += " at " + strconv.FormatFloat(v.Volts, 'g', 4, 64) + " V"
	}
	return s
}

// totals sums the results of the cycle model, with the bands of whole models.
func (b *builder) totals() error {
	var latency, cpu, acc, energy *chip.Figure
	var latencySpread, cpuSpread, energySpread spread
	for i := range b.slots {
		s := &b.slots[i]
		if b.costs[s.Graph] == nil || !b.taken[s.Graph] || b.passes[s.Graph] == 0 {
			continue
		}
		c, n := b.cost(i), b.passes[s.Graph]
		e := b.energy(&b.p.Layers[i], c)
		latency, cpu, acc, energy = plus(latency, c.Latency, n), plus(cpu, c.CPU, n), plus(acc, c.Accelerator, n), plus(energy, e, n)
		latencySpread.add(c.Latency, n, c.Carried)
		cpuSpread.add(c.CPU, n, c.Carried)
		energySpread.add(e, n, c.Carried)
	}
	how := b.costs[0].Method
	if cal := b.rt.Calibration; cal != nil && cal.Band != nil {
		// Errors of layers partly cancel: the band of the whole model is narrower.
		narrow(latency, cal.Band, latencySpread)
		narrow(cpu, cal.Band, cpuSpread)
		if b.t.Energy != nil && b.t.Energy.Band != nil {
			narrow(energy, &[2]float64{cal.Band[0] * b.t.Energy.Band[0], cal.Band[1] * b.t.Energy.Band[1]}, energySpread)
		}
	}
	b.useModelTotals(&latency, &cpu, &acc, &energy)
	b.includeFasterBranches(latency, cpu)
	if n := len(b.missing) + len(b.idle); n > 0 {
		how += fmt.Sprintf("; incomplete: %d of %d layers", len(b.p.Layers)-n, len(b.p.Layers))
	}
	for _, f := range []struct {
		key string
		m   *profile.Metric
	}{
		{"latency_s", metric(latency, 1/b.clock, how)},
		{"cpu_cycles", metric(cpu, 1, how)},
		{"accelerator_cycles", metric(acc, 1, how)},
		{"energy_j", metric(energy, 1, b.energyMethod())},
	} {
		if f.m != nil {
			if err := b.figure(-1, f.key, f.m); err != nil {
				return err
			}
		}
	}
	return nil
}

// useModelTotals replaces the totals of the main graph by the cycle model's own, if it has any:
// their bands are better than sums. The cost of bodies is added.
func (b *builder) useModelTotals(latency, cpu, acc, energy **chip.Figure) {
	c := b.costs[0]
	inner := func(of func(*chip.LayerCost) *chip.Figure) (f *chip.Figure) {
		for i := range b.slots {
			s := &b.slots[i]
			if s.Graph > 0 && b.costs[s.Graph] != nil && b.taken[s.Graph] {
				f = plus(f, of(b.cost(i)), b.passes[s.Graph])
			}
		}
		return f
	}
	for _, x := range []struct {
		to  **chip.Figure
		own *chip.Figure
		of  func(*chip.LayerCost) *chip.Figure
	}{
		{latency, c.Latency, func(l *chip.LayerCost) *chip.Figure { return l.Latency }},
		{cpu, c.CPU, func(l *chip.LayerCost) *chip.Figure { return l.CPU }},
		{acc, c.Accelerator, func(l *chip.LayerCost) *chip.Figure { return l.Accelerator }},
	} {
		if x.own != nil {
			*x.to = plus(inner(x.of), x.own, 1)
		}
	}
	if c.Energy != nil {
		*energy = b.t.Energy.Inference(*cpu) // with the bodies of control flow
	}
}

// spread sums the layers' distances to the ends of their bands: independent errors as squares,
// correlated errors linearly.
type spread struct{ below, above, belowAll, aboveAll float64 }

func (s *spread) add(f *chip.Figure, times float64, together bool) {
	if f == nil {
		return
	}
	below, above := (f.Value-f.Low)*times, (f.High-f.Value)*times
	if together {
		s.belowAll += below
		s.aboveAll += above
		return
	}
	s.below += below * below
	s.above += above * above
}

// narrow sets the band of whole models on a sum, but not narrower than the layers' errors imply:
// one uncertain layer may dominate the time. The low end stays above zero: a twentieth of the
// value.
func narrow(f *chip.Figure, band *[2]float64, s spread) {
	if f != nil {
		f.Low = max(min(f.Value*band[0], f.Value-math.Hypot(math.Sqrt(s.below), s.belowAll)), f.Value/20)
		f.High = max(f.Value*band[1], f.Value+math.Hypot(math.Sqrt(s.above), s.aboveAll))
	}
}

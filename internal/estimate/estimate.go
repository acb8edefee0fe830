// Package estimate makes a profile of a model on hardware that is not there: the
// work of each operator by internal/count, its cycles by the target's cycle
// model, memory by internal/chip/tflm, time and energy from them, each with a
// band, and remarks on what does not fit or has no estimate.
//
// It runs nothing, and takes milliseconds; only for files that lack shapes the
// engine plans the model to find them.
package estimate

import (
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/chip/mvp"
	"github.com/opmeter/opmeter/internal/chip/tflm"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/profile"
)

// models are the cycle models by the name that target files use.
var models = map[string]chip.CycleModel{
	"cortexm": cortexm.Model{},
	"mvp":     mvp.Model{},
}

// UseError is the error for options that the target does not have.
type UseError struct{ Text string }

func (e *UseError) Error() string { return e.Text }

// NoRuntime is the error for a runtime family that the target does not have.
func NoRuntime(t *chip.Target, name string) *UseError {
	names := make([]string, len(t.Runtimes))
	for i := range t.Runtimes {
		names[i] = t.Runtimes[i].Name
	}
	return &UseError{fmt.Sprintf("target %s has no runtime %q; it has %s", t.ID, name, strings.Join(names, ", "))}
}

// Model is a model made ready for estimates on any number of targets.
type Model struct {
	m    *graph.Model
	open string // what was taken for dimensions that the file leaves open
}

// Prepare finds out the shapes that the file lacks. The model itself is not changed.
func Prepare(m *graph.Model) *Model {
	if len(m.Graphs) == 0 {
		return &Model{m: m}
	}
	s, open := shaped(m)
	return &Model{s, open}
}

// Estimate makes the profile of m on t; see [Model.Estimate].
func Estimate(m *graph.Model, t *chip.Target, opt chip.Options) (*profile.Profile, error) {
	return Prepare(m).Estimate(t, opt)
}

// Estimate makes the profile of the model on t. An error means that nothing could
// be said; whatever is missing otherwise is told in the profile.
func (p *Model) Estimate(t *chip.Target, opt chip.Options) (_ *profile.Profile, err error) {
	m := p.m
	// Files of strangers reach the rules of a hundred operators: a fault in one of
	// them must not end the program.
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("%s on %s: this model cannot be estimated: %v", m.Path, t.ID, e)
		}
	}()
	if len(m.Graphs) == 0 {
		return nil, fmt.Errorf("%s: the model has no graph", m.Path)
	}
	rt := t.Runtime(opt.Runtime)
	if rt == nil {
		return nil, NoRuntime(t, opt.Runtime)
	}
	clock := opt.Clock
	if clock == 0 {
		clock = t.Clock.Default
	}
	if clock < t.Clock.Min || clock > t.Clock.Max || !(clock > 0) {
		span := "up to " + megahertz(t.Clock.Max)
		if t.Clock.Min > 0 {
			span = megahertz(t.Clock.Min) + " to " + megahertz(t.Clock.Max)
		}
		return nil, &UseError{fmt.Sprintf("target %s runs at %s, not at %s", t.ID, span, megahertz(clock))}
	}
	model, ok := models[rt.Model()]
	if !ok {
		return nil, fmt.Errorf("%s: this version has no cycle model %q", t.ID, rt.Model())
	}
	costs, err := model.Costs(m, m.Main(), t, rt, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.ID, err)
	}
	if len(costs.Layers) != len(m.Main().Nodes) {
		return nil, fmt.Errorf("%s: the cycle model answered for %d of %d layers", t.ID, len(costs.Layers), len(m.Main().Nodes))
	}
	b := &builder{m: m, t: t, rt: rt, clock: float64(clock), costs: costs, kernels: tflm.Kernels(rt.Arena)}
	once, err := (&bodies{model: model, t: t, rt: rt, opt: opt, done: map[int]*body{}}).apply(m, m.Main(), costs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.ID, err)
	}
	if costs.Energy != nil {
		costs.Energy = t.Energy.Inference(costs.CPU) // with the bodies of control flow
	}
	b.once = once
	b.describe(opt)
	b.layers()
	b.totals()
	b.memory()
	b.findings()
	if p.open != "" {
		b.find("target.shapes", profile.Info, p.open)
	}
	return b.p, nil
}

func megahertz(h chip.Hertz) string { return fmt.Sprintf("%g MHz", math.Round(float64(h)/1e3)/1e3) }

// metric turns a figure into a metric, scaled.
func metric(f *chip.Figure, scale float64, method string) *profile.Metric {
	if f == nil {
		return nil
	}
	m := profile.Value(profile.Estimated, f.Value*scale, method)
	if f.HasBand() {
		m.Band = &[2]float64{f.Low * scale, f.High * scale}
	}
	return m
}

// sum adds figures; their bands add up, which is right when errors go together
// and wide when they do not.
func sum(total, f *chip.Figure) *chip.Figure {
	if f == nil {
		return total
	}
	if total == nil {
		total = &chip.Figure{}
	}
	total.Value += f.Value
	total.Low += f.Low
	total.High += f.High
	return total
}

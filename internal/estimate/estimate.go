// Package estimate predicts the figures of a model on hardware that is not connected. It combines
// the description shared by all sources, the cycles of each operator by the target's cycle model,
// memory by internal/estimate/tflm, and time and energy derived from them, each with an
// uncertainty band. Findings report what does not fit or has no estimate.
//
// It runs nothing and takes milliseconds.
package estimate

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/mvp"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// models maps the names in target files to cycle models.
var models = map[string]chip.CycleModel{
	"cortexm": cortexm.Model{},
	"mvp":     mvp.Model{},
}

// UseError is the error for options that the target does not have.
type UseError struct {
	// Option is "runtime", "build", "flash" or "clock".
	Option string
	// Text says what is wrong and which values are possible.
	Text string
}

func (e *UseError) Error() string { return e.Text }

// NoRuntime returns the error for a runtime family that the target does not have.
func NoRuntime(t *chip.Target, name string) *UseError {
	names := make([]string, len(t.Runtimes))
	for i := range t.Runtimes {
		names[i] = t.Runtimes[i].Name
	}
	return &UseError{"runtime", fmt.Sprintf("target %s has no runtime %q; it has %s", t.ID, name, strings.Join(names, ", "))}
}

// noBuild returns the error for a build configuration that a runtime does not have.
func noBuild(t *chip.Target, rt *chip.Runtime, name string) *UseError {
	var names []string
	for i := range rt.Builds {
		names = append(names, rt.Builds[i].Name)
	}
	text := fmt.Sprintf("runtime %s of target %s has no way of building %q", rt.Name, t.ID, name)
	if len(names) > 0 {
		return &UseError{"build", text + "; it has " + strings.Join(names, ", ")}
	}
	return &UseError{"build", text + ", and no other than the usual one"}
}

// Model is a prepared model. It can be estimated on any number of targets, also concurrently.
type Model struct {
	m     *graph.Model // with the shapes that the plan knows
	plan  *plan.Plan
	slots []plan.Slot
	base  *profile.Profile
	hint  func() *inputs.Hint // sizes for open dimensions
}

// most limits the memory of values that are computed while a model is planned.
const most = 2 << 30

// Prepare plans and describes a model for the shapes given by the options. The model itself is
// not changed. The error is about options and shapes that do not fit.
func Prepare(m *graph.Model, o inputs.Options, identity func() (*describe.Identity, error)) (_ *Model, err error) {
	if len(m.Graphs) == 0 {
		return nil, fmt.Errorf("%s: the model has no graph", m.Path)
	}
	// Untrusted files reach the rules of hundreds of operators: a fault in one of them must not
	// end the program.
	defer func() {
		if e := recover(); e != nil {
			if mapped.Fault(e) != nil {
				panic(e) // the file's fault, see mapped.Guard
			}
			err = fmt.Errorf("%s: this model cannot be planned: %v", m.Path, e)
		}
	}()
	o.MaxBytes = most
	ins, src, err := inputs.Shapes(m, o)
	if err != nil {
		return nil, err
	}
	p, err := plan.Make(m, ins, plan.Options{Registry: operators.Registry(), MaxBytes: most, Static: true})
	if err != nil {
		return nil, err
	}
	if err := inputs.CheckBatch(p, o); err != nil {
		return nil, err
	}
	slots := p.Slots()
	if err := describe.Iterate(m, slots, o.Iterations); err != nil {
		return nil, err
	}
	base, err := describe.Model(p, slots, identity)
	if err != nil {
		return nil, err
	}
	describe.Fed(base, src)
	return &Model{m: p.Shaped(), plan: p, slots: slots, base: base, hint: sync.OnceValue(func() *inputs.Hint { return inputs.Suggest(m, ins, src, o) })}, nil
}

// Source estimates a model on a target.
type Source struct {
	Model   *Model
	Target  *chip.Target
	Options chip.Options
}

var _ source.Source = (*Source)(nil)

// Run implements [source.Source]. An error means that there is no result at all; anything else
// that is missing is reported in the profile. A [UseError] is about options.
func (s *Source) Run(_ context.Context, to source.Sink) (err error) {
	t := s.Target
	defer func() {
		if e := recover(); e != nil {
			if mapped.Fault(e) != nil {
				panic(e) // the file's fault, see mapped.Guard
			}
			err = fmt.Errorf("%s: this model cannot be estimated: %v", t.ID, e)
		}
	}()
	rt := t.Runtime(s.Options.Runtime)
	if rt == nil {
		return NoRuntime(t, s.Options.Runtime)
	}
	if name := s.Options.Build; name != "" && rt.Build(name) == nil {
		return noBuild(t, rt, name)
	}
	if err := flashOf(t, rt, s.Options.Flash); err != nil {
		return err
	}
	clock, err := clockOf(t, s.Options.Clock)
	if err != nil {
		return err
	}
	b := &builder{Model: s.Model, t: t, rt: rt, clock: float64(clock), opt: s.Options, to: to}
	if err := b.estimateGraphs(); err != nil {
		return fmt.Errorf("%s: %w", t.ID, err)
	}
	return b.report()
}

// flashOf checks that the place of a model changes the estimate of a target.
func flashOf(t *chip.Target, rt *chip.Runtime, place string) error {
	m := t.SerialFlash()
	_, internal := t.Flash()
	fail := func(format string, args ...any) error { return &UseError{"flash", fmt.Sprintf(format, args...)} }
	switch {
	case place == "":
		return nil
	case place != chip.FlashRAM && place != chip.FlashExternal:
		return fail("the model lies in %q; expected ram or external", place)
	case m == nil:
		return fail("target %s has no external flash with a known read cost, so that the place of the model changes nothing", t.ID)
	case rt.Cortexm == nil:
		return fail("runtime %s of target %s has no figures for other places of the model", rt.Name, t.ID)
	case place == chip.FlashRAM && internal:
		return fail("target %s has internal flash; what a model in RAM gains was not measured", t.ID)
	case place == chip.FlashExternal && !internal:
		return fail("the model of target %s lies in external flash anyway", t.ID)
	}
	return nil
}

// clockOf returns the clock to estimate at, 0 for the target's default.
func clockOf(t *chip.Target, clock chip.Hertz) (chip.Hertz, error) {
	if clock == 0 {
		clock = t.Clock.Default
	}
	if clock >= t.Clock.Min && clock <= t.Clock.Max && clock > 0 {
		return clock, nil
	}
	span := "up to " + megahertz(t.Clock.Max)
	if t.Clock.Min > 0 {
		span = megahertz(t.Clock.Min) + " to " + megahertz(t.Clock.Max)
	}
	return 0, &UseError{"clock", fmt.Sprintf("target %s runs at %s, not at %s", t.ID, span, megahertz(clock))}
}

func megahertz(h chip.Hertz) string { return fmt.Sprintf("%g MHz", math.Round(float64(h)/1e3)/1e3) }

// metric converts a figure to a metric, multiplied by scale.
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

// plus returns total plus times f. The bands add up, which is right for correlated errors and
// wide for independent ones. The arguments are not changed.
func plus(total, f *chip.Figure, times float64) *chip.Figure {
	if f == nil {
		return total
	}
	out := &chip.Figure{Value: f.Value * times, Low: f.Low * times, High: f.High * times}
	if total != nil {
		out.Value, out.Low, out.High = out.Value+total.Value, out.Low+total.Low, out.High+total.High
	}
	return out
}

// Estimate returns the profile of a model on one target.
func Estimate(m *graph.Model, t *chip.Target, o chip.Options) (*profile.Profile, error) {
	p, err := Prepare(m, inputs.Options{}, nil)
	if err != nil {
		return nil, err
	}
	return source.Collect(context.Background(), &Source{Model: p, Target: t, Options: o}, source.Options{})
}

package opmeter

import (
	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/profile"
)

// Targets is hardware that models can be estimated on: chips and cores of the
// program, and those of target files (docs/targets.md).
type Targets struct{ set *chip.Set }

// LoadTargets returns the targets of the program, with those of the .yaml files in
// folder added; "" adds none. A file replaces a target of the same id. The error
// names each faulty file with line, key and what was expected.
func LoadTargets(folder string) (*Targets, error) {
	s, err := chip.Load(folder)
	if err != nil {
		return nil, err
	}
	return &Targets{s}, nil
}

// Target describes hardware that models can be estimated on.
type Target struct {
	// ID names it for [Targets.Estimate], Name for people.
	ID, Name string
	// Core is the processor, Accelerator the unit beside it, "" for none.
	Core, Accelerator string
	// ClockHz is the default clock of the processor in hertz.
	ClockHz float64
	// Runtimes lists the runtime families with figures; the first is the default.
	Runtimes []string
	// RAMBytes and FlashBytes are the largest internal memories in bytes,
	// ExternalFlashBytes the largest flash outside; nil where not known or absent.
	RAMBytes, FlashBytes, ExternalFlashBytes *int64
}

func describe(t *chip.Target) Target {
	d := Target{ID: t.ID, Name: t.Name, Core: t.Core.Name, ClockHz: float64(t.Clock.Default)}
	if t.Accelerator != nil {
		d.Accelerator = t.Accelerator.Name
	}
	for i := range t.Runtimes {
		d.Runtimes = append(d.Runtimes, t.Runtimes[i].Name)
	}
	d.RAMBytes, d.FlashBytes, d.ExternalFlashBytes = size(t.RAM()), size(t.Flash()), size(t.ExternalFlash())
	return d
}

func size(b chip.Bytes, ok bool) *int64 {
	if !ok {
		return nil
	}
	return new(int64(b))
}

// List returns all targets, ordered by id.
func (t *Targets) List() []Target {
	list := t.set.List()
	out := make([]Target, len(list))
	for i, x := range list {
		out[i] = describe(x)
	}
	return out
}

// Find returns the target with an id; case does not matter. The error names ids
// that look like it.
func (t *Targets) Find(id string) (Target, error) {
	x, err := t.set.Find(id)
	if err != nil {
		return Target{}, err
	}
	return describe(x), nil
}

// Estimate estimates a model on the target with an id. It runs nothing. Every
// figure is of kind [profile.Estimated] with a band that is made to hold the true
// value in 9 of 10 cases, or absent with the reason in the layer; Profile.Incomplete
// says when totals leave layers out. An error means that nothing could be said.
func (t *Targets) Estimate(m *Model, id string, options ...EstimateOption) (*profile.Profile, error) {
	x, err := t.set.Find(id)
	if err != nil {
		return nil, err
	}
	var o chip.Options
	for _, f := range options {
		f(&o)
	}
	if m.g.Path != "" {
		go func() { _, _ = m.hash() }() // asked for below
	}
	p, err := m.estimable().Estimate(x, o)
	if err == nil && m.g.Path != "" {
		// Tells later which measurements of the model it may be compared with.
		p.Model.SHA256, err = m.hash()
	}
	return p, err
}

// Estimate estimates a model on a target of the program; see [Targets.Estimate].
func Estimate(m *Model, id string, options ...EstimateOption) (*profile.Profile, error) {
	t, err := LoadTargets("")
	if err != nil {
		return nil, err
	}
	return t.Estimate(m, id, options...)
}

// EstimateOption changes how [Estimate] works.
type EstimateOption func(*chip.Options)

// Runtime chooses the runtime family, by default the target's first.
func Runtime(name string) EstimateOption { return func(o *chip.Options) { o.Runtime = name } }

// Clock sets the processor's clock in hertz instead of the target's default.
func Clock(hz float64) EstimateOption {
	return func(o *chip.Options) { o.Clock = chip.Hertz(hz) }
}

package opmeter

import (
	"context"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// EstimateOptions configures [Estimate]. The zero value takes the target's defaults and the model's
// own shapes.
type EstimateOptions struct {
	// Inputs sets shapes; the values that are fed do not matter.
	Inputs Inputs
	// Runtime is the runtime family, "" for the target's first.
	Runtime string
	// Build is a way of building the runtime, such as "size" or "no-fpu", "" for the usual one:
	// for speed, with all units of the core.
	Build string
	// Flash is where the model lies: "ram" or "external" flash, "" for the target's flash. It is for
	// targets with a known read cost of external flash.
	Flash string
	// ClockHz is the processor's clock in hertz, 0 for the target's default.
	ClockHz float64
	// Name of the model for people, "" for that of the file.
	Name string
}

// Estimate estimates a model on a built-in target, named by its id; the package target lists them
// and adds more. It runs nothing. Every figure is of kind [profile.Estimated] with a band that is
// made to hold the true value in 9 of 10 cases, or absent with the cause in the layer.
// Profile.Incomplete says if totals leave layers out. Errors are an [OptionError] or a [ModelError]
// and come without a profile.
func Estimate(m *Model, id string, o EstimateOptions) (*profile.Profile, error) {
	set, err := chip.Load("")
	if err != nil {
		return nil, err
	}
	t, err := set.Find(id)
	if err != nil {
		return nil, failed("", err)
	}
	return m.estimate(t, o)
}

func (m *Model) estimate(t *chip.Target, o EstimateOptions) (*profile.Profile, error) {
	m.in.Identify() // the estimate needs it later
	ready, err := m.estimable(o.Inputs)
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	options := chip.Options{Runtime: o.Runtime, Build: o.Build, Flash: o.Flash, Clock: chip.Hertz(o.ClockHz), Name: o.Name}
	s := m.in.Source(&estimate.Source{Model: ready, Target: t, Options: options})
	p, err := source.Collect(context.Background(), s, source.Options{Version: buildinfo.Version()})
	return p, failed(m.in.Graph.Path, err)
}

// estimable returns the model planned for some inputs.
func (m *Model) estimable(in Inputs) (*estimate.Model, error) {
	if in.Batch == 0 && len(in.Shapes) == 0 && len(in.Dims) == 0 && len(in.Files) == 0 && len(in.Iterations) == 0 && in.Overrides == "" {
		return m.in.Prepared()
	}
	f, err := in.shapes(m.in)
	if err != nil {
		return nil, err
	}
	var e *estimate.Model
	err = m.in.Reading(func() (err error) { e, err = estimate.Prepare(m.in.Graph, f, m.in.Identity); return err })
	return e, err
}

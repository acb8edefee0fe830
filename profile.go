package opmeter

import (
	"context"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Profile runs the model on this computer and measures every operator.
//
// Totals come from plain runs, shares from instrumented ones that are interleaved with
// them. Operators that the engine lacks are listed with the cause and do not keep
// the others from being measured. When ctx ends early, the profile holds what was
// measured until then and Profile.Incomplete says so, without an error; where nothing
// was known yet the profile is nil and the error the context's. An operator that takes
// long to notice is not waited for: it ends in the background. With an error the
// profile holds what was known before, or is nil where that is nothing. Errors are an
// [OptionError], [ModelError], [NodeError] or [TooLargeError].
//
// Measuring is one at a time in a process: profiles that are asked for at once wait
// for each other, and settings of the garbage collector are as before afterwards.
func Profile(ctx context.Context, m *Model, o Options) (*profile.Profile, error) {
	return m.profile(ctx, o)
}

// Count reports what follows from the model alone: shapes, operations,
// multiply-accumulates, parameters and the memory plan, for the inputs that the
// options set. Nothing is measured. Errors are an [OptionError] or [ModelError].
func Count(m *Model, in Inputs) (*profile.Profile, error) {
	f, err := in.feed(m.in)
	if err != nil {
		return nil, err
	}
	// Nothing runs: values take no memory, but inputs and folded constants do.
	f.MaxBytes = machine.MemoryLimit()
	return m.collect(context.Background(), host.Options{Feed: f, Threads: 1, Static: true, Version: buildinfo.Version()}, "")
}

func (m *Model) collect(ctx context.Context, h host.Options, journal string) (*profile.Profile, error) {
	m.in.Identify() // asked for below, when the model is planned
	p, err := source.Collect(ctx, m.in.Source(&host.Source{Model: m.in.Graph, Identity: m.in.Identity, Options: h}), source.Options{Version: buildinfo.Version(), Journal: journal})
	return p, failed(m.in.Graph.Path, err)
}

package opmeter

import (
	"context"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/gcpolicy"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Profile runs the model on this computer and measures every operator.
//
// Totals come from plain runs, shares of operators from instrumented runs interleaved with them.
// Operators that the engine lacks are listed with the cause; the others are measured.
//
// When ctx ends early, the profile holds what was measured until then and Profile.Incomplete says
// so, without an error. If nothing was measured yet, the profile is nil and the error the
// context's. An operator that runs on for long is not waited for: it ends in the background. With
// an error the profile holds what was known before, or is nil if that is nothing. Errors are an
// [OptionError], [ModelError], [NodeError], [TooLargeError], [UnrunError] or [engine.Error].
// Without an error, [profile.Profile.Headline] has the latency, unless ctx ended early.
//
// A process measures one profile at a time: concurrent calls wait for each other. The settings of
// the garbage collector are restored afterwards.
func Profile(ctx context.Context, m *Model, o Options) (*profile.Profile, error) {
	p, err := m.profile(ctx, o)
	if err != nil || p == nil {
		return p, err
	}
	if layers, most := p.Unrun(); most {
		return p, &UnrunError{File: m.in.Graph.Path, Layers: layers, Of: len(p.Layers)}
	}
	return p, nil
}

// Count reports what follows from the model alone: shapes, operations, multiply-accumulates,
// parameters and the memory plan, for the shapes of the inputs. It runs nothing. Errors are an
// [OptionError] or [ModelError].
func Count(m *Model, in Inputs) (*profile.Profile, error) { return m.count(in, false) }

// count is [Count]; with all, branches that the model does not choose have their work each.
func (m *Model) count(in Inputs, all bool) (*profile.Profile, error) {
	f, err := in.shapes(m.in)
	if err != nil {
		return nil, err
	}
	// Nothing runs: values take no memory, but inputs and folded constants do.
	if f.MaxBytes, err = m.in.PlanLimit(); err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	return m.collect(context.Background(), host.Options{Feed: f, Threads: 1, Static: true, AllBranches: all, Version: buildinfo.Version()}, "")
}

func (m *Model) collect(ctx context.Context, h host.Options, journal string) (*profile.Profile, error) {
	if m.in.Large() {
		defer gcpolicy.Tight()()
	}
	m.in.Identify() // planning needs it later
	p, err := source.Collect(ctx, m.in.Source(&host.Source{Model: m.in.Graph, Identity: m.in.Identity, Options: h}), source.Options{Version: buildinfo.Version(), Journal: journal})
	return p, failed(m.in.Graph.Path, err)
}

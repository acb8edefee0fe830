package opmeter

import (
	"context"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/peaks"
	"github.com/opmeter/opmeter/internal/measure/phases"
	"github.com/opmeter/opmeter/profile"
)

// EstimatePhases estimates the phases of the options on this computer without running the model,
// from rates of memory and arithmetic that it measures. It needs no memory for the weights. Other
// options than Phases, Inputs.Batch and Threads do not apply. Figures are of kind
// [profile.Estimated]. Errors are an [OptionError], a [ModelError] or the context's.
func EstimatePhases(ctx context.Context, m *Model, o Options) (*profile.Profile, error) {
	if o.Phases == nil {
		return nil, wrong("Phases", "%s", "say which phases to estimate")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l, runs, parts, err := m.phases(&o)
	if err != nil {
		return nil, err
	}
	release, err := loop.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	threads := max(o.Threads, 1)
	pool := workers.New(threads, nil)
	defer pool.Close()
	// All levels: a profile in this process takes these rates, too.
	h := machine.NewWatch().End()
	r, _, err := peaks.Of(ctx, peaks.Options{Pool: pool, L1: h.CacheL1DBytes, L2: h.CacheL2Bytes, L3: h.CacheL3Bytes, Types: []string{"float32"}, Leased: true})
	if err != nil {
		return nil, err
	}
	for i := range runs {
		run, of := &runs[i], parts[i]
		in := o.Inputs
		in.phase = &phaseInputs{of.l, run.Phase}
		if run.Profile, err = of.m.count(in, false); err != nil {
			return nil, err
		}
		s := phases.Speeds{Float: r.Float}
		if s.Read, err = peaks.Reading(ctx, pool, run.Bytes(of.l)); err != nil {
			return nil, err
		}
		run.Profile.Settings.Threads = new(int64(threads))
		phases.Estimate(run, of.l, &s)
	}
	p := phases.Merge(l.decoder.l, runs)
	l.complete(p)
	return p, p.Validate()
}

package opmeter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/measure/enginediff"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// CompareEngine measures the model for a short time with the external engine of the options and
// notes in the profile how its latency and shares differ from those of opmeter's own engine:
// [profile.Profile.Other], and findings that name layers which one engine takes far longer for.
//
// The profile must be of this model, made by opmeter's own engine with the same options. Time,
// Runs, Warmup and what is measured besides sequential inferences do not apply: the library is
// opened, the model loaded and measured within the limit, and the engine ended at most a second
// after it. A model that is too large for that is not measured. Whatever keeps the engine from
// being measured is noted as the cause and is not an error: errors are an [OptionError].
func CompareEngine(ctx context.Context, m *Model, p *profile.Profile, o Options, limit time.Duration) error {
	if o.Engine == nil || isProgram(o.Engine) {
		return wrong("Engine", "%s", "name an external engine with a library")
	}
	if err := o.Validate(); err != nil {
		return err
	}
	about, _ := find.About(o.Engine.Name)
	other := profile.OtherEngine{Engine: o.Engine.Name, Title: about.Title, Version: o.Engine.Version}
	q, cause := m.briefly(ctx, p, o, limit)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the profile is complete without it
	}
	var found []profile.Finding
	if cause != nil {
		other.Cause = cause
		found = []profile.Finding{{
			ID: "engine.other", Severity: profile.Info,
			Text: fmt.Sprintf("%s was not measured beside opmeter's own engine: %s.", other.Name(), strings.TrimSuffix(cause.Text, ".")),
		}}
	} else {
		other.Title, other.Version = q.Settings.Engine, q.Settings.EngineVersion
		other, found = enginediff.Compare(p, q, other)
	}
	p.Other = &other
	p.Findings = append(p.Findings, found...)
	return nil
}

// Limits of a brief measurement.
const (
	// briefRuns is about how many inferences it has at least, with those that load the model, warm
	// up and find the operators. Engines optimise the model when they load it, which takes longer
	// than an inference.
	briefRuns = 20
	// briefWeights is the most bytes of weights: the engine holds them a second time.
	briefWeights = 256 << 20
	// Parts of the limit for the timed runs and the warm-up, and the most for both. The rest is for
	// the library and the model, and for extra runs where some are disturbed.
	briefTime, briefWarmup         = 5, 10
	mostBriefTime, mostBriefWarmup = 600 * time.Millisecond, 200 * time.Millisecond
	// briefEvents bounds the timed inferences by the layers of all: profilers write a record for
	// each, which takes time to read. leastTimed and mostTimed bound them in any case.
	briefEvents           = 10_000
	leastTimed, mostTimed = 30, 2000
	// briefEnd is how long the engine may take to send its figures when the limit is over.
	briefEnd = 250 * time.Millisecond
)

// briefly measures with the external engine of the options within the limit, or says why it did
// not.
func (m *Model) briefly(ctx context.Context, p *profile.Profile, o Options, limit time.Duration) (*profile.Profile, *profile.Cause) {
	own, ok := p.Totals.Latency.Best()
	if !ok {
		return nil, &profile.Cause{Code: profile.ByNoFigures, Text: "opmeter's own engine has no latency to compare with"}
	}
	if own*briefRuns > limit.Seconds() {
		return nil, &profile.Cause{Code: profile.ByDeadline, Text: fmt.Sprintf("an inference is too long for a measurement of %v", limit.Round(10*time.Millisecond))}
	}
	if b := p.Totals.WeightsBytes; b != nil && *b > briefWeights {
		return nil, &profile.Cause{Code: profile.ByMemory, Text: fmt.Sprintf("more than %d MiB of weights would be loaded a second time", briefWeights>>20)}
	}
	o.Runs, o.Time, o.Warmup = 0, min(limit/briefTime, mostBriefTime), min(limit/briefWarmup, mostBriefWarmup)
	o.Streams, o.Rate, o.Cold = 0, 0, ""
	o.SkipPeaks, o.KeepSamples, o.Journal, o.Interleaver = true, false, "", nil
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	q, err := m.profileBriefly(short, o)
	late := &profile.Cause{Code: profile.ByDeadline, Text: fmt.Sprintf("it gave no result within %v", limit.Round(10*time.Millisecond))}
	switch {
	case err != nil && errors.Is(err, context.DeadlineExceeded):
		return nil, late
	case err != nil:
		return nil, &profile.Cause{Code: profile.ByError, Text: err.Error()}
	}
	if q == nil {
		return nil, late
	}
	if _, ok := q.Totals.Latency.Best(); !ok {
		return nil, late
	}
	return q, nil
}

// profileBriefly is profileExternal without peaks and outputs, and with little time to end.
func (m *Model) profileBriefly(ctx context.Context, o Options) (*profile.Profile, error) {
	h, err := o.host(m)
	if err != nil {
		return nil, err
	}
	g, clean, err := m.externalOptions(&o, h, nil)
	if err != nil {
		return nil, err
	}
	defer clean()
	g.Outputs, g.Stopping = nil, briefEnd
	g.Request.Runs = min(max(briefEvents/max(len(g.Model.Layers), 1), leastTimed), mostTimed)
	return source.Collect(ctx, m.in.Source(external.New(g)), source.Options{Version: buildinfo.Version()})
}

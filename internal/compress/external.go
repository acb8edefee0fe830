package compress

import (
	"cmp"
	"context"
	"time"

	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/study"
)

// External is another engine that models are measured in.
type External struct {
	// Name is its name with the version, as studies store it.
	Name string
	// Compare profiles the unchanged model and a changed one interleaved; without one the
	// unchanged model alone.
	Compare func(ctx context.Context, changed *graph.Model, threads, batch int, t time.Duration) (*speed.Pair, error)
}

// externalTime is the default time of each profile by another engine.
const externalTime = 500 * time.Millisecond

// measureExternal measures what a performance profile still lacks in another engine.
func (j *Job) measureExternal(ctx context.Context, o *SpeedOptions, p *study.Speed, have func(study.Change) bool, yield func(*study.SpeedPoints) error) error {
	return speed.MeasureExternal(ctx, j.m, j.Layers, speed.ExternalOptions{
		Changes: p.Changes, Have: have, Progress: j.o.Progress,
		Compare: func(ctx context.Context, changed *graph.Model) (*speed.Pair, error) {
			return o.External.Compare(ctx, changed, max(o.Threads, 1), o.Batch, cmp.Or(o.Time, externalTime))
		},
	}, yield)
}

// compareMany measures changed models interleaved with the unchanged one, in opmeter's own engine
// or in another, where each changed model has runs of the unchanged one beside it.
func (j *Job) compareMany(ctx context.Context, e *External, models []*graph.Model, threads, batch int, t time.Duration) ([]speed.Compared, error) {
	if e == nil {
		ins, err := j.inputs(batch)
		if err != nil {
			return nil, err
		}
		return speed.CompareMany(ctx, j.m, models, speed.Options{
			Engine: j.engineOptions(threads), Inputs: ins, Time: cmp.Or(t, speed.UsualTime), Progress: j.o.Progress,
		})
	}
	out := make([]speed.Compared, len(models))
	for i, m := range models {
		j.progress("measuring interleaved", float64(i)/float64(len(models)))
		pair, err := e.Compare(ctx, m, threads, batch, t)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			out[i].Err = err
			continue
		}
		a, b := &pair.Before.Totals, &pair.After.Totals
		out[i] = speed.Compared{Before: a.Latency, After: b.Latency, Speedup: PairedSpeedup(a.LatencySamples, b.LatencySamples)}
	}
	return out, nil
}

// externalFor returns the engine that a plan of a performance profile is measured in: the one of
// the profile, nil for opmeter's own.
func externalFor(sp *study.Speed, given *External) (*External, error) {
	switch {
	case sp == nil || !sp.Timed():
		return nil, nil
	case sp.Engine == "" && given != nil:
		return nil, optionError("Engine", "the performance profile %q is of opmeter's own engine: make one with compress perf --engine", sp.Name)
	case sp.Engine == "":
		return nil, nil
	case given == nil:
		return nil, optionError("Engine", "the performance profile %q was measured in %s: name that engine", sp.Name, sp.Engine)
	case given.Name != sp.Engine:
		return nil, optionError("Engine", "the performance profile %q was measured in %s, not in %s", sp.Name, sp.Engine, given.Name)
	}
	return given, nil
}

package compress

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// BenchHere compares a changed model with the unchanged one on opmeter's own engine. Both run on
// inputs of the same shapes.
func (j *Job) BenchHere(ctx context.Context, changed *graph.Model, threads, batch int, t time.Duration) (before, after, speedup *profile.Metric, err error) {
	ins, err := j.inputs(batch)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := speed.Compare(ctx, j.m, changed, speed.Options{Engine: j.engineOptions(threads), Inputs: ins, Time: cmp.Or(t, 4*speed.UsualTime), Progress: j.o.Progress})
	if err != nil {
		return nil, nil, nil, contextError(ctx, err)
	}
	return r.Before, r.After, r.Speedup, nil
}

// Bench adds a point to the named benchmark of the file with the given hash. Another hash starts
// the benchmark anew. A point without a speed-up gets the cause, as far as it is known.
func (j *Job) Bench(name, sha256 string, p study.BenchPoint) error {
	if p.Cause == "" && p.Speedup != nil {
		switch ends := cmp.Or(p.Speedup.CI95, p.Speedup.Band); {
		case ends == nil:
		case ends[1] <= 1:
			p.Cause = study.NoGain
		case ends[0] <= 1:
			p.Cause = study.Unsettled
		}
	}
	if b := j.Study().Bench(name); b == nil || b.SHA256 != sha256 {
		if err := j.File.Append(study.Record{Bench: &study.Bench{Name: name, Created: now(), SHA256: sha256}}); err != nil {
			return err
		}
	}
	return j.File.Append(study.Record{BenchPoints: &study.BenchPoints{Name: name, Points: []study.BenchPoint{p}}})
}

// PlanName resolves a plan name; "" stands for the last plan.
func (j *Job) PlanName(name string) (string, error) {
	p, err := j.plan(name)
	if err != nil {
		return "", err
	}
	return p.Name, nil
}

// HasBenchPoint reports whether the named benchmark of the file with the given hash has such a
// point.
func (j *Job) HasBenchPoint(name, sha256, engine string, threads, batch int) bool {
	b := j.Study().Bench(name)
	return b != nil && b.SHA256 == sha256 && slices.ContainsFunc(b.Points, func(p study.BenchPoint) bool {
		return p.Engine == engine && p.Threads == threads && p.Batch == batch && p.Error == ""
	})
}

// pairs is the number of slices that interleaved runs are divided into: enough for a narrow
// interval of the median, few enough that each slice has several runs of both models.
const pairs = 16

// PairedSpeedup returns the speed-up of the second model from interleaved run times, in order.
// Slices that were measured at the same time are compared, so that slowdowns of the machine
// affect both. It is nil where there are too few runs.
func PairedSpeedup(before, after []float64) *profile.Metric {
	blocks := estimator.Paired(pairs, before, after)
	if len(blocks) < pairs/2 {
		return nil
	}
	ratios := make([]float64, len(blocks))
	for i, b := range blocks {
		if !(b[1] > 0) {
			return nil
		}
		ratios[i] = b[0] / b[1]
	}
	return profile.Summarize(profile.Measured, ratios, "pairs of slices of interleaved runs")
}

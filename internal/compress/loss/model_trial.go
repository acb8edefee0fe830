package loss

import (
	"context"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/profile"
)

// Trial has the outputs of the unchanged model, for comparison with changed models. Its job has
// one of the metrics of [study.EndToEnd].
type Trial struct {
	c *comparison
	// Base is the metric of the unchanged model, nil where it has none.
	Base *profile.Metric
}

// TrialResult is the result of a changed model on the samples of a trial.
type TrialResult struct {
	// Value is the metric. More has further metrics of the same run by name.
	Value *profile.Metric
	More  map[string]float64
	// Lost is the drop of accuracy, agreement or cosine, nil for other metrics. Its paired
	// interval is narrower than that of Value.
	Lost *profile.Metric
}

// Trial runs the unchanged model on all samples.
func (j *Job) Trial(ctx context.Context) (*Trial, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	c, _, err := j.runUnchanged(ctx)
	if err != nil {
		return nil, err
	}
	t := &Trial{c: c}
	t.Base, err = c.base(ctx)
	return t, err
}

// Try runs a changed model on all samples.
func (t *Trial) Try(ctx context.Context, changed *graph.Model) (*TrialResult, error) {
	j, r := t.c.job, t.c.newResult()
	err := runAll(ctx, changed, j.Data, j.Threads, func(run int, s *engine.Session) error {
		j.progress(float64(run)/float64(j.Data.Runs()), "sample %d of %d changed", (run+1)*j.Data.Batch, j.Data.Len())
		return r.add(run, copyOutputs(s, changed.Main()))
	})
	if err != nil {
		return nil, err
	}
	out := &TrialResult{}
	if out.Value, out.More, err = r.metric(ctx); err != nil {
		return nil, err
	}
	out.Lost = r.lost()
	return out, nil
}

// lost returns the drop of metrics whose best value is 1. For samples that are right or wrong it
// includes the standard deviation.
func (r *result) lost() *profile.Metric {
	n := len(r.num)
	share := func(v, lo, hi, deviation float64) *profile.Metric {
		m := metricValue(profile.Measured, v, n, lo, hi, "both models on the same samples; "+scoreTest)
		m.StdDev = &deviation
		return m
	}
	switch r.c.job.Settings.Metric {
	case Accuracy:
		lost, won := 0.0, 0.0
		for i, v := range r.correct {
			lost, won = lost+max(r.c.correct[i]-v, 0), won+max(v-r.c.correct[i], 0)
		}
		lo, hi := tangoInterval(lost, won, float64(n))
		return share((lost-won)/float64(n), lo, hi, pairedDeviation(lost, won, float64(n)))
	case Top1:
		f := func(times []float32) float64 { return 1 - ratio(r.agree, r.of, times) }
		v := f(nil)
		lo, hi := BootstrapInterval(n, r.c.job.Seed, f)
		if r.singleRow() || lo == hi {
			lo, hi = wilsonInterval(v*float64(n), float64(n))
			return share(v, lo, hi, pairedDeviation(v*float64(n), 0, float64(n)))
		}
		return metricValue(profile.Measured, v, n, lo, hi, bothModels)
	case Cosine:
		f := func(times []float32) float64 { return 1 - ratio(r.cos, nil, times) }
		lo, hi := BootstrapInterval(n, r.c.job.Seed, f)
		return metricValue(profile.Measured, f(nil), n, lo, hi, bothModels)
	}
	return nil
}

const bothModels = "both models on the same samples; interval by resampling samples"

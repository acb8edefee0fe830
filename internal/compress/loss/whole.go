package loss

import (
	"context"
	"math"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/profile"
)

// Trial has the outputs of the unchanged model, which whole changed ones are compared with. It is of a job with the metrics of
// [study.EndToEnd].
type Trial struct {
	c *comparison
	// Base is the metric of the unchanged model, nil where it has none.
	Base *profile.Metric
}

// Tried is what a changed model does on the samples of a trial.
type Tried struct {
	// Value is the metric, More are further ones of the same run by name.
	Value *profile.Metric
	More  map[string]float64
	// Lost is what is lost of accuracy, agreement or cosine, nil for other metrics. Its interval is that of the difference on the same
	// samples, which is narrower than that of Value.
	Lost *profile.Metric
}

// Trial runs the model as it is on all samples.
func (j *Job) Trial(ctx context.Context) (*Trial, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	c, _, err := j.unchanged(ctx)
	if err != nil {
		return nil, err
	}
	t := &Trial{c: c}
	t.Base, err = c.base(ctx)
	return t, err
}

// Try runs a changed model on all samples.
func (t *Trial) Try(ctx context.Context, changed *graph.Model) (*Tried, error) {
	j, r := t.c.job, t.c.begin()
	err := runAll(ctx, changed, j.Data, j.Threads, func(run int, s *engine.Session) error {
		j.tell(float64(run)/float64(j.Data.Runs()), "sample %d of %d changed", (run+1)*j.Data.Batch, j.Data.Len())
		return r.add(run, copied(s, changed.Main()))
	})
	if err != nil {
		return nil, err
	}
	out := &Tried{}
	if out.Value, out.More, err = r.metric(ctx); err != nil {
		return nil, err
	}
	out.Lost = r.lost()
	return out, nil
}

// lost is what the unchanged model has more of, of metrics that are shares with 1 for the best.
func (r *result) lost() *profile.Metric {
	var f func(times []float32) float64
	switch r.c.job.Settings.Metric {
	case Accuracy:
		f = func(t []float32) float64 { return ratio(r.c.right, nil, t) - ratio(r.right, nil, t) }
	case Top1:
		f = func(t []float32) float64 { return 1 - ratio(r.agree, r.of, t) }
	case Cosine:
		f = func(t []float32) float64 { return 1 - ratio(r.cos, nil, t) }
	default:
		return nil
	}
	v := f(nil)
	if math.IsNaN(v) {
		return nil
	}
	lo, hi := resampled(len(r.num), r.c.job.Seed, f)
	return value(profile.Measured, v, len(r.num), lo, hi, "both models on the same samples; interval by resampling samples")
}

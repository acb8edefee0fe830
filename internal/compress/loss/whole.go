package loss

import (
	"context"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
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

// lost is what the unchanged model has more of, of metrics that are shares with 1 for the best. Of samples that are right or wrong it has the
// deviation, too.
func (r *result) lost() *profile.Metric {
	n := len(r.num)
	share := func(v, lo, hi, deviation float64) *profile.Metric {
		m := value(profile.Measured, v, n, lo, hi, "both models on the same samples; "+scored)
		m.StdDev = &deviation
		return m
	}
	switch r.c.job.Settings.Metric {
	case Accuracy:
		lost, won := 0.0, 0.0
		for i, v := range r.right {
			lost, won = lost+max(r.c.right[i]-v, 0), won+max(v-r.c.right[i], 0)
		}
		lo, hi := difference(lost, won, float64(n))
		return share((lost-won)/float64(n), lo, hi, paired(lost, won, float64(n)))
	case Top1:
		f := func(times []float32) float64 { return 1 - ratio(r.agree, r.of, times) }
		v := f(nil)
		lo, hi := Resampled(n, r.c.job.Seed, f)
		if r.single() || lo == hi {
			lo, hi = rate(v*float64(n), float64(n))
			return share(v, lo, hi, paired(v*float64(n), 0, float64(n)))
		}
		return value(profile.Measured, v, n, lo, hi, bothModels)
	case Cosine:
		f := func(times []float32) float64 { return 1 - ratio(r.cos, nil, times) }
		lo, hi := Resampled(n, r.c.job.Seed, f)
		return value(profile.Measured, f(nil), n, lo, hi, bothModels)
	}
	return nil
}

const bothModels = "both models on the same samples; interval by resampling samples"

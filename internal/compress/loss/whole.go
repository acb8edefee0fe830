package loss

import (
	"context"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/profile"
)

// Whole runs a changed model, and the job's as it is, on all samples: the metric of both, and further ones of the
// changed model by name. It takes the metrics of [study.EndToEnd].
func (j *Job) Whole(ctx context.Context, changed *graph.Model) (base, value *profile.Metric, more map[string]float64, err error) {
	if err := j.check(); err != nil {
		return nil, nil, nil, err
	}
	c, _, err := j.unchanged(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if base, err = c.base(ctx); err != nil {
		return nil, nil, nil, err
	}
	r := c.begin()
	err = runAll(ctx, changed, j.Data, j.Threads, func(run int, s *engine.Session) error {
		j.tell(float64(run)/float64(j.Data.Runs()), "sample %d of %d changed", (run+1)*j.Data.Batch, j.Data.Len())
		return r.add(run, copied(s, changed.Main()))
	})
	if err != nil {
		return nil, nil, nil, err
	}
	value, more, err = r.metric(ctx)
	return base, value, more, err
}

package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/measure/ab"
)

// Timing says how the time of two versions is measured.
type Timing struct {
	Rule *Rule
	// Budget is the time that it may take, Processes the least number of processes of each version.
	Budget    time.Duration
	Processes int
	// Tests is the number of comparisons of the whole run, which the level is corrected for.
	Tests int
	Seed  uint64
	// Now, Quiet, Planned and Progress are those of [ab.Options].
	Now      func() time.Time
	Quiet    func(ctx context.Context, most time.Duration) time.Duration
	Planned  func(ab.Plan)
	Progress func(done float64, processes int)
}

// Measure times the base (the first version) and the new version by turns. It measures on until the
// figure is worse or not worse, or the budget is used: then it is undecided.
func (t *Timing) Measure(ctx context.Context, versions []ab.Alternative, source ab.Blocks) (Row, *ab.Result, error) {
	o := ab.Options{
		Margin: t.Rule.Margin, Floor: time.Duration(t.Rule.Floor * float64(time.Second)), Budget: t.Budget,
		Processes: t.Processes, Tests: t.Tests, Seed: t.Seed, Now: t.Now, Quiet: t.Quiet, Planned: t.Planned, Progress: t.Progress,
		Settled: func(list []ab.Comparison) bool {
			limit := 1 + list[0].Allowance
			return list[0].Low > limit || list[0].High < limit
		},
	}
	res, err := ab.Run(ctx, versions, source, o)
	row := t.Rule.Without(Undecided, "")
	unfinished, over := errors.AsType[*ab.UnfinishedError](err)
	switch {
	case over:
		row.Why, err = unfinished.Error(), nil
	case err != nil:
		row.Why = err.Error()
	case len(res.Comparisons) == 0:
		row.Why = fmt.Sprintf("the budget of %v is too short for %d processes of each version", t.Budget, ab.MinProcesses)
	default:
		c := &res.Comparisons[0]
		// The ratio of interleaved blocks is what was measured; a quotient of two medians would be
		// another one.
		base := res.Alternatives[0].Seconds
		row = Measured(t.Rule, base, base*c.Ratio, Interval{c.Ratio, c.Low, c.High, c.Detectable})
	}
	return row, res, err
}

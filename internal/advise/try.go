package advise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/profile"
)

// Verdict compares what was measured with what was promised.
type Verdict string

// Verdicts of --try.
const (
	// Kept: the measured interval meets the promised band.
	Kept Verdict = "kept"
	// More: the gain is larger than the band.
	More Verdict = "more"
	// Less: the change gains, but less than the band.
	Less Verdict = "less"
	// Lost: the figure is not better than before, or worse.
	Lost Verdict = "lost"
	// Open: the budget was too small to decide whether the change gains.
	Open Verdict = "undecided"
	// Again: the promise is the estimate of the changed model, and trying repeats it.
	Again Verdict = "estimated"
	// NotTried: the change could not be applied or measured: Error says why.
	NotTried Verdict = "not_tried"
)

// Change applies the change of an advice, nil for a rule without one.
func (a *Advice) Change(ctx context.Context, f *Facts) (*Variant, error) {
	switch {
	case a.apart:
		return nil, nil
	case a.threads > 0:
		return &Variant{Threads: a.threads}, nil
	}
	return a.rule.Change(ctx, f)
}

// Change applies the change of a rule to a model, whether the rule fires or not. It is nil for a
// rule without one.
func (r *Rule) Change(ctx context.Context, f *Facts) (*Variant, error) {
	f.index()
	switch {
	case r.change == nil:
		return nil, nil
	case f.Model == nil:
		return nil, errNoModel
	}
	return r.change(ctx, f)
}

// errNoModel is why the advice on a profile is not tried whose model file is gone or was changed.
var errNoModel = errors.New("the model's file is not known: --try needs the file of the profile")

// errEngine is why a profile of another engine is not tried.
var errEngine = errors.New("--try measures with opmeter's own engine; measure the changed model with yours")

// Tried is the outcome of trying an advice.
type Tried struct {
	Verdict Verdict `json:"verdict"`
	// Ratio is the figure after the change as a part of that before, with its interval.
	Ratio    float64     `json:"ratio,omitzero"`
	Interval *[2]float64 `json:"interval,omitzero"`
	// Before is the figure that the gain is promised on, After what it becomes by the ratio.
	Before float64 `json:"before,omitzero"`
	After  float64 `json:"after,omitzero"`
	// Processes and Blocks count what was measured.
	Processes int `json:"processes,omitzero"`
	Blocks    int `json:"blocks,omitzero"`
	// Error says why nothing was measured.
	Error string `json:"error,omitzero"`
}

// Measured is the result of measuring a variant beside the unchanged model.
type Measured = ab.Result

// Measurer measures a variant interleaved with the unchanged model.
type Measurer func(ctx context.Context, f *Facts, v *Variant, budget time.Duration) (*Measured, error)

// Try applies the advice of a result that can be applied at once, and measures each change against
// the unchanged model for a budget. It returns the changed models by rule.
func Try(ctx context.Context, f *Facts, r *Result, measure Measurer, budget time.Duration) (map[string]*Variant, error) {
	changed := map[string]*Variant{}
	for _, a := range r.Advice {
		v, err := a.Change(ctx, f)
		if v == nil && err == nil {
			continue
		}
		if err == nil {
			changed[a.Rule] = v
			a.Tried, err = a.measured(ctx, f, v, measure, budget)
		}
		if ctx.Err() != nil {
			return changed, ctx.Err()
		}
		if err != nil {
			a.Tried = &Tried{Verdict: NotTried, Error: err.Error()}
		}
	}
	return changed, nil
}

// measured measures a variant, or estimates it on the target of the profile.
func (a *Advice) measured(ctx context.Context, f *Facts, v *Variant, measure Measurer, budget time.Duration) (*Tried, error) {
	if f.Profile.Target.Kind == profile.TargetSimulator {
		return a.estimated(f, v)
	}
	if !OnHost.applies(f.Profile) {
		return nil, errEngine
	}
	res, err := measure(ctx, f, v, budget)
	if err != nil {
		return nil, err
	}
	if len(res.Comparisons) == 0 {
		return nil, fmt.Errorf("%s are too short to measure it: use a larger --budget", budget)
	}
	c := &res.Comparisons[0]
	t := &Tried{
		Ratio: c.Ratio, Interval: &[2]float64{c.Low, c.High}, Processes: c.Processes, Blocks: c.Blocks,
	}
	if a.Gain.Quantity == item {
		t.scale(1 / float64(max(v.Batch, 1)))
	}
	// The ratio is what interleaving measures. Both promise and result are in terms of the figure
	// of the profile: a second one, of another minute, would not compare with the promise.
	t.Before, t.After = a.Gain.Before, a.Gain.Before*t.Ratio
	t.Verdict = judge(t.Interval, a.Gain.Band)
	return t, nil
}

// scale multiplies the ratio and its interval.
func (t *Tried) scale(by float64) {
	t.Ratio *= by
	t.Interval[0], t.Interval[1] = t.Interval[0]*by, t.Interval[1]*by
}

// judge compares a measured interval of the ratio with the promised band.
func judge(interval *[2]float64, band [2]float64) Verdict {
	low, high := interval[0], interval[1]
	switch {
	case low >= 1:
		return Lost
	case high >= 1:
		return Open
	case low > band[1]:
		return Less
	case high < band[0]:
		return More
	}
	return Kept
}

// estimated compares the estimates of a changed model and the unchanged one.
func (a *Advice) estimated(f *Facts, v *Variant) (*Tried, error) {
	if f.Estimate == nil || v.Model == nil {
		return nil, errors.New(noEstimate)
	}
	p, err := f.Estimate(v.Model)
	if err != nil {
		return nil, err
	}
	was, ok1 := value(f.Profile, a.Gain.Quantity)
	now, ok2 := value(p, a.Gain.Quantity)
	if !ok1 || !ok2 || was <= 0 {
		return nil, fmt.Errorf("the changed model has no %s", a.Gain.Quantity)
	}
	t := &Tried{Ratio: now / was, Interval: &[2]float64{now / was, now / was}, Before: was, After: now}
	if t.Verdict = judge(t.Interval, a.Gain.Band); a.Gain.Source == FromEstimate {
		t.Verdict = Again
	}
	return t, nil
}

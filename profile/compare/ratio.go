package compare

import (
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// Constants of the rule of [Ratio].
const (
	// processes is the standard deviation of the logarithm of a time between processes that the
	// intervals of a profile do not show: where the system puts its memory.
	processes = 0.005
	// untold is what a time of another tool may be off by: such records are of one process, and
	// processes on one machine differ by a standard deviation of 1 to 3.5 % (bench/compare).
	untold = normal95 * 0.02
	// shown is the number of degrees of freedom that the intervals of profiles count for where these
	// are wider than the spread of the profiles.
	shown = 2
	alike = 0.05
	// discoveries is the part of false ones among the groups that differ.
	discoveries = 0.05
)

// Quantiles of the normal distribution: half of an interval in standard deviations.
const (
	normal95 = 1.959963984540054
	normal90 = 1.6448536269514722
)

// deviation is the standard error of the logarithm of a figure with its degrees of freedom; none
// for a zero value.
type deviation struct{ se, freedom float64 }

// of is a metric as a figure with its interval.
func of(m *profile.Metric) Figure {
	v, ok := m.Best()
	if !ok {
		return Figure{}
	}
	f := Figure{Value: &v}
	switch iv := m.Interval(); {
	case iv != nil:
		f.Low, f.High, f.Interval = new(iv[0]), new(iv[1]), CI95
		if iv == m.Band {
			f.Interval = Band90
		}
	case m.Kind == profile.Counted:
		return exact(v)
	case m.Kind == profile.Estimated && v == 0: // another layer does the work
		f.Low, f.High, f.Interval = new(0.0), new(0.0), Band90
	}
	return f
}

// exact is a figure without error.
func exact(v float64) Figure { return Figure{Value: &v, Low: &v, High: &v, Interval: Exact} }

// hidden is the part by which the times of a run may differ from those of the quiet machine, though
// their intervals do not show it: the middle one of its profiles; 0 if unknown.
func hidden(r Named) float64 {
	var ts []float64
	for _, p := range append([]*profile.Profile{r.Profile}, r.Repeats...) {
		switch t := p.Trust; {
		case r.Interleaved:
		case t != nil && t.Tolerance != nil:
			ts = append(ts, *t.Tolerance)
		case p.Target.Kind == profile.TargetImport:
			ts = append(ts, untold)
		}
	}
	if len(ts) == 0 {
		return 0
	}
	return stats.Median(ts)
}

// alternates reports whether the profiles of two runs were interleaved, so that what disturbed the
// machine met both: more changes from one to the other than profiles of either.
func alternates(a, b []*profile.Profile) bool {
	type made struct {
		at    string
		first bool
	}
	var all []made
	for i, ps := range [][]*profile.Profile{a, b} {
		for _, p := range ps {
			if p.Created == "" || len(ps) < 2 {
				return false
			}
			all = append(all, made{p.Created, i == 0})
		}
	}
	sorting.Stable(all, func(x, y made) int { return strings.Compare(x.at, y.at) })
	changes := 0
	for i := range all[1:] {
		if all[i].first != all[i+1].first {
			changes++
		}
	}
	return changes >= min(len(a), len(b))
}

// deviates returns the error of a figure whose time may be off by a part.
func (f *Figure) deviates(by float64) (deviation, bool) {
	if f.dev.freedom > 0 {
		if by == 0 {
			return f.dev, true
		}
		return deviation{se: math.Hypot(f.dev.se, by/normal95), freedom: math.Inf(1)}, true
	}
	h, ok := half(*f)
	if !ok {
		return deviation{}, false
	}
	z := normal95
	if f.Interval == Band90 {
		z = normal90
	}
	return deviation{se: math.Hypot(h/z, by/normal95), freedom: math.Inf(1)}, true
}

// mean is the figure of repeated profiles: the mean of theirs. Its error comes from their spread.
// What they have in common, as they were made one after the other, does not show in it.
func mean(fs []Figure) Figure {
	if len(fs) == 1 {
		return fs[0]
	}
	sum, logs, own := 0.0, make([]float64, 0, len(fs)), 0.0
	exactly, intervals, kind, partial := true, 0, CI95, false
	for i := range fs {
		f := &fs[i]
		if f.Value == nil {
			return Figure{}
		}
		sum += *f.Value
		partial = partial || f.Partial
		exactly = exactly && f.Interval == Exact && *f.Value == *fs[0].Value
		if *f.Value > 0 {
			logs = append(logs, math.Log(*f.Value))
		}
		if d, ok := f.deviates(0); ok {
			own += d.se * d.se
			intervals++
			kind = widest(kind, f.Interval)
		}
	}
	if exactly {
		return fs[0]
	}
	n := float64(len(fs))
	out := Figure{Value: new(sum / n), Partial: partial}
	if len(logs) < len(fs) {
		return out
	}
	sd := stats.StdDev(logs)
	variance, freedom := sd*sd, n-1
	// A spread below that of the profiles' own intervals is luck. The other way round, the intervals
	// do not show what processes differ by.
	if own /= n; intervals == len(fs) && own > variance {
		variance, freedom = ((n-1)*variance+shown*own)/(n-1+shown), n-1+shown
	}
	out.dev = deviation{se: math.Sqrt(variance / n), freedom: freedom}
	by := math.Exp(stats.StudentQuantile(0.05, freedom) * out.dev.se)
	if math.IsInf(by, 0) || math.IsNaN(by) {
		out.dev = deviation{}
		return out
	}
	out.Low, out.High, out.Interval = new(*out.Value/by), new(*out.Value*by), kind
	return out
}

// ratio compares a figure of run k with that of the first run, of layers that may be the same.
// Figures of a topic that does not compare have a ratio without a verdict.
func (b *builder) ratio(topic Topic, k int, a, first Figure, same bool) Ratio {
	r := b.divide(k, a, first)
	if r.Interval == Band90 && same && b.estimator[k] && math.Abs(*r.Value-1) <= rounding {
		r = Ratio{Value: new(1.0), Low: new(1.0), High: new(1.0), Interval: Band90, Verdict: Alike}
	}
	if b.whyNot[k][topic] != "" {
		r.Verdict, r.P = Incomparable, nil
	}
	return r
}

// sameEstimator reports whether the figures of two profiles are estimates for one target by one
// version of an estimator: it takes the same layers for equal, whatever it is wrong about.
func sameEstimator(a, b *profile.Profile) bool {
	x, y := &a.Settings, &b.Settings
	return source(a) == Estimated && source(b) == Estimated && a.Target.ID == b.Target.ID && a.Target.Engine == b.Target.Engine &&
		x.TargetSHA256 != "" && x.TargetSHA256 == y.TargetSHA256 && x.Engine == y.Engine && x.EngineVersion == y.EngineVersion && x.Version == y.Version
}

// divide is the ratio of figures that compare.
func (b *builder) divide(k int, a, first Figure) Ratio {
	r := Ratio{Verdict: Open}
	if a.Value == nil || first.Value == nil || a.Partial || first.Partial {
		return r
	}
	if a.Interval == Exact && first.Interval == Exact {
		return exactRatio(*a.Value, *first.Value)
	}
	if !(*first.Value > 0) || !(*a.Value > 0) {
		return r
	}
	v := *a.Value / *first.Value
	if math.IsInf(v, 0) || v == 0 {
		return r
	}
	r.Value = &v
	x, ok := a.deviates(b.errors[k][1])
	y, also := first.deviates(b.errors[k][0])
	if !ok || !also {
		return r
	}
	d, kind, level := both(x, y), widest(a.Interval, first.Interval), 0.05
	if kind == Band90 {
		level = 0.10
	}
	by := math.Exp(stats.StudentQuantile(level, d.freedom) * d.se)
	low, high := v/by, v*by
	if math.IsInf(high, 0) || math.IsNaN(by) || low == 0 {
		return r
	}
	p := stats.StudentP(math.Log(v)/d.se, d.freedom)
	r.Low, r.High, r.P, r.Interval = &low, &high, &p, kind
	r.Verdict = b.verdict(&r)
	return r
}

// both is the error of a ratio, with the degrees of freedom by Welch and Satterthwaite. Two
// processes differ by what neither shows.
func both(x, y deviation) deviation {
	a, b := x.se*x.se, y.se*y.se
	d := deviation{se: math.Sqrt(a + b + 2*processes*processes), freedom: math.Inf(1)}
	if s := a*a/x.freedom + b*b/y.freedom; s > 0 {
		v := d.se * d.se
		d.freedom = v * v / s
	}
	return d
}

// verdict is that of a ratio by itself.
func (b *builder) verdict(r *Ratio) Verdict {
	more, less := More, Less
	if b.cost {
		more, less = Slower, Faster
	}
	switch {
	case *r.Low > 1:
		return more
	case *r.High < 1:
		return less
	case *r.Low >= 1-alike && *r.High <= 1+alike:
		return Alike
	}
	return Open
}

// exactRatio compares figures without error.
func exactRatio(v, first float64) Ratio {
	r := Ratio{Verdict: Alike}
	switch {
	case v > first:
		r.Verdict = More
	case v < first:
		r.Verdict = Less
	}
	if q := v / first; first > 0 && !math.IsInf(q, 0) {
		r.Value, r.Low, r.High, r.Interval = &q, &q, &q, Exact
	}
	return r
}

// discover takes back verdicts of groups that chance may have made: of the ratios of each run, the
// part of false ones among those that differ is bounded.
func (b *builder) discover() {
	for k := range b.ps {
		ps := make([]float64, len(b.t.Groups))
		for i := range b.t.Groups {
			ps[i] = math.NaN()
			if p := b.t.Groups[i].Ratios[k].P; p != nil {
				ps[i] = *p
			}
		}
		for i, differs := range stats.Discoveries(ps, discoveries) {
			r := &b.t.Groups[i].Ratios[k]
			if r.P == nil || differs {
				continue
			}
			if r.Verdict = Open; *r.Low >= 1-alike && *r.High <= 1+alike {
				r.Verdict = Alike
			}
		}
	}
}

// widest is the kind of an interval that combines two.
func widest(a, b Interval) Interval {
	switch {
	case a == Band90 || b == Band90:
		return Band90
	case a == Exact && b == Exact:
		return Exact
	}
	return CI95
}

// half is half of an interval as a part of the figure.
func half(f Figure) (float64, bool) {
	if f.Low == nil || f.High == nil || !(*f.High >= *f.Low) || *f.Value == 0 {
		return 0, false
	}
	return (*f.High - *f.Low) / 2 / *f.Value, true
}

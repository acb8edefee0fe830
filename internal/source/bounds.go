package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// rounding is what a figure may exceed its bound by: records round their figures.
const rounding = 1e-3

// fractions are words in the keys of quantities that are parts of a whole, and so at most 1. A
// quantity of unit "1" without them is a ratio, which has no bound.
var fractions = []string{"share", "utilisation", "sparsity", "fairness", "occupancy", "fill"}

// bounds adds a finding for each quantity that exceeds what it can be: a part of a whole above
// 100 %, a rate of an imported record above the peak of the chip that it names. A clock, a chip
// or a record is wrong then, and the figure is not to be used.
func bounds(p *profile.Profile) {
	for _, q := range slices.Concat(profile.Quantities(), p.Quantities) {
		if q.Unit != "1" || !slices.ContainsFunc(fractions, func(w string) bool { return strings.Contains(q.Key, w) }) {
			continue
		}
		e := exceeding{what: cmp.Or(q.Name, q.Key)}
		if v, ok := p.Totals.Value(q.Key); ok {
			e.add("the model", v)
		}
		for i := range p.Layers {
			if v, ok := p.Layers[i].Value(q.Key); ok {
				e.add(p.Layers[i].Name, v)
			}
		}
		e.into(p)
	}
	if p.Target.Kind != profile.TargetImport {
		return // a measured peak is that of its own kernels, and a layer may use better ones
	}
	e := exceeding{what: "Rate of arithmetic or memory, as a part of the chip's peak"}
	for i := range p.Layers {
		if u := p.Target.RoofOf(&p.Layers[i]); u != nil && u.Use != nil {
			e.add(p.Layers[i].Name, *u.Use)
		}
	}
	e.into(p)
	outside(p)
}

// outsideShare is the part of an inference above which the time in no operator is a finding.
// Latency and layers of a record may be statistics of different inferences.
const outsideShare = 0.1

// outside adds a finding for a record whose operators take much less time than an inference: their
// shares are parts of the rest.
func outside(p *profile.Profile) {
	wall, ok := p.Totals.Latency.Best()
	if p.Reconcile != nil && p.Reconcile.WallS != nil {
		wall, ok = *p.Reconcile.WallS, true
	}
	var sum float64
	for i := range p.Layers {
		v, _ := p.Layers[i].Latency.Best()
		sum += v
	}
	if rest := wall - sum; ok && sum > 0 && rest > outsideShare*wall {
		p.Findings = append(p.Findings, profile.Finding{
			ID: "reconcile.gaps", Severity: profile.Warning,
			Text: fmt.Sprintf("%.3g µs (%.0f %%) of an inference are in no operator of the record. Shares are parts of the rest.", rest*1e6, 100*rest/wall),
		})
	}
}

// exceeding collects figures of one quantity that exceed their bound.
type exceeding struct {
	what, where string
	most        float64
	n           int
}

func (e *exceeding) add(where string, v float64) {
	if v <= 1+rounding {
		return
	}
	if e.n++; v > e.most {
		e.most, e.where = v, where
	}
}

func (e *exceeding) into(p *profile.Profile) {
	if e.n == 0 {
		return
	}
	p.Findings = append(p.Findings, profile.Finding{
		ID: "figures.bound", Severity: profile.Problem,
		Text: fmt.Sprintf("%s is above 100 %% in %d places, at most %.4g %% (%s). That is impossible: a clock, the chip or a part of the record is wrong. Do not use these figures.", e.what, e.n, 100*e.most, e.where),
	})
}

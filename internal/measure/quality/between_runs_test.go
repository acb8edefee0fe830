package quality

import (
	"math"
	"testing"
	"time"

	"github.com/opmeter/opmeter/profile"
)

// TestBetweenRuns: the tolerance holds the latencies of runs at the earlier speeds.
func TestBetweenRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		earlier   []float64
		tolerance float64
		verdict   profile.Verdict
		fit       profile.Fit
	}{
		{"none", nil, 0.03, profile.Good, profile.FitComparing},
		{"two", []float64{2, 2}, 0.03, profile.Good, profile.FitComparing},
		{"equal", []float64{1, 1, 1}, 0.03, profile.Good, profile.FitComparing},
		{"four per cent", []float64{1, 1 / 1.04, 1 / 1.04, 1 / 1.04}, 0.05, profile.Good, profile.FitComparing},
		{"a fifth", []float64{1, 1 / 0.8, 1 / 0.8, 1 / 0.8}, math.Hypot(0.03, 0.2), profile.Fair, profile.FitShares},
		{"half", []float64{2, 2, 2}, math.Hypot(0.03, 0.5), profile.Unreliable, profile.FitShares},
	} {
		p := &profile.Profile{Layers: []profile.Layer{{Share: new(1.0)}}}
		if err := p.Totals.Set("machine_speed", &profile.Metric{Median: new(1.0)}); err != nil {
			t.Fatal(err)
		}
		p.Trust = Doubts{}.Trust(0.03, true)
		p.Trust.Blocks = new(int64(32))
		l := &log{earlier: c.earlier}
		BetweenRuns(p, l, time.Time{})
		if l.added != 1 {
			t.Errorf("%s: added %g, want 1", c.name, l.added)
		}
		if got := *p.Trust.Tolerance; math.Abs(got-c.tolerance) > 1e-9 {
			t.Errorf("%s: tolerance %.4f, want %.4f", c.name, got, c.tolerance)
		}
		if p.Trust.Verdict != c.verdict || p.Trust.Fit != c.fit || *p.Trust.Blocks != 32 {
			t.Errorf("%s: %s, fit for %s, want %s, %s", c.name, p.Trust.Verdict, p.Trust.Fit, c.verdict, c.fit)
		}
	}
}

// log is a log in memory.
type log struct {
	earlier []float64
	added   float64
}

func (l *log) Add(speed float64, _ time.Time) []float64 {
	l.added = speed
	return l.earlier
}

// TestDisturbedSpeed: a busy machine's speed is neither kept nor compared.
func TestDisturbedSpeed(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{}
	if err := p.Totals.Set("machine_speed", &profile.Metric{Median: new(0.3)}); err != nil {
		t.Fatal(err)
	}
	var d Doubts
	d.Add(profile.DoubtBusy, profile.Good, 2, 0.5)
	p.Trust = d.Trust(0.03, true)
	l := &log{earlier: []float64{1, 1, 1, 1}, added: -1}
	BetweenRuns(p, l, time.Time{})
	if *p.Trust.Tolerance != 0.03 || l.added != 0 {
		t.Errorf("tolerance %g, added %g, want 0.03 and nothing", *p.Trust.Tolerance, l.added)
	}
	var fair Doubts
	fair.Add(profile.DoubtSpeed, profile.Fair, 0.2, 0.1)
	p.Trust = fair.Trust(0.03, true)
	if BetweenRuns(p, l, time.Time{}); l.added != 0 {
		t.Errorf("added %g of a run that is only fair", l.added)
	}
	p.Trust = d.Trust(0.03, true)
	l.earlier = []float64{1, 1, 0.8, 1.25, 1}
	if BetweenRuns(p, l, time.Time{}); *p.Trust.Tolerance < 0.2 || *p.Trust.Tolerance > 0.26 {
		t.Errorf("tolerance %g, want the spread of the earlier speeds", *p.Trust.Tolerance)
	}
}

// TestSpeed: modes that the speed explains have the speed of the stated one.
func TestSpeed(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Trust: &profile.Trust{}}
	if v, ok := Speed(p); ok {
		t.Errorf("%g without a speed", v)
	}
	if err := p.Totals.Set("machine_speed", &profile.Metric{Median: new(0.9)}); err != nil {
		t.Fatal(err)
	}
	p.Trust = &profile.Trust{ModesBySpeed: true, Modes: []profile.Mode{{Speed: new(0.8)}, {Speed: new(1.1), Headline: true}}}
	if v, ok := Speed(p); v != 1.1 || !ok {
		t.Errorf("%g, want that of the stated mode, 1.1", v)
	}
	p.Trust.ModesBySpeed = false
	if v, ok := Speed(p); v != 0.9 || !ok {
		t.Errorf("%g, want that of all runs, 0.9", v)
	}
}

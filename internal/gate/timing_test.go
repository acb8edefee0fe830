package gate

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/testing/noisy"
)

var versions = []ab.Alternative{{Name: "base"}, {Name: "new"}}

func timed(t *testing.T, m *noisy.Machine, rule Rule, tests int) (Row, *ab.Result) {
	t.Helper()
	timing := Timing{Rule: &rule, Budget: time.Minute, Tests: tests, Seed: 1, Now: m.Now}
	row, res, err := timing.Measure(t.Context(), versions, m)
	if err != nil {
		t.Fatal(err)
	}
	return row, res
}

func TestTiming(t *testing.T) {
	t.Parallel()
	rule := Rule{Figure: Latency, Better: Lower, Margin: 0.05, Required: true}
	for _, c := range []struct {
		name   string
		effect float64
		rule   Rule
		want   []Verdict
	}{
		{"equal", 1, rule, []Verdict{Equal}},
		{"12 % slower", 1.12, rule, []Verdict{Worse}},
		{"12 % slower, allowed by the floor", 1.12, Rule{Figure: Latency, Margin: 0.05, Floor: 200e-6}, []Verdict{Within}},
		{"twice as fast", 0.5, rule, []Verdict{Better}},
		{"at the margin", 1.05, rule, []Verdict{Undecided}},
	} {
		row, res := timed(t, noisy.New(3, c.effect), c.rule, 1)
		if row.Verdict != c.want[0] {
			t.Errorf("%s: %s, ratio %.3f (%.3f to %.3f)", c.name, row.Verdict, *row.Ratio, *row.Low, *row.High)
		}
		if math.Abs(*row.Ratio/c.effect-1) > 0.05 {
			t.Errorf("%s: ratio %v", c.name, *row.Ratio)
		}
		if quotient := *row.New / *row.Base; math.Abs(quotient / *row.Ratio - 1) > 1e-9 {
			t.Errorf("%s: the times are in the ratio %v, stated is %v", c.name, quotient, *row.Ratio)
		}
		// Undecided uses the budget before it says so, decided stops earlier.
		if used := res.TookS > 55; used != (row.Verdict == Undecided) {
			t.Errorf("%s: %s after %.0f s", c.name, row.Verdict, res.TookS)
		}
	}
}

// The level of a comparison is corrected for all comparisons of the run.
func TestTimingTests(t *testing.T) {
	t.Parallel()
	rule := Rule{Figure: Latency, Margin: 0.05}
	_, one := timed(t, noisy.New(5, 1.05), rule, 1)
	_, many := timed(t, noisy.New(5, 1.05), rule, 40)
	width := func(r *ab.Result) float64 { return r.Comparisons[0].High - r.Comparisons[0].Low }
	if !(width(many) > 1.3*width(one)) {
		t.Errorf("widths %v and %v", width(one), width(many))
	}
}

type broken struct{ *noisy.Machine }

func (broken) Begin(context.Context, int) error { return errors.New("no such model") }

func TestTimingErrors(t *testing.T) {
	t.Parallel()
	m := noisy.New(1, 1)
	timing := Timing{Rule: &Rule{Figure: Latency, Margin: 0.05}, Budget: time.Minute, Now: m.Now}
	if row, _, err := timing.Measure(t.Context(), versions, broken{m}); err == nil || row.Verdict != Undecided || !strings.Contains(row.Why, "no such model") {
		t.Errorf("%+v, %v", row, err)
	}
	timing.Budget = time.Millisecond
	if row, _, err := timing.Measure(t.Context(), versions, m); err != nil || row.Verdict != Undecided || !strings.Contains(row.Why, "too short for 5 processes") {
		t.Errorf("%+v, %v", row, err)
	}
}

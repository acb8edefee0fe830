package tiny

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/profile"
)

// throughput is the benchmark's figure.
var throughput = profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1, Model: true, Doc: "Median over the windows of inferences divided by time."}

// describe describes what the board runs: the model's layers if the model is known; the board
// reports none.
func (s *session) describe() error {
	s.described = true
	p := &profile.Profile{
		Model:      profile.Model{Name: s.p.about.model, Format: "tiny"},
		Target:     profile.Target{Kind: profile.TargetDevice, Engine: s.p.about.profile, Description: s.p.about.vendor},
		Quantities: []profile.Quantity{throughput},
		Layers:     []profile.Layer{},
	}
	if m := s.job.Model; m != nil {
		p.Layers = slices.Clone(m.Layers)
		for i := range p.Layers {
			p.Layers[i].State, p.Layers[i].Cause = profile.Ran, nil
		}
	}
	p.Findings = append(p.Findings, profile.Finding{ID: "tiny.windows", Severity: profile.Info, Text: fmt.Sprintf("Each time is a mean over %d inferences in a row, as this benchmark measures; the board tells no times of layers.", s.n)})
	if err := s.job.Describe(p, nil); err != nil {
		return err
	}
	s.job.Clock(0, device.Nanoseconds)
	return nil
}

// Rules of the benchmark.
const (
	ruleWindows = 5
	ruleSeconds = 10
)

// finish reports the result of the windows: the median throughput, and which rules were met.
func (s *session) finish() error {
	if !s.described {
		return nil
	}
	var rates []float64
	for _, t := range s.seconds {
		rates = append(rates, 1/t)
	}
	m := profile.Value(profile.Measured, stats.Median(rates), "")
	if len(rates) > 1 {
		m = &profile.Metric{Kind: profile.Measured, N: new(int64(len(rates))), Median: m.Median, Min: new(slices.Min(rates)), Max: new(slices.Max(rates))}
	}
	m.Method = "median over the windows"
	if err := s.job.Count(-1, throughput.Key, m); err != nil {
		return err
	}
	total := 0.0
	for _, l := range s.lengths {
		total += l
	}
	shortest := slices.Min(s.lengths)
	switch {
	case len(s.lengths) == ruleWindows && shortest >= ruleSeconds:
		s.job.Found("tiny.rules", profile.Info, "Five windows of at least 10 s: the rules of the benchmark's performance mode for number and length are met, by both of its hosts.")
	case len(s.lengths) == ruleWindows && total >= ruleSeconds:
		s.job.Found("tiny.rules", profile.Info, "Five windows of %.3g s in all: enough for the host of the benchmark's project, which asks for 10 s together; its predecessor asks for 10 s each.", total)
	default:
		s.job.Found("tiny.rules", profile.Info, "%d windows of at least %.3g s: the benchmark's performance mode asks for five, 10 s together or each.", len(s.lengths), shortest)
	}
	if s.lost > 0 {
		s.job.Lost(-1, s.lost, profile.ByRecord, "windows whose time stamps were damaged on the way")
		s.job.Found("tiny.lost", profile.Warning, "The time stamps of %d windows were damaged on the way; these were measured again.", s.lost)
	}
	if s.against > 0 {
		s.job.Found("tiny.clock", profile.Warning, "In %d of %d windows the board's time stamps are not as far apart as this computer's clock says: a digit was damaged on the way, or the board's clock is wrong.", s.against, len(s.seconds))
	}
	odd := 0
	for _, t := range s.seconds {
		const far = 1.2
		if middle := stats.Median(s.seconds); len(s.seconds) > 2 && (t > far*middle || t < middle/far) {
			odd++
		}
	}
	if odd > 0 {
		s.job.Found("tiny.odd", profile.Warning, "%d of %d windows differ much from the others. Time stamps have no checksum: a digit may have been damaged on the way, or the board did something else meanwhile.", odd, len(s.seconds))
	}
	s.compare()
	return nil
}

// compare checks the results of the board.
func (s *session) compare() {
	if s.different > 0 {
		s.job.Found("tiny.results", profile.Warning, "%d windows gave other results than the first for the same input.", s.different)
	}
	want := s.o.Expected
	switch {
	case len(want) < 2 || s.results == nil:
	case len(want) != len(s.results):
		s.job.Found("tiny.top1", profile.Warning, "The board gives %d results, the model has %d outputs: is it the same model?", len(s.results), len(want))
	default:
		a, b := top(s.results), top(want)
		if a == b {
			s.job.Found("tiny.top1", profile.Info, "The board's results and opmeter's engine agree on the class for this input: %d.", a)
		} else {
			s.job.Found("tiny.top1", profile.Warning, "For this input the board's results say class %d, opmeter's engine says %d.", a, b)
		}
	}
}

func top(v []float64) int {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}

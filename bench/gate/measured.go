package main

import (
	"context"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/testing/noisy"
)

// margin is what the rule allows, budget the time for each comparison, alarms the promised rate of
// false alarms of a run.
const (
	margin = 0.02
	budget = time.Minute
	alarms = 0.05
)

// measuredGroup counts the verdicts of changes of one size.
type measuredGroup struct {
	// Noise is the noise of the machine as a multiple of that of a cloud runner.
	Noise     float64 `json:"noise"`
	Effect    float64 `json:"effect"`
	Changes   int     `json:"changes"`
	Worse     int     `json:"worse"`
	Undecided int     `json:"undecided"`
	NotWorse  int     `json:"not_worse"`
	// SecondsS is the mean time of the simulated machine, LongestS the longest.
	SecondsS float64 `json:"seconds_s"`
	LongestS float64 `json:"longest_s"`
}

// effects are the sizes of changes and their parts of all.
var effects = []struct{ ratio, part float64 }{{1, 0.5}, {0.95, 0.1}, {1.01, 0.1}, {1.05, 0.2}, {1.1, 0.1}}

// decide measures one change.
func decide(ctx context.Context, seed uint64, ratio, noise float64, tests int) (gate.Row, float64, error) {
	m := noisy.New(seed, ratio)
	m.Between, m.Within, m.Drift = noise*m.Between, noise*m.Within, noise*m.Drift
	rule := gate.Rule{Figure: gate.Latency, Better: gate.Lower, Margin: margin, Required: true}
	t := gate.Timing{Rule: &rule, Budget: budget, Tests: tests, Seed: seed, Now: m.Now}
	row, res, err := t.Measure(ctx, []ab.Alternative{{Name: "base"}, {Name: "new"}}, m)
	if err != nil {
		return row, 0, err
	}
	return row, res.TookS, nil
}

// measured judges changes of known size, each as a run of its own.
func measured(ctx context.Context, changes int) ([]measuredGroup, error) {
	var out []measuredGroup
	seed := uint64(1)
	for _, noise := range noises {
		for _, e := range effects {
			g := measuredGroup{Noise: noise, Effect: e.ratio}
			for range int(e.part * float64(changes)) {
				seed++
				row, took, err := decide(ctx, seed, e.ratio, noise, 1)
				if err != nil {
					return nil, err
				}
				g.add(row.Verdict, took)
			}
			g.SecondsS /= float64(max(g.Changes, 1))
			out = append(out, g)
		}
	}
	return out, nil
}

// noises are the machines: a cloud runner, and one with three times its noise.
var noises = []float64{1, 3}

func (g *measuredGroup) add(v gate.Verdict, took float64) {
	g.Changes++
	g.SecondsS += took
	g.LongestS = max(g.LongestS, took)
	switch v {
	case gate.Worse:
		g.Worse++
	case gate.Undecided:
		g.Undecided++
	default:
		g.NotWorse++
	}
}

// show prints the groups. What is not worse than the margin must not be called worse more often
// than promised, and what is worse must not pass more often.
func show(groups []measuredGroup) bool {
	fmt.Printf("\nMeasured figures: margin %.0f %%, budget %v, %d processes or more\n", 100*margin, budget, ab.MinProcesses)
	fmt.Println("| noise | ratio | changes | worse | undecided | not worse | mean time | longest |")
	fmt.Println("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	equal, false1, slower, missed := 0, 0, 0, 0
	within := true
	for _, g := range groups {
		fmt.Printf("| %.0f × | %.2f | %d | %d | %d | %d | %.0f s | %.0f s |\n", g.Noise, g.Effect, g.Changes, g.Worse, g.Undecided, g.NotWorse, g.SecondsS, g.LongestS)
		if g.Effect <= 1+margin {
			equal, false1 = equal+g.Changes, false1+g.Worse
		} else {
			slower, missed = slower+g.Changes, missed+g.NotWorse
		}
		within = within && g.LongestS <= budget.Seconds()
	}
	fmt.Printf("False alarms: %d of %d. Slower by more than the margin and passed: %d of %d. Within the budget: %v\n", false1, equal, missed, slower, within)
	return float64(false1) <= alarms*float64(equal) && float64(missed) <= alarms*float64(slower) && within
}

// matrixResult is a run over many models of which none changed.
type matrixResult struct {
	Runs   int `json:"runs"`
	Models int `json:"models"`
	// Alarms is the number of runs in which any model was called worse.
	Alarms    int `json:"alarms"`
	Undecided int `json:"undecided"`
}

// matrix judges runs of ten unchanged models, with one correction for all.
func matrix(ctx context.Context, changes int) (*matrixResult, error) {
	r := &matrixResult{Runs: max(changes/10, 1), Models: 10}
	seed := uint64(1_000_000)
	for range r.Runs {
		alarm := false
		for range r.Models {
			seed++
			row, _, err := decide(ctx, seed, 1, 1, r.Models)
			if err != nil {
				return nil, err
			}
			alarm = alarm || row.Verdict == gate.Worse
			if row.Verdict == gate.Undecided {
				r.Undecided++
			}
		}
		if alarm {
			r.Alarms++
		}
	}
	return r, nil
}

func (r *matrixResult) show() bool {
	fmt.Printf("\nMatrix: %d of %d runs of %d unchanged models with a false alarm; %d of %d models undecided\n", r.Alarms, r.Runs, r.Models, r.Undecided, r.Runs*r.Models)
	return float64(r.Alarms) <= max(1, alarms*float64(r.Runs))
}

package ab

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// simulated is a machine with noise, and the clock of it: each process has an offset of its own,
// the speed drifts, and bursts of other load hit single blocks.
type simulated struct {
	// effects are the log-ratios of the alternatives to the first.
	effects []float64
	// process, block and drift are standard deviations of logarithms; drift is that of a block
	// step of a random walk which both alternatives share. burst is the probability that another
	// program slows a block by a half, tail that a process is an outlier with ten offsets.
	process, block, drift, burst, tail float64
	// start and each are the seconds of starting a process and of a block.
	start, each float64
	random      *rand.Rand
	now         time.Time
	offsets     []float64
	speed       float64
	open        int
	fails       func(process, alternative int) error
	disturbed   func() bool
}

func (s *simulated) advance(seconds float64) {
	s.now = s.now.Add(time.Duration(seconds * 1e9))
}

func (s *simulated) Begin(ctx context.Context, _ int) error {
	s.offsets = s.offsets[:0]
	for range s.effects {
		o := s.process * s.random.NormFloat64()
		if s.random.Float64() < s.tail {
			o *= 10
		}
		s.offsets = append(s.offsets, o)
		s.advance(s.start)
	}
	s.open++
	return ctx.Err()
}

func (s *simulated) Block(ctx context.Context, process, alternative int) (Block, error) {
	if s.fails != nil {
		if err := s.fails(process, alternative); err != nil {
			return Block{}, err
		}
	}
	s.advance(s.each)
	s.speed += s.drift * s.random.NormFloat64()
	v := s.speed + s.effects[alternative] + s.offsets[alternative] + s.block*s.random.NormFloat64()
	if s.random.Float64() < s.burst {
		v += 0.5 * s.random.Float64()
	}
	b := Block{Seconds: 0.001 * math.Exp(v), Inferences: 10}
	b.Disturbed = s.disturbed != nil && s.disturbed()
	return b, ctx.Err()
}

func (s *simulated) End(int) { s.open-- }

// options are those of a minute on a simulated machine.
func (s *simulated) options(seed uint64) Options {
	s.random = rand.New(rand.NewPCG(seed, 99))
	return Options{Seed: seed, Now: func() time.Time { return s.now }}
}

func alternatives(n int) []Alternative {
	var out []Alternative
	for i := range n {
		out = append(out, Alternative{Name: string(rune('A' + i))})
	}
	return out
}

// machines are noises that were seen: process offsets of 1 to 3.5 % on virtual machines.
var machines = map[string]simulated{
	"quiet":    {process: 0.003, block: 0.005, start: 0.1, each: 0.01},
	"virtual":  {process: 0.015, block: 0.02, drift: 0.002, burst: 0.03, start: 0.1, each: 0.01},
	"noisy":    {process: 0.025, block: 0.03, drift: 0.005, burst: 0.1, start: 0.1, each: 0.01},
	"loud":     {process: 0.035, block: 0.05, drift: 0.01, burst: 0.2, start: 0.1, each: 0.01},
	"outliers": {process: 0.015, block: 0.02, drift: 0.002, burst: 0.03, tail: 0.05, start: 0.1, each: 0.01},
}

// repeat counts the verdicts of repeated comparisons of two alternatives.
func repeat(t *testing.T, n int, m simulated, budget time.Duration, ratio float64) map[Verdict]int {
	t.Helper()
	out := map[Verdict]int{}
	for seed := range uint64(n) {
		s := m
		s.effects = []float64{0, math.Log(ratio)}
		o := s.options(seed)
		o.Budget = budget
		res, err := Run(t.Context(), alternatives(2), &s, o)
		if err != nil || s.open != 0 || res.TookS > budget.Seconds() {
			t.Fatalf("%v, %d rounds are open after %v s", err, s.open, res.TookS)
		}
		out[res.Comparisons[0].Verdict]++
	}
	return out
}

// statistics skips a simulation with -short, as the race detector is used: nothing in it runs
// beside anything else, and it would take minutes.
func statistics(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the statistics are simulated without -short")
	}
}

// TestFalseAlarms calls equal alternatives different in at most 5 of 100 comparisons, with all
// looks, whatever the noise.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	statistics(t)
	const n = 150
	for name, m := range machines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := repeat(t, n, m, 15*time.Second, 1)
			if wrong := got[Better] + got[Worse]; wrong > n*5/100 {
				t.Errorf("%d of %d: %v", wrong, n, got)
			}
		})
	}
}

// TestPower finds a difference of 3 % within a minute, in the right direction. If 95 of 100 are
// found, less than 36 of 40 have a probability of 0.3 %.
func TestPower(t *testing.T) {
	t.Parallel()
	statistics(t)
	const n = 40
	for name, m := range machines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := repeat(t, n, m, time.Minute, 1.03); got[Worse] < 36 {
				t.Errorf("slower by 3 %%: %v of %d", got, n)
			}
		})
	}
	if got := repeat(t, n, machines["virtual"], time.Minute, 1/1.03); got[Better] < 36 {
		t.Errorf("faster by 3 %%: %v of %d", got, n)
	}
}

// TestEquivalent finds equal alternatives equivalent where the noise allows it, and never those
// that differ by more than the margin.
func TestEquivalent(t *testing.T) {
	t.Parallel()
	if got := repeat(t, 20, machines["quiet"], time.Minute, 1); got[Equivalent] < 19 {
		t.Errorf("equal: %v", got)
	}
	if got := repeat(t, 20, machines["quiet"], time.Minute, 1.015); got[Equivalent] > 0 {
		t.Errorf("1.5 %% slower: %v", got)
	}
	if got := repeat(t, 5, machines["loud"], 5*time.Second, 1); got[Equivalent] > 0 {
		t.Errorf("equal in loud noise: %v, without evidence of it", got)
	}
}

package estimator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// known are the steps of the fake engine, in nanoseconds, and the time between them.
var known = []float64{40_000, 30_000, 15_000, 8_000, 4_000, 2_000, 1_500, 1_000, 500, 300, 100}

const (
	knownGap   = 1_000.0
	knownTotal = 103_400.0
)

// cases are the machines on which the fake engine runs: its times are known, and other programs,
// drift and a second speed disturb them.
var cases = []struct {
	name  string
	truth truth
	runs  int
	// longer multiplies the times of the steps.
	longer float64
	// shareError is the largest mean error of a share of 1 % or more, relative to the share.
	shareError float64
	// modes is the expected number of speeds, 0 for a machine whose speed drifts.
	modes int
}{
	{"calm", truth{jitter: .02}, 2000, 1, .0012, 1},
	{"few runs", truth{jitter: .02}, 40, 1, .006, 1},
	{"clock of a microsecond", truth{jitter: .02, resolution: 1000}, 2000, 1, .01, 1},
	{"preempted", truth{jitter: .02, preempt: 300, lost: 3e6, seen: 1}, 2000, 1, .001, 1},
	{"preempted without a report", truth{jitter: .02, preempt: 300, lost: 3e6}, 2000, 1, .001, 1},
	{"preempted often, a third of the runs", truth{jitter: .02, preempt: 3000, lost: 3e6, seen: .95}, 2000, 1, .001, 1},
	{"drift", truth{jitter: .02, drift: .3}, 2000, 1, .001, 0},
	{"two speeds", truth{jitter: .02, slow: 1.6, stretch: 50}, 2000, 1, .001, 2},
	{"two near speeds", truth{jitter: .02, slow: 1.15, stretch: 50}, 2000, 1, .001, 2},
	{"bursts", truth{jitter: .02, preempt: 50, burst: 40, part: .4, stretch: 100, lost: 2e6, seen: .9}, 2000, 1, .001, 1},
	{"bursts without a report", truth{jitter: .02, preempt: 50, burst: 40, part: .4, stretch: 100, lost: 2e6}, 2000, 1, .0015, 1},
	{"about every run preempted", truth{jitter: .02, preempt: 330, lost: 5e6, seen: 1}, 200, 50, .01, 1},
	{"about every run preempted, without a report", truth{jitter: .02, preempt: 330, lost: 5e6}, 200, 50, .01, 1},
	{"half of the runs preempted, without a report", truth{jitter: .02, preempt: 330, lost: 5e6}, 500, 20, .01, 1},
	{"long runs, each preempted", truth{jitter: .02, preempt: 50, lost: 3e6, seen: 1}, 60, 300, .02, 1},
	{"long runs, each preempted without a report", truth{jitter: .02, preempt: 50, lost: 3e6}, 60, 300, .02, 1},
}

// on makes the fake engine on one of the machines.
func on(t truth, longer float64, seed uint64) *truth {
	t.random = rand.New(rand.NewPCG(seed, 7))
	for _, s := range known {
		t.steps = append(t.steps, s*longer)
	}
	t.gap = knownGap * longer
	return &t
}

const repeats = 60

// TestSharesOfKnownTruth recovers the shares of steps on each machine, and the interval of a
// measurement holds the shares of a repeated one in 93 to 99 % of the cases: an interval from 20
// blocks cannot be exact, and a clock of a microsecond makes it wider.
func TestSharesOfKnownTruth(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			errors := make([]float64, len(known))
			inside, all := 0, 0
			for rep := range repeats {
				engine := on(c.truth, c.longer, uint64(rep))
				first, _ := engine.run(c.runs)
				second, _ := engine.run(c.runs)
				a, b := Shares(len(known), first), Shares(len(known), second)
				sum := a.Gaps.Part
				for i, s := range known {
					errors[i] += math.Abs(a.Steps[i].Part/(s/knownTotal)-1) / repeats
					sum += a.Steps[i].Part
					all++
					if a.Steps[i].Low <= b.Steps[i].Part && b.Steps[i].Part <= a.Steps[i].High {
						inside++
					}
				}
				if math.Abs(sum-1) > 1e-12 { // rounding of twelve sums
					t.Fatalf("shares add up to %v", sum)
				}
			}
			for i, s := range known {
				if s >= knownTotal/100 && errors[i] > c.shareError {
					t.Errorf("step %d, %.3g of the time: error %.2g, want %g at most", i, s/knownTotal, errors[i], c.shareError)
				}
			}
			if part := float64(inside) / float64(all); c.longer == 1 && (part < .93 || part > .99) {
				t.Errorf("intervals hold %.1f %% of repeated shares", 100*part)
			}
		})
	}
}

// TestLatencyOfKnownTruth recovers the latency at full speed, and finds the speeds.
func TestLatencyOfKnownTruth(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.longer != 1 || c.modes == 0 {
				t.Skip("the latency of these inferences is not known")
			}
			want := knownTotal / 1e9
			found, near, inside := 0, 0, 0
			for rep := range repeats {
				engine := on(c.truth, c.longer, uint64(rep))
				a, b := Measure(engine.samples(c.runs), 0), Measure(engine.samples(c.runs), 0)
				if len(a.Modes) == c.modes {
					found++
				}
				m := a.Modes[a.Headline]
				if math.Abs(m.Median/want-1) <= .02 {
					near++
				}
				if again := b.Modes[b.Headline].Median; m.Low <= again && again <= m.High {
					inside++
				}
			}
			// A machine may stay at one speed by chance, and 95 % of 60 may be 51 by chance.
			if least := repeats * 9 / 10; found < least || near < least || inside < 51 {
				t.Errorf("of %d runs %d have %d speeds, %d are within 2 %%, and %d hold a repeated one", repeats, found, c.modes, near, inside)
			}
		})
	}
}

// samples returns timed inferences with the speed of the machine.
func (t *truth) samples(n int) []Sample {
	runs, speeds := t.run(n)
	out := make([]Sample, n)
	for i, r := range runs {
		out[i] = Sample{Seconds: float64(r.Wall) / 1e9, Speed: speeds[i], Disturbed: r.Disturbed}
	}
	return out
}

// TestHeadline states the speed that the reference loop calls fastest, or the most frequent one.
func TestHeadline(t *testing.T) {
	t.Parallel()
	two := func(fast, slow float64) []Sample {
		var out []Sample
		for i := range 90 {
			s := Sample{Seconds: 1, Speed: fast}
			if i%3 > 0 {
				s = Sample{Seconds: 2, Speed: slow}
			}
			s.Seconds *= 1 + .001*float64(i%7)
			out = append(out, s)
		}
		return out
	}
	for _, c := range []struct {
		name       string
		fast, slow float64
		headline   int
		bySpeed    bool
	}{
		{"two speeds of the machine", 1, .5, 0, true},
		{"the loop follows in part", 1, .65, 0, true},
		{"the program's own", 1, 1, 1, false},
		{"speed unknown", 0, 0, 1, false},
	} {
		l := Measure(two(c.fast, c.slow), 0)
		if len(l.Modes) != 2 || l.Headline != c.headline || l.BySpeed != c.bySpeed {
			t.Errorf("%s: %+v", c.name, l)
		}
	}
}

// TestCPUTimeTakesThePlace uses CPU times where too few inferences were undisturbed.
func TestCPUTimeTakesThePlace(t *testing.T) {
	t.Parallel()
	var s []Sample
	for i := range 40 {
		s = append(s, Sample{Seconds: 3 + float64(i), Work: 1, Disturbed: i%5 > 0})
	}
	l := Measure(s, 0)
	if l.Used != 32 || l.All != 40 || l.Disturbed != 32 || !l.Worked {
		t.Errorf("%+v", l)
	}
	for i := range s {
		s[i].Disturbed = i%3 > 0
	}
	if l := Measure(s, 0); l.Used != 14 || l.Disturbed != 26 || l.Worked {
		t.Errorf("%+v", l)
	}
	if l := Measure(nil, 0); l.Used != 0 || len(l.Modes) != 0 {
		t.Errorf("of nothing: %+v", l)
	}
}

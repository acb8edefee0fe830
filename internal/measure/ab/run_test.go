package ab

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// TestLooks compares the bounds of two looks with published ones of equal error: those of Pocock
// (Biometrika 64, 1977) and O'Brien and Fleming (Biometrics 35, 1979).
func TestLooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, second float64 }{{2.178, 2.178}, {2.797, 1.977}} {
		first := math.Erfc(c.first / math.Sqrt2)
		// A plan of which the first look is the part that has this probability.
		l := looks{tail: 0.05}
		if got := l.next(50, 50, false); math.Abs(got-0.05) > 1e-9 {
			t.Errorf("a single look has the tail %v", got)
		}
		l = looks{tail: 0.05, spent: 0.05 - first}
		l.next(50, 100, true)
		l.tail, l.spent = 0.05, first
		if got := stats.Normal(l.next(100, 100, true)); math.Abs(got-c.second) > 0.001 {
			t.Errorf("the second bound after %v is %.4f, want %v", c.first, got, c.second)
		}
	}
}

// TestLooksSpend spends no more than there is, in any order of sizes, and nothing for no data.
func TestLooksSpend(t *testing.T) {
	t.Parallel()
	l := looks{tail: 0.05}
	for i, c := range []struct {
		size, planned int
		last          bool
	}{{5, 60, false}, {9, 200, false}, {12, 40, false}, {12, 40, true}, {39, 40, false}, {40, 40, true}} {
		tail := l.next(c.size, c.planned, c.last)
		if nothing := i == 1 || i == 3; nothing != (tail == 0) || tail < 0 || tail > 0.05 || l.spent > 0.05+1e-12 {
			t.Errorf("look %d: tail %v, spent %v", i, tail, l.spent)
		}
	}
}

// TestEstimated compares the interval of few processes, where nothing is trimmed, with that of the
// mean by Student's distribution.
func TestEstimated(t *testing.T) {
	t.Parallel()
	medians := []float64{0.01, 0.03, 0.02, -0.01, 0.05}
	ratios := make([][]float64, len(medians))
	for i, m := range medians {
		ratios[i] = []float64{m, m - 0.5, m + 0.7} // the blocks of a process do not count singly
	}
	e := estimated(ratios, 1)
	want := stats.StudentQuantile(0.05, 4) * stats.StdDev(medians) / math.Sqrt(5)
	if math.Abs(e.ratio-0.02) > 1e-12 || e.blocks != 15 || e.processes != 5 || math.Abs(e.interval(0.05)-want) > 0.05*want {
		t.Errorf("%+v ± %v, want 0.02 ± %v", e, e.interval(0.05), want)
	}
	if again := estimated(ratios, 1); again != e {
		t.Errorf("the same seed gives %+v and %+v", e, again)
	}
	// A burst in one of ten processes does not count.
	ratios = nil
	for i := range 10 {
		ratios = append(ratios, []float64{0.001 * float64(i)})
	}
	ratios[9][0] = 5
	if e := estimated(ratios, 1); e.ratio > 0.005 {
		t.Errorf("an outlier moves the estimate to %v", e.ratio)
	}
	if e := estimated(ratios[:1], 1); !math.IsInf(e.interval(0.05), 1) {
		t.Errorf("one process has the interval %v", e.interval(0.05))
	}
}

// TestNoiseOf separates the spread of processes from that of blocks.
func TestNoiseOf(t *testing.T) {
	t.Parallel()
	s := simulated{effects: []float64{0, 0}, process: 0.02, block: 0.05}
	s.options(3)
	var a, b [][]float64
	for p := range 300 {
		if err := s.Begin(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		var rows [2][]float64
		for range 8 {
			for i := range rows {
				x, _ := s.Block(t.Context(), p, i)
				rows[i] = append(rows[i], x.Seconds)
			}
		}
		a, b = append(a, rows[0]), append(b, rows[1])
	}
	n := noiseOf(logRatios(a, b))
	if want := 0.02 * math.Sqrt2; math.Abs(n.between-want) > 0.15*want {
		t.Errorf("between %v, want %v", n.between, want)
	}
	if want := 0.05 * math.Sqrt2; math.Abs(n.within-want) > 0.1*want {
		t.Errorf("within %v, want %v", n.within, want)
	}
	if n := noiseOf(nil); n != (noise{}) {
		t.Errorf("no processes have noise: %+v", n)
	}
}

// TestPlanned takes many short processes where processes differ, and long ones where blocks do or
// processes are slow to start.
func TestPlanned(t *testing.T) {
	t.Parallel()
	plan := func(n noise, c costs) Plan { return planned(n, c, 50, 0.05, 5, limitsOf(&Options{})) }
	short := plan(noise{0.03, 0.01}, costs{0.2, 0.02})
	long := plan(noise{0.005, 0.08}, costs{0.2, 0.02})
	slow := plan(noise{0.03, 0.01}, costs{5, 0.02})
	if short.Blocks > 5 || short.Processes < 150 {
		t.Errorf("processes differ: %+v", short)
	}
	if long.Blocks < 2*short.Blocks || long.Processes >= short.Processes {
		t.Errorf("blocks differ: %+v", long)
	}
	if slow.Processes > 15 || slow.Processes < 5 || !(slow.Detectable > short.Detectable) {
		t.Errorf("processes start slowly: %+v", slow)
	}
	if p := planned(noise{0.03, 0.01}, costs{100, 1}, 0, 0.05, 5, limitsOf(&Options{})); p.Processes != 5 || p.Blocks != leastBlocks {
		t.Errorf("nothing is left: %+v", p)
	}
	if p := plan(noise{}, costs{0.2, 0.02}); p.Detectable != 0 {
		t.Errorf("no noise: %+v", p)
	}
}

// TestDetectable predicts what is found: the smallest effect of the plan is found in about 95 of
// 100 comparisons.
func TestDetectable(t *testing.T) {
	t.Parallel()
	statistics(t)
	m := machines["loud"]
	n := noise{between: m.process * math.Sqrt2, within: m.block * math.Sqrt2}
	p := planned(n, costs{0.2, 0.02}, 12, 0.05, 5, limitsOf(&Options{}))
	if p.Detectable < 0.02 || p.Detectable > 0.08 {
		t.Fatalf("%+v", p)
	}
	m.burst, m.drift = 0, 0
	got := repeat(t, 60, m, 14*time.Second, 1+p.Detectable)
	if got[Worse] < 54 {
		t.Errorf("an effect of %.3f: %v of 60", p.Detectable, got)
	}
}

// TestPrecision measures on until the interval is as narrow as asked for.
func TestPrecision(t *testing.T) {
	t.Parallel()
	for _, precision := range []float64{0.05, 0.004} {
		s := machines["quiet"]
		s.effects = []float64{0, math.Log(1.2)}
		o := s.options(1)
		o.Precision = precision
		res, err := Run(t.Context(), alternatives(2), &s, o)
		if err != nil {
			t.Fatal(err)
		}
		if c := res.Comparisons[0]; c.Verdict != Worse || res.Stop != Settled || (c.High-c.Low)/2 > precision || c.Low > 1.2 || c.High < 1.2 {
			t.Errorf("precision %v: %+v, %s", precision, c, res.Stop)
		}
	}
}

// TestFloor counts a difference below the absolute floor as equal.
func TestFloor(t *testing.T) {
	t.Parallel()
	s := machines["quiet"]
	s.effects = []float64{0, math.Log(1.05)}
	o := s.options(1)
	o.Floor = 100 * time.Microsecond // of about a millisecond
	res, err := Run(t.Context(), alternatives(2), &s, o)
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Comparisons[0]; c.Verdict != Equivalent || math.Abs(c.Allowance-0.1) > 0.01 {
		t.Errorf("%+v", c)
	}
}

// TestSeveral compares all with the first, with intervals that are corrected for their number.
func TestSeveral(t *testing.T) {
	t.Parallel()
	s := machines["quiet"]
	s.effects = []float64{0, math.Log(1.1), math.Log(0.9), 0}
	res, err := Run(t.Context(), alternatives(4), &s, s.options(1))
	if err != nil {
		t.Fatal(err)
	}
	want := []Verdict{Worse, Better, Equivalent}
	for i, c := range res.Comparisons {
		if c.A != 0 || c.B != i+1 || c.Verdict != want[i] || c.Level < 1-0.05/3 {
			t.Errorf("%+v, want %s", c, want[i])
		}
	}
	if len(res.Comparisons) != 3 || len(res.Alternatives) != 4 {
		t.Errorf("%d comparisons of %d", len(res.Comparisons), len(res.Alternatives))
	}
	if _, err := Run(t.Context(), alternatives(1), &s, s.options(1)); !errors.Is(err, ErrAlternatives) {
		t.Errorf("one alternative: %v", err)
	}
}

// TestInterrupted keeps what was measured when the user stops, a process fails, or the budget ends
// within the pilot, and gives no verdict below five processes.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		name      string
		process   int // in which it ends, after a row of blocks
		budget    time.Duration
		cancelled bool
		stop      Stop
		decided   int
	}{
		{name: "cancelled at once", process: 0, cancelled: true},
		{name: "failed at once", process: 0},
		{name: "cancelled in the pilot", process: 3, cancelled: true, stop: Cancelled},
		{name: "failed in the pilot", process: 3, stop: Failed},
		{name: "cancelled later", process: 30, cancelled: true, stop: Cancelled, decided: 1},
		{name: "failed later", process: 30, stop: Failed, decided: 1},
		{name: "short budget", process: 1000, budget: time.Second, stop: BudgetOver},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := machines["loud"]
			s.effects = []float64{0, math.Log(1.05)}
			s.fails = func(process, alternative int) error {
				if process < c.process || alternative == 0 {
					return nil
				}
				if c.cancelled {
					cancel()
					return ctx.Err()
				}
				return broken
			}
			o := s.options(2)
			o.Budget = c.budget
			res, err := Run(ctx, alternatives(2), &s, o)
			if s.open != 0 {
				t.Errorf("%d rounds are open", s.open)
			}
			if c.stop == "" {
				if res != nil || err == nil {
					t.Errorf("%+v, %v", res, err)
				}
				return
			}
			if wrong := c.stop == Failed; res == nil || wrong != errors.Is(err, broken) || !wrong && err != nil {
				t.Fatalf("%+v, %v", res, err)
			}
			n := len(res.Alternatives[0].Processes)
			if res.Stop != c.stop || len(res.Comparisons) != c.decided || c.budget == 0 && n != c.process || n == 0 || len(res.Alternatives[1].Processes) != n {
				t.Errorf("%s after %d processes: %+v", res.Stop, n, res.Comparisons)
			}
		})
	}
}

// TestDisturbed measures disturbed rows again, and stops doing so where everything is disturbed.
func TestDisturbed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		part     float64
		repeated bool
	}{{"few", 0.1, true}, {"all", 1, false}} {
		s := machines["virtual"]
		s.effects = []float64{0, 0}
		o := s.options(1)
		s.disturbed = func() bool { return s.random.Float64() < c.part }
		res, err := Run(t.Context(), alternatives(2), &s, o)
		if err != nil {
			t.Fatal(err)
		}
		m, blocks := res.Alternatives[0], res.Comparisons[0].Blocks
		extra := m.Inferences/10 - blocks
		if m.Disturbed > blocks || m.Disturbed+res.Repeated == 0 || c.repeated && (res.Repeated < 2 || extra < res.Repeated) || !c.repeated && extra > 10 {
			t.Errorf("%s: %d of %d blocks disturbed, %d rows repeated, %d extra", c.name, m.Disturbed, blocks, res.Repeated, extra)
		}
	}
}

// TestPaused waits for other load, for a tenth of the budget at most.
func TestPaused(t *testing.T) {
	t.Parallel()
	s := machines["virtual"]
	s.effects = []float64{0, 0}
	o := s.options(1)
	waits := 0
	o.Quiet = func(_ context.Context, most time.Duration) time.Duration {
		waits++
		d := min(most, 2*time.Second)
		s.advance(d.Seconds())
		return d
	}
	res, err := Run(t.Context(), alternatives(2), &s, o)
	if err != nil || waits != 3 || math.Abs(res.PausedS-6) > 1e-6 || res.TookS > 60 {
		t.Errorf("%d waits, %v s of %v s, %v", waits, res.PausedS, res.TookS, err)
	}
}

// TestShortBudget measures fewer rows in the pilot if only so five processes fit.
func TestShortBudget(t *testing.T) {
	t.Parallel()
	s := machines["virtual"] // rounds of 0.2 s and 20 ms for each row
	s.effects = []float64{0, math.Log(2)}
	o := s.options(1)
	o.Budget = 1460 * time.Millisecond
	res, err := Run(t.Context(), alternatives(2), &s, o)
	if err != nil || len(res.Comparisons) != 1 || res.Comparisons[0].Blocks >= 5*pilotBlocks || res.TookS > o.Budget.Seconds() {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestSlower ends a round early when the machine becomes so slow that the budget is used within it.
func TestSlower(t *testing.T) {
	t.Parallel()
	s := machines["virtual"]
	s.effects, s.block, s.process = []float64{0, 0}, 0.2, 0.001
	s.fails = func(process, _ int) error {
		if process == 6 {
			s.each = 10
		}
		return nil
	}
	res, err := Run(t.Context(), alternatives(2), &s, s.options(1))
	if err != nil || res.Stop != BudgetOver || len(res.Alternatives[0].Processes) != 7 || len(res.Alternatives[0].Processes[6]) != leastBlocks {
		t.Errorf("%s after %v s: %v, %v", res.Stop, res.TookS, res.Alternatives[0].Processes, err)
	}
}

// TestSingle measures one block in each round where each block is a process.
func TestSingle(t *testing.T) {
	t.Parallel()
	s := machines["virtual"]
	s.effects = []float64{0, math.Log(1.1)}
	o := s.options(1)
	o.Single = true
	res, err := Run(t.Context(), alternatives(2), &s, o)
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Comparisons[0]; c.Blocks != c.Processes || c.Verdict != Worse || res.Plan.Blocks != 1 {
		t.Errorf("%+v, %+v", c, res.Plan)
	}
}

// TestImpossible refuses a block that took no time.
func TestImpossible(t *testing.T) {
	t.Parallel()
	s := simulated{effects: []float64{0, math.Inf(-1)}}
	if res, err := Run(t.Context(), alternatives(2), &s, s.options(1)); err == nil {
		t.Errorf("%+v", res)
	}
}

// TestHangs ends a block that takes until the end of the budget, and names the alternative. What
// was measured before is kept.
func TestHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		process int     // in which the second alternative hangs
		ran     float64 // seconds until the budget is used
		named   bool
		stop    Stop
	}{
		{name: "at once", process: 0, ran: 3, named: true},
		{name: "after 30 processes", process: 30, ran: 30, named: true, stop: Failed},
		{name: "a usual block at the end", process: 30, ran: 0.3, stop: BudgetOver},
	} {
		s := machines["noisy"]
		s.effects = []float64{0, math.Log(1.05)}
		o := s.options(2)
		var over context.CancelFunc
		o.Limit = func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
			if d != DefaultBudget {
				t.Errorf("%s: a limit of %v", c.name, d)
			}
			ctx, over = context.WithCancel(ctx)
			return ctx, over
		}
		s.fails = func(process, alternative int) error {
			if process < c.process || alternative == 0 {
				return nil
			}
			s.advance(c.ran)
			over()
			return errors.New("killed")
		}
		res, err := Run(t.Context(), alternatives(2), &s, o)
		u, ok := errors.AsType[*UnfinishedError](err)
		if ok != c.named || !ok && err != nil || ok && (u.Name != "B" || math.Abs(u.Ran.Seconds()-c.ran) > 1e-6) || s.open != 0 {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := res != nil; got != (c.stop != "") || got && (res.Stop != c.stop || len(res.Alternatives[1].Processes) != c.process || len(res.Comparisons) != 1) {
			t.Errorf("%s: %+v", c.name, res)
		}
	}
}

package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// process draws a profile of a model of some layers, as a process of its own sees it: it differs
// from others by more than its own intervals show. The first layer is slower by a part.
func process(r *rand.Rand, at, layers int, slower float64) *profile.Profile {
	const between, within = 0.03, 0.02 // standard deviations
	speed := math.Exp(between * r.NormFloat64())
	rows := make([]profile.Layer, layers)
	total := 0.0
	for i := range rows {
		s := speed * math.Exp(within*r.NormFloat64())
		if i == 0 {
			s *= 1 + slower
		}
		total += s
		rows[i] = row(fmt.Sprintf("op%d", i), s, 1.96*within*s, int64(i))
	}
	p := run("a", total, 1.96*within*total/math.Sqrt(float64(layers)), rows...)
	p.Created = fmt.Sprintf("2026-01-01T00:%02d:%02dZ", at/60, at%60)
	p.Trust = &profile.Trust{Verdict: profile.Fair, Fit: profile.FitShares, Tolerance: new(1.96 * between)}
	return p
}

// TestFalseAlarms compares equal things from several processes, whose intervals hide what processes
// differ by: at most 5 % of the comparisons say that the model differs, at most 5 % that any of 20
// rows does. The seeds are fixed.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 6} {
		for _, inTurns := range []bool{true, false} {
			r := rand.New(rand.NewPCG(7, uint64(n)))
			model, rows, found := 0, 0, 0
			const draws = 300
			for i := range draws {
				slower := 0.0
				if i%2 == 1 {
					slower = 0.30 // the half in which the first layer is slower
				}
				var side [2][]*profile.Profile
				for k := range 2 * n {
					s := k / n
					if inTurns {
						s = k % 2
					}
					side[s] = append(side[s], process(r, k, 20, slower*float64(s)))
				}
				x, err := compare.New([]compare.Named{{Profile: side[0][0], Repeats: side[0][1:]}, {Profile: side[1][0], Repeats: side[1][1:]}})
				if err != nil {
					t.Fatal(err)
				}
				differs := func(r compare.Ratio) bool { return r.Verdict == compare.Slower || r.Verdict == compare.Faster }
				first := differs(x.Groups[0].Ratios[1])
				if slower > 0 {
					if first {
						found++
					}
					continue
				}
				if differs(x.Runs[1].Ratio) {
					model++
				}
				for g := range x.Groups {
					if differs(x.Groups[g].Ratios[1]) {
						rows++
						break
					}
				}
			}
			const half = draws / 2
			// A rate of 5 % is above that in 2 % of such samples: two standard deviations.
			limit := int(0.05*half + 2*math.Sqrt(0.05*0.95*half))
			if model > limit || rows > limit {
				t.Errorf("%d profiles, interleaved %v: of %d comparisons %d find another model, %d another row", n, inTurns, half, model, rows)
			}
			if inTurns && n > 3 && found < half*9/10 {
				t.Errorf("%d profiles: 30 %% in a layer is found in %d of %d comparisons", n, found, half)
			}
		}
	}
}

// TestRepeats has profiles of one run that are not of one thing, and figures of several.
func TestRepeats(t *testing.T) {
	t.Parallel()
	a, b, c := run("a", 10, .1, row("Conv", 4, .1, 0)), run("a", 12, .1, row("Conv", 6, .1, 0)), run("a", 10, .1, row("Conv", 4, .1, 0))
	x, err := compare.New([]compare.Named{{Name: "x", Profile: a, Repeats: []*profile.Profile{b}}, {Name: "y", Profile: c}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean of totals", x.Runs[0].Total.Value, 11)
	near(t, "mean of layers", x.Groups[0].Figures[0].Value, 5)
	if x.Runs[0].Repeats != 2 || x.Runs[1].Repeats != 0 || len(x.Repeats[0]) != 2 {
		t.Errorf("%+v", x.Runs)
	}
	if w := (*x.Runs[0].Total.High - *x.Runs[0].Total.Low) / 11; w < .2 {
		t.Errorf("10 and 12 have an interval of %v of the mean", w)
	}
	other := run("b", 10, .1, row("Conv", 4, .1, 0))
	layers := run("a", 10, .1, row("Pool", 4, .1, 0))
	threads := run("a", 10, .1, row("Conv", 4, .1, 0))
	threads.Settings.Threads = new(int64(2))
	a.Settings.Threads = new(int64(1))
	for _, p := range []*profile.Profile{other, layers, threads, run("a", 1, 0)} {
		if _, err := compare.New([]compare.Named{{Profile: a, Repeats: []*profile.Profile{p}}, {Profile: c}}); err == nil {
			t.Errorf("%+v is a repeat", p.Settings)
		}
	}
}

// TestWaterfall adds up exactly, in floating point, to the total of each run.
func TestWaterfall(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 200 {
		var ps []*profile.Profile
		for range 3 {
			var rows []profile.Layer
			sum := 0.0
			for n := range 1 + i%40 {
				s := math.Exp(r.NormFloat64())
				sum += s
				rows = append(rows, row(fmt.Sprintf("op%d", n), s, 0, int64(n)))
			}
			ps = append(ps, run("a", sum*(0.9+0.5*r.Float64()), 0, rows...))
		}
		x := table(t, ps...)
		if len(x.Waterfalls) != 2 {
			t.Fatalf("%d waterfalls", len(x.Waterfalls))
		}
		for _, w := range x.Waterfalls {
			sum, groups := w.From, 0
			for _, s := range w.Steps {
				sum += s.Value
				groups += len(s.Groups)
			}
			if sum+w.Rest != w.To || w.To != *x.Runs[w.Run].Total.Value || groups != len(x.Groups) {
				t.Errorf("%v + %v is not %v; %d of %d rows", sum, w.Rest, w.To, groups, len(x.Groups))
			}
		}
	}
}

// TestReasons lists properties that go the way of the difference, and no others.
func TestReasons(t *testing.T) {
	t.Parallel()
	layer := func(s float64, macs int64, kernel, dtype, unit string) *profile.Profile {
		l := row("Conv", s, 0, 0)
		l.MACs, l.Kernel, l.Computes, l.Placement = &macs, kernel, dtype, &profile.Placement{On: unit}
		return run("a", s, 0, l)
	}
	a := layer(1, 100, "direct", "float32", "cpu")
	for _, c := range []struct {
		b    *profile.Profile
		want []compare.ReasonCode
	}{
		{layer(2, 100, "direct", "float32", "cpu"), nil},
		{layer(2, 150, "direct", "float32", "cpu"), []compare.ReasonCode{compare.ByWork}},
		{layer(.5, 150, "winograd", "float32", "cpu"), []compare.ReasonCode{compare.ByKernel}},
		{layer(.5, 50, "direct", "int8", "npu"), []compare.ReasonCode{compare.ByWork, compare.ByType, compare.ByPlacement}},
	} {
		x := table(t, a, c.b)
		var got []compare.ReasonCode
		for _, r := range x.Groups[0].Reasons[1] {
			got = append(got, r.Code)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %v, want %v", c.b.Layers[0], got, c.want)
		}
	}
}

// TestOptionReasons lists options that differ; numbers of nodes in an engine are none.
func TestOptionReasons(t *testing.T) {
	t.Parallel()
	made := func(file string, options ...profile.Option) *profile.Profile {
		p := run("a", 1, 0, row("Softmax", 1, 0, 0))
		p.Model.StructureSHA256, p.Model.SHA256 = hash, strings.Repeat(file, 64)
		p.Layers[0].Options = options
		return p
	}
	for _, c := range []struct {
		b    *profile.Profile
		want string
	}{
		{made("2", profile.Option{Key: "node_index", Value: "2"}), ""},
		{made("2", profile.Option{Key: "axis", Value: "2"}, profile.Option{Key: "node_index", Value: "2"}), "axis 1 → axis 2"},
	} {
		a := made("1", profile.Option{Key: "axis", Value: "1"}, profile.Option{Key: "node_index", Value: "1"})
		if c.want == "" {
			a.Layers[0].Options = a.Layers[0].Options[1:]
		}
		got := ""
		for _, r := range table(t, a, c.b).Groups[0].Reasons[1] {
			if r.Code == compare.ByOptions {
				got = r.FirstText + " → " + r.ThisText
			}
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestBy gathers rows by operator, scope, block and shape.
func TestBy(t *testing.T) {
	t.Parallel()
	layer := func(op, scope string, s float64, node int64) profile.Layer {
		l := row(op, s, 0, node)
		l.Scope, l.Outputs = scope, []profile.Tensor{{Shape: []int64{1, node / 2}}}
		return l
	}
	a := run("a", 10, 0, layer("Conv", "stem/a", 1, 0), layer("Relu", "stem/b", 2, 1), layer("Conv", "head", 4, 2))
	b := run("b", 10, 0, layer("Conv", "stem/a", 2, 0), layer("Relu", "stem/b", 2, 1), layer("Conv", "head", 5, 2))
	for by, want := range map[compare.By]string{
		compare.ByOp: "Conv 5 7, Relu 2 2", compare.ByScope: "stem/a 1 2, stem/b 2 2, head 4 5", compare.ByBlock: "stem 3 4, head 4 5", compare.ByShape: "1x0 3 4, 1x1 4 5",
	} {
		x, err := compare.With([]compare.Named{{Profile: a}, {Profile: b}}, compare.Options{By: by})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, g := range x.Groups {
			if i > 0 {
				got += ", "
			}
			got += fmt.Sprintf("%s%s %v %v", g.Op, g.Name, *g.Figures[0].Value, *g.Figures[1].Value)
		}
		if got != want {
			t.Errorf("by %s: %q, want %q", by, got, want)
		}
	}
	if _, err := compare.With([]compare.Named{{Profile: a}, {Profile: b}}, compare.Options{By: "colour"}); err == nil {
		t.Error("by colour is taken")
	}
}

// TestByRepeated gathers rows by the blocks that repeat.
func TestByRepeated(t *testing.T) {
	t.Parallel()
	net := func(scale float64) *profile.Profile {
		var ls []profile.Layer
		for i := range int64(4) {
			for k, op := range []string{"Conv", "Relu", "Sub"} {
				l := row(op, scale*float64(k+1), 0, 3*i+int64(k))
				l.Name, l.Scope = fmt.Sprintf("layers.%d/%s", i, op), fmt.Sprintf("layers.%d", i)
				l.Outputs = []profile.Tensor{{Shape: []int64{1, 8}}}
				ls = append(ls, l)
			}
		}
		last := row("Softmax", scale, 0, 12)
		last.Scope = "head/x"
		return run("a", 25*scale, 0, append(ls, last)...)
	}
	x, err := compare.With([]compare.Named{{Profile: net(1)}, {Profile: net(2)}}, compare.Options{By: compare.ByBlock})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, g := range x.Groups {
		got += fmt.Sprintf("%s %v %v, ", g.Name, *g.Figures[0].Value, *g.Figures[1].Value)
	}
	if want := "4 × block of 3 layers 24 48, head 1 2, "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestQuantity compares counts, which have no error, and refuses what does not add up.
func TestQuantity(t *testing.T) {
	t.Parallel()
	layer := func(macs int64) *profile.Profile {
		l := row("Conv", 1, 0, 0)
		l.MACs = &macs
		p := run("a", 1, 0, l)
		p.Totals.MACs = &macs
		return p
	}
	a, b := layer(100), layer(103)
	runs := []compare.Named{{Profile: a}, {Profile: b}}
	x, err := compare.With(runs, compare.Options{Quantity: "macs"})
	if err != nil {
		t.Fatal(err)
	}
	if r := x.Runs[1].Ratio; r.Verdict != compare.More || r.Interval != compare.Exact || *r.Low != 1.03 || x.Judge(1) != compare.Worse {
		t.Errorf("%+v, %s", r, x.Judge(1))
	}
	if x.Groups[0].Ratios[1].Verdict != compare.More || *x.Groups[0].Contributions[1] != 3 {
		t.Errorf("%+v", x.Groups[0])
	}
	for _, key := range []string{"live_bytes", "file_bytes", "machine_speed", "nonsense", "energy_j"} {
		if _, err := compare.With(runs, compare.Options{Quantity: key}); err == nil {
			t.Errorf("%s is compared", key)
		}
	}
	// A model file has no times: work is what both have.
	b.Totals.Latency, b.Layers[0].Latency = nil, nil
	if x, err = compare.New(runs); err != nil || x.Quantity != "macs" || x.Runs[1].Source != compare.Counted || x.Runs[0].Source != compare.Measured {
		t.Errorf("%v, %+v", err, x)
	}
}

// TestTokens compares results of language models that have times of tokens alone.
func TestTokens(t *testing.T) {
	t.Parallel()
	tokens := func(key string, seconds float64) *profile.Profile {
		p := &profile.Profile{Model: profile.Model{Name: "llm"}}
		m := profile.Value(profile.Measured, seconds, "")
		m.CI95 = &[2]float64{0.99 * seconds, 1.01 * seconds}
		if err := p.Totals.Set(key, m); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, key := range []string{"ttft_s", "tpot_s"} {
		x, err := compare.New([]compare.Named{{Profile: tokens(key, 0.5)}, {Profile: tokens(key, 0.25)}})
		if err != nil {
			t.Fatal(err)
		}
		if r := x.Runs[1].Ratio; x.Quantity != key || r.Value == nil || *r.Value != 0.5 || r.Verdict != compare.Faster || x.Judge(1) != compare.NotWorse {
			t.Errorf("%s: %s, %+v, %s", key, x.Quantity, r, x.Judge(1))
		}
	}
	_, err := compare.New([]compare.Named{{Profile: tokens("ttft_s", 1)}, {Profile: tokens("tpot_s", 1)}})
	if err == nil || !strings.Contains(err.Error(), "costs") {
		t.Errorf("prefill and decode are compared: %v", err)
	}
	inference := tokens("tpot_s", 0.5)
	inference.Totals.Latency = profile.Value(profile.Measured, 0.7, "")
	if x, err := compare.New([]compare.Named{{Profile: inference}, {Profile: tokens("tpot_s", 0.25)}}); err != nil || x.Quantity != "tpot_s" {
		t.Errorf("an inference and a result of tokens: %v, %+v", err, x)
	}
}

// TestComparable judges each topic by itself: sizes compare across machines, times do not.
func TestComparable(t *testing.T) {
	t.Parallel()
	a, b := run("a", 10, .1), run("a", 20, .1)
	for i, p := range []*profile.Profile{a, b} {
		p.Host = &profile.Host{Fingerprint: fmt.Sprint(i)}
		p.Model.FileBytes = new(int64(1000 + i))
	}
	x := table(t, a, b)
	got := map[string]string{}
	for _, r := range x.Whole {
		got[r.Key] = fmt.Sprint(r.Comparable[1], r.Why[1])
	}
	if got["latency_s"] != "falsemachine" || got["file_bytes"] != "true" {
		t.Errorf("%v", got)
	}
	if j := x.Judge(1); j != compare.Undecided {
		t.Errorf("other machines: %s", j)
	}
	b.Host.Fingerprint = "0"
	if j := table(t, a, b).Judge(1); j != compare.Worse {
		t.Errorf("20 against 10: %s", j)
	}
	if j := table(t, b, a).Judge(1); j != compare.NotWorse {
		t.Errorf("10 against 20: %s", j)
	}
}

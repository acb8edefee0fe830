package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// TestIncomparable changes one property of a run that is twice as fast: the groups of figures that
// do not compare have a reason and no verdict, in totals and rows alike, and decide nothing.
func TestIncomparable(t *testing.T) {
	t.Parallel()
	all := []compare.Topic{compare.Energy, compare.Memory, compare.Time, compare.Work}
	times := []compare.Topic{compare.Energy, compare.Time}
	shapes := func(p *profile.Profile, d ...int64) { p.Model.Inputs = []profile.Tensor{{Shape: d}} }
	host := func(p *profile.Profile, s string) { p.Host = &profile.Host{Fingerprint: s} }
	for _, c := range []struct {
		name   string
		change func(a, b *profile.Profile)
		code   compare.NoteCode // "" for figures that compare
		topics []compare.Topic
	}{
		{"nothing", func(_, _ *profile.Profile) {}, "", nil},
		{"known threads", func(a, b *profile.Profile) { a.Settings.Threads, b.Settings.Threads = new(int64(1)), new(int64(2)) }, "", nil},
		{"shapes", func(a, b *profile.Profile) { shapes(a, 1, 3); shapes(b, 1, 4) }, compare.OtherShapes, all},
		{"another layout", func(a, b *profile.Profile) { shapes(a, 1, 3, 8, 9); shapes(b, 1, 8, 9, 3) }, "", nil},
		{"flat", func(a, b *profile.Profile) { shapes(a, 1, 490); shapes(b, 1, 49, 10, 1) }, "", nil},
		{"samples as channels", func(a, b *profile.Profile) { shapes(a, 8, 1, 9); shapes(b, 1, 8, 9) }, compare.OtherShapes, all},
		{"batch", func(a, b *profile.Profile) { a.Settings.Batch, b.Settings.Batch = new(int64(1)), new(int64(8)) }, compare.OtherBatch, all},
		{"estimate", func(_, b *profile.Profile) { b.Target.Kind = profile.TargetSimulator }, compare.OtherKind, times},
		{"imported", func(_, b *profile.Profile) { b.Target.Kind = profile.TargetImport }, compare.OtherKind, times},
		{"machine", func(a, b *profile.Profile) { host(a, "x"); host(b, "y") }, compare.OtherMachine, times},
		{"unknown machine", func(a, b *profile.Profile) { host(a, "x"); host(b, "") }, "", nil},
		{"board", func(_, b *profile.Profile) { b.Target.Kind = profile.TargetDevice }, compare.OtherMachine, times},
		{"boards", func(a, b *profile.Profile) {
			a.Target.Kind, b.Target.Kind, b.Target.ID = profile.TargetDevice, profile.TargetDevice, "other"
		}, compare.OtherMachine, times},
		{"estimates for two chips", func(a, b *profile.Profile) {
			a.Target.Kind, b.Target.Kind, b.Target.ID = profile.TargetSimulator, profile.TargetSimulator, "other"
		}, "", nil},
		{"unknown threads", func(a, _ *profile.Profile) { a.Settings.Threads = new(int64(1)) }, compare.UnknownThreads, times},
		{"cold", func(_, b *profile.Profile) { b.Totals.Latency.N = new(int64(1)) }, compare.ColdRun, times},
		{"single but warm", func(_, b *profile.Profile) {
			b.Totals.Latency.N, b.Phases = new(int64(1)), &profile.Phases{Warmup: &profile.Warmup{Count: new(int64(3))}}
		}, "", nil},
		{"single, known as cold", func(_, b *profile.Profile) {
			b.Totals.Latency.N, b.Phases = new(int64(1)), &profile.Phases{Warmup: &profile.Warmup{Count: new(int64(0))}}
		}, compare.ColdRun, times},
		{"incomplete", func(_, b *profile.Profile) { b.Incomplete = []profile.Missing{{Cause: profile.ByDeadline}} }, compare.NotWhole, times},
	} {
		a, b := run("x", 10, .1, row("Conv", 10, .1, 0)), run("x", 5, .1, row("Conv", 5, .1, 0))
		c.change(a, b)
		x := table(t, a, b)
		r := &x.Runs[1]
		var topics []compare.Topic
		for topic, code := range r.WhyNot {
			if topics = append(topics, topic); code != c.code {
				t.Errorf("%s: %s does not compare for %q, want %q", c.name, topic, code, c.code)
			}
		}
		slices.Sort(topics)
		if !slices.Equal(topics, c.topics) {
			t.Errorf("%s: %v do not compare, want %v", c.name, topics, c.topics)
		}
		want, judged := compare.Faster, compare.NotWorse
		if c.code != "" {
			want, judged = compare.Incomparable, compare.Undecided
		}
		ratios := []compare.Ratio{r.Ratio, x.Groups[0].Ratios[1]}
		for i := range x.Whole {
			if x.Whole[i].Topic == compare.Time {
				ratios = append(ratios, x.Whole[i].Ratios[1])
			}
		}
		for _, q := range ratios {
			if q.Verdict != want || q.Value == nil || *q.Value != .5 || want == compare.Incomparable && q.P != nil {
				t.Errorf("%s: %+v, want %s", c.name, q, want)
			}
		}
		if got := x.Judge(1); got != judged {
			t.Errorf("%s: %s, want %s", c.name, got, judged)
		}
	}
}

// TestMachines compares machines by one model: the ratio has a verdict, which says nothing about
// whether a change made the model worse.
func TestMachines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		change   func(a, b *profile.Profile)
		verdict  compare.Verdict
		machines bool
	}{
		{"structure", func(a, b *profile.Profile) { a.Model.StructureSHA256, b.Model.StructureSHA256 = hash, hash }, compare.Slower, true},
		{"file", func(a, b *profile.Profile) { a.Model.SHA256, b.Model.SHA256 = hash, hash }, compare.Slower, true},
		{"without intervals", func(a, b *profile.Profile) {
			a.Model.SHA256, b.Model.SHA256 = hash, hash
			b.Totals.Latency.CI95, b.Layers[0].Latency.CI95 = nil, nil
		}, compare.Open, true},
		{"unknown model", func(_, _ *profile.Profile) {}, compare.Incomparable, false},
	} {
		a, b := run("x", 5, .1, row("Conv", 5, .1, 0)), run("x", 10, .1, row("Conv", 10, .1, 0))
		a.Host, b.Host = &profile.Host{Fingerprint: "x"}, &profile.Host{Fingerprint: "y"}
		c.change(a, b)
		x := table(t, a, b)
		for _, r := range []compare.Ratio{x.Runs[1].Ratio, x.Groups[0].Ratios[1]} {
			if r.Verdict != c.verdict {
				t.Errorf("%s: %s, want %s", c.name, r.Verdict, c.verdict)
			}
		}
		if got := x.OtherMachines(1); got != c.machines {
			t.Errorf("%s: a comparison of machines: %v, want %v", c.name, got, c.machines)
		}
		if got := x.Judge(1); got != compare.Undecided {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// hash is that of some file.
var hash = strings.Repeat("0123456789abcdef", 4)

// TestSameEstimates takes estimates of the same layers by one estimator for equal. Those of other
// layers have independent errors: a row is undecided while their bands overlap.
func TestSameEstimates(t *testing.T) {
	t.Parallel()
	made := func(name string, second float64) *profile.Profile {
		layers := []profile.Layer{row("Conv", 10, 5, 0), row("Conv", second, second/2, 1)}
		p := run("kernels", 10+second, 5, layers...)
		p.Model.Name, p.Target.ID, p.Target.Kind, p.Settings.TargetSHA256 = name, "chip", profile.TargetSimulator, hash
		for _, m := range []*profile.Metric{p.Totals.Latency, p.Layers[0].Latency, p.Layers[1].Latency} {
			m.Kind, m.Band, m.CI95 = profile.Estimated, m.CI95, nil
		}
		return p
	}
	a := made("a", 10)
	for _, c := range []struct {
		name     string
		b        *profile.Profile
		change   func(p *profile.Profile)
		verdicts []compare.Verdict // of the rows and of the total
	}{
		{"the same", made("b", 10), nil, []compare.Verdict{compare.Alike, compare.Alike, compare.Alike}},
		{
			"less work in one", made("b", 8), func(p *profile.Profile) {
				p.Layers[1].Outputs = []profile.Tensor{{Name: "y", DType: "float32", Shape: []int64{1, 4}}}
			},
			[]compare.Verdict{compare.Alike, compare.Open, compare.Open},
		},
		{"another version", made("b", 10), func(p *profile.Profile) { p.Settings.EngineVersion = "2" }, []compare.Verdict{compare.Open, compare.Open, compare.Open}},
		{"another calibration", made("b", 10), func(p *profile.Profile) { p.Settings.TargetSHA256 = "" }, []compare.Verdict{compare.Open, compare.Open, compare.Open}},
	} {
		if c.change != nil {
			c.change(c.b)
		}
		x := table(t, a, c.b)
		got := []compare.Verdict{x.Groups[0].Ratios[1].Verdict, x.Groups[1].Ratios[1].Verdict, x.Runs[1].Ratio.Verdict}
		if !slices.Equal(got, c.verdicts) {
			t.Errorf("%s: %v, want %v", c.name, got, c.verdicts)
		}
		noted := slices.ContainsFunc(x.Notes, func(n compare.Note) bool { return n.Code == compare.WideBands })
		if want := slices.Contains(c.verdicts[:2], compare.Open); noted != want {
			t.Errorf("%s: undecided by bands: %v, want %v", c.name, noted, want)
		}
	}
}

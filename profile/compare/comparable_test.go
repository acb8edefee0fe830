package compare_test

import (
	"slices"
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

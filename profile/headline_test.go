package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeadlineOf(t *testing.T) {
	t.Parallel()
	latency := &Metric{Kind: Measured, Mean: new(5.0), Median: new(4.0), CI95: &[2]float64{3, 6}}
	quoted := &Metric{Kind: Measured, Median: new(2.0), CI95: &[2]float64{1, 3}}
	for _, c := range []struct {
		name string
		p    Profile
		want Headline
		ok   bool
	}{
		{"nothing", Profile{}, Headline{}, false},
		{"quality alone", Profile{Trust: &Trust{Verdict: Good}}, Headline{}, false},
		{"the median goes with its interval", Profile{Totals: Totals{Latency: latency}}, Headline{"latency_s", 4, 3, 6, ""}, true},
		{"another figure to quote", Profile{Totals: Totals{Latency: latency, Figures: map[string]*Metric{"undisturbed_latency_s": quoted}}, Trust: &Trust{Verdict: Fair, Quote: "undisturbed_latency_s"}}, Headline{"undisturbed_latency_s", 2, 1, 3, Fair}, true},
		{"a figure to quote that is absent", Profile{Totals: Totals{Latency: latency}, Trust: &Trust{Quote: "processor_s"}}, Headline{"latency_s", 4, 3, 6, ""}, true},
		{"an estimate", Profile{Totals: Totals{Latency: &Metric{Kind: Estimated, Median: new(4.0), Band: &[2]float64{2, 8}}}}, Headline{"latency_s", 4, 2, 8, ""}, true},
		{"without spread", Profile{Totals: Totals{Latency: Value(Imported, 4, "")}}, Headline{"latency_s", 4, 4, 4, ""}, true},
		{"cycles", Profile{Totals: Totals{CPUCycles: Value(Measured, 900, "")}}, Headline{"cpu_cycles", 900, 900, 900, ""}, true},
	} {
		got, ok := c.p.Headline()
		if d := cmp.Diff(c.want, got); d != "" || ok != c.ok {
			t.Errorf("%s: %v, -want +got:\n%s", c.name, ok, d)
		}
	}
}

func TestSlowest(t *testing.T) {
	t.Parallel()
	p := &Profile{Layers: []Layer{
		{Index: 0, Latency: Value(Measured, 1, "")}, {Index: 1}, {Index: 2, Latency: Value(Measured, 6, "")}, {Index: 3, Latency: Value(Measured, 1, "")},
	}}
	for n, want := range map[int][]int64{-1: {2, 0, 3}, 0: nil, 2: {2, 0}, 9: {2, 0, 3}} {
		var got []int64
		for _, l := range p.Slowest(n) {
			got = append(got, l.Layer.Index)
			if l.Share != l.Seconds/8 {
				t.Errorf("layer %d has a share of %v", l.Layer.Index, l.Share)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d, -want +got:\n%s", n, d)
		}
	}
	if got := (&Profile{}).Slowest(3); got != nil {
		t.Errorf("an empty profile has %v", got)
	}
}

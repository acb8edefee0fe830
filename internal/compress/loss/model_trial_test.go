package loss

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// What is lost is the difference of both figures, none by a model that is the same; its interval
// is of the difference.
func TestTrial(t *testing.T) {
	t.Parallel()
	b := network(4)
	s := b.data(t, 40)
	for i, o := range wholeOutputs(t, b.m, s) {
		best := slices.Index(o, slices.Max(o))
		s.Labels = append(s.Labels, float64(best))
		if i%3 == 0 {
			s.Labels[i] = float64((best + 1) % 5)
		}
	}
	ls := weights.Find(b.m, nil)
	var all []rewrite.Change
	for _, l := range ls {
		all = append(all, rewrite.Change{Layer: l, Change: study.Change{Structure: study.Unstructured, Level: .9}})
	}
	changed, _, err := rewrite.Apply(b.m, all, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{Accuracy, Top1, Cosine, KL} {
		t.Run(metric, func(t *testing.T) {
			t.Parallel()
			j := &Job{Model: b.m, Layers: ls, Data: s, Settings: study.LossSettings{Method: study.EndToEnd, Metric: metric}}
			trial, err := j.Trial(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			same, err := trial.Try(context.Background(), b.m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := trial.Try(context.Background(), changed)
			if err != nil {
				t.Fatal(err)
			}
			if metric == KL {
				if got.Lost != nil || !(*got.Value.Median > 0) {
					t.Errorf("%+v", got)
				}
				return
			}
			base, ok := trial.Base.Best()
			if !ok {
				base = 1
			}
			if v := *same.Lost.Median; math.Abs(v) > 1e-12 {
				t.Errorf("the same model loses %+v", same.Lost)
			}
			// Samples that all agree leave room for rare errors, as far as anything is known about
			// them.
			switch ci := same.Lost.CI95; {
			case metric == Cosine:
				if ci != nil {
					t.Errorf("interval %v of samples without a difference", ci)
				}
			case ci == nil || math.Abs(ci[1]-3.8415/(float64(s.Len())+3.8415)) > 1e-4:
				t.Errorf("interval %v of %d samples", ci, s.Len())
			}
			lost, ci := *got.Lost.Median, *got.Lost.CI95
			if want := base - *got.Value.Median; math.Abs(lost-want) > 1e-12 || lost < ci[0] || lost > ci[1] {
				t.Errorf("lost %v in %v, want %v", lost, ci, want)
			}
		})
	}
}

// Samples that both models meet, or neither, add nothing to the width of the interval: here one
// in ten differs.
func TestLostInterval(t *testing.T) {
	t.Parallel()
	right := slices.Repeat([]float64{1, 0}, 50)
	now := slices.Clone(right)
	for i := 0; i < 100; i += 20 {
		now[i], now[i+2] = 0, 0
	}
	c := &comparison{job: &Job{Settings: study.LossSettings{Metric: Accuracy}}, correct: right}
	got := (&result{c: c, correct: now, num: right}).lost()
	// Ten of a hundred: a standard error of 3 %.
	if lo, hi := got.CI95[0], got.CI95[1]; math.Abs(*got.Median-.1) > 1e-12 || lo < .02 || lo > .08 || hi < .12 || hi > .18 {
		t.Errorf("%v in %v", *got.Median, got.CI95)
	}
}

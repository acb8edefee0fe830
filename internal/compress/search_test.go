package compress

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

func measured(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }

func between(v, high float64) *profile.Metric {
	m := measured(v)
	m.CI95 = &[2]float64{0, high}
	return m
}

func TestKeeps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, metric string
		v            *profile.Metric
		bound        float64
		want         bool
	}{
		{"one of a hundred", loss.Accuracy, measured(1 - 99.0/100), .01, true},
		{"two of a hundred", loss.Accuracy, measured(.02), .01, false},
		{"one of a hundred, as far as is known", loss.Accuracy, between(.01, .03), .01, false},
		{"standard errors to spare", loss.Accuracy, between(.0035, .0035+1.96*.01), .02, true},
		{"one standard error is not enough", loss.Accuracy, between(.01, .0296), .02, false},
		{"gain", loss.Accuracy, measured(-.01), 0, true},
		{"a gain makes no room", loss.Accuracy, between(-.02, -.02+1.96*.015), .01, false},
		{"decibels", loss.SNR, measured(20), 20, true},
		{"fewer decibels", loss.SNR, measured(19), 20, false},
		{"unknown", loss.KL, nil, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := (&evaluator{metric: tt.metric}).withinBound(tt.v, tt.bound); got != tt.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// Plans lose more and more but for one: what keeps the bound beyond the place where halving ends
// is found.
func TestHighest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		keeps string
		want  int
	}{
		{"none", "----------", -1},
		{"all", "++++++++++", 9},
		{"first", "+---------", 0},
		{"middle", "+++++-----", 4},
		{"not strictly", "+++++-+---", 6},
		{"nothing to look at", "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plans := make([]*study.Plan, len(tt.keeps))
			for i := range plans {
				plans[i] = &study.Plan{}
			}
			best, _, err := lastWithin(len(plans), func(k int) (*study.Plan, bool, error) { return plans[k], tt.keeps[k] == '+', nil })
			got := -1
			for i, p := range plans {
				if p == best {
					got = i
				}
			}
			if err != nil || got != tt.want {
				t.Errorf("%d, %v, want %d", got, err, tt.want)
			}
		})
	}
}

// Of many samples without a difference a few may differ: none of 200 does not rule out
// rare ones.
func TestRareDifferences(t *testing.T) {
	t.Parallel()
	of := func(lost, n float64) *profile.Metric {
		m := measured(lost / n)
		m.N, m.StdDev = new(int64(n)), new(math.Sqrt(lost/n-(lost/n)*(lost/n)))
		return m
	}
	for _, tt := range []struct {
		name    string
		lost, n float64
		bound   float64
		want    bool
	}{
		{"none of 200", 0, 200, .01, true},
		{"none of 120, of which one in a hundred may", 0, 120, .01, true},
		{"one of 200", 1, 200, .01, false},
		{"five of 1000", 5, 1000, .01, true},
		{"eight of 1000", 8, 1000, .01, false},
		{"too few to tell", 0, 20, .01, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := (&evaluator{metric: loss.Accuracy}).withinBound(of(tt.lost, tt.n), tt.bound); got != tt.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// The first and the last layer may change where their loss is measured to be small.
func TestKeptBoundaries(t *testing.T) {
	t.Parallel()
	p := &study.Loss{LossSettings: study.LossSettings{Metric: loss.Accuracy, Higher: true}, Base: measured(.9)}
	for i, v := range []float64{.899, .88, .7} {
		p.Points = append(p.Points, study.LossPoint{Layer: i, Change: study.Change{Format: study.Int8}, Value: measured(v)})
	}
	keep := map[int]study.Cause{0: study.First, 2: study.Head}
	if got := keptBoundaries(keep, p, .01); len(got) != 1 || got[2] != study.Head || len(keep) != 2 {
		t.Errorf("kept %v of %v", got, keep)
	}
	p.Random = true
	if got := keptBoundaries(keep, p, .01); len(got) != 2 {
		t.Errorf("without data: kept %v", got)
	}
}

// TestWholeModelPlans has dynamic int8 as candidates: in the layers that gain, and in all that can
// have it, also where a layer becomes slower. The rule for first and last layers does not count.
func TestWholeModelPlans(t *testing.T) {
	t.Parallel()
	dynamic := study.Change{Format: study.Dynamic8}
	sp := &study.Speed{SpeedSettings: study.SpeedSettings{Name: "s", Target: "host", Changes: []study.Change{dynamic}}, Latency: measured(4e-3)}
	lo := &study.Loss{LossSettings: study.LossSettings{Name: "l", Method: study.EndToEnd, Metric: loss.Accuracy, Higher: true, Changes: sp.Changes}, Base: measured(.9)}
	c := choose.Options{Speed: sp, Loss: lo, Goal: study.Goal{MaxLoss: new(.05)}, Keep: map[int]study.Cause{0: study.First}}
	for i, ratio := range []float64{.5, .8, 1.3, 0} {
		c.Layers = append(c.Layers, study.Layer{Rows: 8, Cols: 8, Params: 64})
		sp.Layers = append(sp.Layers, study.LayerTime{Layer: i, Latency: measured(1e-3)})
		if ratio == 0 { // an operator that integers cannot compute
			sp.Points = append(sp.Points, study.SpeedPoint{Layer: i, Change: dynamic, Cause: study.NoFormat})
			continue
		}
		sp.Points = append(sp.Points, study.SpeedPoint{Layer: i, Change: dynamic, Ratio: measured(ratio)})
		lo.Points = append(lo.Points, study.LossPoint{Layer: i, Change: dynamic, Value: measured(.899)})
	}
	groups := uniformChanges(&c)
	if len(groups) != 1 {
		t.Fatalf("groups %v", groups)
	}
	got, err := wholeModelPlans(c, groups[0], func(o choose.Options) (*study.Plan, error) { return choose.Plan(o) })
	if err != nil || len(got) != 2 {
		t.Fatalf("%d plans, %v", len(got), err)
	}
	for i, want := range [][]study.Change{{dynamic, dynamic, {}, {}}, {dynamic, dynamic, dynamic, {}}} {
		if changes := changesOf(got[i]); !slices.Equal(changes, want) {
			t.Errorf("plan %d: %v, want %v", i, changes, want)
		}
		if f := withGoalOf(got[i], &study.Plan{Goal: c.Goal}).Front; len(f) != 1 || !f[0].Chosen || !slices.Equal(f[0].Changes, want) {
			t.Errorf("plan %d: front %+v", i, f)
		}
	}
	if v, _ := got[1].Predicted.Speedup.Best(); math.Abs(v-4/3.6) > .02 {
		t.Errorf("all layers: predicted %v, want 4/3.6", v)
	}
}

package choose

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/study"
)

// TestUpperIsBest compares plans within the upper end of drops with all choices there are, with
// few layers, which are searched, and with more.
func TestUpperIsBest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	worst := 0.0
	for n := range 60 {
		o := Options{
			Speed: &study.Speed{Latency: value(0.1)},
			Loss:  &study.Loss{LossSettings: study.LossSettings{Metric: "accuracy", Higher: true}, Base: value(1)},
			Upper: true,
		}
		for i := range 2 + n%4 {
			o.Layers = append(o.Layers, study.Layer{Node: i, Rows: 8, Cols: 8, Params: 64})
			o.Speed.Layers = append(o.Speed.Layers, study.LayerTime{Layer: i, Latency: value(0.001 + 0.019*r.Float64())})
			for k := range 5 {
				c := sparse(float64(k+1) / 6)
				o.Speed.Points = append(o.Speed.Points, study.SpeedPoint{Layer: i, Change: c, Ratio: value(1.1 - c.Level*r.Float64())})
				d, h := 0.1*r.Float64(), 0.05*r.Float64()
				o.Loss.Points = append(o.Loss.Points, study.LossPoint{Layer: i, Change: c, Value: between(1-d-h, 1-d, 1-d+h)})
			}
		}
		o.Goal.MaxLoss = new(0.25 * r.Float64())
		if n%2 == 1 {
			o.Goal = study.Goal{Speedup: new(1 + 0.1*r.Float64())}
		}
		p, err := newProblem(o)
		if err != nil {
			t.Fatal(err)
		}
		want, ok := p.enumerate()
		got, err := p.solve()
		if (err == nil) != ok {
			t.Fatalf("case %d: %v, want %v", n, err, ok)
		}
		if !ok {
			continue
		}
		if !near(got.value, want.value) || !got.exact {
			t.Errorf("case %d: %v, want %v", n, got.value, want.value)
		}
		// Without looking through all.
		q, _ := newProblem(o)
		q.maxEnumerated = 1
		if got, err = q.solve(); err != nil {
			t.Errorf("case %d: %v", n, err)
			continue
		}
		if got.value < want.value*(1-1e-9) || got.lower > want.value*(1+1e-9) {
			t.Errorf("case %d: value %v, lower %v, best %v", n, got.value, got.lower, want.value)
		}
		worst = max(worst, got.value/want.value-1)
		plan, err := Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		if o.Goal.MaxLoss != nil && plan.Predicted.Loss.Band != nil && plan.Predicted.Loss.Band[1] > *o.Goal.MaxLoss*(1+1e-9) {
			t.Errorf("case %d: upper end %v, bound %v", n, plan.Predicted.Loss.Band[1], *o.Goal.MaxLoss)
		}
	}
	if worst > 0.01 {
		t.Errorf("%.2g above the best", worst)
	}
	t.Logf("at worst %.2g above the best without looking through all", worst)
}

// TestPlanIsBest compares plans of drawn profiles with all choices there are.
func TestPlanIsBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Speed: &study.Speed{Latency: value(0.1)},
			Loss:  &study.Loss{LossSettings: study.LossSettings{Metric: "relative_error"}},
		}
		levels := []float64{0.5, 0.8, 0.95}
		structures := []study.Structure{study.Unstructured, study.Filter}
		for i := range rapid.IntRange(1, 4).Draw(t, "layers") {
			o.Layers = append(o.Layers, study.Layer{Node: i, Rows: 8, Cols: 8, Params: 64})
			o.Speed.Layers = append(o.Speed.Layers, study.LayerTime{Layer: i, Latency: value(rapid.Float64Range(0.001, 0.02).Draw(t, "time"))})
			for _, s := range structures {
				for _, level := range levels {
					c := study.Change{Structure: s, Level: level}
					o.Speed.Points = append(o.Speed.Points, study.SpeedPoint{Layer: i, Change: c, Ratio: value(rapid.Float64Range(0.05, 1.2).Draw(t, "ratio"))})
					o.Loss.Points = append(o.Loss.Points, study.LossPoint{Layer: i, Change: c, Value: value(rapid.Float64Range(0, 1).Draw(t, "loss"))})
				}
			}
		}
		bound := rapid.Float64Range(0, 3).Draw(t, "bound")
		o.Goal.MaxLoss = &bound
		p, err := Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		curves, err := Curves(o)
		if err != nil {
			t.Fatal(err)
		}
		rest, least := 0.1, math.Inf(1)
		for _, c := range curves {
			rest -= c.Points[0].Cost
		}
		var try func(i int, time, loss float64)
		try = func(i int, time, loss float64) {
			if loss > bound {
				return
			}
			if i == len(curves) {
				least = min(least, time)
				return
			}
			for _, x := range curves[i].Points {
				try(i+1, time+x.Cost, loss+x.Loss)
			}
		}
		try(0, rest, 0)
		if got := best(p.Predicted.LatencyS); got > least*(1+1e-9) || best(p.Predicted.Loss) > bound*(1+1e-9) || *p.Bound > least*(1+1e-9) {
			t.Fatalf("time %v, least %v, bound %v; loss %v of %v", got, least, *p.Bound, best(p.Predicted.Loss), bound)
		}
	})
}

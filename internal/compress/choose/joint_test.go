package choose

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/study"
)

// chain draws profiles of layers each of which reads what the one before makes; the first and third are added up where tied, and the loss is
// known of both together where grouped.
func chain(t *rapid.T, tied, grouped bool) Options {
	n := 4
	o := Options{Layers: make([]study.Layer, n), Speed: &study.Speed{}, Loss: &study.Loss{LossSettings: study.LossSettings{Metric: "relative_error"}}}
	o.Speed.Target = "host"
	whole := rapid.Float64Range(.1, 1).Draw(t, "rest")
	for i := range n {
		o.Layers[i] = study.Layer{Rows: 8, Cols: 8}
		base := rapid.Float64Range(.2, 2).Draw(t, "base")
		whole += base
		o.Speed.Layers = append(o.Speed.Layers, study.LayerTime{Layer: i, Latency: value(base)})
		loss := 0.0
		for _, level := range []float64{.4, .6, .8} {
			for _, s := range []study.Structure{study.Unstructured, study.Filter} {
				r := rapid.Float64Range(.8, 1).Draw(t, "own") - level/2
				x := study.SpeedPoint{Layer: i, Change: study.Change{Structure: s, Level: level}, Ratio: value(r)}
				if s == study.Filter {
					switch {
					case tied && i == 0:
						x.With = []int{2}
					case tied && i == 2:
						x.With = []int{0}
					}
					if i+1 < n && !(tied && i == 2) {
						x.Others = []study.OtherTime{{Layer: i + 1, Ratio: value(1 - level*rapid.Float64Range(.5, 1).Draw(t, "other"))}}
						x.RestS = value(-.01 * level)
					}
				}
				o.Speed.Points = append(o.Speed.Points, x)
				loss += rapid.Float64Range(.01, .1).Draw(t, "loss")
				y := study.LossPoint{Layer: i, Change: x.Change, Value: value(loss)}
				if grouped && x.With != nil {
					if y.With = x.With; i == 2 {
						first := slices.IndexFunc(o.Loss.Points, func(p study.LossPoint) bool { return p.Layer == 0 && p.Change == x.Change })
						y.Value = o.Loss.Points[first].Value
					}
				}
				o.Loss.Points = append(o.Loss.Points, y)
			}
		}
	}
	o.Speed.Latency = value(whole)
	return o
}

// all looks through all plans.
func (p *problem) all(do func(pick []int)) {
	pick := make([]int, len(p.curves))
	var try func(i int)
	try = func(i int) {
		if i < len(pick) {
			for k := range p.curves[i].Points {
				pick[i] = k
				try(i + 1)
			}
			return
		}
		for i, k := range pick {
			x := &p.curves[i].Points[k]
			for _, l := range x.tied {
				if p.curves[l].Points[pick[l]].Change != x.Change {
					return
				}
			}
		}
		do(pick)
	}
	try(0)
}

// TestJoint compares plans of layers that reach each other with the best of all.
func TestJoint(t *testing.T) {
	t.Parallel()
	off, n := 0.0, 0
	rapid.Check(t, func(t *rapid.T) {
		o := chain(t, rapid.Bool().Draw(t, "tied"), rapid.Bool().Draw(t, "grouped"))
		switch rapid.SampledFrom([]string{"loss", "speedup", "sparsity"}).Draw(t, "goal") {
		case "loss":
			o.Goal = study.Goal{MaxLoss: new(rapid.Float64Range(.05, 1).Draw(t, "bound"))}
		case "speedup":
			o.Goal = study.Goal{Speedup: new(rapid.Float64Range(1.1, 2).Draw(t, "speedup"))}
		case "sparsity":
			o.Goal = study.Goal{Sparsity: new(rapid.Float64Range(.1, .9).Draw(t, "sparsity"))}
		}
		p, err := newProblem(o)
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1)
		p.all(func(pick []int) {
			if c, ok := p.judge(pick); ok {
				best = min(best, c.value)
			}
		})
		got, err := Plan(o)
		if _, ok := errors.AsType[*UnreachableError](err); ok && math.IsInf(best, 1) {
			return
		}
		if err != nil {
			t.Fatalf("%v where %v can be had", err, best)
		}
		v := *got.Predicted.Loss.Median
		switch {
		case o.Goal.MaxLoss != nil:
			v = *got.Predicted.LatencyS.Median
		case o.Goal.Speedup != nil:
			if *got.Predicted.Speedup.Median < *o.Goal.Speedup*(1-1e-9) {
				t.Fatalf("%v times as fast, not %v", *got.Predicted.Speedup.Median, *o.Goal.Speedup)
			}
		}
		// Choosing beside a plan is no search of all: a choice in ten may be off, by little.
		if v < best*(1-1e-9) || *got.Bound > best*(1+1e-9) {
			t.Fatalf("%v, bound %v, where the best is %v", v, *got.Bound, best)
		}
		off, n = off+v/best-1, n+1
		for i, c := range got.Choices {
			for _, x := range o.Speed.Points {
				if x.Layer == i && x.Change == c.Change && len(x.With) > 0 && got.Choices[x.With[0]].Change != c.Change {
					t.Fatal("tied layers have different changes")
				}
			}
		}
		lost := 0.0
		for i, c := range got.Choices {
			for _, x := range o.Loss.Points {
				if x.Layer == i && x.Change == c.Change && (x.With == nil || x.With[0] > i) { // that of a group once
					lost += *x.Value.Median
				}
			}
		}
		if !near(*got.Predicted.Loss.Median, lost) {
			t.Fatalf("a loss of %v is predicted, not %v", *got.Predicted.Loss.Median, lost)
		}
		for k := 1; k < len(got.Front); k++ {
			if got.Front[k].Cost < got.Front[k-1].Cost {
				t.Fatal("the front does not rise")
			}
		}
	})
	if off/float64(n) > .01 {
		t.Errorf("plans are %.2f %% off the best", 100*off/float64(n))
	}
	t.Logf("%d plans, %.3f %% off the best", n, 100*off/float64(n))
}

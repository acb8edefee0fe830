package choose

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/study"
)

// chain draws profiles of layers each of which reads what the one before makes; the first and
// third are added up where tied, and the loss is known about both together where grouped.
func chain(t *rapid.T, tied, grouped bool) Options {
	n := 4
	o := Options{Layers: make([]study.Layer, n), Speed: &study.Speed{}, Loss: &study.Loss{LossSettings: study.LossSettings{Metric: "relative_error"}}}
	o.Speed.Target = "host"
	whole := rapid.Float64Range(.1, 1).Draw(t, "rest")
	reaches := rapid.Bool().Draw(t, "reaches the last")
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
						x.Affected = []study.AffectedLayer{{Layer: i + 1, Ratio: value(1 - level*rapid.Float64Range(.5, 1).Draw(t, "other"))}}
						if i < 2 && reaches { // what is put together of several is read by one
							x.Affected = append(x.Affected, study.AffectedLayer{Layer: n - 1, Ratio: value(1.1 - level*rapid.Float64Range(.1, .5).Draw(t, "last"))})
						}
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

// TestJoint compares plans of layers that reach each other with the best of all.
func TestJoint(t *testing.T) {
	t.Parallel()
	off, loose, n := 0.0, 0.0, 0
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
		if c, ok := p.enumerateCoupled(); ok {
			best = c.value
		}
		q, _ := newProblem(o)
		q.maxEnumerated = 1
		got, err := q.plan()
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
		if v < best*(1-1e-9) || v > best*1.01 || *got.Bound > best*(1+1e-9) || *got.Bound < best*.99 {
			t.Fatalf("%v, bound %v, where the best is %v", v, *got.Bound, best)
		}
		off, n, loose = off+v/best-1, n+1, loose+1-*got.Bound/best
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
				// that of a group once
				if x.Layer == i && x.Change == c.Change && (x.With == nil || x.With[0] > i) {
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
	t.Logf("%d plans, %.3f %% off the best, their bounds %.2f %% below it", n, 100*off/float64(n), 100*loose/float64(n))
}

// TestTermsBound has tables too small for what is tied, and few branches: bounds are lower, and
// still none.
func TestTermsBound(t *testing.T) {
	t.Parallel()
	loose, n := 0.0, 0
	rapid.Check(t, func(t *rapid.T) {
		o := chain(t, rapid.Bool().Draw(t, "tied"), rapid.Bool().Draw(t, "grouped"))
		o.Goal = study.Goal{MaxLoss: new(rapid.Float64Range(.05, 1).Draw(t, "bound"))}
		if rapid.Bool().Draw(t, "faster") {
			o.Goal = study.Goal{Speedup: new(rapid.Float64Range(1.1, 2).Draw(t, "speedup"))}
		}
		p, err := newProblem(o)
		if err != nil {
			t.Fatal(err)
		}
		best, ok := p.enumerateCoupled()
		if !ok {
			return
		}
		terms := p.terms(rapid.IntRange(1, 60).Draw(t, "table"))
		by := terms.findPrice()
		got, is, lower := terms.branch(&by, choice{}, false)
		if by.lower > best.value*(1+1e-9) || lower > best.value*(1+1e-9) || lower < by.lower*(1-1e-9) || is && got.value < best.value*(1-1e-9) {
			t.Fatalf("bounds %v and %v, plan %v, best %v", by.lower, lower, got.value, best.value)
		}
		loose, n = loose+1-lower/best.value, n+1
	})
	t.Logf("%d plans, bounds %.2f %% below the best", n, 100*loose/float64(n))
}

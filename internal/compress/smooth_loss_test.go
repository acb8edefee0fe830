package compress

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// lossesOf returns losses of one layer: accuracies with the divergences of the same runs.
func lossesOf(metric string, base *profile.Metric, points ...[2]float64) *study.Loss {
	p := &study.Loss{LossSettings: study.LossSettings{Method: study.EndToEnd, Metric: metric, Higher: true}, Base: base}
	for i, x := range points {
		p.Points = append(p.Points, study.LossPoint{Layer: i, Value: measured(x[0]), More: map[string]float64{loss.KL: x[1]}})
	}
	return p
}

func TestSmooth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		p    *study.Loss
		want []float64 // drops
	}{
		// Drops of .01, -.01 and .06 over divergences of .1, .2 and .3: a tenth of them.
		{"accuracy", lossesOf(loss.Accuracy, measured(.9), [2]float64{.89, .1}, [2]float64{.91, .2}, [2]float64{.84, .3}), []float64{.01, .02, .03}},
		{"large drops have their own", lossesOf(loss.Accuracy, measured(.9), [2]float64{.8, 1}, [2]float64{.2, 5}), []float64{.1, .7}},
		{"what falls is pooled", lossesOf(loss.Accuracy, measured(1), [2]float64{.5, 2}, [2]float64{.7, 3}, [2]float64{.2, 5}), []float64{.4 * 2 / 2.5, .4 + .4*.5/2.5, .8}},
		{"beyond what is known", lossesOf(loss.Accuracy, measured(1), [2]float64{.2, 2}, [2]float64{.3, 3}), []float64{.75 * 2 / 2.5, .75 + .25*(1-2.5/3)}},
		{"agreement is of 1", lossesOf(loss.Top1, nil, [2]float64{.98, .01}, [2]float64{.96, .05}), []float64{.01, .05}},
		{"nothing lost", lossesOf(loss.Accuracy, measured(.9), [2]float64{.9, .1}, [2]float64{.9, .2}), []float64{.1, .2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, ok := tt.p.Base.Best()
			if !ok {
				base = 1
			}
			was, _ := tt.p.Points[0].Value.Best()
			got := smoothedLoss(tt.p)
			for i, want := range tt.want {
				if v, _ := got.Points[i].Value.Best(); math.Abs(base-v-want) > 1e-12 {
					t.Errorf("point %d: a drop of %v, want %v", i, base-v, want)
				}
			}
			if now, _ := tt.p.Points[0].Value.Best(); now != was {
				t.Error("the profile was changed")
			}
		})
	}
	for _, p := range []*study.Loss{
		lossesOf(loss.KL, nil, [2]float64{1, 1}),
		lossesOf(loss.Accuracy, nil, [2]float64{1, 1}),
		{LossSettings: study.LossSettings{Method: study.EndToEnd, Metric: loss.Accuracy}, Base: measured(1), Points: []study.LossPoint{{Value: measured(.5)}}},
	} {
		if smoothedLoss(p) != p {
			t.Errorf("%+v was changed", p)
		}
	}
}

// TestSmoothRises checks that the order of divergences is kept, as long as accuracy can drop
// further.
func TestSmoothRises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var points [][2]float64
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			points = append(points, [2]float64{float64(rapid.IntRange(0, 100).Draw(t, "accuracy")) / 100, rapid.Float64Range(1e-6, 10).Draw(t, "divergence")})
		}
		p := smoothedLoss(lossesOf(loss.Accuracy, measured(.9), points...))
		for i, x := range p.Points {
			for k, y := range p.Points {
				a, b := *x.Value.Median, *y.Value.Median
				if points[i][1] > points[k][1]*(1+1e-9) && a >= b && b > dropTolerance {
					t.Fatalf("an accuracy of %v at a divergence of %v, and of %v at %v", a, points[i][1], b, points[k][1])
				}
				// without nodes the divergence is the drop
				if a > .9 || a < min(0, .9-points[i][1])-dropTolerance {
					t.Fatalf("an accuracy of %v", a)
				}
			}
		}
	})
}

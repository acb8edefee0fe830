package choose

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/study"
)

// TestFrontWithoutDominated checks that no plan of a front dominates another one, that the chosen
// one is in it, and that no loss is above what the model has.
func TestFrontWithoutDominated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.Float64Range(.1, 1).Draw(t, "all")
		n := rapid.IntRange(1, 12).Draw(t, "n")
		points := make([]study.FrontPoint, n)
		for i := range points {
			points[i] = study.FrontPoint{Cost: float64(rapid.IntRange(1, 8).Draw(t, "cost")), Loss: float64(rapid.IntRange(0, 8).Draw(t, "loss")) / 5}
		}
		at := rapid.IntRange(-1, n-1).Draw(t, "chosen")
		if at >= 0 {
			points[at].Chosen = true
		}
		got := ReconcileFront(points, all)
		if at >= 0 != slices.ContainsFunc(got, func(p study.FrontPoint) bool { return p.Chosen }) {
			t.Fatalf("the chosen plan of %v is not in %v", points, got)
		}
		for i, p := range got {
			if p.Loss > all {
				t.Fatalf("a loss of %v of %v", p.Loss, all)
			}
			if i > 0 && (got[i-1].Cost >= p.Cost || got[i-1].Loss <= p.Loss) {
				t.Fatalf("%v and %v: one dominates the other", got[i-1], p)
			}
		}
	})
}

func TestMaxLoss(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		metric string
		want   float64
	}{{"accuracy", .9}, {"top1", .9}, {"relative_error", math.Inf(1)}, {"snr_db", math.Inf(1)}} {
		p := &study.Loss{LossSettings: study.LossSettings{Metric: tt.metric, Higher: tt.metric == "accuracy"}, Base: value(.9)}
		m, err := MetricOf(p)
		if err != nil || m.MaxLoss() != tt.want {
			t.Errorf("%s: %v, %v", tt.metric, m.MaxLoss(), err)
		}
	}
}

package estimator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPaired(t *testing.T) {
	t.Parallel()
	long := []float64{1, 9, 1, 4, 4, 5}
	for _, c := range []struct {
		most   int
		series [][]float64
		want   [][]float64
	}{
		{20, [][]float64{long, {2, 8}}, [][]float64{{1, 2}, {4, 8}}},
		{1, [][]float64{long, {2, 8}}, [][]float64{{4, 5}}},
		{3, [][]float64{long}, [][]float64{{5}, {2.5}, {4.5}}},
		{20, [][]float64{long, nil}, [][]float64{}},
	} {
		if d := cmp.Diff(c.want, Paired(c.most, c.series...)); d != "" {
			t.Errorf("%d blocks of %v (-want +got):\n%s", c.most, c.series, d)
		}
	}
}

package window

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPoints compares points of planes with sums one by one; pixels missing at an edge do not
// contribute, not even as NaN.
func TestPoints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const per = 4
		plane := []float32{float32(math.Inf(1)), 2, 3, 4, 5}
		p := NewPoints[float32](30)
		var want []float32
		for range 2 { // the second time behind a reset
			p.Reset()
			want = want[:0]
			for range rapid.IntRange(0, 30).Draw(t, "points") {
				has := per
				if rapid.Bool().Draw(t, "edge") {
					has = rapid.IntRange(0, per-1).Draw(t, "pixels")
				}
				pos, weight := p.Next()
				var sum float32
				for i := range has {
					pos[i], weight[i] = int32(rapid.IntRange(1, 4).Draw(t, "pixel")), float32(i+1)
					sum += weight[i] * plane[pos[i]]
				}
				if has < per {
					p.Fewer(has)
				}
				want = append(want, sum)
			}
			got := make([]float32, p.Len()+1)
			got[p.Len()] = 9
			p.Sample(got, plane)
			for i, w := range want {
				if got[i] != w {
					t.Fatalf("point %d is %v, want %v", i, got[i], w)
				}
			}
			if p.Len() != len(want) || got[p.Len()] != 9 {
				t.Fatalf("%d points, %v behind them", p.Len(), got[p.Len()])
			}
			p.Sample(got, nil)
			for i := range want {
				if got[i] != 0 {
					t.Fatalf("point %d of nothing is %v", i, got[i])
				}
			}
		}
	})
}

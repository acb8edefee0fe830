package tpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDivide compares with the rule itself, elementary interval by elementary interval.
func TestDivide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 200 {
		const layers = 4
		var streams []stream
		var edges []float64
		for range 1 + r.IntN(4) {
			s := stream{}
			at := float64(r.IntN(5))
			for range r.IntN(12) {
				at += float64(r.IntN(4))
				end := at + float64(r.IntN(5))
				s.begin, s.finish, s.layer = append(s.begin, at), append(s.finish, end), append(s.layer, int32(r.IntN(layers+1)-1))
				edges = append(edges, at, end)
				at = end
			}
			streams = append(streams, s)
		}
		slices.Sort(edges)
		want, got := make([]float64, layers+1), make([]float64, layers+1)
		wantBusy, wantShared := 0.0, 0.0
		for i := 1; i < len(edges); i++ {
			mid, d := (edges[i-1]+edges[i])/2, edges[i]-edges[i-1]
			if d == 0 {
				continue
			}
			of := map[int32]bool{}
			n := 0
			for _, s := range streams {
				for k := range s.begin {
					if s.begin[k] < mid && mid < s.finish[k] {
						of[s.layer[k]] = true
						n++
					}
				}
			}
			for l := range of {
				want[l+1] += d / float64(len(of))
			}
			if n > 0 {
				wantBusy += d
			}
			if n > 1 {
				wantShared += d
			}
		}
		busy, shared := divide(streams, func(l int32, v float64) { got[l+1] += v })
		all := 0.0
		for i := range want {
			// Sums of a few dozen small integers divided by at most four.
			if !(math.Abs(got[i]-want[i]) <= 1e-9) {
				t.Fatalf("round %d: layer %d has %v, want %v", round, i-1, got[i], want[i])
			}
			all += got[i]
		}
		if busy != wantBusy || shared != wantShared || !(math.Abs(all-busy) <= 1e-9) {
			t.Fatalf("round %d: busy %v, shared %v, parts %v, want %v and %v", round, busy, shared, all, wantBusy, wantShared)
		}
	}
}

package sorting_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

type pair struct{ key, place int }

func byKey(a, b pair) int { return a.key - b.key }

// Both functions give the order of those in package slices, also that of equal elements.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var list []pair
		for i := range n {
			list = append(list, pair{r.IntN(1 + n/3), i})
		}
		want, got := slices.Clone(list), slices.Clone(list)
		slices.SortFunc(want, byKey)
		if sorting.Func(got, byKey); !slices.Equal(got, want) {
			t.Fatalf("%d elements: Func gives %v, expected %v", n, got, want)
		}
		want, got = slices.Clone(list), slices.Clone(list)
		slices.SortStableFunc(want, byKey)
		if sorting.Stable(got, byKey); !slices.Equal(got, want) {
			t.Fatalf("%d elements: Stable gives %v, expected %v", n, got, want)
		}
	}
}

package loss

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// TiedGroups groups figures whose order is not significant. Groups are in order of values. A figure
// belongs to the group of the smallest earlier one from which it differs by less than half the
// lengths of both 95 % intervals, combined as independent errors. Figures without an interval are
// only grouped if they are equal; nil ones are left out.
func TiedGroups(figures []*profile.Metric) [][]int {
	var order []int
	at := make([]float64, len(figures))
	half := make([]float64, len(figures))
	for i, f := range figures {
		if f == nil {
			continue
		}
		v, ok := f.Best()
		if !ok {
			continue
		}
		at[i] = v
		if f.CI95 != nil {
			half[i] = (f.CI95[1] - f.CI95[0]) / 2
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	var out [][]int
	for _, i := range order {
		if n := len(out); n > 0 {
			if first := out[n-1][0]; at[i]-at[first] <= math.Hypot(half[i], half[first]) {
				out[n-1] = append(out[n-1], i)
				continue
			}
		}
		out = append(out, []int{i})
	}
	return out
}

// Package sorting sorts slices by a comparison with little code. The functions of package slices
// are compiled once for each element type, some 8 kB each; here each type adds one closure.
// Sorts that take a noticeable part of a run use package slices.
package sorting

import "sort"

// Func sorts s in the order of compare. Equal elements may change places.
func Func[E any](s []E, compare func(a, b E) int) {
	sort.Slice(s, less(s, compare))
}

// Stable sorts s in the order of compare. Equal elements keep their order.
func Stable[E any](s []E, compare func(a, b E) int) {
	sort.SliceStable(s, less(s, compare))
}

func less[E any](s []E, compare func(a, b E) int) func(i, j int) bool {
	return func(i, j int) bool { return compare(s[i], s[j]) < 0 }
}

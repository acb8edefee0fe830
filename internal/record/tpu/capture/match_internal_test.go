package capture

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSections cuts lists of ids at restarts, keeps neighbours that changed places, and
// counts on where a counter wraps.
func TestSections(t *testing.T) {
	for _, x := range []struct {
		name         string
		ids          []uint32
		bits, expect int
		want         []section
		after        []uint32
	}{
		{"one", []uint32{0, 1, 2}, 16, 3, []section{{0, 3}}, []uint32{0, 1, 2}},
		{"a copy before and two after", []uint32{0, 0, 1, 2, 3, 0, 1}, 20, 4, []section{{0, 1}, {1, 5}, {5, 7}}, []uint32{0, 0, 1, 2, 3, 0, 1}},
		{"lost", []uint32{2, 5, 9}, 20, 10, []section{{0, 3}}, []uint32{2, 5, 9}},
		{"neighbours", []uint32{0, 2, 1, 3, 5, 4}, 20, 6, []section{{0, 6}}, []uint32{0, 2, 1, 3, 5, 4}},
		{"twos", []uint32{0, 1, 0, 1, 0, 1}, 32, 2, []section{{0, 2}, {2, 4}, {4, 6}}, []uint32{0, 1, 0, 1, 0, 1}},
		{"wrap", []uint32{65534, 65535, 0, 1}, 16, 70_000, []section{{0, 4}}, []uint32{65534, 65535, 65536, 65537}},
		{"wrap with losses", []uint32{65500, 3, 4}, 16, 0, []section{{0, 3}}, []uint32{65500, 65539, 65540}},
		{"no wrap", []uint32{65534, 65535, 0, 1}, 16, 65_536, []section{{0, 2}, {2, 4}}, []uint32{65534, 65535, 0, 1}},
		{"nothing", nil, 16, 0, nil, nil},
	} {
		got := sections(x.ids, x.bits, x.expect)
		if !slices.Equal(got, x.want) || !slices.Equal(x.ids, x.after) {
			t.Errorf("%s: %v of %v, want %v of %v", x.name, got, x.ids, x.want, x.after)
		}
	}
}

// TestAlign pairs at the least cost, in order.
func TestAlign(t *testing.T) {
	lengths := func(a, b []int) []int {
		return Align(len(a), len(b), func(i, k int) int {
			if a[i] > b[k] {
				return -1
			}
			return unlike(b[k] - a[i])
		}, func(i int) int { return 2*a[i] + 2 }, func(k int) int { return 2 * b[k] })
	}
	for _, x := range []struct{ a, b, want []int }{
		{[]int{1, 160, 2}, []int{161}, []int{-1, 0, -1}},
		{[]int{2, 2, 81, 2}, []int{81}, []int{-1, -1, 0, -1}},
		{[]int{90, 50, 90}, []int{93, 50, 93}, []int{0, 1, 2}},
		{[]int{50}, []int{93, 50}, []int{1}},
		{[]int{200}, []int{93}, []int{-1}},
		{nil, []int{1}, []int{}},
	} {
		if diff := cmp.Diff(x.want, lengths(x.a, x.b)); diff != "" {
			t.Errorf("%v with %v: %s", x.a, x.b, diff)
		}
	}
}

// TestUnwrapTimes undoes wraps of counters, between records and within one.
func TestUnwrapTimes(t *testing.T) {
	const wrap = int64(1) << 32
	e := &Engine{Start: []int64{wrap - 100, wrap - 20, 50, 10}, End: []int64{wrap - 50, 30, 90, 40}}
	unwrapTimes(e)
	if diff := cmp.Diff([]int64{wrap - 100, wrap - 20, wrap + 50, wrap + 10}, e.Start); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{wrap - 50, wrap + 30, wrap + 90, wrap + 40}, e.End); diff != "" {
		t.Error(diff)
	}
	// The first record wraps by itself.
	e = &Engine{Start: []int64{wrap - 5, 20}, End: []int64{10, 30}}
	unwrapTimes(e)
	if e.Start[0] != wrap-5 || e.End[0] != wrap+10 || e.End[1] != wrap+30 {
		t.Errorf("%v to %v", e.Start, e.End)
	}
}

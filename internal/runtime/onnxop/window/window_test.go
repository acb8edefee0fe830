package window

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func made(in, kernel []int, ceil bool, a graph.Attrs) (*Window, error) {
	return New(&op.Call{Node: &graph.Node{Attrs: a}}, in, kernel, ceil)
}

// TestSizes checks output sizes and padding by the standard's formulas.
func TestSizes(t *testing.T) {
	t.Parallel()
	one := func(v int64) []int64 { return []int64{v} }
	for _, tt := range []struct {
		name            string
		in, kernel      int
		ceil            bool
		attrs           graph.Attrs
		out, begin, end int
	}{
		{"plain", 5, 3, false, nil, 3, 0, 0},
		{"whole", 3, 3, false, nil, 1, 0, 0},
		{"padded", 5, 3, false, graph.Attrs{"pads": []int64{1, 2}}, 6, 1, 2},
		{"cut", 5, 3, false, graph.Attrs{"pads": []int64{-1, 0}}, 2, -1, 0},
		{"strided", 6, 3, false, graph.Attrs{"strides": one(2)}, 2, 0, 0},
		{"strided, rounded up", 6, 3, true, graph.Attrs{"strides": one(2)}, 3, 0, 0},
		{"nothing to round", 7, 3, true, graph.Attrs{"strides": one(2)}, 3, 0, 0},
		// would begin at 4
		{"last window in the padding", 3, 1, true, graph.Attrs{"strides": one(2), "pads": []int64{0, 1}}, 2, 0, 1},
		// third would begin at 6 of 5
		{"last window just inside", 4, 1, true, graph.Attrs{"strides": one(3), "pads": []int64{1, 1}}, 2, 1, 1},
		{"dilated", 7, 3, false, graph.Attrs{"dilations": one(2)}, 3, 0, 0},
		{"same", 5, 3, false, graph.Attrs{"auto_pad": "SAME_UPPER"}, 5, 1, 1},
		{"same, even, upper", 5, 4, false, graph.Attrs{"auto_pad": "SAME_UPPER"}, 5, 1, 2},
		{"same, even, lower", 5, 4, false, graph.Attrs{"auto_pad": "SAME_LOWER"}, 5, 2, 1},
		{"same, strided", 5, 3, false, graph.Attrs{"auto_pad": "SAME_UPPER", "strides": one(2)}, 3, 1, 1},
		{"same, strided, rounded", 6, 3, false, graph.Attrs{"auto_pad": "SAME_UPPER", "strides": one(2)}, 3, 0, 1},
		{"same, wide stride", 5, 1, false, graph.Attrs{"auto_pad": "SAME_LOWER", "strides": one(4)}, 2, 0, 0},
		{"valid", 5, 3, false, graph.Attrs{"auto_pad": "VALID", "pads": []int64{9, 9}}, 3, 0, 0},
		{"not set", 5, 3, false, graph.Attrs{"auto_pad": "NOTSET", "pads": []int64{1, 1}}, 5, 1, 1},
		{"empty", 5, 3, false, graph.Attrs{"auto_pad": "", "pads": []int64{1, 1}}, 5, 1, 1},
	} {
		w, err := made([]int{tt.in}, []int{tt.kernel}, tt.ceil, tt.attrs)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff([]int{tt.out, tt.begin, tt.end}, []int{w.Out[0], w.Begin[0], w.End[0]}); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	big := int64(MaxExtent)
	for _, tt := range []struct {
		want       string
		in, kernel []int
		attrs      graph.Attrs
	}{
		{"0 spatial axes", nil, nil, nil},
		{"9 spatial axes", make([]int, 9), make([]int, 9), nil},
		{"kernel of rank 1 over 2", []int{3, 3}, []int{1}, nil},
		{"1 strides for 2", []int{3, 3}, []int{1, 1}, graph.Attrs{"strides": one(1)}},
		{"3 dilations for 2", []int{3, 3}, []int{1, 1}, graph.Attrs{"dilations": []int64{1, 1, 1}}},
		{"strides [0]", []int{3}, []int{1}, graph.Attrs{"strides": one(0)}},
		{"strides [268435457]", []int{3}, []int{1}, graph.Attrs{"strides": one(big + 1)}},
		{"dilations [-1]", []int{3}, []int{1}, graph.Attrs{"dilations": one(-1)}},
		{"kernel size 0", []int{3}, []int{0}, nil},
		{"kernel size 268435457", []int{3}, []int{MaxExtent + 1}, nil},
		{"3 pads for 1", []int{3}, []int{1}, graph.Attrs{"pads": []int64{1, 1, 1}}},
		{"pads [268435457 0]", []int{3}, []int{1}, graph.Attrs{"pads": []int64{big + 1, 0}}},
		{"pads [0 -268435457]", []int{3}, []int{1}, graph.Attrs{"pads": []int64{0, -big - 1}}},
		{`auto_pad "X"`, []int{3}, []int{1}, graph.Attrs{"auto_pad": "X"}},
		{"kernel of extent 4 does not fit into axis of 3 with padding 0+0", []int{3}, []int{4}, nil},
		{"kernel of extent 5 does not fit into axis of 3 with padding 1+0", []int{3}, []int{3}, graph.Attrs{"dilations": one(2), "pads": []int64{1, 0}}},
	} {
		if _, err := made(tt.in, tt.kernel, false, tt.attrs); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	ones := slices.Repeat([]int{1}, 8)
	if _, err := made(ones, ones, false, graph.Attrs{"pads": slices.Repeat([]int64{big}, 16), "strides": slices.Repeat([]int64{big}, 8)}); err != nil {
		t.Errorf("eight axes with the largest padding: %v", err)
	}
}

// TestTaps lists the positions that a window of 3x3 sees on an image of 3x4, row by row.
func TestTaps(t *testing.T) {
	t.Parallel()
	w, err := made([]int{3, 4}, []int{3, 3}, false, graph.Attrs{"pads": []int64{1, 1, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	taps := func(w *Window, at ...int) (got []int) {
		w.Taps(at, func(p int) { got = append(got, p) })
		return got
	}
	for _, tt := range []struct {
		at   []int
		want []int
	}{{[]int{0, 0}, []int{0, 1, 4, 5}}, {[]int{1, 1}, []int{0, 1, 2, 4, 5, 6, 8, 9, 10}}, {[]int{2, 3}, []int{6, 7, 10, 11}}, {[]int{0, 3}, []int{2, 3, 6, 7}}} {
		if diff := cmp.Diff(tt.want, taps(w, tt.at...)); diff != "" {
			t.Errorf("at %v: %s", tt.at, diff)
		}
	}
	// Dilated by two, starting one before: taps at -1, 1, 3 and 1, 3, 5 of four.
	d, err := made([]int{4}, []int{3}, false, graph.Attrs{"pads": []int64{1, 2}, "dilations": []int64{2}, "strides": []int64{2}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := taps(d, 0), taps(d, 1); !cmp.Equal(a, []int{1, 3}) || !cmp.Equal(b, []int{1, 3}) {
		t.Errorf("dilated: %v, %v", a, b)
	}
	for o, want := range [][3]int{{-1, 1, 3}, {1, 0, 2}} {
		s, lo, hi := d.Span(0, o)
		if [3]int{s, lo, hi} != want {
			t.Errorf("window %d begins at %d with taps %d to %d, want %v", o, s, lo, hi, want)
		}
	}
	if a, b := d.Cells([]int{0}), d.Cells([]int{1}); a != 3 || b != 3 {
		t.Errorf("%d and %d cells with padding", a, b)
	}
	// Windows entirely in the padding see nothing.
	far, err := made([]int{2}, []int{1}, false, graph.Attrs{"pads": []int64{3, 3}})
	if err != nil {
		t.Fatal(err)
	}
	for o, want := range [][]int{nil, nil, nil, {0}, {1}, nil, nil, nil} {
		if got := taps(far, o); !cmp.Equal(got, want) {
			t.Errorf("window %d sees %v, want %v", o, got, want)
		}
	}
	cube, err := made([]int{2, 2, 3}, []int{2, 1, 2}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := taps(cube, 0, 1, 1); !cmp.Equal(got, []int{4, 5, 10, 11}) || cube.Way() != "general" || w.Way() != "planes" {
		t.Errorf("cube: %v", got)
	}
	// A window that extends beyond the padding counts only the part within.
	up, err := made([]int{6}, []int{3}, true, graph.Attrs{"strides": []int64{2}})
	if err != nil {
		t.Fatal(err)
	}
	if up.Cells([]int{1}) != 3 || up.Cells([]int{2}) != 2 {
		t.Errorf("%d and %d cells", up.Cells([]int{1}), up.Cells([]int{2}))
	}
}

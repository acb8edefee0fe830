package mask_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// layer is one of so many outputs and inputs.
func layer(rows, channels, taps, groups int) *weights.Layer {
	return &weights.Layer{Layer: study.Layer{Rows: rows, Cols: channels * taps, Taps: taps, Groups: groups}, Channels: channels}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                         string
		rows, channels, taps, groups int
		structure                    study.Structure
		scores                       []float32 // nil: 1, 2, 3 ...
		level                        float64
		units                        int
		zeros                        []int
	}{
		{"one by one", 2, 5, 1, 1, study.Unstructured, []float32{4, 3, 2, 1, 0, 9, 8, 7, 6, 5}, 0.5, 10, []int{0, 1, 2, 3, 4}},
		{"halves to even, down", 1, 5, 1, 1, study.Unstructured, nil, 0.5, 5, []int{0, 1}},
		{"halves to even, up", 1, 3, 1, 1, study.Unstructured, nil, 0.5, 3, []int{0, 1}},
		{"ties by index", 1, 10, 1, 1, study.Unstructured, make([]float32, 10), 0.9, 10, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"none", 1, 4, 1, 1, study.Unstructured, nil, 0, 4, nil},
		{"all", 1, 4, 1, 1, study.Unstructured, nil, 1, 4, []int{0, 1, 2, 3}},
		{"no number last", 1, 3, 1, 1, study.Unstructured, []float32{float32(math.NaN()), 2, float32(math.Inf(1))}, 0.7, 3, []int{1, 2}},
		{"two of four", 1, 8, 1, 1, study.TwoOfFour, []float32{4, 1, 3, 2, 5, 5, 5, 5}, 0.5, 2, []int{1, 3, 4, 5}},
		{"two of four, ragged", 1, 7, 1, 1, study.TwoOfFour, []float32{4, 1, 3, 2, 3, 1, 2}, 0.5, 2, []int{1, 3, 5}},
		{"two of four, taps", 1, 4, 2, 1, study.TwoOfFour, []float32{1, 8, 2, 7, 3, 6, 4, 5}, 0.5, 2, []int{0, 2, 5, 7}},
		{"two of four below its level", 1, 4, 1, 1, study.TwoOfFour, nil, 0.4, 1, nil},
		{"channels in blocks of four", 1, 6, 2, 1, study.Block4, []float32{9, 1, 9, 1, 9, 1, 9, 1, 1, 1, 1, 9}, 0.5, 4, []int{1, 3, 5, 7, 8, 10}},
		{"columns in blocks of four", 2, 5, 1, 1, study.Block1x4, []float32{1, 1, 1, 1, 9, 9, 9, 9, 9, 1}, 0.5, 4, []int{0, 1, 2, 3, 9}},
		{"rows in blocks of four", 5, 2, 1, 1, study.Block4x1, []float32{1, 9, 1, 9, 1, 9, 1, 9, 9, 1}, 0.5, 4, []int{0, 2, 4, 6, 9}},
		{"rows in blocks of sixteen", 17, 1, 1, 1, study.Block16, nil, 0.5, 2, []int{16}},
		{"channels", 2, 3, 2, 1, study.Channel, []float32{9, 9, 1, 1, 5, 5, 9, 9, 1, 1, 5, 5}, 0.4, 3, []int{2, 3, 8, 9}},
		{"channels in groups", 4, 2, 1, 2, study.Channel, []float32{9, 9, 9, 9, 9, 1, 9, 1}, 0.25, 4, []int{5, 7}},
		{"filters", 3, 2, 1, 1, study.Filter, []float32{5, 5, 1, 1, 9, 9}, 0.67, 3, []int{0, 1, 2, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := tt.rows * tt.channels * tt.taps
			scores := tt.scores
			for i := 0; tt.scores == nil && i < n; i++ {
				scores = append(scores, float32(i+1))
			}
			o, cause := mask.New(layer(tt.rows, tt.channels, tt.taps, tt.groups), scores, tt.structure)
			if cause != "" || o.Len() != tt.units {
				t.Fatalf("cause %q, units %+v, want %d", cause, o, tt.units)
			}
			mat := slices.Repeat([]float32{1}, n)
			o.Zero(mat, tt.level)
			var got []int
			for i, x := range mat {
				if x == 0 {
					got = append(got, i)
				}
			}
			if !slices.Equal(got, tt.zeros) {
				t.Errorf("zeros %v, want %v", got, tt.zeros)
			}
			for i, k := range o.PruningLevels([]float64{tt.level / 2, tt.level}) {
				half := slices.Repeat([]float32{1}, n)
				o.Zero(half, tt.level/2)
				want := uint16(2)
				if half[i] == 0 {
					want = 0
				} else if mat[i] == 0 {
					want = 1
				}
				if k != want {
					t.Errorf("element %d falls at level %d, want %d", i, k, want)
				}
			}
		})
	}
}

func TestNoCapacity(t *testing.T) {
	t.Parallel()
	mixed, fixed := layer(4, 4, 1, 1), layer(4, 4, 1, 1)
	mixed.MixedLayouts, fixed.Fixed = true, study.NoZero
	for _, tt := range []struct {
		name      string
		l         *weights.Layer
		structure study.Structure
		want      study.Cause
	}{
		{"few channels", layer(8, 3, 3, 1), study.Block4, study.ShapeMismatch},
		{"few channels for two of four", layer(8, 3, 3, 1), study.TwoOfFour, study.ShapeMismatch},
		{"few columns", layer(8, 3, 1, 1), study.Block1x4, study.ShapeMismatch},
		{"few rows", layer(3, 8, 1, 1), study.Block4x1, study.ShapeMismatch},
		{"few rows for sixteen", layer(15, 8, 1, 1), study.Block16, study.ShapeMismatch},
		{"one filter", layer(1, 8, 1, 1), study.Filter, study.ShapeMismatch},
		{"one channel", layer(8, 1, 1, 1), study.Channel, study.ShapeMismatch},
		{"nothing", layer(8, 8, 1, 1), study.Dense, study.ShapeMismatch},
		{"read in two ways", mixed, study.Filter, study.Shared},
		{"read in two ways, one by one", mixed, study.Unstructured, ""},
		{"fixed", fixed, study.Unstructured, study.NoZero},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, got := mask.New(tt.l, make([]float32, tt.l.Rows*tt.l.Cols), tt.structure); got != tt.want {
				t.Errorf("cause %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNested checks for all structures that units are a partition of the matrix, that the count
// is exact, that levels are nested, and that no unit that stays has a lower score than one that
// goes.
func TestNested(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(1, 3).Draw(t, "groups")
		l := layer(groups*rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "channels"), rapid.IntRange(1, 4).Draw(t, "taps"), groups)
		n := l.Rows * l.Cols
		scores := make([]float32, n)
		for i := range scores {
			scores[i] = float32((i*7919 + 13) % 11)
		}
		s := rapid.SampledFrom(study.Structures()).Draw(t, "structure")
		o, cause := mask.New(l, scores, s)
		if cause != "" {
			return
		}
		seen := make([]bool, n)
		last := -1.0
		for i := range o.Len() {
			sum := 0.0
			for _, e := range o.Unit(i, nil) {
				if seen[e] {
					t.Fatalf("element %d twice", e)
				}
				seen[e] = true
				sum += float64(scores[e])
			}
			if s != study.TwoOfFour && sum < last {
				t.Fatalf("unit %d of %v after one of %v", i, sum, last)
			}
			last = sum
		}
		if s != study.TwoOfFour && slices.Contains(seen, false) {
			t.Fatal("an element is in no unit")
		}
		a, b := rapid.Float64Range(0, 1).Draw(t, "level"), rapid.Float64Range(0, 1).Draw(t, "other")
		a, b = min(a, b), max(a, b)
		if s != study.TwoOfFour && o.Count(a) != int(math.RoundToEven(a*float64(o.Len()))) {
			t.Fatalf("%d units of %d at %v", o.Count(a), o.Len(), a)
		}
		x, y := slices.Repeat([]float32{1}, n), slices.Repeat([]float32{1}, n)
		o.Zero(x, a)
		o.Zero(y, b)
		for i := range x {
			if x[i] == 0 && y[i] != 0 {
				t.Fatalf("element %d is zero at %v and not at %v", i, a, b)
			}
		}
	})
}

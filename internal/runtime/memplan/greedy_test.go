package memplan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGreedy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		buffers []Buffer
		align   int
		want    []int
		total   int
	}{
		{"none", nil, 64, []int{}, 0},
		{"chain reuses", []Buffer{{100, 0, 1, 0}, {100, 1, 2, 0}, {100, 2, 3, 0}}, 64, []int{0, 128, 0}, 256},
		{"in place", []Buffer{{100, 0, 1, 0}, {100, 1, 2, 1}, {50, 2, 3, 2}}, 64, []int{0, 0, 0}, 128},
		{"in place refused: still needed", []Buffer{{64, 0, 2, 0}, {64, 1, 2, 1}}, 64, []int{0, 64}, 128},
		{"in place refused: too large", []Buffer{{64, 0, 1, 0}, {65, 1, 2, 1}}, 64, []int{128, 0}, 192},
		{"in place only once", []Buffer{{64, 0, 1, 0}, {64, 1, 2, 1}, {64, 1, 2, 1}}, 64, []int{0, 0, 64}, 128},
		{"chain given backwards", []Buffer{{64, 2, 3, 2}, {64, 1, 2, 3}, {64, 0, 1, 0}}, 64, []int{0, 0, 0}, 64},
		{"empty buffer", []Buffer{{0, 0, 9, 0}, {8, 0, 9, 0}}, 16, []int{0, 0}, 16},
		{"smallest gap", []Buffer{{300, 0, 9, 0}, {200, 0, 4, 0}, {100, 0, 9, 0}, {90, 5, 9, 0}}, 1, []int{0, 300, 500, 300}, 600},
		{"bad hint is ignored", []Buffer{{8, 0, 1, 7}, {8, 0, 1, 2}}, 8, []int{0, 8}, 16},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, total := Greedy(tt.buffers, tt.align)
			if d := cmp.Diff(tt.want, got); d != "" || total != tt.total {
				t.Errorf("Greedy: total %d, want %d; offsets (-want +got):\n%s", total, tt.total, d)
			}
		})
	}
}

func TestGreedyNeverOverlaps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		n := 1 + r.IntN(60)
		bs := make([]Buffer, n)
		for i := range bs {
			first := r.IntN(40)
			bs[i] = Buffer{Bytes: r.IntN(1000), First: first, Last: first + r.IntN(10)}
			if r.IntN(3) == 0 {
				bs[i].InPlace = r.IntN(n + 2)
			}
		}
		const align = 64
		off, total := Greedy(bs, align)
		for i, a := range bs {
			if off[i]%align != 0 || off[i] < 0 || off[i]+a.Bytes > total {
				t.Fatalf("round %d: buffer %d at %d of %d", round, i, off[i], total)
			}
			for j, b := range bs[:i] {
				handover := a.InPlace == j+1 && b.Last == a.First || b.InPlace == i+1 && a.Last == b.First
				together := a.First <= b.Last && b.First <= a.Last
				share := off[i] < off[j]+b.Bytes && off[j] < off[i]+a.Bytes
				if a.Bytes > 0 && b.Bytes > 0 && together && share && !handover {
					t.Fatalf("round %d: buffers %d %+v at %d and %d %+v at %d overlap", round, i, a, off[i], j, b, off[j])
				}
			}
		}
	}
}

func TestGreedyIsNearTheBound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	bs := make([]Buffer, 4000)
	for i := range bs {
		bs[i] = Buffer{Bytes: 1 + r.IntN(100000), First: i, Last: i + 1 + r.IntN(4)}
	}
	_, total := Greedy(bs, 64)
	if bound := LiveBytes(bs, 64); total < bound || float64(total) > 1.3*float64(bound) {
		t.Errorf("total %d, bound %d", total, bound)
	}
}

func BenchmarkGreedy(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	bs := make([]Buffer, 5000)
	for i := range bs {
		bs[i] = Buffer{Bytes: 1 + r.IntN(100000), First: i, Last: i + 1 + r.IntN(4)}
		if i%50 == 0 {
			bs[i].Last += r.IntN(1000)
		}
	}
	for b.Loop() {
		Greedy(bs, 64)
	}
}

// TestScannedAndSearched places the same buffers with both methods.
func TestScannedAndSearched(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const align = 16
		step := rapid.IntRange(-20, 20)
		groups := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Buffer {
			return Buffer{Bytes: align * rapid.IntRange(1, 20).Draw(t, "size"), First: step.Draw(t, "first"), Last: step.Draw(t, "last")}
		}), 1, 60).Draw(t, "buffers")
		order := rapid.Permutation(indices(len(groups))).Draw(t, "order")
		a, b := make([]int, len(groups)), make([]int, len(groups))
		x, y := placeByScan(groups, order, a), placeBySearch(groups, order, b, align)
		if x != y || !slices.Equal(a, b) {
			t.Fatalf("places %v of %d bytes, and %v of %d", a, x, b, y)
		}
	})
}

// indices returns the numbers from 0 to n-1.
func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

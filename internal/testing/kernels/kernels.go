// Package kernels draws operands for tests of internal/kernel.
package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// RandomBytes draws n bytes.
func RandomBytes(r *rand.Rand, n int) []uint8 {
	v := make([]uint8, n)
	extreme := r.IntN(4) == 0 // all sums of one sign, as large as possible
	for i := range v {
		if v[i] = uint8(r.Uint32()); extreme {
			v[i] = 255
		}
	}
	return v
}

// Value interprets the bits of an 8-bit value.
func Value(b uint8, signed bool) int32 {
	if signed {
		return int32(int8(b))
	}
	return int32(b)
}

// Quickest reports the rate of the fastest of many short rounds, which other load on the machine
// disturbs least.
func Quickest(b *testing.B, unit string, work float64, f func()) {
	rounds := max(1, int(1e5/work))
	least := time.Hour
	for b.Loop() {
		start := time.Now()
		for range rounds {
			f()
		}
		least = min(least, time.Since(start))
	}
	b.ReportMetric(work*float64(rounds)/least.Seconds()/1e9, unit)
}

// Values returns any values for exact kernels. Other kernels round differently; they get small
// integers, whose sums are exact in any order.
func Values(r *rand.Rand, exact bool, n int) []float32 {
	if !exact {
		return Wholes(r, n)
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// Prune sometimes sets values of some rows to zero: any, or at the same steps of four rows.
func Prune(r *rand.Rand, w []float32, row int) {
	kind, share := r.IntN(4), []float64{0.3, 0.5, 0.7, 0.9, 1}[r.IntN(5)]
	for i := 0; kind == 0 && i < len(w); i++ {
		if r.Float64() < share {
			w[i] = 0
		}
	}
	for i := 0; kind == 1 && i < len(w); i++ {
		if i/row%4 == 0 && r.Float64() < share {
			for j := i; j < min(len(w), i+4*row); j += row {
				w[j] = 0
			}
		}
	}
}

// BytesOf draws n bytes, often extreme ones.
func BytesOf(r *rand.Rand, n int) []uint8 {
	v := make([]uint8, n)
	for i := range v {
		if v[i] = uint8(r.Uint32()); r.IntN(8) == 0 {
			v[i] = []uint8{0, 127, 128, 255}[r.IntN(4)]
		}
	}
	return v
}

// WeightsOf returns differences of 8-bit weights to a zero point, of 8 or 9 bits.
func WeightsOf(r *rand.Rand, n int) []int32 {
	v, wide := make([]int32, n), r.IntN(2) == 0
	for i := range v {
		if v[i] = int32(r.IntN(256) - 128); wide {
			v[i] = int32(r.IntN(511) - 255)
		}
	}
	return v
}

// Random draws n values from -1 to 1.
func Random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = r.Float32()*2 - 1
	}
	return v
}

// Near fails unless all values agree to 1e-4.
func Near(t *testing.T, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-4*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("element %d: got %g, want %g", i, got[i], want[i])
		}
	}
}

// ToNHWC moves the channels of [N,C,area] to the end.
func ToNHWC(x []float32, n, c, area int) []float32 {
	y := make([]float32, len(x))
	for i := range x {
		p, ch, b := i%area, i/area%c, i/area/c
		y[(b*area+p)*c+ch] = x[i]
	}
	return y
}

// Wholes returns small random integers: their sums are exact in any order.
func Wholes(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.IntN(19) - 9)
	}
	return v
}

// FourOfEight returns 8-bit weights in rows of k steps of which at most four of eight neighbours
// are nonzero: 2:4, or any four of eight.
func FourOfEight(r *rand.Rand, n, k int) []int32 {
	w := make([]int32, n)
	pairs := r.IntN(2) == 0
	for i := 0; i < n; i += 8 {
		places := r.Perm(8)[:4]
		if pairs {
			places = append(r.Perm(4)[:2], 4+r.IntN(2), 6+r.IntN(2))
		}
		for _, at := range places {
			if i+at < n {
				w[i+at] = int32(r.IntN(256)) - 128
			}
		}
	}
	return w
}

// Sparse4of8Sets runs f with 4:8 sparse kernels assumed to be fast, for one and for three
// threads; f reports whether they were used.
func Sparse4of8Sets(t *testing.T, f func(t *testing.T, r *rand.Rand, pool *workers.Pool, plain func(func())) bool) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		defer simd.ForceSparse4of8(1.4)()
		if f, _ := simd.Sparse4of8Kernels(); f == nil {
			t.Skip("no kernels")
		}
		r, sifted := rand.New(rand.NewPCG(3, 4)), 0
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			defer pool.Close()
			for range sets.Rounds(150) {
				if f(t, r, pool, plain) {
					sifted++
				}
			}
		}
		if sifted < sets.Rounds(300)/4 {
			t.Errorf("%d of %d are sifted", sifted, sets.Rounds(300))
		}
	})
}

// Pruned returns 8-bit weights with some zeros: single ones, four neighbouring steps, or four
// neighbouring rows of k steps.
func Pruned(r *rand.Rand, n, k int) []int32 {
	w := make([]int32, n)
	for i := range w {
		w[i] = int32(r.IntN(256)) - 128
	}
	share := []float64{0.65, 0.8, 0.9, 0.97, 1}[r.IntN(5)]
	kind := r.IntN(3)
	for i := range w {
		switch {
		case kind == 0 && r.Float64() < share:
			w[i] = 0
		case kind == 1 && i%k%4 == 0 && r.Float64() < share:
			clear(w[i:min(i+4, (i/k+1)*k)])
		case kind == 2 && i/k%4 == 0 && r.Float64() < share:
			for j := i; j < min(n, i+4*k); j += k {
				w[j] = 0
			}
		}
	}
	return w
}

// SparseSets draws cases for one and for three threads, on instruction sets with sparse int8
// kernels: f computes a case in plain Go and returns a function that compares it on an
// instruction set and reports whether zeros are skipped.
func SparseSets(t *testing.T, least int, f func(t *testing.T, r *rand.Rand, pool *workers.Pool) func() bool) {
	defer simd.ForceSparse4of8(1)()
	r, sparse := rand.New(rand.NewPCG(5, 6)), map[simd.Set]int{}
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for range sets.Rounds(200) {
			compare := f(t, r, pool)
			sets.In(t, func(set simd.Set) {
				if simd.SparseIntKernels() != nil && compare() {
					sparse[set]++
				}
			})
		}
	}
	sets.In(t, func(set simd.Set) {
		if simd.SparseIntKernels() != nil && sparse[set] < sets.Rounds(400)*least/100 {
			t.Errorf("%d of %d leave zeros out", sparse[set], sets.Rounds(400))
		}
	})
}

// Package sets runs tests in every set of kernels that this processor has.
package sets

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Every runs f for each set of this processor but plain Go. f gets a function that
// computes with plain Go.
func Every(t *testing.T, f func(t *testing.T, plain func(func()))) {
	for _, s := range simd.Available()[1:] {
		t.Run(s.String(), func(t *testing.T) {
			defer simd.Use(s)()
			f(t, Go)
		})
	}
}

// In runs f in each set of this processor but plain Go: what it compares with, plain Go or a
// definition, takes longer than all sets and is computed once, before.
func In(t *testing.T, f func(set simd.Set)) {
	t.Helper()
	for _, s := range simd.Available()[1:] {
		func() {
			defer simd.Use(s)()
			defer func() {
				if t.Failed() {
					t.Logf("with %v", s)
				}
			}()
			f(s)
		}()
	}
}

// Go runs f in plain Go.
func Go(f func()) {
	defer simd.Use(simd.Go)()
	f()
}

// Rounds is fewer than n with -short: emulators of other processors are slow.
func Rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Agree compares results bit for bit.
func Agree(t *testing.T, what any, got, want []float32) {
	t.Helper()
	for i := range want {
		if g, w := got[i], want[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			t.Fatalf("%+v: value %d is %v, plain Go gives %v", what, i, g, w)
		}
	}
}

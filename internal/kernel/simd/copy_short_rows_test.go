package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSpreads compares rows of all lengths with element-wise copies.
func TestSpreads(t *testing.T) {
	everySet(t, func(t *testing.T) {
		s, r := ShortRowKernels(), rand.New(rand.NewPCG(1, 2))
		if s == nil {
			t.Skip("plain Go")
		}
		for range 1000 {
			rows, n, step, ones := 1+r.IntN(9), 1+r.IntN(MaxShortRow), r.IntN(40), r.IntN(2) == 0
			have := (rows-1)*step + n
			if ones {
				have = (rows-1)*step + 1
			}
			src := make([]float32, have)
			for i := range src {
				src[i] = r.Float32()
			}
			got, want := make([]float32, (rows-1)*n+MaxShortRow), make([]float32, rows*n)
			for i := range want {
				if want[i] = src[i/n*step]; !ones {
					want[i] = src[i/n*step+i%n]
				}
			}
			if ones {
				s.Fill(got, src, rows, n, step)
			} else {
				s.Copy(got, src, rows, n, step)
			}
			if !slices.Equal(got[:len(want)], want) {
				t.Fatalf("%d rows of %d, %d apart, of one value each: %v: %v, want %v", rows, n, step, ones, got, want)
			}
		}
	})
}

// TestCopyBlocks compares blocks of all sizes with a copy of each.
func TestCopyBlocks(t *testing.T) {
	everySet(t, func(t *testing.T) {
		r, copied := rand.New(rand.NewPCG(3, 4)), 0
		for range 1000 {
			n, unit, rows := 1+r.IntN(150), 1+r.IntN(150), 1+r.IntN(20)
			src := make([]int32, (rows-1)*unit+n)
			for i := range src {
				src[i] = r.Int32()
			}
			at := make([]int, r.IntN(9))
			got, want := make([]int32, len(at)*n+1), make([]int32, len(at)*n+1)
			for i := range at {
				at[i] = r.IntN(rows)
				copy(want[i*n:], src[at[i]*unit:][:n])
			}
			if !CopyBlocks(got, src, at, n, unit) {
				continue
			}
			copied++
			if !slices.Equal(got, want) {
				t.Fatalf("blocks %v of %d, %d apart: got %v, want %v", at, n, unit, got, want)
			}
		}
		if blockKernels.pick() != nil && copied == 0 {
			t.Fatal("no blocks were copied")
		}
	})
}

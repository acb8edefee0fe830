package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Sums of products from several places on, and sums of several vectors, are what plain loops give.
func TestSums(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	x := make([]float32, 2000)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for range 200 {
		n, many := r.IntN(300), r.IntN(30)
		from, weights := make([]int, many), make([]float32, many)
		for i := range from {
			from[i], weights[i] = r.IntN(len(x)-n), float32(r.NormFloat64())
		}
		sums, vector := make([]float32, many), make([]float32, n)
		a := x[100:][:n]
		Dots(sums, a, x, from)
		for i, f := range from {
			want, size := 0.0, 0.0
			for k, v := range a {
				want += float64(v) * float64(x[f+k])
				size += math.Abs(float64(v) * float64(x[f+k]))
			}
			// Each sum and product is rounded to 24 bits; lanes have an eighth of them.
			if math.Abs(float64(sums[i])-want) > size*float64(n)*0x1p-24 {
				t.Fatalf("%d of %d sums over %d: %v, want %v", i, many, n, sums[i], want)
			}
		}
		var s WeightedSum
		s.Of(vector, x, from, weights)
		for k, got := range vector {
			want, size := 0.0, 0.0
			for i, f := range from {
				want += float64(weights[i]) * float64(x[f+k])
				size += math.Abs(float64(weights[i]) * float64(x[f+k]))
			}
			if math.Abs(float64(got)-want) > size*float64(many)*0x1p-23 {
				t.Fatalf("value %d of %d, %d vectors: %v, want %v", k, n, many, got, want)
			}
		}
	}
}

// Lines are copied as a plain loop does, and nothing beside them.
func TestLineCopier(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	var c LineCopier
	for range 300 {
		n, lines, step := r.IntN(40), r.IntN(6), 1+r.IntN(3)
		to, from := n+r.IntN(4), n*step+r.IntN(4)
		src := make([]float32, lines*from+1)
		for i := range src {
			src[i] = r.Float32()
		}
		dst := make([]float32, lines*to+1)
		want := make([]float32, len(dst))
		for l := range lines {
			for i := range n {
				want[l*to+i] = src[l*from+i*step]
			}
		}
		c.Copy(dst, to, src, from, step, n, lines)
		for i, v := range dst {
			if v != want[i] {
				t.Fatalf("%d lines of %d by %d: place %d is %v, want %v", lines, n, step, i, v, want[i])
			}
		}
	}
}

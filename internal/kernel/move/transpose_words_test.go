package move

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestLineCopier checks that lines are copied as by a plain loop, and nothing beside them is
// written.
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

// TestTranspose checks that a matrix is transposed as by a plain loop, and nothing beside it is
// written.
func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	sets.Every(t, func(t *testing.T, _ func(func())) {
		for range sets.Rounds(200) {
			rows, cols := r.IntN(50), r.IntN(50)
			to, from := cols+r.IntN(4), rows+r.IntN(4)
			src := make([]float32, cols*from+1)
			for i := range src {
				src[i] = r.Float32()
			}
			dst, want := make([]float32, rows*to+1), make([]float32, rows*to+1)
			for i := range rows {
				for j := range cols {
					want[i*to+j] = src[j*from+i]
				}
			}
			Transpose(dst, to, src, from, rows, cols)
			sets.Agree(t, [2]int{rows, cols}, dst, want)
		}
	})
}

// TestDeinterleave checks that rows of few words are deinterleaved as by a plain loop, as many as
// reported, and nothing outside the input is read.
func TestDeinterleave(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	sets.Every(t, func(t *testing.T, _ func(func())) {
		for range sets.Rounds(500) {
			n, rows := 2+r.IntN(30), 1+r.IntN(140)
			src, dst := make([]uint32, n*rows), make([]uint32, max(8, n)*rows)
			for i := range src {
				src[i] = r.Uint32()
			}
			done := Deinterleave(dst, src, rows, n)
			if least := rows - 7; done > rows || rows >= 16 && done < least {
				t.Fatalf("%d of %d rows of %d", done, rows, n)
			}
			for i := range done {
				for j := range n {
					if dst[j*rows+i] != src[i*n+j] {
						t.Fatalf("word %d of row %d of %d rows of %d is wrong", j, i, rows, n)
					}
				}
			}
		}
	})
}

package simd

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRepeats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times, n := rapid.IntRange(2, 9).Draw(t, "times"), rapid.IntRange(0, 100).Draw(t, "n")
		floats, words := make([]float32, n), make([]int16, n)
		var wantFloats []float32
		var wantWords []int16
		for i := range n {
			floats[i], words[i] = float32(i+1), int16(i-50)
			for range times {
				wantFloats, wantWords = append(wantFloats, floats[i]), append(wantWords, words[i])
			}
		}
		r := NewRepeats(times)
		// Memory after the end stays unchanged.
		gotFloats, gotWords := make([]float32, n*times+1), make([]int16, n*times+1)
		gotFloats[n*times], gotWords[n*times] = -1, -1
		r.Floats(gotFloats[:n*times], floats)
		r.Words(gotWords[:n*times], words)
		if want := append(wantFloats, -1); !slices.Equal(gotFloats, want) {
			t.Errorf("float32: got %v, want %v", gotFloats, want)
		}
		if want := append(wantWords, -1); !slices.Equal(gotWords, want) {
			t.Errorf("words: got %v, want %v", gotWords, want)
		}
	})
}

package simd

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestChoose checks that the best instruction set is in use, unless another one of this processor
// is selected.
func TestChoose(t *testing.T) {
	t.Parallel()
	here := Available()
	best := here[len(here)-1]
	if here[0] != Go || !slices.IsSorted(here) {
		t.Fatalf("available are %v", here)
	}
	if s, err := choose(""); s != best || err != nil {
		t.Errorf("no selection: %v, %v", s, err)
	}
	for _, want := range here {
		if s, err := choose(want.String()); s != want || err != nil {
			t.Errorf("%v selected: %v, %v", want, s, err)
		}
	}
	for asked, text := range map[string]string{"avx3": "not an instruction set", "AVX2": "not an instruction set", foreign(here).String(): "not available on this processor"} {
		s, err := choose(asked)
		var refused *RefusedError
		if s != best || !errors.As(err, &refused) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "go") {
			t.Errorf("%s selected: %v, %v", asked, s, err)
		}
	}
}

// foreign returns an instruction set that this processor lacks.
func foreign(here []Set) Set {
	for s := Go; s < sets; s++ {
		if !slices.Contains(here, s) {
			return s
		}
	}
	return Go
}

// TestBelow checks that an instruction set falls back to those of the same architecture, down to
// plain Go.
func TestBelow(t *testing.T) {
	t.Parallel()
	for s := Go; s < sets; s++ {
		at, steps := s, 0
		for at != Go {
			next := at.below()
			if next >= at || next != Go && (next >= AVX2) != (s >= AVX2) {
				t.Fatalf("%v falls back to %v", at, next)
			}
			if at, steps = next, steps+1; steps > sets {
				t.Fatal("endless")
			}
		}
	}
}

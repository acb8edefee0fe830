package simd

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Set is an instruction set: a group of instructions that processors have together.
type Set uint8

// The instruction sets. Each one follows those that it falls back to; see [Set.below].
const (
	Go      Set = iota // plain Go
	NEON               // arm64: NEON
	NEONDot            // arm64: NEON with the 8-bit dot product
	I8MM               // arm64: NEON with the 8-bit matrix product
	AVX2               // amd64: AVX2, FMA and F16C
	AVXVNNI            // amd64: AVX2 with the 8-bit dot product
	AVX512             // amd64: AVX-512 F, BW, DQ and VL
	VNNI               // amd64: AVX-512 with the 8-bit dot product
	AMX                // amd64: VNNI with int8 matrix tiles

	sets = iota
)

var setNames = [sets]string{"go", "neon", "neondot", "i8mm", "avx2", "avxvnni", "avx512", "vnni", "amx"}

// String returns the name that OPMETER_CPU accepts and that profiles show.
func (s Set) String() string { return setNames[s] }

// below returns the next lower instruction set, whose kernels replace those that s lacks.
func (s Set) below() Set {
	switch s {
	case NEONDot, I8MM, AVXVNNI, VNNI, AMX:
		return s - 1
	case AVX512:
		return AVX2
	}
	return Go
}

// family is the table of a family of kernels: its functions for each instruction set that has its
// own. Most families have an entry for Go.
type family[T any] [sets]*T

// pick returns the kernels of the current instruction set, or nil if there are no entries down to
// Go.
func (f *family[T]) pick() *T { return f.of(current) }

// of is pick for an instruction set.
func (f *family[T]) of(s Set) *T {
	for f[s] == nil && s != Go {
		s = s.below()
	}
	return f[s]
}

// Variable is the environment variable that selects an instruction set.
const Variable = "OPMETER_CPU"

// current is written before main starts, and by tests.
var current, refused = choose(os.Getenv(Variable))

// Current returns the instruction set in use.
func Current() Set { return current }

// Refused returns an error if OPMETER_CPU names an instruction set that is not in use, else nil.
func Refused() error { return refused }

// RefusedError reports a value of OPMETER_CPU that is not an instruction set of this processor.
type RefusedError struct {
	Asked     string
	Known     bool // an instruction set, but not one of this processor
	Available []string
}

func (e *RefusedError) Error() string {
	what := "not an instruction set"
	if e.Known {
		what = "not available on this processor"
	}
	return fmt.Sprintf("%q is %s: use one of %s", e.Asked, what, strings.Join(e.Available, ", "))
}

func choose(asked string) (Set, error) {
	here := Available()
	best := here[len(here)-1]
	if asked == "" {
		return best, nil
	}
	i := slices.Index(setNames[:], asked)
	if i >= 0 && slices.Contains(here, Set(i)) {
		return Set(i), nil
	}
	e := &RefusedError{Asked: asked, Known: i >= 0}
	for _, s := range here {
		e.Available = append(e.Available, s.String())
	}
	return best, e
}

// Available lists the instruction sets of this processor, the best one last.
func Available() []Set {
	all := []Set{Go}
	for s := Go + 1; s < sets; s++ {
		if slices.Contains(all, s.below()) && detected(s) {
			all = append(all, s)
		}
	}
	return all
}

// Use makes s, one of [Available], the current instruction set until undo is called. It is for
// tests; no kernel may run meanwhile.
func Use(s Set) (undo func()) {
	before := current
	current = s
	return func() { current = before }
}

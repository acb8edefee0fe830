package simd

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Set is a group of instructions that processors have together.
type Set uint8

// The sets, each after those that it falls back to; see [Set.below].
const (
	Go      Set = iota // no instructions but the compiler's
	NEON               // arm64: NEON
	NEONDot            // arm64: with the 8-bit dot product
	I8MM               // arm64: with the 8-bit matrix product
	AVX2               // amd64: AVX2, FMA and F16C
	AVXVNNI            // amd64: AVX2 with the 8-bit dot product
	AVX512             // amd64: AVX-512 F, BW, DQ and VL
	VNNI               // amd64: AVX-512 with the 8-bit dot product
	AMX                // amd64: VNNI with tiles of 8-bit integers

	sets = iota
)

var setNames = [sets]string{"go", "neon", "neondot", "i8mm", "avx2", "avxvnni", "avx512", "vnni", "amx"}

// String is the name that OPMETER_CPU takes and that profiles show.
func (s Set) String() string { return setNames[s] }

// below is the set that serves where s has no function of its own.
func (s Set) below() Set {
	switch s {
	case NEONDot, I8MM, AVXVNNI, VNNI, AMX:
		return s - 1
	case AVX512:
		return AVX2
	}
	return Go
}

// family is the table of a family of loops: its functions for each set that has its
// own. Most have an entry for Go.
type family[T any] [sets]*T

// pick returns the functions of the current set; nil if there are none, not even for Go.
func (f *family[T]) pick() *T {
	s := current
	for f[s] == nil && s != Go {
		s = s.below()
	}
	return f[s]
}

// Variable is the environment variable that asks for a set.
const Variable = "OPMETER_CPU"

// current is written before the program starts and by tests.
var current, refused = choose(os.Getenv(Variable))

// Current is the set in use.
func Current() Set { return current }

// Refused tells why the set that OPMETER_CPU asks for is not in use; nil if it is, or
// if none is asked for.
func Refused() error { return refused }

// RefusedError is a value of OPMETER_CPU that names no set of this processor.
type RefusedError struct {
	Asked     string
	Known     bool // it is a set, but not of this processor
	Available []string
}

func (e *RefusedError) Error() string {
	what := "no set of instructions"
	if e.Known {
		what = "not what this processor has"
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

// Available lists the sets that this processor has, the best one last.
func Available() []Set {
	all := []Set{Go}
	for s := Go + 1; s < sets; s++ {
		if slices.Contains(all, s.below()) && detected(s) {
			all = append(all, s)
		}
	}
	return all
}

// Use makes s, one of [Available], the current set until undo is called. It is for
// tests; no kernel may run meanwhile.
func Use(s Set) (undo func()) {
	before := current
	current = s
	return func() { current = before }
}

package wire

import (
	"fmt"
	"io"
	"math/rand/v2"
)

// FaultKind is what a fault does to the bytes at its place.
type FaultKind string

// Kinds of faults.
const (
	Corrupted  FaultKind = "corrupted"  // one byte has another value
	CutOut     FaultKind = "cut"        // bytes are missing
	Duplicated FaultKind = "duplicated" // bytes come twice
	Reordered  FaultKind = "reordered"  // a block comes after the one that follows it
)

// Fault is one change of a stream.
type Fault struct {
	Kind FaultKind
	At   int64 // place of the first byte that is concerned in the stream as it was sent
	Len  int   // bytes concerned: of a reordering those of both blocks
}

// String says what happened where.
func (f Fault) String() string { return fmt.Sprintf("%d bytes %s at %d", f.Len, f.Kind, f.At) }

// Faults are the faults of a wire. Rates are chances per byte that such a fault begins
// there: 0.001 is one fault in about 1000 bytes. The same seed, rates and bytes give the
// same faults on every machine.
type Faults struct {
	Seed                             uint64
	Corrupt, Cut, Duplicate, Reorder float64
}

// longest are the most bytes that one fault concerns; a reordering concerns two blocks.
const longest = 64

// some reports whether there are faults at all.
func (f Faults) some() bool { return f.Corrupt > 0 || f.Cut > 0 || f.Duplicate > 0 || f.Reorder > 0 }

// Apply sends a stream over the wire: what arrives, and what happened to it in order.
// Without rates what arrives is a copy of the stream.
func (f Faults) Apply(stream []byte) (out []byte, places []Fault) {
	s := f.state()
	out = s.apply(stream)
	return out, s.places
}

// Writer returns a writer that passes what is written to it on with faults, and a function
// that lists those until then. Blocks are not reordered over the borders of writes.
func (f Faults) Writer(w io.Writer) (io.Writer, func() []Fault) {
	s := f.state()
	return &faulty{w, s}, func() []Fault { return s.places }
}

// faulty is the writer of [Faults.Writer].
type faulty struct {
	w io.Writer
	s *state
}

func (f *faulty) Write(p []byte) (int, error) {
	if _, err := f.w.Write(f.s.apply(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// state is a wire in the middle of a stream.
type state struct {
	Faults
	rnd    *rand.Rand
	sent   int64 // bytes of the stream so far
	places []Fault
}

func (f Faults) state() *state {
	return &state{Faults: f, rnd: rand.New(rand.NewPCG(f.Seed, 0x77697265))}
}

// apply sends the next bytes.
func (s *state) apply(p []byte) []byte {
	out := make([]byte, 0, len(p)+len(p)/8)
	for i := 0; i < len(p); {
		n := 1 // bytes of p that this step consumes
		rest := len(p) - i
		x := s.rnd.Float64()
		hit := func(rate float64) bool {
			x -= rate
			return x < 0
		}
		switch {
		case hit(s.Corrupt):
			s.note(Corrupted, i, 1)
			out = append(out, p[i]^s.pattern())
		case hit(s.Cut):
			n = s.length(rest)
			s.note(CutOut, i, n)
		case hit(s.Duplicate):
			n = s.length(rest)
			s.note(Duplicated, i, n)
			out = append(append(out, p[i:i+n]...), p[i:i+n]...)
		case rest >= 2 && hit(s.Reorder):
			a := s.length(rest / 2)
			b := s.length(rest - a)
			n = a + b
			s.note(Reordered, i, n)
			out = append(append(out, p[i+a:i+n]...), p[i:i+a]...)
		default:
			out = append(out, p[i])
		}
		i += n
	}
	s.sent += int64(len(p))
	return out
}

func (s *state) note(k FaultKind, i, n int) {
	s.places = append(s.places, Fault{k, s.sent + int64(i), n})
}

// pattern is what a byte is changed by: as often a single bit as anything.
func (s *state) pattern() byte {
	if s.rnd.IntN(2) == 0 {
		return 1 << s.rnd.IntN(8)
	}
	return byte(1 + s.rnd.IntN(255))
}

// length draws how many bytes a fault concerns, short ones more often, 1 to most.
func (s *state) length(most int) int {
	n := 1 + s.rnd.IntN(1<<s.rnd.IntN(7))
	return min(n, most, longest)
}

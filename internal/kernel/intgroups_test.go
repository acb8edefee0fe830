package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/workers"
)

// TestIntGroups compares convolutions of groups of 8-bit numbers with plain Go, in both layouts and orders, for each cut of the work.
func TestIntGroups(t *testing.T) {
	everySet(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			defer pool.Close()
			for range rounds(150) {
				s := anyConv(r)
				cg := []int{2, 4, 4, 8, 8, 12, 16, 20, 40}[r.IntN(9)]
				s.Groups = 16 / min(16, cg) * (1 + r.IntN(6))
				s.C, s.OC = cg*s.Groups, cg*s.Groups
				if r.IntN(3) == 0 {
					s.OC = s.Groups * (1 + r.IntN(50))
				}
				if s.Groups == 1 {
					continue
				}
				testIntGroups(t, r, pool, s, plain)
			}
		}
	})
}

func testIntGroups(t *testing.T, r *rand.Rand, pool *workers.Pool, s ConvShape, plain func(func())) {
	t.Helper()
	k, area := s.C/s.Groups*s.KH*s.KW, s.OH*s.OW
	x, w, signed := bytesOf(r, s.N*s.H*s.W*s.C), weightsOf(r, s.OC*k), r.IntN(2) == 0
	zero := value(uint8(r.Uint32()), signed)
	want := make([]int32, s.outputs())
	make1 := func(lastIn, lastOut bool) *ConvSums {
		c := NewConvSums(s, lastIn, lastOut)
		SetSumWeights(c, w, 0)
		c.SetZero(signed, zero)
		return c
	}
	plain(func() { make1(false, false).Run(pool, x, want) })
	last, lastWant := transpose(x, s.N, s.C, s.H*s.W), transpose(want, s.N, s.OC, area)
	q := Rescale{Zero: value(128, signed) + 128, Lo: 3, Hi: 120, Signed: signed, Bias: randomWeights(r, s.OC)}
	for range s.OC {
		q.Scales = append(q.Scales, 0.0001+r.Float32()*0.002)
	}
	q.Prepare()
	codes := make([]uint8, len(want))
	for i, v := range want {
		codes[i] = q.one(v, i/area%s.OC)
	}
	for _, lastIn := range []bool{false, true} {
		for _, lastOut := range []bool{false, true} {
			if lastIn && !s.Lasts() || lastOut && !s.MakesLast() {
				continue
			}
			in, sums, out := x, want, codes
			if lastIn {
				in = last
			}
			if lastOut {
				sums, out = lastWant, transpose(codes, s.N, s.OC, area)
			}
			c := make1(lastIn, lastOut)
			for range 2 {
				if !lastOut {
					got := make([]int32, len(want))
					if c.Run(pool, in, got); !slices.Equal(got, sums) {
						t.Fatalf("%+v, %s, channels last %t: sums differ", s, c.Name(), lastIn)
					}
				}
				if c.Vectors() {
					got := make([]uint8, len(want))
					if c.Codes(pool, in, got, &q); !slices.Equal(got, out) {
						t.Fatalf("%+v, %s, channels last %t and %t: codes differ", s, c.Name(), lastIn, lastOut)
					}
				}
				SetSumWeights(c, w, 0) // again, in the way for those that change
			}
		}
	}
	wn := make([]int16, len(w))
	for i, v := range transpose(w, s.OC, s.C/s.Groups, s.KH*s.KW) {
		wn[i] = int16(v)
	}
	got := make([]int32, len(want))
	if !signed {
		NewConvQ[uint8](s, wn, 0, zero, anyRequant(r, s.OC)).Sums(pool, last, zero, got)
	} else {
		NewConvQ[int8](s, wn, 0, zero, anyRequant(r, s.OC)).Sums(pool, asInt8(last), zero, got)
	}
	if !slices.Equal(got, lastWant) {
		t.Fatalf("%+v, channels last: sums differ", s)
	}
}

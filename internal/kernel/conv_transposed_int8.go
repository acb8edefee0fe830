package kernel

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TransposedQ is a transposed convolution of 8-bit numbers over [N,H,W,C], in vectors: a convolution for each run of phases, which writes its
// results where they belong.
type TransposedQ[T int8 | uint8] struct {
	parts []transposedPart[T]
}

// transposedPart is a run of phases, whose results begin at place at.
type transposedPart[T int8 | uint8] struct {
	conv *ConvQ[T]
	at   int
}

// Below fewChannels output channels phases leave most of a register empty. Where products become codes in registers they are faster for all that,
// unless there are more than fewInputs channels to multiply by nothing.
const (
	fewChannels = 8
	fewInputs   = 128
)

// usePhases tells whether phases are faster than [TransposedSums].
func (s *TransposedShape) usePhases(f *simd.Ints) bool {
	return s.OC >= fewChannels || f.HasCodes() && s.C <= fewInputs
}

// NewTransposedQ prepares weights [OC,KH,KW,C], whose zero point is zeroW, for input of a zero point; nil without vectors, and where
// [TransposedSums] are faster.
func NewTransposedQ[T int8 | uint8, W Weight](s TransposedShape, w []W, zeroW, zero int32, q Requant) *TransposedQ[T] {
	if f := simd.IntKernels(); f == nil || !s.usePhases(f) || s.C == 0 || s.N*s.H*s.W*s.OC*s.OH*s.OW == 0 {
		return nil
	}
	s.columnAsRow()
	high := SinglePhases(PhaseRuns(s.OH, s.KH, s.StrideH, 1, s.PadT), s.OH, s.StrideH)
	wide := PhaseRuns(s.OW, s.KW, s.StrideW, 1, s.PadL)
	if s.OW%s.StrideW != 0 {
		wide = SinglePhases(wide, s.OW, s.StrideW)
	}
	t := &TransposedQ[T]{}
	for _, y := range high {
		for _, x := range wide {
			conv := ConvShape{
				N: s.N, C: s.C, H: s.H, W: s.W, OC: x.N * s.OC, OH: y.Out, OW: x.Out, KH: y.Kernel, KW: x.Kernel,
				StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: y.Pad, PadL: x.Pad,
				place: placement{step: s.StrideW * s.OC, line: s.StrideH * s.OW * s.OC, image: s.OH * s.OW * s.OC},
			}
			own := q
			if q.Bias != nil {
				own.Bias = slices.Repeat(q.Bias, x.N)
			}
			if len(q.Mul) > 1 {
				own.Mul = slices.Repeat(q.Mul, x.N)
			}
			c := NewConvQ[T](conv, phaseFilter(&s, w, zeroW, &y, &x), zeroW, zero, own)
			t.parts = append(t.parts, transposedPart[T]{c, (y.First*s.OW + x.First) * s.OC})
		}
	}
	return t
}

// phaseFilter are the weights [phases·OC,KH,KW,C] of phases of both axes; zero stands where there is none.
func phaseFilter[W Weight](s *TransposedShape, w []W, zero int32, y, x *PhaseRun) []W {
	own := make([]W, 0, x.N*s.OC*y.Kernel*x.Kernel*s.C)
	none := slices.Repeat([]W{W(zero)}, s.C)
	for _, taps := range x.Taps {
		for o := range s.OC {
			for _, ky := range y.Taps[0] {
				for _, kx := range taps {
					if ky < 0 || kx < 0 {
						own = append(own, none...)
						continue
					}
					own = append(own, w[((o*s.KH+ky)*s.KW+kx)*s.C:][:s.C]...)
				}
			}
		}
	}
	return own
}

// Name is the name of the kernel.
func (t *TransposedQ[T]) Name() string { return t.parts[0].conv.Name() }

// Run convolves x into y.
func (t *TransposedQ[T]) Run(p *workers.Pool, x, y []T) {
	for i := range t.parts {
		t.parts[i].conv.Run(p, x, y[t.parts[i].at:])
	}
}

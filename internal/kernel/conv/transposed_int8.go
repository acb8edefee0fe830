package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TransposedInt8 is an 8-bit transposed convolution over [N,H,W,C] with SIMD kernels: one
// convolution for each run of phases, which writes its outputs in place.
type TransposedInt8[T int8 | uint8] struct {
	parts []transposedPart[T]
}

// transposedPart is a run of phases, whose outputs begin at offset at.
type transposedPart[T int8 | uint8] struct {
	conv *Int8[T]
	at   int
}

// With fewer than fewChannels output channels, phases leave most of a register empty. They are
// still faster if requantisation is fused, unless more than fewInputs channels are multiplied by
// padding.
const (
	fewChannels = 8
	fewInputs   = 128
)

// usePhases reports whether phases are faster than [TransposedSums].
func (s *TransposedShape) usePhases(f *simd.Ints) bool {
	return s.OC >= fewChannels || f.HasRequantised() && s.C <= fewInputs
}

// NewTransposedInt8 prepares weights [OC,KH,KW,C] with zero point zeroW, for input with zero point
// zero; nil without SIMD or if [TransposedSums] is faster.
func NewTransposedInt8[T int8 | uint8, W quantise.Weight](s TransposedShape, w []W, zeroW, zero int32, q quantise.Requant) *TransposedInt8[T] {
	if f := simd.IntKernels(); f == nil || !s.usePhases(f) || s.C == 0 || s.N*s.H*s.W*s.OC*s.OH*s.OW == 0 {
		return nil
	}
	s.columnAsRow()
	high := SinglePhases(PhaseRuns(s.OH, s.KH, s.StrideH, 1, s.PadT), s.OH, s.StrideH)
	wide := PhaseRuns(s.OW, s.KW, s.StrideW, 1, s.PadL)
	if s.OW%s.StrideW != 0 {
		wide = SinglePhases(wide, s.OW, s.StrideW)
	}
	t := &TransposedInt8[T]{}
	for _, y := range high {
		for _, x := range wide {
			conv := Shape{
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
			c := NewInt8[T](conv, phaseFilter(&s, w, zeroW, &y, &x), zeroW, zero, own)
			t.parts = append(t.parts, transposedPart[T]{c, (y.First*s.OW + x.First) * s.OC})
		}
	}
	return t
}

// phaseFilter returns the weights [phases·OC,KH,KW,C] of phases of both axes; missing ones are
// zero.
func phaseFilter[W quantise.Weight](s *TransposedShape, w []W, zero int32, y, x *PhaseRun) []W {
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

// Name returns the kernel name.
func (t *TransposedInt8[T]) Name() string { return t.parts[0].conv.Name() }

// Run convolves x into y.
func (t *TransposedInt8[T]) Run(p *workers.Pool, x, y []T) {
	for i := range t.parts {
		t.parts[i].conv.Run(p, x, y[t.parts[i].at:])
	}
}

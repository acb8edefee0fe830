package conv

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestConvInt16 compares 16-bit convolutions with their definition: padding, strides, dilations,
// odd and even window rows, several images.
func TestConvInt16(t *testing.T) {
	pool := workers.New(3, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(7, 4))
	taken := map[simd.Set]int{}
	for i := range 200 {
		s := Shape{N: 1 + r.IntN(2), H: 1 + r.IntN(9), W: 1 + r.IntN(80), C: 1 + r.IntN(20), OC: 1 + r.IntN(70), KH: 1 + r.IntN(4), KW: 1 + r.IntN(4), Groups: 1}
		s.StrideH, s.StrideW, s.DilH, s.DilW = 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(2)
		if i%3 == 1 {
			s.Groups = 1 + r.IntN(9)
			s.C, s.OC = s.Groups*(1+r.IntN(9)), s.Groups*(1+r.IntN(9))
		}
		s.PadT, s.PadL = r.IntN(s.KH+1), r.IntN(s.KW+1)
		s.OH, s.OW = 1+r.IntN(9), 1+r.IntN(80)
		if i%4 == 0 { // in place
			s.PadT, s.PadL = 0, 0
			s.OH, s.OW = (s.H-(s.KH-1)*s.DilH-1)/s.StrideH+1, (s.W-(s.KW-1)*s.DilW-1)/s.StrideW+1
			if s.H < (s.KH-1)*s.DilH+1 || s.W < (s.KW-1)*s.DilW+1 {
				continue
			}
		}
		cg, og := s.C/s.Groups, s.OC/s.Groups
		w := randomWeights(r, s.OC*s.KH*s.KW*cg)
		x := make([]int16, s.N*s.H*s.W*s.C)
		for j := range x {
			if x[j] = int16(r.Uint32()); i%5 == 0 {
				x[j] = math.MinInt16
			}
		}
		q := &gemm.Requant16{Min: math.MinInt16, Max: math.MaxInt16, Mul: []fixed.Multiplier{fixed.FromReal(math.Ldexp(r.Float64(), -10-r.IntN(10)))}}
		if r.IntN(2) == 0 {
			for range s.OC {
				q.Bias = append(q.Bias, int64(int32(r.Uint32()))>>8)
			}
		}
		if len(q.Bias) > 0 && r.IntN(2) == 0 {
			for len(q.Mul) < s.OC {
				q.Mul = append(q.Mul, fixed.FromReal(math.Ldexp(r.Float64(), -10-r.IntN(10))))
			}
		}
		want := make([]int16, s.Outputs()+1)
		want[s.Outputs()] = 77
		for j := range s.Outputs() {
			n, oy, ox, o := j/s.OC/s.OW/s.OH, j/s.OC/s.OW%s.OH, j/s.OC%s.OW, j%s.OC
			var sum int64
			for k := range s.KH * s.KW * cg {
				ky, kx, ch := k/cg/s.KW, k/cg%s.KW, o/og*cg+k%cg
				if iy, ix := oy*s.StrideH-s.PadT+ky*s.DilH, ox*s.StrideW-s.PadL+kx*s.DilW; uint(iy) < uint(s.H) && uint(ix) < uint(s.W) {
					sum += int64(x[((n*s.H+iy)*s.W+ix)*s.C+ch]) * int64(w[o*s.KH*s.KW*cg+k])
				}
			}
			want[j] = q.One(sum, o)
		}
		sets.In(t, func(set simd.Set) {
			if simd.IntKernels() == nil {
				return
			}
			q := *q
			c := NewInt16(w, &q, s)
			if c == nil {
				return
			}
			taken[set]++
			got, workspace := make([]int16, s.Outputs()+1), make([]int16, c.ScratchSize())
			got[s.Outputs()] = 77
			for j := range workspace {
				workspace[j] = int16(r.Uint32())
			}
			if c.Run(pool, x, got, workspace); !slices.Equal(got, want) {
				t.Fatalf("%+v differs", s)
			}
		})
	}
	sets.In(t, func(set simd.Set) {
		if simd.IntKernels() != nil && taken[set] < 100 {
			t.Errorf("%d of 200 taken", taken[set])
		}
	})
}

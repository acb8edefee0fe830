package conv

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestStripsJoinedColumns compares depthwise convolutions with few channels, which combine several
// columns, with plain Go, bit for bit.
func TestStripsJoinedColumns(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(12, 7))
		beside := false
		for i := range sets.Rounds(150) {
			ch, k := []int{2, 4, 8}[i%3], []int{3, 5, 7}[r.IntN(3)]
			s := Shape{N: 1 + r.IntN(2), C: ch, OC: ch, KH: k, KW: k, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, OH: 1 + r.IntN(40), OW: 1 + r.IntN(40)}
			if i < 3 { // shapes that surely combine columns, with remaining ones
				s.KH, s.KW, s.OH, s.OW = 3, 3, 19, 21
			}
			s.PadT, s.PadL = r.IntN(s.KH), r.IntN(s.KW)
			s.H, s.W = max(1, s.OH+s.KH-1-s.PadT-r.IntN(s.KH)), max(1, s.OW+s.KW-1-s.PadL-r.IntN(s.KW))
			x, w := kernels.Values(r, true, s.N*s.H*s.W*ch), kernels.Values(r, true, s.KH*s.KW*ch)
			var bias []float32
			if r.IntN(2) == 0 {
				bias = kernels.Values(r, true, ch)
			}
			act := activation.Clamp{On: r.IntN(2) == 0, Min: -1, Max: 4}
			c := NewDepthwiseNHWC(s, w, bias, act)
			beside = beside || c.strips != nil && c.strips.joined > 0
			got, want := make([]float32, s.N*s.OH*s.OW*ch), make([]float32, s.N*s.OH*s.OW*ch)
			pool := workers.New(1+i%2*2, nil)
			c.Run(pool, x, got)
			pool.Close()
			plain(func() { NewDepthwiseNHWC(s, w, bias, act).Run(nil, x, want) })
			for j := range got {
				if math.Float32bits(got[j]) != math.Float32bits(want[j]) {
					t.Fatalf("%+v: value %d is %v, want %v", s, j, got[j], want[j])
				}
			}
		}
		if t.Name() == "TestStripsBeside/avx512" && !beside {
			t.Error("no columns went together")
		}
	})
}

// TestStripsOfPlanes compares depthwise convolutions over [N,C,H,W] of all widths, whose lines fill
// different numbers of registers and whose planes are computed together.
func TestStripsOfPlanes(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 8))
	for i := range sets.Rounds(600) {
		k, step, gap := 3+2*(i%3), 1+r.IntN(2), 1
		if step == 1 && r.IntN(4) == 0 {
			gap += r.IntN(4)
		}
		s := Shape{N: 1 + r.IntN(2), C: 1 + r.IntN(13), KH: k, KW: k, StrideH: step, StrideW: step, DilH: gap, DilW: gap, OH: 1 + r.IntN(12), OW: 1 + i%70}
		s.OC, s.Groups = s.C*(1+r.IntN(3)*r.IntN(2)), s.C
		s.PadT, s.PadL = r.IntN(k), r.IntN((k-1)*gap+1)
		s.H = max(1, (s.OH-1)*step+(k-1)*gap+1-s.PadT-r.IntN(k))
		s.W = max(1, (s.OW-1)*step+(k-1)*gap+1-s.PadL-r.IntN(k*gap))
		x, w := kernels.Values(r, false, s.N*s.H*s.W*s.C), kernels.Values(r, false, s.OC*k*k)
		var bias []float32
		if r.IntN(2) == 0 {
			bias = kernels.Values(r, false, s.OC)
		}
		act := activation.Clamp{On: r.IntN(2) == 0, Min: -1, Max: 4}
		want := make([]float32, s.Outputs())
		sets.Go(func() { NewNCHW(s, w, bias, act).Run(nil, x, want) })
		sets.In(t, func(simd.Set) {
			got := make([]float32, s.Outputs())
			NewNCHW(s, w, bias, act).Run(nil, x, got)
			sets.Agree(t, s, got, want)
		})
	}
}

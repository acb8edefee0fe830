package conv

import (
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
)

// TestEmpty runs every convolution with each extent at zero in turn, and with several: models
// whose stored shapes are placeholders cause that. If there is an output, it is the bias.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for mask := range 1 << 6 {
			s := Shape{N: 2, C: 2, H: 5, W: 4, OC: 4, OH: 5, OW: 4, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1, Groups: 1}
			for i, d := range []*int{&s.N, &s.C, &s.OC, &s.OH, &s.OW, &s.H} {
				if mask>>i&1 == 1 {
					*d = 0
				}
			}
			for _, groups := range []int{1, 2} {
				s.Groups = groups
				name := fmt.Sprintf("%d threads, %+v", threads, s)
				empty(t, name, pool, s)
			}
		}
	}
}

func empty(t *testing.T, name string, pool *workers.Pool, s Shape) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s: %v", name, r)
		}
	}()
	bias := make([]float32, s.OC)
	for i := range bias {
		bias[i] = float32(i + 1)
	}
	x, w := make([]float32, s.N*s.C*s.H*s.W), make([]float32, s.OC*(s.C/s.Groups)*s.KH*s.KW)
	y := make([]float32, s.N*s.OC*s.OH*s.OW)
	NewNHWC(s, w, bias, activation.Clamp{}).Run(pool, x, y)
	for i, v := range y {
		if v != bias[i%s.OC] {
			t.Fatalf("%s: element %d is %v, want the bias %v", name, i, v, bias[i%s.OC])
		}
	}
	NewNCHW(s, w, bias, activation.Clamp{}).Run(pool, x, y)
	for i, v := range y {
		if want := bias[i/(s.OH*s.OW)%s.OC]; v != want {
			t.Fatalf("%s: element %d is %v, want the bias %v", name, i, v, want)
		}
	}
	if s.C > 0 {
		NewDepthwiseNHWC(s, make([]float32, s.KH*s.KW*s.OC), bias, activation.Clamp{}).Run(pool, x, y)
	}
	q := quantise.Requant{Mul: []fixed.Multiplier{fixed.FromReal(0.5)}, Min: -128, Max: 127}
	xq, yq, sums := make([]int8, len(x)), make([]int8, len(y)), make([]int32, len(y))
	conv := NewInt8[int8](s, make([]int16, len(w)), 0, 3, q)
	conv.Run(pool, xq, yq)
	conv.Sums(pool, xq, 3, sums)
	c := NewSums(s, false, false)
	SetSumWeights(c, make([]int32, len(w)), 0)
	c.SetZero(true, 3)
	c.Run(pool, make([]uint8, len(x)), sums)
	for _, k := range []int{0, 3} {
		gemm.Multiply(pool, gemm.Params{M: s.N, N: s.OC, K: k}, make([]float32, s.N*k), make([]float32, s.OC*k), make([]float32, s.N*s.OC))
		p := gemm.NewPackedInt8(s.OC, k)
		p.Fill(make([]int32, s.OC*k), k, 1)
		rows := make([]int32, s.N*s.OC)
		gemm.MultiplyInt8(pool, s.N, make([]uint8, s.N*k), make([]gemm.ByteTable, 1), p, rows)
		quantise.RequantRows(pool, make([]int8, len(rows)), rows, s.OC, &q)
	}
}

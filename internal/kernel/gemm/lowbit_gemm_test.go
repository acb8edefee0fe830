package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"pgregory.net/rapid"
)

// TestLowBit compares low-bit GEMM with float32 GEMM over the same weights. The order of sums
// differs, so results must stay within the bound of rounding each product and each sum.
func TestLowBit(t *testing.T) {
	t.Parallel()
	if simd.LowBitKernels() == nil {
		t.Skip("no kernels")
	}
	pool := workers.New(3, nil)
	t.Cleanup(pool.Close)
	rapid.Check(t, func(t *rapid.T) {
		s := LowBitShape{
			Bits: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "bits"), Block: 16 * rapid.IntRange(1, 9).Draw(t, "block"),
			K: rapid.IntRange(1, 700).Draw(t, "k"), N: rapid.IntRange(1, 200).Draw(t, "n"),
		}
		rows := rapid.SampledFrom([]int{1, 2, 3, 4, 17, 70}).Draw(t, "rows")
		signed := rapid.Bool().Draw(t, "signed")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		blocks := (s.K + s.Block - 1) / s.Block
		line, middle := blocks*s.Block, 1<<(s.Bits-1)
		at := rapid.IntRange(0, 3).Draw(t, "at")
		codes, scales := make([]uint8, at+s.N*line*s.Bits/8)[at:], make([]float32, s.N*blocks)
		for i := range codes {
			codes[i] = uint8(r.Uint32())
		}
		var zeros []int8
		if rapid.Bool().Draw(t, "zeros") {
			zeros = make([]int8, len(scales))
		}
		for i := range scales {
			if scales[i] = float32(r.NormFloat64()); zeros != nil {
				zeros[i] = int8(r.IntN(2*middle) - middle)
			}
		}
		x, bias := make([]float32, rows*s.K), make([]float32, s.N)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for i := range bias {
			bias[i] = float32(r.NormFloat64())
		}
		m := NewLowBitMatrix(s, codes, signed, scales, zeros)
		if m == nil {
			t.Fatal("there is a kernel for the matrix")
		}
		offsets := drawOffsets(t, r, m)
		act := activation.Clamp{On: rapid.Bool().Draw(t, "clamped"), Min: -9, Max: 20}
		want, size := make([]float64, rows*s.N), make([]float64, rows*s.N)
		for i := range want {
			row, n := i/s.N, i%s.N
			want[i], size[i] = float64(bias[n]), math.Abs(float64(bias[n]))
			for k := range s.K {
				e := n*line + k
				q := int(codes[e*s.Bits/8]) >> (e * s.Bits % 8) & (2*middle - 1)
				if signed && q >= middle {
					q -= 2 * middle
				} else if !signed {
					q -= middle
				}
				zero := 0
				if zeros != nil {
					zero = int(zeros[n*blocks+k/s.Block])
				}
				v := float64(x[row*s.K+k]) * float64(scales[n*blocks+k/s.Block])
				offset := float64(x[row*s.K+k]) * float64(offsets[n*blocks+k/s.Block])
				want[i] += v*float64(q-zero) + offset
				size[i] += math.Abs(v)*float64(middle+max(zero, -zero)) + math.Abs(offset)
			}
			if act.On {
				want[i] = min(max(want[i], float64(act.Min)), float64(act.Max))
			}
		}
		for name, run := range map[string]func(p *workers.Pool, rows int, x, y, bias []float32, act activation.Clamp){"as it is": m.Run, "of floats": m.runFloat} {

			got, alone := make([]float32, rows*s.N), make([]float32, rows*s.N)
			run(pool, rows, x, got, bias, act)
			run(nil, rows, x, alone, bias, act)
			for i := range got {
				if d := math.Abs(float64(got[i]) - want[i]); !(d <= size[i]*float64(s.K+8)*0x1p-24) {
					t.Fatalf("element %d of a product %s is %v, want %v", i, name, got[i], want[i])
				}
				if got[i] != alone[i] {
					t.Fatalf("element %d of a product %s is %v with one thread, %v with three", i, name, alone[i], got[i])
				}
			}
		}
	})
}

// drawOffsets sets offsets of a matrix, or none, and returns them.
func drawOffsets(t *rapid.T, r *rand.Rand, m *LowBitMatrix) []float32 {
	offsets := make([]float32, m.N*m.blocks)
	if rapid.Bool().Draw(t, "offsets") {
		for i := range offsets {
			offsets[i] = float32(r.NormFloat64())
		}
		m.SetOffsets(offsets)
	}
	return offsets
}

// offsetTerms is the number of activations that are summed with rounding.
func offsetTerms(m *LowBitMatrix) int {
	if m.offsets == nil {
		return 0
	}
	return m.Block
}

// TestLowBitInt8 checks that rounded rows give the results of the values that they represent, for
// any number of rows and with or without kernels for 8-bit rows. Blocks with infinities, NaN or
// only the smallest values are not rounded.
func TestLowBitInt8(t *testing.T) {
	t.Parallel()
	if simd.LowBitKernels() == nil {
		t.Skip("no kernels")
	}
	pool := workers.New(3, nil)
	t.Cleanup(pool.Close)
	rapid.Check(t, func(t *rapid.T) {
		s := LowBitShape{
			Bits: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "bits"), Block: 16 * rapid.IntRange(1, 9).Draw(t, "block"),
			K: rapid.IntRange(1, 500).Draw(t, "k"), N: rapid.IntRange(1, 200).Draw(t, "n"),
		}
		rows := rapid.IntRange(1, 60).Draw(t, "rows")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		blocks, middle := (s.K+s.Block-1)/s.Block, 1<<(s.Bits-1)
		line := blocks * s.Block
		codes, scales := make([]uint8, s.N*line*s.Bits/8), make([]float32, s.N*blocks)
		for i := range codes {
			codes[i] = uint8(r.Uint32())
		}
		var zeros []int8
		if rapid.Bool().Draw(t, "zeros") {
			zeros = make([]int8, len(scales))
		}
		for i := range scales {
			if scales[i] = float32(r.NormFloat64()); zeros != nil {
				zeros[i] = int8(r.IntN(2*middle) - middle)
			}
		}
		x, bias := make([]float32, rows*s.K), make([]float32, s.N)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		bias[0] = 3
		odd := rapid.SampledFrom([]float32{1, 0, 1e-44, float32(math.Inf(1)), float32(math.NaN())}).Draw(t, "odd")
		for i := range min(s.K, s.Block) {
			if odd != 1 {
				x[i] = odd
			}
		}
		m := NewLowBitMatrix(s, codes, false, scales, zeros)
		if m == nil {
			t.Fatal("there is a kernel for the matrix")
		}
		offsets := drawOffsets(t, r, m)
		got, alone := make([]float32, rows*s.N), make([]float32, rows*s.N)
		m.RunInt8(pool, rows, x, got, bias, activation.Clamp{})
		m.RunInt8(nil, rows, x, alone, bias, activation.Clamp{})
		rounded := odd == 0 || odd == 1
		for i := range got {
			if got[i] != alone[i] && (got[i] == got[i] || alone[i] == alone[i]) {
				t.Fatalf("element %d is %v with one thread, %v with three", i, alone[i], got[i])
			}
			row, n := i/s.N, i%s.N
			want, size := float64(bias[n]), math.Abs(float64(bias[n]))
			for b := range blocks {
				from := x[row*s.K+b*s.Block : row*s.K+min((b+1)*s.Block, s.K)]
				top := float32(0)
				for _, v := range from {
					top = max(top, v, -v)
				}
				for k, v := range from {
					e := n*line + b*s.Block + k
					q := int(codes[e*s.Bits/8])>>(e*s.Bits%8)&(2*middle-1) - middle
					if zeros != nil {
						q -= int(zeros[n*blocks+b])
					}
					scale := float64(scales[n*blocks+b]) * float64(top/127)
					if row == 0 && b == 0 && !rounded {
						want += float64(scales[n*blocks+b]) * float64(q) * float64(v)
					} else if top > 0 {
						want += scale * float64(q) * math.RoundToEven(float64(v*(127/top)))
					}
					offset := float64(offsets[n*blocks+b])
					if row == 0 && b == 0 && !rounded {
						want += offset * float64(v)
					} else if top > 0 {
						want += offset * float64(top/127) * math.RoundToEven(float64(v*(127/top)))
					}
					size += math.Abs(scale)*float64(3*middle)*127 + math.Abs(offset*float64(top))
				}
			}
			// Products and sums of a block are exact; denormal ones lose digits.
			if math.IsNaN(size) || math.IsInf(size, 0) {
				if got[i]-got[i] == 0 {
					t.Fatalf("element %d is %v, want a number that is not finite", i, got[i])
				}
				continue
			}
			if !(math.Abs(float64(got[i])-want) <= size*float64(blocks+8+offsetTerms(m))*0x1p-24+0x1p-126) {
				t.Fatalf("element %d is %v, want %v", i, got[i], want)
			}
		}
	})
}

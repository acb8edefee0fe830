package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Test16BitWeights checks that GEMM with 16-bit weights is bit-exact with the same weights in
// float32.
func Test16BitWeights(t *testing.T) {
	round := map[simd.PanelType]func(v float32) float32{
		simd.WideFloat16:  func(v float32) float32 { return tensor.F16ToF32(tensor.F32ToF16(v)) },
		simd.WideBFloat16: func(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ 0xFFFF) },
	}
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			f := simd.FloatKernels()
			if f == nil || !f.HasNarrow() {
				t.Skip("no loops for them")
			}
			pool := workers.New(2, nil)
			defer pool.Close()
			r := rand.New(rand.NewPCG(1, 2))
			for n := range 60 {
				for kind, round := range round {
					g := Params{M: 1 + r.IntN(3)*r.IntN(150), N: 1 + r.IntN(400), Exact: r.IntN(2) == 0, Accumulate: r.IntN(3) == 0, TransB: r.IntN(2) == 0}
					g.K = narrowMin/g.N + 1 + r.IntN(200)
					if n%2 == 0 {
						g.M = 1
					}
					a, b, c := make([]float32, g.M*g.K), make([]float32, g.K*g.N), make([]float32, g.M*g.N)
					bias := make([]float32, g.N)
					for _, v := range [][]float32{a, b, c, bias} {
						for i := range v {
							v[i] = r.Float32()*2 - 1
						}
					}
					for i := range b {
						// Two values that only this format represents, one of them subnormal.
						b[i] = round(b[i])
					}
					b[0], b[len(b)-1] = round(1.0009765625), 0x1p-24
					if kind == simd.WideBFloat16 {
						b[0], b[len(b)-1] = 0x1p100, float32(math.Inf(1))
					}
					if r.IntN(2) == 0 {
						g.BiasN = bias
					}
					g.Act = activation.Clamp{On: r.IntN(2) == 0, Min: -0.5, Max: 3}
					p := PackB(g.K, g.N, b, 0, g.TransB)
					if p.narrow != kind || p.data != nil {
						t.Fatalf("packed as %d, want %d", p.narrow, kind)
					}
					p.sparse = nil
					whole := &PackedB{k: g.K, n: g.N, f: f, data: make([]float32, scratch.RoundUp(g.N, f.Cols)*g.K)}
					whole.fill(b, 0, g.TransB)
					want := append([]float32(nil), c...)
					// the same in float32 may not be faster split
					if k := chooseSplitBF16(f, &g, kind); k != nil {
						SplitBF16(pool, k, f, &g, a, whole.panels(), want)
					} else {
						MultiplyPacked(pool, g, a, whole, want)
					}
					MultiplyPacked(pool, g, a, p, c)
					for i := range c {
						if math.Float32bits(c[i]) != math.Float32bits(want[i]) && (c[i] == c[i] || want[i] == want[i]) {
							t.Fatalf("%d by %d by %d, kind %d: value %d is %v, want %v", g.M, g.N, g.K, kind, i, c[i], want[i])
						}
					}
				}
			}
		})
	}
}

// Test16BitWeightsFallback checks that weights stay in float32 if a single value, at any index,
// needs more bits.
func Test16BitWeightsFallback(t *testing.T) {
	t.Parallel()
	f := simd.FloatKernels()
	for _, at := range []int{0, narrowMin - 1, narrowMin/2 + 3} {
		b := make([]float32, narrowMin)
		for i := range b {
			b[i] = float32(i % 1000)
		}
		for _, v := range []float32{0.1, math.Float32frombits(0x7fc00001)} {
			if b[at] = v; narrowOf(f, b, len(b)) != simd.WideFloat32 {
				t.Errorf("%v at %d fits 16 bits", v, at)
			}
		}
	}
}

// TestPackConstant checks that PackConstant packs like PackB of the full matrix.
func TestPackConstant(t *testing.T) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			for _, v := range []float32{0.02, 0.5, 0x1p100, -3, float32(math.Inf(1))} {
				for _, s := range [][2]int{{1, 1}, {7, 5}, {300, 32}, {301, 203}, {128, 512}} {
					k, n := s[0], s[1]
					b := make([]float32, k*n)
					scratch.Fill(b, v)
					for _, trans := range []bool{false, true} {
						want, got := PackB(k, n, b, 0, trans), PackConstant(k, n, v)
						if !slices.Equal(got.data, want.data) || !slices.Equal(got.codes, want.codes) || got.narrow != want.narrow || want.sparse != nil {
							t.Errorf("%d by %d of %v, transposed %t: packed in another way", k, n, v, trans)
						}
					}
				}
			}
		})
	}
}

// TestLost compares the bits lost in 16-bit formats with a round trip conversion.
func TestLost(t *testing.T) {
	e := simd.ElementKernels()
	if e == nil {
		t.Skip("no vectors")
	}
	r := rand.New(rand.NewPCG(4, 8))
	special := []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f802000, 1, 0x33000000, 0x33800000, 0x477fe000, 0x47800000, 0x387fc000}
	for n := range 300 {
		v := make([]float32, n)
		half, brain := uint32(0), uint32(0)
		for i := range v {
			bits := r.Uint32() &^ (1<<(13+r.IntN(4)) - 1)
			if r.IntN(4) == 0 {
				bits = special[r.IntN(len(special))]
			}
			v[i] = math.Float32frombits(bits)
			var code [1]uint16
			var back [1]float32
			e.ToHalves(code[:], v[i:i+1])
			e.FromHalves(back[:], code[:])
			half |= bits ^ math.Float32bits(back[0])
			brain |= bits & 0xffff
		}
		if h, b := e.LostBits(v); h != half || b != brain {
			t.Fatalf("%d numbers: %#x and %#x, want %#x and %#x", n, h, b, half, brain)
		}
	}
}

package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

func TestInnerProducts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		a, b := kernels.Wholes(r, n), kernels.Wholes(r, n+r.IntN(3))
		want := float32(0)
		for i := range a {
			want += a[i] * b[i]
		}
		if got := vectors.Dot(a, b); got != want {
			t.Errorf("%d elements: %v, want %v", n, got, want)
		}
		if got := vectors.Dot(b, a); got != want {
			t.Errorf("%d elements, the longer first: %v, want %v", n, got, want)
		}
		for rows := range 20 {
			ld := n + r.IntN(3)
			m := kernels.Wholes(r, max(0, rows-1)*ld+n)
			dst := kernels.Wholes(r, rows)
			sums := slices.Clone(dst)
			for i := range sums {
				for k, v := range a {
					sums[i] += v * m[i*ld+k]
				}
			}
			dotRows(dst, a, m, ld)
			if !slices.Equal(dst, sums) {
				t.Fatalf("%d rows of %d: %v, want %v", rows, n, dst, sums)
			}
		}
	}
	for n := range 8 {
		a, b, d := kernels.Wholes(r, n), kernels.Wholes(r, n), make([]float32, 2*n)
		scratch.Interleave(d, a, b)
		for i := range a {
			if d[2*i] != a[i] || d[2*i+1] != b[i] {
				t.Fatalf("%v and %v make %v", a, b, d)
			}
		}
	}
}

// TestPanels checks that the micro-kernels multiply panels of any length, and that packing pads
// panels with zeros.
func TestPanels(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for k := range 40 {
		a, b, c := kernels.Wholes(r, 2*k), kernels.Wholes(r, 4*k), kernels.Wholes(r, 4*k)
		var want [8]float32
		for i := range k {
			for x := range 2 {
				for y := range 4 {
					want[4*x+y] += a[2*i+x] * b[4*i+y]
				}
			}
		}
		acc := [8]float32{9, 9, 9, 9, 9, 9, 9, 9}
		if Micro(k, a, b, &acc); acc != want {
			t.Fatalf("%d steps: %v, want %v", k, acc, want)
		}
		want = [8]float32{}
		for i := range k {
			for y := range 4 {
				want[y] += a[i] * b[4*i+y]
				want[4+y] += a[i] * c[4*i+y]
			}
		}
		if microRow(k, a, b, c, &acc); acc != want {
			t.Fatalf("%d steps of a row: %v, want %v", k, acc, want)
		}
		for n := 1; n < 10; n++ {
			for _, w := range []int{2, 4} {
				for _, trans := range []bool{false, true} {
					vec, elem := k+1, 1
					if trans {
						vec, elem = 1, n+2
					}
					src := kernels.Wholes(r, (n+2)*(k+2))
					dst := make([]float32, scratch.RoundUp(n, w)*k)
					for i := range dst {
						dst[i] = 99
					}
					Pack(dst, src, n, k, w, vec, elem)
					for j := range scratch.RoundUp(n, w) {
						for i := range k {
							want := float32(0)
							if j < n {
								want = src[j*vec+i*elem]
							}
							if got := dst[j/w*w*k+i*w+j%w]; got != want {
								t.Fatalf("%d vectors of %d in panels of %d: element %d of %d is %v, want %v", n, k, w, i, j, got, want)
							}
						}
					}
				}
			}
		}
	}
	for n := range 20 {
		for _, to := range []int{1, 2, 4} {
			if got := scratch.RoundUp(n, to); got < n || got%to != 0 || got-n >= to {
				t.Errorf("%d rounded up to %d is %d", n, to, got)
			}
		}
	}
}

// TestStrides multiplies parts of larger matrices and checks that the rest stays unchanged.
func TestStrides(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		g := Params{M: 1 + r.IntN(9), N: 1 + r.IntN(30), K: 1 + r.IntN(30), TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, Accumulate: r.IntN(2) == 0}
		ar, ac, br, bc := g.M, g.K, g.K, g.N
		if g.TransA {
			ar, ac = ac, ar
		}
		if g.TransB {
			br, bc = bc, br
		}
		g.LDA, g.LDB, g.LDC = ac+1+r.IntN(3), bc+1+r.IntN(3), g.N+1+r.IntN(3)
		if r.IntN(2) == 0 {
			g.Act = activation.Clamp{On: true, Min: -20, Max: []float32{Inf, 20}[r.IntN(2)]}
		}
		if r.IntN(2) == 0 {
			g.BiasM = kernels.Wholes(r, g.M)
		}
		if r.IntN(2) == 0 {
			g.BiasN = kernels.Wholes(r, g.N)
		}
		a, b, c := kernels.Wholes(r, ar*g.LDA), kernels.Wholes(r, br*g.LDB), kernels.Wholes(r, g.M*g.LDC)
		want := slices.Clone(c)
		for m := range g.M {
			for n := range g.N {
				v := float32(0)
				if g.Accumulate {
					v = c[m*g.LDC+n]
				}
				for k := range g.K {
					x, y := a[min(m*g.LDA+k, len(a)-1)], b[min(k*g.LDB+n, len(b)-1)]
					if g.TransA {
						x = a[k*g.LDA+m]
					}
					if g.TransB {
						y = b[n*g.LDB+k]
					}
					v += x * y
				}
				if g.BiasM != nil {
					v += g.BiasM[m]
				}
				if g.BiasN != nil {
					v += g.BiasN[n]
				}
				if g.Act.On {
					v = min(max(v, g.Act.Min), g.Act.Max)
				}
				want[m*g.LDC+n] = v
			}
		}
		packed, one := slices.Clone(c), slices.Clone(c)
		Multiply(pool, g, a, b, c)
		if !slices.Equal(c, want) {
			t.Fatalf("%+v: %v, want %v", g, c, want)
		}
		Multiply(nil, g, a, b, one)
		if !slices.Equal(one, want) {
			t.Fatalf("%+v without workers: %v, want %v", g, one, want)
		}
		MultiplyPacked(pool, g, a, PackB(g.K, g.N, b, g.LDB, g.TransB), packed)
		if !slices.Equal(packed, want) {
			t.Fatalf("%+v packed: %v, want %v", g, packed, want)
		}
	}
	// Empty multiplications write nothing.
	c := []float32{5}
	Multiply(pool, Params{M: 0, N: 1, K: 1}, nil, []float32{1}, c)
	Multiply(pool, Params{M: 1, N: 0, K: 1}, []float32{1}, nil, c)
	if c[0] != 5 {
		t.Errorf("c is %v", c)
	}
}

func TestGemmNames(t *testing.T) {
	defer simd.Use(simd.Go)()
	for _, c := range []struct {
		g    Params
		want string
	}{
		{Params{M: 3, N: 9, K: 9}, "thin"},
		{Params{M: 4, N: 9, K: 9}, "unpacked"},
		{Params{M: 3, N: 9, K: 9, TransA: true}, "unpacked"},
		{Params{M: 9, N: 9, K: 0}, "thin"},
		{Params{M: 9, N: 9, K: 0, TransA: true}, "thin"},
		{Params{M: 9, N: 9, K: 1}, "unpacked"},
	} {
		if got := Name(c.g); got != c.want {
			t.Errorf("%+v is %s, want %s", c.g, got, c.want)
		}
	}
}

// TestLanes checks that two sums in one float64 separate for all signs.
func TestLanes(t *testing.T) {
	const most = lane/2 - 1
	for _, lo := range []int32{0, 1, -1, 12345, -12345, most, -most} {
		for _, hi := range []int32{0, 1, -1, 999, -999, most, -most} {
			if l, h := lanes(float64(lo) + float64(hi)*lane); l != lo || h != hi {
				t.Errorf("%d and %d come apart as %d and %d", lo, hi, l, h)
			}
		}
	}
	defer simd.Use(simd.Go)()
	var b ByteTable
	for _, signed := range []bool{false, true} {
		for _, zero := range []int32{-128, 0, 3, 255} {
			b.Fill(signed, zero)
			for i, v := range b.Values {
				want := float64(kernels.Value(uint8(i), signed) - zero)
				if v != want {
					t.Fatalf("signed %v, zero %d: %d is %v, want %v", signed, zero, i, v, want)
				}
			}
		}
	}
}

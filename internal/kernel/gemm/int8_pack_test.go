package gemm

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"pgregory.net/rapid"
)

// TestFillQ checks that weights are packed equally from every type, from rows and from columns,
// by any number of threads.
func TestFillQ(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	t.Cleanup(pool.Close)
	rapid.Check(t, func(t *rapid.T) {
		n, k, m := rapid.IntRange(1, 150).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "k"), rapid.IntRange(1, 5).Draw(t, "m")
		if rapid.Bool().Draw(t, "long") {
			n, k = min(n, 5), k+rapid.IntRange(1, 40).Draw(t, "pieces")*transposeBlock/4
		}
		zero := rapid.OneOf(rapid.Just(int32(0)), rapid.Int32Range(-130, 130)).Draw(t, "zero")
		narrow := rapid.SliceOfN(rapid.Int8Range(-120, 120), n*k, n*k).Draw(t, "w")
		x := rapid.SliceOfN(rapid.Uint8(), m*k, m*k).Draw(t, "x")
		vec, elem := k, 1
		if rapid.Bool().Draw(t, "columns") {
			vec, elem = 1, n
		}
		lifted, short, bytes := make([]int32, n*k), make([]int16, n*k), make([]uint8, n*k)
		for i, v := range narrow {
			lifted[i], short[i], bytes[i] = int32(v)-zero, int16(v), uint8(int(v)+128)
		}
		tables := make([]ByteTable, 1)
		tables[0].Fill(false, 7)
		product := func(fill func(p *PackedInt8)) []int32 {
			p, y := NewPackedInt8(n, k), make([]int32, m*n)
			fill(p)
			MultiplyInt8(nil, m, x, tables, p, y)
			return y
		}
		want := make([]int32, m*n)
		for i := range m {
			for j := range n {
				for s := range k {
					want[i*n+j] += (int32(x[i*k+s]) - 7) * lifted[j*vec+s*elem]
				}
			}
		}
		for _, c := range []struct {
			name string
			fill func(p *PackedInt8)
		}{
			{"int32", func(p *PackedInt8) { p.Fill(lifted, vec, elem) }},
			{"int16", func(p *PackedInt8) { FillInt8(nil, p, short, zero, vec, elem) }},
			{"int8", func(p *PackedInt8) { FillInt8(pool, p, narrow, zero, vec, elem) }},
			{"uint8", func(p *PackedInt8) { FillInt8(pool, p, bytes, zero+128, vec, elem) }},
		} {
			if got := product(c.fill); !slices.Equal(got, want) {
				t.Fatalf("%s: got %v, want %v", c.name, got, want)
			}
		}
	})
}

// TestFits8 checks that the byte version agrees with the generic one.
func TestFits8(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Uint8(), 0, 20).Draw(t, "v")
		for zero := int32(-130); zero < 300; zero++ {
			signed, plain, wide := make([]int8, len(v)), make([]int32, len(v)), make([]int32, len(v))
			for i, x := range v {
				signed[i], plain[i], wide[i] = int8(x), int32(int8(x)), int32(x)
			}
			// A zero point outside 8 bits may be rejected.
			if got, want := FitsInt8(signed, zero), FitsInt8(plain, zero); got != want && (want && zero >= -128 && zero < 128 || got) {
				t.Fatalf("%v less %d: got %v, want %v", signed, zero, got, want)
			}
			if got, want := FitsInt8(v, zero), FitsInt8(wide, zero); got != want && (want && zero >= 0 && zero < 256 || got) {
				t.Fatalf("%v less %d: got %v, want %v", v, zero, got, want)
			}
		}
		words := rapid.SliceOfN(rapid.Int16Range(-127, 126), 0, 100).Draw(t, "words")
		if len(words) > 0 && rapid.Bool().Draw(t, "one more") {
			words[rapid.IntRange(0, len(words)-1).Draw(t, "place")] = rapid.SampledFrom([]int16{-32768, -129, -128, 127, 128, 256}).Draw(t, "word")
		}
		wide := make([]int32, len(words))
		for i, x := range words {
			wide[i] = int32(x)
		}
		if got, want := FitsInt8(words, 0), FitsInt8(wide, 0); got != want {
			t.Fatalf("%v: got %v, want %v", words, got, want)
		}
	})
}

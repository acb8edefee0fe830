package layout

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

func TestPackedRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]tensor.Type{tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2}).Draw(t, "type")
		n := rapid.IntRange(0, 40).Draw(t, "n")
		x, y := tensor.New(typ, n), tensor.New(typ, n)
		copy(x.Data, rapid.SliceOfN(rapid.Byte(), len(x.Data), len(x.Data)).Draw(t, "data"))
		wide := Unpack(x)
		Pack(y, wide)
		if diff := gocmp.Diff(wide, Unpack(y)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestUnpackSigns unpacks both nibbles with their signs.
func TestUnpackSigns(t *testing.T) {
	t.Parallel()
	x := &tensor.Tensor{Type: tensor.Int4, Shape: []int{3}, Data: []byte{0x8F, 0x07}}
	if got := tensor.Of[int8](Unpack(x)); !slices.Equal(got, []int8{-1, -8, 7}) {
		t.Error(got)
	}
}

// TestKeys checks that keys of every type sort like the elements.
func TestKeys(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	check := func(x *tensor.Tensor, want []int) {
		t.Helper()
		k, err := Keys(nil, x)
		if err != nil {
			t.Fatal(err)
		}
		at := make([]int, len(k))
		for i := range at {
			at[i] = i
		}
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(k[a], k[b]) })
		if diff := gocmp.Diff(want, at); diff != "" {
			t.Errorf("%v: %s", x.Type, diff)
		}
	}
	check(tensor.From(tensor.Float64, []int{8}, []float64{inf, math.NaN(), -1, math.Copysign(0, -1), 0, -inf, 5e-324, 2}), []int{5, 2, 3, 4, 6, 7, 0, 1})
	check(tensor.From(tensor.Float32, []int{4}, []float32{float32(math.NaN()), -2, float32(inf), -1}), []int{1, 3, 2, 0})
	check(tensor.From(tensor.Float16, []int{3}, []uint16{0x3c00, 0xbc00, 0x7e00}), []int{1, 0, 2})
	check(tensor.From(tensor.Int64, []int{3}, []int64{math.MaxInt64, math.MinInt64, -1}), []int{1, 2, 0})
	check(tensor.From(tensor.Int8, []int{3}, []int8{1, -128, -1}), []int{1, 2, 0})
	check(tensor.From(tensor.Uint64, []int{3}, []uint64{math.MaxUint64, 1 << 63, 3}), []int{2, 1, 0})
	check(&tensor.Tensor{Type: tensor.String, Shape: []int{4}, Strings: []string{"b", "", "ab", "b"}}, []int{1, 2, 0, 3})
}

// TestManyPositions checks indices that several threads resolve: same positions, and the first
// index out of range.
func TestManyPositions(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	x := &tensor.Tensor{Type: tensor.Int64, Shape: []int{50_000}}
	x.Alloc()
	v := tensor.Of[int64](x)
	for i := range v {
		v[i] = int64(i*7%2000) - 1000
	}
	got, err := Positions(pool, nil, x, 1000, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range got {
		if want := (int(v[i]) + 1000) % 1000; k != want {
			t.Fatalf("index %d is %d, want %d", i, k, want)
		}
	}
	v[30_000], v[49_000], v[12_345] = 1000, -1001, 5000
	if _, err := Positions(pool, nil, x, 1000, true); err == nil || err.Error() != "index 5000 is outside 1000 elements" {
		t.Errorf("got %v", err)
	}
}

// TestCoordinatesOfTypes checks the coordinates of non-zero elements for every type and line
// length.
func TestCoordinatesOfTypes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 1))
	for kind := tensor.Type(1); kind < 64; kind++ {
		// Float8E8M0 has no zero
		if !kind.IsNumber() && kind != tensor.Bool || kind.Bits() < 8 || kind == tensor.Float8E8M0 {
			continue
		}
		for _, shape := range [][]int{{0}, {1}, {700}, {3, 5}, {2, 1, 257}, {4, 0, 3}, {2, 256}, {9, 2, 3, 1}} {
			x := tensor.New(kind, shape...)
			rank, n := len(shape), x.Len()
			var want []int64
			for i := range n {
				if r.IntN(3) > 0 {
					continue
				}
				tensor.WriteFloat32(x, i, []float32{1})
				at := make([]int64, rank)
				for d, rest := rank-1, i; d >= 0; d-- {
					at[d] = int64(rest % shape[d])
					rest /= shape[d]
				}
				want = append(want, at...)
			}
			count, err := CountNonZero(x)
			if err != nil || count*rank != len(want) {
				t.Fatalf("%v %v: %d truths, want %d: %v", kind, shape, count, len(want)/rank, err)
			}
			rows, columns := make([]int64, len(want)), make([]int64, len(want))
			if err := errors.Join(NonZeroCoordinates(rows, x, rank, 1), NonZeroCoordinates(columns, x, 1, count)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(rows, want) {
				t.Fatalf("%v %v: %d, want %d", kind, shape, rows, want)
			}
			for k := range count {
				for d := range rank {
					if columns[d*count+k] != want[k*rank+d] {
						t.Fatalf("%v %v: element %d has index %d in dimension %d, want %d", kind, shape, k, columns[d*count+k], d, want[k*rank+d])
					}
				}
			}
		}
	}
}

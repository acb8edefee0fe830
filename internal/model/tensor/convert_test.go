package tensor

import (
	"math"
	"testing"
)

// TestHalves compares the short paths of half conversions with the careful ones.
func TestHalves(t *testing.T) {
	t.Parallel()
	src := make([]uint16, 1<<16)
	for i := range src {
		src[i] = uint16(i)
	}
	x, y := From(Float16, []int{len(src)}, src), New(Float16, len(src))
	wide := make([]float32, len(src))
	Read(wide, x, 0)
	WriteFloat32(y, 0, wide)
	for i, h := range src {
		w := F16ToF32(h)
		if math.Float32bits(wide[i]) != math.Float32bits(w) {
			t.Fatalf("%#x widens to %v, want %v", h, wide[i], w)
		}
		if back := Of[uint16](y)[i]; back != F32ToF16(w) {
			t.Fatalf("%#x comes back as %#x", h, back)
		}
	}
	var floats []float32
	for b := uint64(0); b < 1<<32; b += 4099 {
		floats = append(floats, math.Float32frombits(uint32(b)))
	}
	for h := range 1 << 16 { // near every boundary
		b := math.Float32bits(F16ToF32(uint16(h)))
		for _, d := range []int{-1, 1, 0xfff, 0x1000, 0x1001} {
			floats = append(floats, math.Float32frombits(uint32(int(b)+d)))
		}
	}
	floats = append(floats, 65519, 65519.996, 65520, -65520, 6.1035156e-05, 6.103515e-05)
	z := New(Float16, len(floats))
	WriteFloat32(z, 0, floats)
	for i, h := range Of[uint16](z) {
		if want := F32ToF16(floats[i]); h != want {
			t.Fatalf("%v narrows to %#x, want %#x", floats[i], h, want)
		}
	}
}

// numberTypes are all types that hold numbers.
func numberTypes() (list []Type) {
	for ty := range numTypes {
		if ty.IsNumber() {
			list = append(list, ty)
		}
	}
	return list
}

// TestReadWrite takes 0 and 1, which every type but one holds, through all types,
// from the middle on and over several blocks.
func TestReadWrite(t *testing.T) {
	t.Parallel()
	want := make([]float64, 600)
	for i := range want {
		want[i] = float64(i * i % 3 % 2)
	}
	for _, ty := range numberTypes() {
		if ty == Float8E8M0 { // powers of two only
			continue
		}
		x, y := New(ty, len(want)), New(ty, len(want))
		Fill(x, func(i int) float64 { return want[i] })
		Cast(y, x, 0, len(want), Conversion{})
		all, err := All[float64](y)
		if err != nil {
			t.Fatal(err)
		}
		rest, whole, narrow := make([]float64, 300), make([]int64, 300), make([]float32, 300)
		Read(rest, y, 299)
		Read(whole, y, 299)
		Read(narrow, y, 299)
		for i, v := range want {
			if all[i] != v || At(y, i) != v {
				t.Fatalf("%v: element %d is %v, want %v", ty, i, all[i], v)
			}
			if k := i - 299; k >= 0 && k < 300 && (rest[k] != v || float64(whole[k]) != v || float64(narrow[k]) != v) {
				t.Fatalf("%v: element %d is %v, %v, %v, want %v", ty, i, rest[k], whole[k], narrow[k], v)
			}
		}
	}
	if _, err := All[float64](&Tensor{Type: String}); err == nil {
		t.Error("strings are read as numbers")
	}
}

// TestCastTargets casts -1, which wraps in unsigned integers, saturates in nothing
// and is true.
func TestCastTargets(t *testing.T) {
	t.Parallel()
	for ty, want := range map[Type]float64{
		Int8: -1, Int16: -1, Int32: -1, Int64: -1, Int4: -1, Int2: -1, Uint8: 255, Uint16: 65535, Uint32: 1<<32 - 1,
		Uint64: 1 << 64, Uint4: 15, Uint2: 3, Bool: 1, Float16: -1, BFloat16: -1, Float32: -1, Float64: -1, Float8E5M2: -1, Float4E2M1: -1,
	} {
		for _, from := range []*Tensor{From(Float32, []int{1}, []float32{-1}), From(Int16, []int{1}, []int16{-1})} {
			y := New(ty, 1)
			Cast(y, from, 0, 1, Conversion{})
			if got := At(y, 0); got != want {
				t.Errorf("-1 as %v from %v is %v, want %v", ty, from.Type, got, want)
			}
		}
	}
}

// TestClamp casts what integers cannot hold to their bounds.
func TestClamp(t *testing.T) {
	t.Parallel()
	in := []float64{-1e30, 1e30, math.NaN(), math.Inf(-1), math.Inf(1), -1.9, 100.9}
	for ty, want := range map[Type][]float64{
		Int8: {-128, 127, 0, -128, 127, -1, 100}, Uint8: {0, 255, 0, 0, 255, 0, 100}, Int4: {-8, 7, 0, -8, 7, -1, 7},
		Int64: {-1 << 63, 1 << 63, 0, -1 << 63, 1 << 63, -1, 100}, Uint64: {0, 1 << 64, 0, 0, 1 << 64, 0, 100},
		Uint32: {0, 1<<32 - 1, 0, 0, 1<<32 - 1, 0, 100}, Float32: nil,
	} {
		y := New(ty, len(in))
		Cast(y, From(Float64, []int{len(in)}, in), 0, len(in), Conversion{Clamp: true})
		for i, w := range want {
			if got := At(y, i); got != w {
				t.Errorf("%v as %v is %v, want %v", in[i], ty, got, w)
			}
		}
	}
}

// TestPick asks for every type: each instance must come for its own type alone.
func TestPick(t *testing.T) {
	t.Parallel()
	own := []Type{Float32, Float64, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64}
	for ty := range numTypes {
		got := PickNumber(ty, Float32, Float64, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64)
		want := Invalid
		for _, o := range own {
			if o == ty {
				want = ty
			}
		}
		if got != want {
			t.Errorf("%v picks %v", ty, got)
		}
	}
}

// TestReadAllocates nothing: it runs inside inferences.
func TestReadAllocates(t *testing.T) {
	for _, ty := range numberTypes() {
		x := New(ty, 512)
		wide, whole := make([]float32, 512), make([]int32, 512)
		if n := testing.AllocsPerRun(10, func() {
			Read(wide, x, 0)
			Read(whole, x, 0)
			if ty.Bits() >= 8 {
				WriteFloat32(x, 0, wide)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", ty, n)
		}
	}
}

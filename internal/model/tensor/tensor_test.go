package tensor

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTypes(t *testing.T) {
	t.Parallel()
	// Each by its bits, whether it is a float, an integer, signed, a container.
	for _, tt := range []struct {
		typ                               Type
		name                              string
		bits                              int
		float, integer, signed, container bool
	}{
		{Invalid, "invalid", 0, false, false, false, false},
		{Float32, "float32", 32, true, false, false, false},
		{BFloat16, "bfloat16", 16, true, false, false, false},
		{Int8, "int8", 8, false, true, true, false},
		{Int64, "int64", 64, false, true, true, false},
		{Uint8, "uint8", 8, false, true, false, false},
		{Uint64, "uint64", 64, false, true, false, false},
		{Bool, "bool", 8, false, false, false, false},
		{String, "string", 0, false, false, false, false},
		{Complex128, "complex128", 128, false, false, false, false},
		{Int4, "int4", 4, false, true, true, false},
		{Uint4, "uint4", 4, false, true, false, false},
		{Int2, "int2", 2, false, true, true, false},
		{Uint2, "uint2", 2, false, true, false, false},
		{Float8E8M0, "float8e8m0", 8, true, false, false, false},
		{Float6E2M3, "float6e2m3", 6, true, false, false, false},
		{Sequence, "sequence", 0, false, false, false, true},
		{Map, "map", 0, false, false, false, true},
		{Optional, "optional", 0, false, false, false, true},
		{Resource, "resource", 0, false, false, false, false},
		{Variant, "variant", 0, false, false, false, false},
	} {
		if tt.typ.String() != tt.name || tt.typ.Bits() != tt.bits || tt.typ.IsFloat() != tt.float || tt.typ.IsInteger() != tt.integer || tt.typ.IsSigned() != tt.signed || tt.typ.IsContainer() != tt.container {
			t.Errorf("%v: %d bits, %v %v %v %v", tt.typ, tt.typ.Bits(), tt.typ.IsFloat(), tt.typ.IsInteger(), tt.typ.IsSigned(), tt.typ.IsContainer())
		}
		if number := tt.float || tt.integer || tt.typ == Bool; tt.typ.IsNumber() != number {
			t.Errorf("%v is a number: %v", tt.typ, !number)
		}
		got, ok := ParseType(tt.name)
		if ok != (tt.typ != Invalid) || got != tt.typ {
			t.Errorf("%q is %v, %v", tt.name, got, ok)
		}
	}
	if _, ok := ParseType("float33"); ok || Type(200).String() != "type(200)" || Type(200).Bits() != 0 || numTypes.String() != "type(34)" || numTypes.Bits() != 0 {
		t.Errorf("types that do not exist: %v", numTypes)
	}
	for _, tt := range []struct {
		typ     Type
		n, want int
	}{{Int4, 0, 0}, {Int4, 1, 1}, {Int4, 2, 1}, {Int4, 3, 2}, {Int2, 4, 1}, {Int2, 5, 2}, {Float6E2M3, 4, 3}, {Float6E2M3, 1, 1}, {Float32, 3, 12}, {String, 9, 0}} {
		if got := tt.typ.Bytes(tt.n); got != tt.want {
			t.Errorf("%d of %v take %d bytes, want %d", tt.n, tt.typ, got, tt.want)
		}
	}
	if !Float16.IsHalf() || !BFloat16.IsHalf() || Float32.IsHalf() {
		t.Error("halves")
	}
}

func TestNewAndClone(t *testing.T) {
	t.Parallel()
	x := New(Int16, 2, 3)
	if len(x.Data) != 12 || cap(x.Data) != 12 || x.Len() != 6 || x.Rank() != 2 || x.Bytes() != 12 || !x.Known() {
		t.Errorf("%+v", x)
	}
	for _, typ := range []Type{Sequence, Resource} {
		if c := New(typ, 2); !c.Known() || len(c.Data) != 0 || c.Strings != nil {
			t.Errorf("%v: %+v", typ, c)
		}
	}
	s := New(String, 2)
	s.Strings[0], s.Strings[1] = "ab", "c"
	if s.Bytes() != 3 || s.Held() != 35 || !s.Known() {
		t.Errorf("strings: %d bytes, %d held", s.Bytes(), s.Held())
	}
	q := &Tensor{Type: Sequence, Data: []byte{}, Elems: []*Tensor{New(Int8, 5), s}}
	if q.Bytes() != 8 || q.Held() != 2*192+5+35 {
		t.Errorf("sequence: %d bytes, %d held", q.Bytes(), q.Held())
	}
	var none *Tensor
	if none.Held() != 0 || none.Known() || (&Tensor{}).Known() {
		t.Error("no tensor")
	}
	c := q.Clone()
	c.Elems[0].Data[0], c.Elems[1].Strings[0], c.Elems[0].Shape[0] = 9, "x", 7
	if q.Elems[0].Data[0] != 0 || s.Strings[0] != "ab" || q.Elems[0].Shape[0] != 5 {
		t.Error("a copy shares memory with its original")
	}
	y := From(Int8, []int{2}, []int8{1, 2}).Clone()
	if !cmp.Equal(y.Data, []byte{1, 2}) || (&Tensor{Type: Int8, Shape: []int{2}}).Clone().Known() {
		t.Error("elements of a copy")
	}
	v, shape := []int8{1, 2}, []int{2}
	z := From(Int8, shape, v)
	if v[0], shape[0] = 9, 9; z.Data[0] != 1 || z.Shape[0] != 2 {
		t.Error("a tensor shares memory with what it was made of")
	}
}

// TestBeyond leaves out elements that another sequence begins or ends with.
func TestBeyond(t *testing.T) {
	t.Parallel()
	a, b, c := New(Int8, 1), New(Int8, 2), New(Int8, 4)
	seq := func(e ...*Tensor) *Tensor { return &Tensor{Type: Sequence, Elems: e} }
	const h = 192
	for _, tt := range []struct {
		name   string
		x      *Tensor
		others []*Tensor
		want   int
	}{
		{"nothing else", seq(a, b, c), nil, 3*h + 7},
		{"the same", seq(a, b, c), []*Tensor{seq(a, b, c)}, 0},
		{"one more behind", seq(a, b, c), []*Tensor{seq(a, b)}, h + 4},
		{"one more before", seq(a, b, c), []*Tensor{seq(b, c)}, h + 1},
		{"one between", seq(a, b, c), []*Tensor{seq(a, c)}, h + 2},
		{"in another order", seq(a, b), []*Tensor{seq(b, a)}, 2*h + 3},
		{"the better of two", seq(a, b, c), []*Tensor{seq(a, b), seq(a)}, h + 4},
		{"one at each end", seq(a, b, c), []*Tensor{seq(a), seq(c)}, h + 2},
		{"no containers", seq(a), []*Tensor{nil, a}, h + 1},
		{"plain", b, []*Tensor{b}, 2},
	} {
		if got := tt.x.Beyond(tt.others...); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}

func TestCheckShape(t *testing.T) {
	t.Parallel()
	const most = 1 << 36 // bytes
	for _, tt := range []struct {
		typ   Type
		shape []int
		n     int
		text  string
	}{
		{Float32, nil, 1, ""},
		{Float32, []int{2, 3}, 6, ""},
		{Float32, []int{2, 0, 1 << 30}, 0, ""},
		{Int8, []int{most}, most, ""},
		{Float32, []int{most / 4}, most / 4, ""},
		{Int4, []int{most}, most, ""},
		{Float6E2M3, []int{most}, most, ""},
		{String, []int{most}, most, ""},
		{Int8, []int{most + 1}, 0, "shape 68719476737 is too large"},
		{Float32, []int{most/4 + 1}, 0, "shape 17179869185 of float32 is too large"},
		{Int8, []int{1 << 18, 1<<18 + 1}, 0, "shape 262144x262145 is too large"},
		{Int8, []int{-1, 2}, 0, "shape ?x2 has a negative dimension"},
		{Int8, []int{0, -1}, 0, "shape 0x? has a negative dimension"},
		{Int8, []int{1 << 62, 1 << 62}, 0, "is too large"},
	} {
		n, err := CheckShape(tt.typ, tt.shape)
		if n != tt.n || (err == nil) != (tt.text == "") || err != nil && err.Error() != tt.text && tt.text != "is too large" {
			t.Errorf("%v of %v: %d, %v", tt.shape, tt.typ, n, err)
		}
	}
	for want, shape := range map[string][]int{"scalar": {}, "3": {3}, "1x?x0": {1, -1, 0}} {
		if got := FormatShape(shape); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestIndices(t *testing.T) {
	t.Parallel()
	if got := Strides([]int{2, 3, 4}); !cmp.Equal(got, []int{12, 4, 1}) || len(Strides(nil)) != 0 {
		t.Errorf("strides %v", got)
	}
	at, walked := []int{0, 0}, [][]int{{0, 0}}
	for Next(at, []int{2, 3}) {
		walked = append(walked, slices.Clone(at))
	}
	if diff := cmp.Diff([][]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}, walked); diff != "" || !cmp.Equal(at, []int{0, 0}) || Next(nil, nil) {
		t.Error(diff)
	}
	for i, want := range walked {
		got := make([]int, 2)
		if Unravel(i, []int{2, 3}, got); !cmp.Equal(got, want) {
			t.Errorf("element %d lies at %v, want %v", i, got, want)
		}
	}
	for _, tt := range []struct {
		in   [][]int
		want []int
	}{
		{nil, []int{}}, {[][]int{{2, 3}}, []int{2, 3}}, {[][]int{{2, 1}, {3}}, []int{2, 3}}, {[][]int{{}, {1, 4}}, []int{1, 4}}, {[][]int{{3, 1}, {1, 2}, {1}}, []int{3, 2}}, {[][]int{{1}, {0}}, []int{0}}, {[][]int{{0}, {1}}, []int{0}},
	} {
		if got, err := Broadcast(tt.in...); err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("%v: %v, %v", tt.in, got, err)
		}
	}
	if _, err := Broadcast([]int{2, 3}, []int{2}); err == nil || err.Error() != "shapes 2x3 and 2 do not broadcast" {
		t.Error(err)
	}
	if _, err := Broadcast([]int{0}, []int{2}); err == nil {
		t.Error("nothing and two broadcast")
	}
}

// caught is what f panics with.
func caught(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}

// TestViews views elements as their own Go type and as no other.
func TestViews(t *testing.T) {
	t.Parallel()
	of := map[string]func(*Tensor){
		"float32": func(x *Tensor) { Of[float32](x) }, "float64": func(x *Tensor) { Of[float64](x) }, "int8": func(x *Tensor) { Of[int8](x) }, "int16": func(x *Tensor) { Of[int16](x) },
		"int32": func(x *Tensor) { Of[int32](x) }, "int64": func(x *Tensor) { Of[int64](x) }, "uint8": func(x *Tensor) { Of[uint8](x) }, "uint16": func(x *Tensor) { Of[uint16](x) },
		"uint32": func(x *Tensor) { Of[uint32](x) }, "uint64": func(x *Tensor) { Of[uint64](x) }, "bool": func(x *Tensor) { Of[bool](x) }, "complex64": func(x *Tensor) { Of[complex64](x) }, "complex128": func(x *Tensor) { Of[complex128](x) },
	}
	views := map[Type][]string{
		Float32: {"float32"}, Float64: {"float64"}, Float16: {"uint16"}, BFloat16: {"uint16"}, Int8: {"int8"}, Int16: {"int16"}, Int32: {"int32"}, Int64: {"int64"}, Uint8: {"uint8"}, Uint16: {"uint16"},
		Uint32: {"uint32"}, Uint64: {"uint64"}, Bool: {"bool", "uint8"}, Complex64: {"complex64"}, Complex128: {"complex128"}, Int4: {"uint8"}, Float8E5M2: {"uint8"}, Float4E2M1: {"uint8"}, String: nil, Sequence: nil,
	}
	for typ, want := range views {
		for name, f := range of {
			err := caught(func() { f(New(typ, 4)) })
			var te *TypeError
			if ok := slices.Contains(want, name); ok != (err == nil) || !ok && (!errors.As(err, &te) || te.Error() != "elements of "+typ.String()+" where "+name+" is expected") {
				t.Errorf("%v as %s: %v", typ, name, err)
			}
		}
	}
	words := map[int]func(*Tensor){8: func(x *Tensor) { Words[uint8](x) }, 16: func(x *Tensor) { Words[uint16](x) }, 32: func(x *Tensor) { Words[uint32](x) }, 64: func(x *Tensor) { Words[uint64](x) }}
	for typ, bits := range map[Type]int{Int8: 8, Int4: 8, Bool: 8, Float16: 16, Int16: 16, Float32: 32, Float64: 64, Complex64: 64, String: 0, Complex128: 0} {
		for width, f := range words {
			if err := caught(func() { f(New(typ, 4)) }); (err == nil) != (width == bits) {
				t.Errorf("%v as words of %d bits: %v", typ, width, err)
			}
		}
	}
	if Single[int8](From(Int8, []int{2}, []int8{7, 8})) != 7 {
		t.Error("first element")
	}
	if err := caught(func() { Single[int8](New(Int8, 2, 0)) }); err == nil || err.Error() != "a tensor of shape 2x0 where one element is expected" {
		t.Error(err)
	}
	if v := Of[int32](&Tensor{Type: Int32, Data: make([]byte, 7)}); len(v) != 1 {
		t.Errorf("%d whole elements in 7 bytes", len(v))
	}
}

// TestBoundsOfTypes are the smallest and largest values.
func TestBoundsOfTypes(t *testing.T) {
	t.Parallel()
	if lo, hi := Bounds[int8](); lo != -128 || hi != 127 {
		t.Error(lo, hi)
	}
	if lo, hi := Bounds[uint8](); lo != 0 || hi != 255 {
		t.Error(lo, hi)
	}
	if lo, hi := Bounds[int64](); lo != math.MinInt64 || hi != math.MaxInt64 {
		t.Error(lo, hi)
	}
	if lo, hi := Bounds[uint64](); lo != 0 || hi != math.MaxUint64 {
		t.Error(lo, hi)
	}
}

// TestConversionsAtEdges writes values at and beyond the bounds of integers, with and without
// clamping.
func TestConversionsAtEdges(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		typ   Type
		clamp bool
		in    float64
		want  int64
	}{
		{Int8, true, 127.9, 127},
		{Int8, true, 128, 127},
		{Int8, true, -129, -128},
		{Int8, true, nan, 0},
		{Int8, true, -1.9, -1},
		{Int8, false, 130, -126},
		{Uint8, true, 256, 255},
		{Uint8, true, -1, 0},
		{Uint8, false, 257, 1},
		{Int4, true, 9, 7},
		{Int4, true, -9, -8},
		{Uint4, true, 16, 15},
		{Int2, true, 2, 1},
		{Int16, true, inf, 32767},
		{Int32, false, 1 << 31, math.MinInt32},
		{Int32, false, nan, math.MinInt32},
		{Int32, true, -inf, math.MinInt32},
		{Int32, false, 1<<31 - 1, 1<<31 - 1},
		{Int64, false, inf, math.MinInt64},
		{Int64, true, inf, math.MaxInt64},
		{Int64, false, -(1 << 63), math.MinInt64},
		{Uint64, true, inf, -1},
		{Uint64, true, -5, 0},
		{Uint64, true, nan, 0},
		{Uint64, false, 1 << 63, math.MinInt64},
		{Uint64, false, -1, -1},
		{Uint64, true, 1 << 64, -1},
		{Uint64, false, 3.7, 3},
		{Bool, false, nan, 1},
		{Bool, false, 0, 0},
		{Bool, false, -0.5, 1},
	} {
		x := New(tt.typ, 1)
		WriteFloat64(x, 0, []float64{tt.in}, Conversion{Clamp: tt.clamp})
		var got [1]int64
		Read(got[:], x, 0)
		if got[0] != tt.want {
			t.Errorf("%v as %v, clamped %v: %d, want %d", tt.in, tt.typ, tt.clamp, got[0], tt.want)
		}
	}
	for f, want := range map[float64]int64{1.9: 1, -1.9: -1, 1 << 62: 1 << 62, 1 << 63: math.MinInt64, -(1 << 63): math.MinInt64} {
		if got := Truncate(f); got != want {
			t.Errorf("%v is cut to %d", f, got)
		}
	}
	for _, tt := range []struct {
		typ  Type
		in   int64
		want int64
	}{{Int8, 130, -126}, {Uint8, -1, 255}, {Int16, 1 << 15, -1 << 15}, {Uint32, -1, 1<<32 - 1}, {Uint64, -1, -1}, {Bool, -7, 1}, {Bool, 0, 0}, {Int4, 9, -7}, {Uint4, 17, 1}} {
		x := New(tt.typ, 1)
		WriteInt64(x, 0, []int64{tt.in})
		var got [1]int64
		Read(got[:], x, 0)
		if got[0] != tt.want {
			t.Errorf("%d as %v: %d, want %d", tt.in, tt.typ, got[0], tt.want)
		}
	}
	if err := caught(func() { WriteInt64(New(Float32, 1), 0, []int64{1}) }); err == nil {
		t.Error("integers are stored as floats")
	}
	if err := caught(func() { Read(make([]float64, 1), New(String, 1), 0) }); err == nil {
		t.Error("strings are read as numbers")
	}
	// Long ones go on after a block, from any place.
	for _, typ := range []Type{Int4, Int16, Uint64, Float8E5M2, Float32, Float16} {
		x := New(typ, 600)
		Fill(x, func(i int) float64 { return float64(i % 7) })
		Put(x, 0, 3)
		if typ.Bits() < 8 {
			Put(x, 2, 2)
		}
		v := make([]float64, 500)
		Read(v, x, 60)
		for i, f := range v {
			if f != float64((60+i)%7) {
				t.Fatalf("%v: element %d is %v", typ, 60+i, f)
			}
		}
		if At(x, 0) != 3 || At(x, 599) != float64(599%7) {
			t.Errorf("%v: ends %v %v", typ, At(x, 0), At(x, 599))
		}
	}
	if v, err := All[int32](From(Int8, []int{2}, []int8{-1, 5})); err != nil || !cmp.Equal(v, []int32{-1, 5}) {
		t.Error(v, err)
	}
	if _, err := All[int32](New(String, 1)); err == nil || err.Error() != "string elements are not numbers here" {
		t.Error(err)
	}
}

package flexbuffer

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func at(t Type, width int) byte { return byte(t)<<2 | map[int]byte{1: 0, 2: 1, 4: 2, 8: 3}[width] }

// TestNumbers reads root values of every width by hand-made bytes.
func TestNumbers(t *testing.T) {
	t.Parallel()
	f32 := binary.LittleEndian.AppendUint32(nil, math.Float32bits(-2.5))
	f64 := binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2.5))
	root := func(typ Type, b ...byte) []byte { return append(bytes.Clone(b), at(typ, len(b)), byte(len(b))) }
	type want struct {
		i      int64
		iOK    bool
		f      float64
		fOK    bool
		truth  bool
		length int
	}
	for _, tt := range []struct {
		name string
		data []byte
		want want
	}{
		{"int8", root(Int, 0x80), want{-128, true, -128, true, true, 0}},
		{"int16", root(Int, 0xfe, 0xff), want{-2, true, -2, true, true, 0}},
		{"int32", root(Int, 0, 0, 0, 0x80), want{math.MinInt32, true, math.MinInt32, true, true, 0}},
		{"int64", root(Int, 0, 0, 0, 0, 0, 0, 0, 0x80), want{math.MinInt64, true, math.MinInt64, true, true, 0}},
		{"uint8", root(Uint, 0x80), want{128, true, 128, true, true, 0}},
		{"uint16", root(Uint, 1, 2), want{513, true, 513, true, true, 0}},
		{"uint32", root(Uint, 0, 0, 0, 0x80), want{1 << 31, true, 1 << 31, true, true, 0}},
		{"uint64", root(Uint, 0, 0, 0, 0, 0, 0, 0, 0x80), want{math.MinInt64, true, 1 << 63, true, true, 0}},
		{"true", root(Bool, 1), want{1, true, 1, true, true, 0}},
		{"false", root(Bool, 0), want{0, true, 0, true, false, 0}},
		{"float32", root(Float, f32...), want{-2, true, -2.5, true, true, 0}},
		{"float64", root(Float, f64...), want{-2, true, -2.5, true, true, 0}},
		{"half", root(Float, 0, 0x3c), want{}},
		{"infinity", root(Float, binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Inf(1)))...), want{0, false, math.Inf(1), true, true, 0}},
		{"2^63", root(Float, binary.LittleEndian.AppendUint64(nil, math.Float64bits(1<<63))...), want{0, false, 1 << 63, true, true, 0}},
		{"-2^63", root(Float, binary.LittleEndian.AppendUint64(nil, math.Float64bits(-1<<63))...), want{0, false, -1 << 63, true, true, 0}},
		{"null", root(Null, 0), want{}},
		{"indirect uint", []byte{0x34, 0x12, 2, at(IndirectUint, 2), 1}, want{0x1234, true, 0x1234, true, true, 0}},
		{"indirect float", append(bytes.Clone(f32), 4, at(IndirectFloat, 4), 1), want{-2, true, -2.5, true, true, 0}},
		{"indirect before the buffer", []byte{1, 2, at(IndirectInt, 1), 1}, want{}},
	} {
		v, err := Parse(tt.data)
		if err != nil {
			t.Fatal(err)
		}
		var got want
		got.i, got.iOK = v.Int()
		got.f, got.fOK = v.Float()
		got.truth, _ = v.Bool()
		got.length = v.Len()
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(want{})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if _, ok := v.Text(); ok || v.GetInt("x", 3) != 3 {
			t.Errorf("%s has a text or entries", tt.name)
		}
	}
	nan, _ := Parse(root(Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))...))
	if i, ok := nan.Int(); ok {
		t.Errorf("NaN is %d", i)
	}
	for _, bad := range [][]byte{nil, {0, 0}, {0, 0, 0}, {0, 0, 3}, {0, 0, 2}, {0, 0, 0, 0, 0, 0, 8}, {0, 0, 16}} {
		if v, err := Parse(bad); err == nil {
			t.Errorf("% x is %+v", bad, v)
		}
	}
	if _, err := Parse([]byte{0, 0, 0, 0, 0, 0, 0, 0, at(Int, 8), 8}); err != nil {
		t.Error(err)
	}
}

// TestVectors reads vectors of each type, at the edges of what the buffer holds.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		data []byte
		want []any // nil: not read
	}{
		{"uints", []byte{2, 7, 255, 2, at(VectorUint, 1), 1}, []any{uint64(7), uint64(255)}},
		{"wide ints", []byte{2, 0, 7, 0, 0xff, 0xff, 4, at(VectorInt, 2), 1}, []any{int64(7), int64(-1)}},
		{"no elements", []byte{0, 0, at(VectorInt, 1), 1}, []any{}},
		{"two fixed", []byte{5, 6, 2, at(VectorInt2, 1), 1}, []any{int64(5), int64(6)}},
		{"three fixed", []byte{5, 6, 7, 3, at(VectorInt3, 1), 1}, []any{int64(5), int64(6), int64(7)}},
		{"four fixed", []byte{5, 6, 7, 8, 4, at(VectorUint4, 1), 1}, []any{uint64(5), uint64(6), uint64(7), uint64(8)}},
		{"two fixed floats", []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 8, at(VectorFloat2, 4), 1}, []any{1.0, 2.0}},
		{"each its type", []byte{2, 0xff, 0xff, at(Int, 1), at(Uint, 1), 4, at(Vector, 1), 1}, []any{int64(-1), uint64(255)}},
		{"keys", []byte{'a', 'b', 0, 'c', 0, 2, 6, 4, 2, at(VectorKey, 1), 1}, []any{"ab", "c"}},
		{"strings", []byte{1, 'a', 0, 2, 'b', 'c', 0, 2, 7, 5, 2, at(VectorString, 1), 1}, []any{"a", "bc"}},
		{"too long", []byte{5, 7, 255, 2, at(VectorUint, 1), 1}, []any{uint64(7), uint64(255), uint64(2), uint64(at(VectorUint, 1)), uint64(1)}},
		{"longer than the buffer", []byte{6, 7, 255, 2, at(VectorUint, 1), 1}, nil},
		{"types past the end", []byte{4, 1, 2, 3, 4, 4, at(Vector, 1), 1}, nil},
		{"before the buffer", []byte{1, 2, 9, at(VectorInt, 1), 1}, nil},
		{"length before the buffer", []byte{1, 2, 2, at(VectorInt, 1), 1}, nil},
		{"fixed past the end", []byte{1, 1, at(VectorInt4, 2), 1}, nil},
	} {
		v, err := Parse(tt.data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(tt.data)
		if tt.want == nil {
			if err == nil || v.Len() != 0 {
				t.Errorf("%s: %v, length %d", tt.name, got, v.Len())
			}
			continue
		}
		if diff := cmp.Diff(any(tt.want), got); diff != "" || err != nil || v.Len() != len(tt.want) {
			t.Errorf("%s: %v, length %d, %s", tt.name, err, v.Len(), diff)
		}
		if v.At(-1).typ != Null || v.At(len(tt.want)).typ != Null {
			t.Errorf("%s: something lies beyond its elements", tt.name)
		}
		if _, ok := v.KeyAt(0); ok {
			t.Errorf("%s has keys", tt.name)
		}
	}
	// Texts that are not: without an end, longer than the buffer, not UTF-8.
	for name, data := range map[string][]byte{
		"key without end":   {1, 1, at(Key, 1), 1},
		"longer than it is": {9, 'h', 2, at(String, 1), 1},
		"length before":     {'h', 1, at(String, 1), 1},
	} {
		if _, err := Decode(data); err == nil {
			t.Errorf("%s is decoded", name)
		}
	}
	v, _ := Parse([]byte{1, 0xff, 0, 2, at(String, 1), 1})
	if _, ok := v.Text(); ok {
		t.Error("bytes that are not UTF-8 are a text")
	}
	if b, ok := v.Bytes(); !ok || !bytes.Equal(b, []byte{0xff}) || cap(b) != 1 {
		t.Errorf("bytes %v %v", b, ok)
	}
	blob, _ := Parse([]byte{2, 8, 9, 2, at(Blob, 1), 1})
	if _, ok := (Value{data: []byte{1, 2, 3, 4}, width: 3, typ: Uint}).Int(); ok {
		t.Error("a number of three bytes is read")
	}
	if b, ok := blob.Bytes(); !ok || !bytes.Equal(b, []byte{8, 9}) {
		t.Errorf("blob %v", b)
	}
	if _, ok := blob.Text(); ok {
		t.Error("a blob is a text")
	}
}

func TestMaps(t *testing.T) {
	t.Parallel()
	b, err := Encode(map[string]any{"f": float32(0.5), "i": 7, "t": "word", "n": []any{1, int64(-2)}, "m": []any{1, "x"}, "u": uint64(9), "yes": true, "e": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i := range v.Len() {
		k, _ := v.KeyAt(i)
		keys = append(keys, k)
	}
	// Readers search keys by halves: they are sorted.
	if diff := cmp.Diff([]string{"e", "f", "i", "m", "n", "t", "u", "yes"}, keys); diff != "" {
		t.Error(diff)
	}
	if _, ok := v.KeyAt(-1); ok {
		t.Error("key -1")
	}
	if _, ok := v.KeyAt(8); ok {
		t.Error("key 8 of 8")
	}
	if diff := cmp.Diff([]int64{1, -2}, v.GetInts("n")); diff != "" {
		t.Error(diff)
	}
	if v.GetInts("m") != nil || v.GetInts("none") != nil || v.GetInts("i") != nil {
		t.Error("integers of what holds none")
	}
	// Of the type asked for, otherwise what the caller has.
	if v.GetInt("i", 1) != 7 || v.GetInt("u", 1) != 9 || v.GetInt("t", 1) != 1 || v.GetInt("f", 1) != 0 {
		t.Error("integers by name")
	}
	if v.GetFloat("f", 1) != 0.5 || v.GetFloat("i", 1) != 7 || v.GetFloat("t", 1) != 1 || v.GetFloat("none", 2) != 2 {
		t.Error("floats by name")
	}
	if !v.GetBool("yes", false) || v.GetBool("t", true) != true || !v.GetBool("none", true) || v.GetBool("none", false) {
		t.Error("truth by name")
	}
	if v.GetText("t", "d") != "word" || v.GetText("i", "d") != "d" || v.GetText("none", "d") != "d" {
		t.Error("texts by name")
	}
	if e, ok := v.Get("e"); !ok || e.Len() != 0 {
		t.Error("an empty list")
	}
	if len(b)%8 != 2 || b[len(b)-1] != 8 || b[len(b)-2] != byte(Map)<<2|3 {
		t.Errorf("the end is % x", b[len(b)-2:])
	}
	for _, bad := range []any{int32(1), []any{1, struct{}{}}, map[string]any{"a": complex(1, 1)}} {
		if _, err := Encode(bad); err == nil || !strings.Contains(err.Error(), "cannot be written") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for _, scalar := range []any{nil, true, false, int64(-3), uint64(3), 1.5, "s", []byte{1}, []any{}} {
		b, err := Encode(scalar)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if diff := cmp.Diff(scalar, got); diff != "" || err != nil {
			t.Errorf("%v: %v %s", scalar, err, diff)
		}
	}
}

// TestDecodeBounds nests and counts to the bounds and one beyond.
func TestDecodeBounds(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{31: true, 32: false} {
		var v any = int64(1)
		for range n {
			v = []any{v}
		}
		b, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(b); (err == nil) != ok {
			t.Errorf("%d lists within each other: %v", n, err)
		}
	}
	for n, ok := range map[int]bool{1<<16 - 1: true, 1 << 16: false} {
		b := binary.LittleEndian.AppendUint32(nil, uint32(n))
		b = append(b, make([]byte, 4*n)...)
		b = binary.LittleEndian.AppendUint32(b, uint32(4*n))
		if _, err := Decode(append(b, at(VectorInt, 4), 4)); (err == nil) != ok {
			t.Errorf("%d elements: %v", n, err)
		}
	}
	// In lists of lists all values count: 256 lists of 255 and themselves are 65,536, with the
	// outer one too many.
	for n, ok := range map[int]bool{254: true, 255: false} {
		var lists []any
		for range 256 {
			lists = append(lists, slices.Repeat([]any{true}, n))
		}
		b, err := Encode(lists)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(b); (err == nil) != ok {
			t.Errorf("256 lists of %d: %v", n, err)
		}
	}
	// One text that five elements point at: four times the buffer and 64 KiB may be copied,
	// 5 n = 4 (n + 38) + 65,536.
	for n, ok := range map[int]bool{65688: true, 65689: false} {
		b := binary.LittleEndian.AppendUint32(nil, uint32(n))
		b = append(append(b, strings.Repeat("x", n)...), 0, 0, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, 5)
		for range 5 {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(b)-4))
		}
		b = binary.LittleEndian.AppendUint32(b, 20)
		b = append(b, at(VectorString, 4), 4)
		if len(b) != n+38 {
			t.Fatalf("%d bytes", len(b))
		}
		if _, err := Decode(b); (err == nil) != ok {
			t.Errorf("five times a text of %d bytes: %v", n, err)
		}
	}
}

// TestEncodedBytes lays out what the encoder writes by hand: words of eight bytes, what is
// referred to before them, offsets that lead back.
func TestEncodedBytes(t *testing.T) {
	t.Parallel()
	word := func(v byte) []byte { return []byte{v, 0, 0, 0, 0, 0, 0, 0} }
	for _, tt := range []struct {
		v    any
		want []byte
	}{
		{nil, append(word(0), at(Null, 8), 8)},
		{true, append(word(1), at(Bool, 8), 8)},
		{false, append(word(0), at(Bool, 8), 8)},
		{int64(-1), []byte{255, 255, 255, 255, 255, 255, 255, 255, at(Int, 8), 8}},
		{uint64(5), append(word(5), at(Uint, 8), 8)},
		{"hi", slices.Concat(word(2), []byte{'h', 'i', 0, 0, 0, 0, 0, 0}, word(8), []byte{at(String, 8), 8})},
		{"12345678", slices.Concat(word(8), []byte("12345678"), word(0), word(16), []byte{at(String, 8), 8})},
		{[]byte("12345678"), slices.Concat(word(8), []byte("12345678"), word(8), []byte{at(Blob, 8), 8})},
		{
			map[string]any{"k": "v"},
			slices.Concat([]byte{'k', 0, 0, 0, 0, 0, 0, 0}, word(1), []byte{'v', 0, 0, 0, 0, 0, 0, 0}, word(1), word(32), word(8), word(8), word(1), word(48),
				[]byte{at(String, 8), 0, 0, 0, 0, 0, 0, 0}, word(16), []byte{at(Map, 8), 8}),
		},
		{[]byte{7}, slices.Concat(word(1), word(7), word(8), []byte{at(Blob, 8), 8})},
		{[]any{int64(3), false}, slices.Concat(word(2), word(3), word(0), []byte{at(Int, 8), at(Bool, 8), 0, 0, 0, 0, 0, 0}, word(24), []byte{at(Vector, 8), 8})},
		{
			map[string]any{"k": int64(3)},
			// The key, the keys' number and offset, that of their table and its width, the number
			// of values, they, their types.
			slices.Concat([]byte{'k', 0, 0, 0, 0, 0, 0, 0}, word(1), word(16), word(8), word(8), word(1), word(3), []byte{at(Int, 8), 0, 0, 0, 0, 0, 0, 0}, word(16), []byte{at(Map, 8), 8}),
		},
	} {
		got, err := Encode(tt.v)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%v: %v %s", tt.v, err, diff)
		}
	}
}

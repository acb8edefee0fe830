package protoread

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	if got := (&Error{Offset: 7, Msg: "bad"}).Error(); got != "bad (byte 7)" {
		t.Errorf("%q", got)
	}
}

// TestFields reads fields by hand-made bytes: a tag is 8 times the number plus the wire type.
func TestFields(t *testing.T) {
	t.Parallel()
	one := func(b ...byte) *Reader {
		r := NewReader(b)
		if !r.Next() {
			t.Fatalf("% x: %v", b, r.Err())
		}
		return &r
	}
	if r := one(0x80, 0x01, 5); r.Num() != 16 || r.Int() != 5 || r.Offset() != 2 || r.Start() != 0 {
		t.Errorf("field %d at %d", r.Num(), r.Offset())
	}
	if r := one(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1); r.Int() != -1 {
		t.Errorf("%d", r.Int())
	}
	if r := one(13, 0, 0, 0x20, 0xc0); r.Float() != -2.5 {
		t.Errorf("%v", r.Float())
	}
	if r := one(10, 0); r.Bytes() == nil || len(r.Bytes()) != 0 || r.Str() != "" {
		t.Error("empty bytes are taken for absent ones")
	}
	r := one(10, 3, 'a', 'b', 'c')
	if r.Str() != "abc" || cap(r.Bytes()) != 3 {
		t.Errorf("%q with room for %d", r.Str(), cap(r.Bytes()))
	}
	// A field that the buffer holds to the last byte, and one more than it holds.
	for n, ok := range map[byte]bool{1: true, 2: false} {
		r := NewReader([]byte{10, n, 'a'})
		if r.Next() != ok || (r.Err() == nil) != ok {
			t.Errorf("%d of one byte: %v", n, r.Err())
		}
	}
	// Values of one field do not stay for the next.
	two := NewReader([]byte{10, 1, 'a', 8, 7, 10, 0})
	for _, want := range []string{"a", "", ""} {
		if !two.Next() {
			t.Fatal(two.Err())
		}
		if two.typ == 2 && two.Str() != want {
			t.Errorf("%q, want %q", two.Str(), want)
		}
	}
}

// TestScan reads fields into variables.
func TestScan(t *testing.T) { // not parallel: it counts allocations
	var i int64
	var u uint64
	var b bool
	var text string
	var raw []byte
	data := []byte{8, 7, 16, 9, 24, 1, 34, 1, 'a', 42, 2, 'b', 'c', 48, 1, 8, 8}
	r := NewReader(data)
	if err := r.Scan(1, &i, 2, &u, 3, &b, 4, &text, 5, &raw); err != nil || i != 8 || u != 9 || !b || text != "a" || string(raw) != "bc" {
		t.Errorf("%d %d %v %q %q, %v", i, u, b, text, raw, err)
	}
	var list []int64
	var inner float64
	r = NewReader([]byte{8, 7, 8, 8, 18, 5, 13, 0, 0, 128, 63})
	if err := r.Scan(1, &list, 2, func(m Reader) { _ = m.Scan(1, &inner) }); err != nil || len(list) != 2 || list[1] != 8 || inner != 1 {
		t.Errorf("%v %v, %v", list, inner, err)
	}
	r = NewReader(data[:len(data)-1])
	if err := r.Scan(1, &i); err == nil {
		t.Error("no error for a cut message")
	}
	r = NewReader(data)
	if allocs := testing.AllocsPerRun(10, func() { m := r; _ = m.Scan(1, &i, 2, &u) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestLists appends packed and single elements.
func TestLists(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte{
		8, 1, 8, 2, // single integers
		10, 3, 3, 0xac, 0x02, // packed: 3, 300
		13, 0, 0, 0x80, 0x3f, 10, 8, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, // floats: 1 and packed 2, 3
		// doubles: 1 and packed 2, 3
		9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 10, 16, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0x08, 0x40,
	})
	next := func() {
		t.Helper()
		if !r.Next() {
			t.Fatal(r.Err())
		}
	}
	var ints []int64
	for range 3 {
		next()
		ints = r.Ints(ints)
	}
	var floats []float32
	for range 2 {
		next()
		floats = r.Floats(floats)
	}
	var doubles []float64
	for range 2 {
		next()
		doubles = r.Doubles(doubles)
	}
	if diff := cmp.Diff([]int64{1, 2, 3, 300}, ints); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float32{1, 2, 3}, floats); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{1, 2, 3}, doubles); diff != "" {
		t.Error(diff)
	}
	if r.Next() || r.Err() != nil {
		t.Error(r.Err())
	}
}

// TestPackedAllocations: a list that grows once does not grow again.
func TestPackedAllocations(t *testing.T) {
	packed := NewReader(append([]byte{10, 64}, bytes.Repeat([]byte{7}, 64)...))
	packed.Next()
	if got := testing.AllocsPerRun(10, func() { packed.Ints(nil) }); got != 1 {
		t.Errorf("64 packed integers take %v allocations", got)
	}
}

// TestWrongTypes reads each field as what it is not. The error names the place of the tag, once.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	varint, fixed, blob := []byte{16, 1, 24, 1}, []byte{16, 1, 29, 0, 0, 0, 0}, []byte{16, 1, 26, 1, 9}
	for _, tt := range []struct {
		name, want string
		data       []byte
		read       func(r *Reader) bool // reports whether it gave nothing
	}{
		{"int", "field 3 is not an integer (wire type 5)", fixed, func(r *Reader) bool { return r.Int() == 0 }},
		{"float", "field 3 is not a float (wire type 0)", varint, func(r *Reader) bool { return r.Float() == 0 }},
		{"bytes", "field 3 is not bytes (wire type 5)", fixed, func(r *Reader) bool { return len(r.Bytes()) == 0 }},
		{"text", "field 3 is not bytes (wire type 0)", varint, func(r *Reader) bool { return r.Str() == "" }},
		{"message", "field 3 is not a message (wire type 0)", varint, func(r *Reader) bool { m := r.Message(); return !m.Next() && errors.Is(m.Err(), r.Err()) }},
		{"integers", "field 3 is not a list of integers (wire type 5)", fixed, func(r *Reader) bool { return cmp.Equal(r.Ints([]int64{4}), []int64{4}) }},
		{"floats", "field 3 is not a list of floats (wire type 0)", varint, func(r *Reader) bool { return cmp.Equal(r.Floats([]float32{4}), []float32{4}) }},
		{"doubles", "field 3 is not a list of doubles (wire type 5)", fixed, func(r *Reader) bool { return cmp.Equal(r.Doubles([]float64{4}), []float64{4}) }},
		{"odd floats", "packed floats take 1 bytes, not a multiple of 4", blob, func(r *Reader) bool { return cmp.Equal(r.Floats([]float32{4}), []float32{4}) }},
		{"odd doubles", "packed doubles take 1 bytes, not a multiple of 8", blob, func(r *Reader) bool { return cmp.Equal(r.Doubles([]float64{4}), []float64{4}) }},
	} {
		r := NewReader(tt.data)
		r.Next()
		r.Next()
		if !tt.read(&r) {
			t.Errorf("%s: something was read", tt.name)
		}
		var e *Error
		at := int64(2)
		if tt.data[2] == 26 {
			at = 4 // the value's own place
		}
		if !errors.As(r.Err(), &e) || e.Msg != tt.want || e.Offset != at {
			t.Errorf("%s: %v, want %q at %d", tt.name, r.Err(), tt.want, at)
		}
		first := r.Err()
		tt.read(&r)
		if !errors.Is(r.Err(), first) || r.Next() {
			t.Errorf("%s: after an error the walk goes on: %v", tt.name, r.Err())
		}
	}
}

// TestCutShort ends a message within each kind of value.
func TestCutShort(t *testing.T) {
	t.Parallel()
	for _, whole := range [][]byte{{8, 0x80, 1}, {13, 1, 2, 3, 4}, {9, 1, 2, 3, 4, 5, 6, 7, 8}, {10, 2, 1, 2}, {10, 0x81, 0, 1}} {
		for n := 1; n < len(whole); n++ {
			r := NewReader(whole[:n])
			var e *Error
			if r.Next() || !errors.As(r.Err(), &e) || e.Offset != 1 {
				t.Errorf("% x: %v", whole[:n], r.Err())
			}
		}
		if r := NewReader(whole); !r.Next() || r.Next() || r.Err() != nil {
			t.Errorf("% x: %v", whole, r.Err())
		}
	}
	if r := NewReader(nil); r.Next() || r.Err() != nil {
		t.Error("an empty message has a field")
	}
}

// TestDepthEdge allows messages within each other to the bound and not one more.
func TestDepthEdge(t *testing.T) {
	t.Parallel()
	nest := func(n int) []byte {
		var b []byte
		for range n {
			size := []byte{byte(len(b))}
			if len(b) > 127 {
				size = []byte{byte(len(b))&0x7f | 0x80, byte(len(b) >> 7)}
			}
			b = append(append([]byte{10}, size...), b...)
		}
		return b
	}
	for _, n := range []int{MaxDepth, MaxDepth + 1} {
		r := NewReader(nest(n))
		depth := 0
		for r.Next() {
			r = r.Message()
			if r.Err() != nil {
				break
			}
			depth++
		}
		if depth != MaxDepth || (r.Err() == nil) != (n == MaxDepth) {
			t.Errorf("%d messages within each other: %d deep, %v", n, depth, r.Err())
		}
	}
	// The place of a nested value counts from the beginning of the file.
	r := NewReader([]byte{8, 1, 10, 4, 10, 2, 8, 9})
	r.Next()
	r.Next()
	m := r.Message()
	m.Next()
	if m.Start() != 4 || m.Offset() != 6 {
		t.Errorf("message at %d, value at %d", m.Start(), m.Offset())
	}
	k := m.Message()
	if !k.Next() || k.Int() != 9 || k.Start() != 6 || k.Offset() != 7 {
		t.Errorf("inner message at %d, value at %d", k.Start(), k.Offset())
	}
	bad := NewReader([]byte{8, 1, 10, 2, 8, 0x80})
	bad.Next()
	bad.Next()
	inner := bad.Message()
	var e *Error
	if inner.Next() || !errors.As(inner.Err(), &e) || e.Offset != 5 {
		t.Errorf("error of an inner message: %v", inner.Err())
	}
}

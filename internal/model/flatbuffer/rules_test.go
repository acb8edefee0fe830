package flatbuffer

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRoundTrip writes every kind of field and reads it again, with defaults left out.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	child := &Object{}
	child.Int32(0, -5, 0)
	o := &Object{}
	o.Uint8(0, 200, 0)
	o.Bool(1, true, false)
	o.Int32(2, math.MinInt32, 0)
	o.Float32(3, 1.5, 0)
	o.Int64(4, math.MinInt64, 0)
	o.Table(5, child)
	o.Tables(6, []*Object{child, {}})
	o.String(7, "text")
	o.Bytes(8, []byte{1, 2, 3}, 16)
	Int32s(o, 9, []int{-1, math.MaxInt32})
	o.Int64s(10, []int64{-1, math.MaxInt64})
	o.Float32s(11, []float32{-0.5})
	o.Bool(12, false, true)
	// Equal to the default, so not stored.
	o.Uint8(13, 7, 7)
	o.Bool(14, true, true)
	o.Int32(15, 3, 3)
	o.Float32(16, 2, 2)
	o.Int64(17, 4, 4)
	o.Table(18, nil)
	o.Float32(19, float32(math.Copysign(0, -1)), 0) // another number than 0
	o.Tables(20, nil)
	o.String(21, "")
	o.String(22, "a\xffb")
	b, err := Build(o, "TEST")
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(b)
	x := r.Root("Root", "TEST")
	if x.Uint8(0, "", 0) != 200 || x.Int8(0, "", 0) != -56 || !x.Bool(1, "", false) || x.Int32(2, "", 0) != math.MinInt32 || x.Uint32(2, "", 0) != 1<<31 ||
		x.Float32(3, "", 0) != 1.5 || x.Int64(4, "", 0) != math.MinInt64 || x.Uint64(4, "", 0) != 1<<63 || x.Bool(12, "", true) {
		t.Error("scalars differ")
	}
	if x.Table(5, "").Int32(0, "", 0) != -5 || x.Tables(6, "").Len() != 2 || x.Tables(6, "").At(0).Int32(0, "", 0) != -5 || x.Tables(6, "").At(1).Int32(0, "", 9) != 9 {
		t.Error("tables differ")
	}
	if x.Tables(6, "").At(-1).Valid() || x.Tables(6, "").At(2).Valid() || !x.Tables(6, "").At(1).Valid() {
		t.Error("tables beyond the vector")
	}
	raw, at := x.Bytes(8, "")
	if diff := cmp.Diff([]byte{1, 2, 3}, raw); diff != "" || at%16 != 0 || cap(raw) != 3 {
		t.Errorf("bytes at %d: %s", at, diff)
	}
	if diff := cmp.Diff([]int{-1, math.MaxInt32}, x.Ints(9, "")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]byte{0xff, 0xff, 0xff, 0xff}, x.Raw(9, "", 2)); diff != "" {
		t.Error(diff) // as many halves as there are words: of the first word
	}
	if diff := cmp.Diff([]int64{-1, math.MaxInt64}, x.Int64s(10, "")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float32{-0.5}, x.Float32s(11, "")); diff != "" {
		t.Error(diff)
	}
	if x.String(7, "") != "text" || x.String(21, "") != "" || x.String(22, "") != "a\ufffdb" {
		t.Error("strings differ")
	}
	for slot := range 30 {
		if stored := slot < 13 || slot >= 19 && slot < 23; x.Has(slot) != stored {
			t.Errorf("slot %d: stored %v", slot, x.Has(slot))
		}
	}
	for _, slot := range []int{13, 50} {
		raw, at := x.Bytes(slot, "")
		if raw != nil || at != -1 || x.Ints(slot, "") != nil || x.Table(slot, "").Valid() || x.Tables(slot, "").Len() != 0 || x.Float32(slot, "", 4) != 4 || x.Int64(slot, "", -4) != -4 || !x.Bool(slot, "", true) || x.Int8(slot, "", -1) != -1 {
			t.Errorf("slot %d is not absent", slot)
		}
	}
	if r.Err() != nil {
		t.Error(r.Err())
	}
}

// TestAlignment: each scalar lies at a multiple of its size, strings end with a zero, equal
// vtables are shared.
func TestAlignment(t *testing.T) {
	t.Parallel()
	mixed := func() *Object {
		o := &Object{}
		o.Uint8(0, 1, 0)
		o.Int64(1, 2, 0)
		o.Uint8(2, 3, 0)
		o.Int32(3, 4, 0)
		return o
	}
	root := &Object{}
	root.String(0, "abc")
	root.Int64s(1, []int64{1})
	root.Tables(2, []*Object{mixed(), mixed()})
	b, err := Build(root, "ABCD")
	if err != nil {
		t.Fatal(err)
	}
	if string(b[4:8]) != "ABCD" {
		t.Errorf("identifier %q", b[4:8])
	}
	x := NewReader(b).Root("", "ABCD")
	p, _, _ := x.vector(1, "", 8)
	if p%8 != 0 {
		t.Errorf("64-bit vector at %d", p)
	}
	s, n, _ := x.vector(0, "", 1)
	if b[s+n] != 0 {
		t.Error("a string does not end with a zero")
	}
	kids := x.Tables(2, "")
	for i := range 2 {
		k := kids.At(i)
		if k.pos%8 != 0 || k.field(1, "", 8)%8 != 0 || k.field(3, "", 4)%4 != 0 || k.vt != kids.At(0).vt || k.vt%2 != 0 {
			t.Errorf("table %d at %d, vtable at %d", i, k.pos, k.vt)
		}
		// 4 of the vtable's offset, 4 of padding, 8, 4, 1 and 1.
		if k.size != 22 {
			t.Errorf("table of %d bytes", k.size)
		}
	}
	for _, bad := range []string{"", "ABC", "ABCDE"} {
		if _, err := Build(root, bad); err == nil {
			t.Errorf("identifier %q is taken", bad)
		}
	}
}

// buffer lays out a root table with one 4-byte field: vtable at 8, table at 16.
func buffer(change func(b []byte)) []byte {
	b := make([]byte, 32)
	binary.LittleEndian.PutUint32(b, 16)
	copy(b[4:], "TEST")
	binary.LittleEndian.PutUint16(b[8:], 6)  // vtable: its size
	binary.LittleEndian.PutUint16(b[10:], 8) // the table's
	binary.LittleEndian.PutUint16(b[12:], 4) // the field
	binary.LittleEndian.PutUint32(b[16:], 8) // back to the vtable
	binary.LittleEndian.PutUint32(b[20:], 4) // the field: as an offset it leads to 24
	change(b)
	return b
}

// TestBounds moves each offset and size to the last value that fits and one beyond.
func TestBounds(t *testing.T) {
	t.Parallel()
	u16 := func(at int, v uint16) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint16(b[at:], v) }
	}
	u32 := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	all := func(fs ...func([]byte)) func([]byte) {
		return func(b []byte) {
			for _, f := range fs {
				f(b)
			}
		}
	}
	word := func(x Table) { x.Uint32(0, "word", 0) }
	bytes := func(x Table) { x.Bytes(0, "list") }
	for _, tt := range []struct {
		name   string
		change func([]byte)
		read   func(Table)
		path   string
		at     int64
		text   string // "" where all is well
	}{
		{name: "as it is", change: func([]byte) {}, read: word},
		{name: "root nowhere", change: u32(0, 0), path: "Root", at: 0, text: "offset 0 leads to byte 0"},
		{name: "root past the end", change: u32(0, 29), path: "Root", at: 0, text: "offset 29 leads to byte 29, outside the 32 bytes"},
		{name: "root at the end", change: all(u32(0, 28), u32(28, 20), u16(10, 4)), read: func(Table) {}},
		{name: "huge root", change: u32(0, math.MaxUint32), path: "Root", at: 0, text: "leads to byte 4294967295"},
		{name: "vtable before the file", change: u32(16, 17), path: "Root", at: 16, text: "vtable at byte -1"},
		{name: "vtable at the beginning", change: all(u32(16, 16), u16(0, 16), u16(2, 0)), path: "Root", at: 16, text: "table of 0 bytes"},
		{name: "vtable past the end", change: u32(16, 1<<32-13), path: "Root", at: 16, text: "vtable at byte 29 lies outside"},
		{name: "vtable at the end", change: all(u32(16, 1<<32-12), u16(28, 4), u16(30, 8)), read: func(Table) {}},
		{name: "vtable that reaches beyond", change: all(u32(16, 1<<32-12), u16(28, 6), u16(30, 8)), path: "Root", at: 28, text: "vtable of 6 bytes is not valid"},
		{name: "vtable of no size", change: u16(8, 2), path: "Root", at: 8, text: "vtable of 2 bytes"},
		{name: "odd vtable", change: u16(8, 5), path: "Root", at: 8, text: "vtable of 5 bytes"},
		{name: "small table", change: u16(10, 3), path: "Root", at: 16, text: "table of 3 bytes"},
		{name: "table to the end", change: u16(10, 16), read: word},
		{name: "table beyond the end", change: u16(10, 17), path: "Root", at: 16, text: "table of 17 bytes reaches past the end"},
		{name: "field at the table's end", change: u16(12, 4), read: word},
		{name: "field beyond the table", change: u16(12, 5), read: word, path: "Root.word", at: 12, text: "field lies at 5 in a table of 8 bytes"},
		{name: "byte at the table's end", change: u16(12, 7), read: func(x Table) { x.Uint8(0, "byte", 0) }},
		{name: "byte beyond", change: u16(12, 8), read: func(x Table) { x.Bool(0, "byte", false) }, path: "Root.byte", at: 12, text: "field lies at 8"},
		{name: "field in the head", change: u16(12, 3), read: func(x Table) { x.Uint8(0, "byte", 0) }, path: "Root.byte", at: 12, text: "field lies at 3"},
		{name: "wide field", change: func([]byte) {}, read: func(x Table) { x.Uint64(0, "wide", 0) }, path: "Root.wide", at: 12, text: "field lies at 4 in a table of 8"},
		{name: "list to the end", change: u32(24, 4), read: bytes},
		{name: "list beyond the end", change: u32(24, 5), read: bytes, path: "Root.list", at: 24, text: "vector of 5 elements of 1 bytes in the last 4 bytes"},
		{name: "words to the end", change: u32(24, 1), read: func(x Table) { x.Ints(0, "list") }},
		{name: "words beyond the end", change: u32(24, 2), read: func(x Table) { x.Ints(0, "list") }, path: "Root.list", at: 24, text: "vector of 2 elements of 4 bytes"},
		{name: "halves beyond the end", change: u32(24, 3), read: func(x Table) { x.Raw(0, "list", 2) }, path: "Root.list", at: 24, text: "vector of 3 elements of 2 bytes"},
		{name: "wide words beyond the end", change: u32(24, 1), read: func(x Table) { x.Int64s(0, "list") }, path: "Root.list", at: 24, text: "vector of 1 elements of 8 bytes"},
		{name: "list nowhere", change: u32(20, 0), read: bytes, path: "Root.list", at: 20, text: "offset 0"},
		{name: "list past the end", change: u32(20, 9), read: bytes, path: "Root.list", at: 20, text: "offset 9 leads to byte 29"},
		{name: "inner table", change: func([]byte) {}, read: func(x Table) { x.Table(0, "inner") }, path: "Root.inner", at: 24, text: "table of 0 bytes"},
		{name: "element", change: all(u32(24, 1), u32(28, 1)), read: func(x Table) { x.Tables(0, "kids").At(0) }, path: "Root.kids[0]", at: 28, text: "offset 1 leads to byte 29"},
		{name: "said by the caller", change: func([]byte) {}, read: func(x Table) { x.Fail("x", "is %d", 7) }, path: "Root.x", at: 16, text: "is 7"},
	} {
		r := NewReader(buffer(tt.change))
		x := r.Root("Root", "TEST")
		if tt.read != nil {
			tt.read(x)
		}
		var e *Error
		switch err := r.Err(); {
		case tt.text == "":
			if err != nil || !x.Valid() {
				t.Errorf("%s: %v", tt.name, err)
			}
		case !errors.As(err, &e) || e.Path != tt.path || e.Offset != tt.at || !strings.Contains(e.Err.Error(), tt.text):
			t.Errorf("%s: %v, want %q at %s, byte %d", tt.name, err, tt.text, tt.path, tt.at)
		default:
			// The first error stays, and nothing is read after it.
			x.Fail("y", "another")
			if !errors.Is(r.Err(), err) || x.Uint32(0, "", 5) != 5 || x.Tables(0, "").Len() != 0 || r.Spend(0, x) {
				t.Errorf("%s: after an error reading goes on: %v", tt.name, r.Err())
			}
		}
	}
	for n, text := range map[int]string{7: "7 bytes are too few", 8: "outside the 8 bytes"} {
		r := NewReader(buffer(func([]byte) {})[:n])
		if x := r.Root("Root", "TEST"); x.Valid() || r.Err() == nil || !strings.Contains(r.Err().Error(), text) {
			t.Errorf("%d bytes: %v", n, r.Err())
		}
	}
	r := NewReader(buffer(func([]byte) {}))
	if x := r.Root("Root", "TSET"); x.Valid() || r.Err().Error() != `Root at byte 4: identifier is "TEST", not "TSET"` {
		t.Error(r.Err())
	}
	Table{}.Fail("x", "nobody hears it")
	if (Table{}).Has(0) || (Table{}).Tables(0, "").Len() != 0 {
		t.Error("no table has fields")
	}
}

// TestBudget is eight bytes for each of the file and 65,536.
func TestBudget(t *testing.T) {
	t.Parallel()
	fresh := func() (*Reader, Table) {
		r := NewReader(buffer(func(b []byte) { b[24] = 1 }))
		return r, r.Root("Root", "TEST") // a table costs 64 and its 8 bytes
	}
	const left = 8*32 + 1<<16 - 64 - 8
	r, x := fresh()
	if !r.Spend(left, x) || r.Spend(1, x) || r.Err() == nil || !strings.Contains(r.Err().Error(), "Root at byte 16: the same bytes are referred to too often for a file of 32 bytes") {
		t.Errorf("budget: %v", r.Err())
	}
	for name, tt := range map[string]struct {
		cost int
		read func(Table)
	}{
		"ints":   {8 + 4, func(x Table) { x.Ints(0, "") }},
		"text":   {8 + 4, func(x Table) { x.String(0, "") }},
		"halves": {8 + 4, func(x Table) { x.Raw(0, "", 2) }},
		"tables": {8 + 4, func(x Table) { x.Tables(0, "") }},
		"bytes":  {0, func(x Table) { x.Bytes(0, "") }},
	} {
		for _, more := range []int{0, 1} {
			r, x := fresh()
			r.Spend(left-tt.cost+more, x)
			tt.read(x)
			if (r.Err() != nil) != (more > 0) {
				t.Errorf("%s with %d too much spent: %v", name, more, r.Err())
			}
		}
	}
}

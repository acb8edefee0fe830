package flatbuffer

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
	"unsafe"
)

// vector returns the position of the first element and the number of elements.
func (t Table) vector(slot int, name string, width int) (pos, n int, ok bool) {
	p := t.field(slot, name, 4)
	if p == 0 {
		return 0, 0, false
	}
	v, ok := t.r.follow(t.at, name, p)
	if !ok {
		return 0, 0, false
	}
	count := uint64(binary.LittleEndian.Uint32(t.r.data[v:]))
	if left := uint64(len(t.r.data) - v - 4); count*uint64(width) > left {
		t.r.fail(t.at, name, v, "vector of %d elements of %d bytes in the last %d bytes: truncated or damaged", count, width, left)
		return 0, 0, false
	}
	return v + 4, int(count), true
}

// counted is vector for elements that are copied: it charges the budget.
func (t Table) counted(slot int, name string, width int) (pos, n int, ok bool) {
	if pos, n, ok = t.vector(slot, name, width); ok {
		// Integers are stored as 64-bit words.
		ok = t.r.spend(int64(vectorCost+n*max(width, 4)), t.at, pos)
	}
	return pos, n, ok
}

// Bytes returns a byte vector without a copy, and its offset in the buffer; nil and -1 if the
// field is absent.
func (t Table) Bytes(slot int, name string) ([]byte, int64) {
	p, n, ok := t.vector(slot, name, 1)
	if !ok {
		return nil, -1
	}
	return t.r.data[p : p+n : p+n], int64(p)
}

// sharedValues is the number of values of short lists per block: there are thousands of lists,
// and each allocation takes time.
const sharedValues = 256

// cut returns space for n values from a block that short lists share.
func cut[T any](block *[]T, n int) []T {
	if n > sharedValues/4 {
		return make([]T, n)
	}
	if len(*block) < n {
		*block = make([]T, sharedValues)
	}
	out := (*block)[:n:n]
	*block = (*block)[n:]
	return out
}

// String reads a string. Invalid UTF-8 is replaced.
func (t Table) String(slot int, name string) string {
	p, n, ok := t.counted(slot, name, 1)
	if !ok {
		return ""
	}
	b := t.r.data[p : p+n]
	if n > 0 && utf8.Valid(b) {
		c := cut(&t.r.chars, n)
		copy(c, b)
		return unsafe.String(&c[0], n)
	}
	return string([]rune(string(b)))
}

// Ints reads a vector of 32-bit integers, nil when absent or empty.
func (t Table) Ints(slot int, name string) []int {
	p, n, ok := t.counted(slot, name, 4)
	if !ok || n == 0 {
		return nil
	}
	out, b := cut(&t.r.ints, n), t.r.data[p:][:4*n]
	for i := range out {
		out[i] = int(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return out
}

// Raw returns a vector of numbers of the given width as a view of the file.
func (t Table) Raw(slot int, name string, width int) []byte {
	p, n, ok := t.counted(slot, name, width)
	if !ok || n == 0 {
		return nil
	}
	return t.r.data[p : p+n*width : p+n*width]
}

// Int64s reads a vector of 64-bit integers.
func (t Table) Int64s(slot int, name string) []int64 {
	p, n, ok := t.counted(slot, name, 8)
	if !ok || n == 0 {
		return nil
	}
	out, b := cut(&t.r.wides, n), t.r.data[p:][:8*n]
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}

// Float32s reads a vector of 32-bit floats.
func (t Table) Float32s(slot int, name string) []float32 {
	p, n, ok := t.counted(slot, name, 4)
	if !ok || n == 0 {
		return nil
	}
	out, b := cut(&t.r.floats, n), t.r.data[p:][:4*n]
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// Tables is a vector of tables.
type Tables struct {
	t    Table
	name string
	pos  int
	n    int
}

// Tables reads a vector of tables, empty if the field is absent.
func (t Table) Tables(slot int, name string) Tables {
	p, n, ok := t.counted(slot, name, 4)
	if !ok {
		return Tables{}
	}
	return Tables{t: t, name: name, pos: p, n: n}
}

// Len is the number of tables, 0 once the reader has an error.
func (v Tables) Len() int {
	if v.t.r == nil || v.t.r.err != nil {
		return 0
	}
	return v.n
}

// At returns table i, which must be below Len.
func (v Tables) At(i int) Table {
	if i < 0 || i >= v.Len() {
		return Table{}
	}
	return v.t.r.table(v.t.r.step(v.t.at, v.name, i), "", v.pos+4*i)
}

// VectorAt returns the offset of a vector's first element and the number of elements, for
// in-place changes of a file; ok is false if the field is absent.
func (t Table) VectorAt(slot int, name string, width int) (pos, n int, ok bool) {
	return t.vector(slot, name, width)
}

// FieldAt returns the offset of a stored field; ok is false if it is absent.
func (t Table) FieldAt(slot int, name string, width int) (pos int, ok bool) {
	pos = t.field(slot, name, width)
	return pos, pos != 0
}

package flatbuffer

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Error reports what is wrong with a buffer and where.
type Error struct {
	Path   string // such as "Model.subgraphs[0].tensors[3].shape"
	Offset int64  // byte offset in the buffer
	Err    error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s at byte %d: %v", e.Path, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Reader checks and reads one buffer.
type Reader struct {
	data   []byte
	err    error
	budget int64
	nodes  []node // block allocation of path steps, which are numerous
	// Block allocation of short lists, see cut.
	chars  []byte
	ints   []int
	wides  []int64
	floats []float32
}

// Minimum cost of a visit, in bytes of the budget: an object in memory is larger than its
// encoding.
const (
	tableCost     = 64
	vectorCost    = 8
	budgetFactor  = 8
	budgetMinimum = 1 << 16
)

// NewReader starts reading data, which must stay unchanged.
func NewReader(data []byte) *Reader {
	return &Reader{data: data, budget: int64(len(data))*budgetFactor + budgetMinimum}
}

// Err returns the first error, nil if absent.
func (r *Reader) Err() error { return r.err }

// Spend charges n bytes to the budget, for decoders that copy data themselves. It is false, with
// an error recorded, when the budget is used up.
func (r *Reader) Spend(n int, at Table) bool { return r.spend(int64(n), at.at, at.pos) }

func (r *Reader) spend(n int64, at *node, pos int) bool {
	if r.err != nil {
		return false
	}
	if r.budget -= n; r.budget < 0 {
		r.fail(at, "", pos, "the same bytes are referred to too often for a file of %d bytes", len(r.data))
		return false
	}
	return true
}

func (r *Reader) fail(at *node, field string, pos int, format string, args ...any) {
	if r.err != nil {
		return
	}
	p := at.String()
	if field != "" {
		p += "." + field
	}
	r.err = &Error{Path: p, Offset: int64(pos), Err: fmt.Errorf(format, args...)}
}

// node is a step of the path to a table, for error messages.
type node struct {
	parent *node
	name   string
	index  int // -1 for a single table
}

// step creates a step of a path.
func (r *Reader) step(parent *node, name string, index int) *node {
	if len(r.nodes) == cap(r.nodes) {
		r.nodes = make([]node, 0, min(max(8, 2*cap(r.nodes)), 128))
	}
	r.nodes = append(r.nodes, node{parent, name, index})
	return &r.nodes[len(r.nodes)-1]
}

func (n *node) String() string {
	if n == nil {
		return ""
	}
	s := n.name
	if n.index >= 0 {
		s += "[" + strconv.Itoa(n.index) + "]"
	}
	if n.parent != nil {
		return n.parent.String() + "." + s
	}
	return s
}

// Table is a position in the buffer whose vtable has been checked. The zero
// Table has no fields; all its accessors return defaults.
type Table struct {
	r      *Reader
	at     *node
	pos    int
	vt     int // position of the vtable
	vtSize int
	size   int // of the inline part
}

// Root returns the root table; name begins the paths in errors. The identifier
// at byte 4 is checked when ident is not empty.
func (r *Reader) Root(name, ident string) Table {
	at := r.step(nil, name, -1)
	if len(r.data) < 8 {
		r.fail(at, "", 0, "%d bytes are too few for a FlatBuffer", len(r.data))
		return Table{}
	}
	if ident != "" && string(r.data[4:8]) != ident {
		r.fail(at, "", 4, "identifier is %q, not %q", r.data[4:8], ident)
		return Table{}
	}
	return r.table(at, "", 0)
}

// table follows the offset stored at pos.
func (r *Reader) table(at *node, field string, pos int) Table {
	if r.err != nil {
		return Table{}
	}
	p, ok := r.follow(at, field, pos)
	if !ok {
		return Table{}
	}
	if p > len(r.data)-4 {
		r.fail(at, field, pos, "table at byte %d lies outside the %d bytes: truncated or damaged", p, len(r.data))
		return Table{}
	}
	vt := p - int(int32(binary.LittleEndian.Uint32(r.data[p:])))
	if vt < 0 || vt > len(r.data)-4 {
		r.fail(at, field, p, "vtable at byte %d lies outside the %d bytes: truncated or damaged", vt, len(r.data))
		return Table{}
	}
	t := Table{
		r: r, at: at, pos: p, vt: vt,
		vtSize: int(binary.LittleEndian.Uint16(r.data[vt:])),
		size:   int(binary.LittleEndian.Uint16(r.data[vt+2:])),
	}
	switch {
	case t.vtSize < 4 || t.vtSize&1 != 0 || vt+t.vtSize > len(r.data):
		r.fail(at, field, vt, "vtable of %d bytes is not valid", t.vtSize)
		return Table{}
	case t.size < 4 || p+t.size > len(r.data):
		r.fail(at, field, p, "table of %d bytes reaches past the end: truncated or damaged", t.size)
		return Table{}
	}
	if !r.spend(int64(tableCost+t.size), at, p) {
		return Table{}
	}
	return t
}

// follow reads the offset at pos, which is inside the buffer, and returns its target.
func (r *Reader) follow(at *node, field string, pos int) (int, bool) {
	off := binary.LittleEndian.Uint32(r.data[pos:])
	if off == 0 || int64(pos)+int64(off) > int64(len(r.data)-4) {
		r.fail(at, field, pos, "offset %d leads to byte %d, outside the %d bytes: truncated or damaged", off, uint64(pos)+uint64(off), len(r.data))
		return 0, false
	}
	return pos + int(off), true
}

// Valid reports whether the table exists.
func (t Table) Valid() bool { return t.r != nil }

// Fail records an error about a field that was read correctly but is invalid.
func (t Table) Fail(field, format string, args ...any) {
	if t.r != nil {
		t.r.fail(t.at, field, t.pos, format, args...)
	}
}

// field returns the position of a field of the given width, 0 if it is absent.
func (t Table) field(slot int, name string, width int) int {
	if t.r == nil || t.r.err != nil {
		return 0
	}
	o := 4 + 2*slot
	if o+2 > t.vtSize {
		return 0
	}
	f := int(binary.LittleEndian.Uint16(t.r.data[t.vt+o:]))
	if f == 0 {
		return 0
	}
	if f < 4 || f+width > t.size {
		t.r.fail(t.at, name, t.vt+o, "field lies at %d in a table of %d bytes", f, t.size)
		return 0
	}
	return t.pos + f
}

// Has reports whether the field is stored.
func (t Table) Has(slot int) bool { return t.field(slot, "", 1) != 0 }

// Uint8 reads a byte field.
func (t Table) Uint8(slot int, name string, def uint8) uint8 {
	if p := t.field(slot, name, 1); p != 0 {
		return t.r.data[p]
	}
	return def
}

// Int8 reads a signed byte field.
func (t Table) Int8(slot int, name string, def int8) int8 {
	return int8(t.Uint8(slot, name, uint8(def)))
}

// Bool reads a boolean.
func (t Table) Bool(slot int, name string, def bool) bool {
	if p := t.field(slot, name, 1); p != 0 {
		return t.r.data[p] != 0
	}
	return def
}

// Uint32 reads a 32-bit field.
func (t Table) Uint32(slot int, name string, def uint32) uint32 {
	if p := t.field(slot, name, 4); p != 0 {
		return binary.LittleEndian.Uint32(t.r.data[p:])
	}
	return def
}

// Int32 reads a signed 32-bit field.
func (t Table) Int32(slot int, name string, def int32) int32 {
	return int32(t.Uint32(slot, name, uint32(def)))
}

// Float32 reads a 32-bit float field.
func (t Table) Float32(slot int, name string, def float32) float32 {
	return math.Float32frombits(t.Uint32(slot, name, math.Float32bits(def)))
}

// Uint64 reads a 64-bit field.
func (t Table) Uint64(slot int, name string, def uint64) uint64 {
	if p := t.field(slot, name, 8); p != 0 {
		return binary.LittleEndian.Uint64(t.r.data[p:])
	}
	return def
}

// Int64 reads a signed 64-bit field.
func (t Table) Int64(slot int, name string, def int64) int64 {
	return int64(t.Uint64(slot, name, uint64(def)))
}

// Table reads a table field; the result is not Valid if it is absent.
func (t Table) Table(slot int, name string) Table {
	p := t.field(slot, name, 4)
	if p == 0 {
		return Table{}
	}
	return t.r.table(t.r.step(t.at, name, -1), "", p)
}

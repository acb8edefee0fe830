package flatbuffer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Object is a table to be written. Fields are set by slot, in any order; fields that equal their
// default are omitted, as in every FlatBuffer writer.
type Object struct{ fields []slotValue }

type slotValue struct {
	slot, size int
	word       uint64
	child      any // *Object, []*Object or blob; nil for scalars
}

// blob is a vector of scalars or a string.
type blob struct {
	data      []byte
	count     int
	align     int
	terminate bool
}

func (o *Object) scalar(slot, size int, word uint64, skip bool) {
	if !skip {
		o.fields = append(o.fields, slotValue{slot: slot, size: size, word: word})
	}
}

func (o *Object) child(slot int, c any) {
	o.fields = append(o.fields, slotValue{slot: slot, size: 4, child: c})
}

// Uint8 sets a byte.
func (o *Object) Uint8(slot int, v, def uint8) { o.scalar(slot, 1, uint64(v), v == def) }

// Bool sets a boolean.
func (o *Object) Bool(slot int, v, def bool) {
	var w uint64
	if v {
		w = 1
	}
	o.scalar(slot, 1, w, v == def)
}

// Int32 sets a signed or unsigned 32-bit field.
func (o *Object) Int32(slot int, v, def int32) { o.scalar(slot, 4, uint64(uint32(v)), v == def) }

// Float32 sets a float.
func (o *Object) Float32(slot int, v, def float32) {
	o.scalar(slot, 4, uint64(math.Float32bits(v)), math.Float32bits(v) == math.Float32bits(def))
}

// Int64 sets a 64-bit field.
func (o *Object) Int64(slot int, v, def int64) { o.scalar(slot, 8, uint64(v), v == def) }

// Table sets a table; nil omits it.
func (o *Object) Table(slot int, c *Object) {
	if c != nil {
		o.child(slot, c)
	}
}

// Tables sets a vector of tables, possibly empty.
func (o *Object) Tables(slot int, c []*Object) { o.child(slot, c) }

// String sets a string, possibly empty.
func (o *Object) String(slot int, s string) {
	o.child(slot, blob{data: []byte(s), count: len(s), align: 1, terminate: true})
}

// Bytes sets a byte vector whose first byte is aligned to align.
func (o *Object) Bytes(slot int, b []byte, align int) {
	o.child(slot, blob{data: b, count: len(b), align: align})
}

// Int32s sets a vector of 32-bit integers, possibly empty.
func Int32s[T ~int | ~int32 | ~int64](o *Object, slot int, v []T) {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	o.child(slot, blob{data: b, count: len(v), align: 4})
}

// Uint16s sets a vector of 16-bit unsigned integers.
func (o *Object) Uint16s(slot int, v []uint16) {
	b := make([]byte, 0, 2*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	o.child(slot, blob{data: b, count: len(v), align: 2})
}

// Int64s sets a vector of 64-bit integers.
func (o *Object) Int64s(slot int, v []int64) {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	o.child(slot, blob{data: b, count: len(v), align: 8})
}

// Float32s sets a vector of floats.
func (o *Object) Float32s(slot int, v []float32) {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	o.child(slot, blob{data: b, count: len(v), align: 4})
}

// Build writes the tables front to back: all references point forward, and equal vtables are
// written once.
func Build(root *Object, ident string) ([]byte, error) {
	if len(ident) != 4 {
		return nil, fmt.Errorf("identifier %q is not four bytes", ident)
	}
	w := &writer{out: append(make([]byte, 4), ident...), vtables: map[string]int{}}
	w.refer(0, root)
	for len(w.queue) > 0 {
		p := w.queue[0]
		w.queue = w.queue[1:]
		w.write(p)
	}
	if len(w.out) > math.MaxInt32 {
		return nil, fmt.Errorf("%d bytes are more than the 2 GiB of a FlatBuffer", len(w.out))
	}
	return w.out, nil
}

type writer struct {
	out     []byte
	queue   []pending
	vtables map[string]int
}

// pending is an offset to be filled in and its target.
type pending struct {
	at    int
	child any
}

func (w *writer) refer(at int, child any) { w.queue = append(w.queue, pending{at, child}) }

// pad makes the position plus extra a multiple of align.
func (w *writer) pad(align, extra int) {
	for (len(w.out)+extra)%align != 0 {
		w.out = append(w.out, 0)
	}
}

func (w *writer) write(p pending) {
	switch c := p.child.(type) {
	case blob:
		w.pad(4, 0)
		w.pad(max(c.align, 4), 4)
		w.patch(p.at)
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(c.count))
		w.out = append(w.out, c.data...)
		if c.terminate {
			w.out = append(w.out, 0)
		}
	case []*Object:
		w.pad(4, 0)
		w.patch(p.at)
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(len(c)))
		for _, o := range c {
			w.refer(len(w.out), o)
			w.out = append(w.out, 0, 0, 0, 0)
		}
	case *Object:
		w.table(p.at, c)
	}
}

func (w *writer) patch(at int) {
	binary.LittleEndian.PutUint32(w.out[at:], uint32(len(w.out)-at))
}

func (w *writer) table(at int, o *Object) {
	// Wide fields first: at most one gap, before the first 8-byte field.
	fields := slices.Clone(o.fields)
	sorting.Stable(fields, func(a, b slotValue) int { return cmp.Compare(b.size, a.size) })
	size, slots := 4, 0
	place := make([]int, len(fields))
	for i, f := range fields {
		size = (size + f.size - 1) / f.size * f.size
		place[i] = size
		size += f.size
		slots = max(slots, f.slot+1)
	}
	vt := make([]byte, 4+2*slots)
	binary.LittleEndian.PutUint16(vt, uint16(len(vt)))
	binary.LittleEndian.PutUint16(vt[2:], uint16(size))
	for i, f := range fields {
		binary.LittleEndian.PutUint16(vt[4+2*f.slot:], uint16(place[i]))
	}
	v, known := w.vtables[string(vt)]
	if !known {
		w.pad(2, 0)
		v = len(w.out)
		w.vtables[string(vt)] = v
		w.out = append(w.out, vt...)
	}
	w.pad(8, 0)
	w.patch(at)
	pos := len(w.out)
	w.out = append(w.out, make([]byte, size)...)
	binary.LittleEndian.PutUint32(w.out[pos:], uint32(pos-v))
	for i, f := range fields {
		p := w.out[pos+place[i]:]
		switch {
		case f.child != nil:
			w.refer(pos+place[i], f.child)
		case f.size == 1:
			p[0] = byte(f.word)
		case f.size == 4:
			binary.LittleEndian.PutUint32(p, uint32(f.word))
		default:
			binary.LittleEndian.PutUint64(p, f.word)
		}
	}
}

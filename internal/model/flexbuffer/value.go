// Package flexbuffer reads and writes FlexBuffers, the self-describing format in which TFLite
// stores the options of custom operators.
//
// Reading is lazy and checks every access: nothing panics, and a value that does not exist or has
// another type gives the zero value and false.
package flexbuffer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Type is the type of a value as stored.
type Type uint8

// Types of values.
const (
	Null Type = iota
	Int
	Uint
	Float
	Key
	String
	IndirectInt
	IndirectUint
	IndirectFloat
	Map
	Vector
	VectorInt
	VectorUint
	VectorFloat
	VectorKey
	VectorString
	VectorInt2
	VectorUint2
	VectorFloat2
	VectorInt3
	VectorUint3
	VectorFloat3
	VectorInt4
	VectorUint4
	VectorFloat4
	Blob
	Bool
	VectorBool Type = 36
)

// Value is a position in a buffer. The zero Value is null.
type Value struct {
	data  []byte
	pos   int  // of the value, or of the offset to it
	width int  // width at pos
	inner int  // width of the offset's target
	typ   Type // as stored
}

// Parse returns the root value.
func Parse(data []byte) (Value, error) {
	if len(data) < 3 {
		return Value{}, errors.New("flexbuffer: shorter than three bytes")
	}
	width, packed := int(data[len(data)-1]), data[len(data)-2]
	if width != 1 && width != 2 && width != 4 && width != 8 || width > len(data)-2 {
		return Value{}, fmt.Errorf("flexbuffer: root of %d bytes", width)
	}
	return value(data, len(data)-2-width, width, packed), nil
}

func value(data []byte, pos, width int, packed byte) Value {
	return Value{data: data, pos: pos, width: width, inner: 1 << (packed & 3), typ: Type(packed >> 2)}
}

// unsigned reads a little-endian number of a width.
func unsigned(data []byte, pos, width int) (uint64, bool) {
	if pos < 0 || width <= 0 || pos > len(data)-width {
		return 0, false
	}
	switch width {
	case 1:
		return uint64(data[pos]), true
	case 2:
		return uint64(binary.LittleEndian.Uint16(data[pos:])), true
	case 4:
		return uint64(binary.LittleEndian.Uint32(data[pos:])), true
	case 8:
		return binary.LittleEndian.Uint64(data[pos:]), true
	}
	return 0, false
}

func signed(data []byte, pos, width int) (int64, bool) {
	u, ok := unsigned(data, pos, width)
	shift := 64 - 8*width
	return int64(u<<shift) >> shift, ok
}

func float(data []byte, pos, width int) (float64, bool) {
	u, ok := unsigned(data, pos, width)
	switch width {
	case 4:
		return float64(math.Float32frombits(uint32(u))), ok
	case 8:
		return math.Float64frombits(u), ok
	}
	return 0, false
}

// follow returns the target of the backward offset at pos.
func follow(data []byte, pos, width int) (int, bool) {
	off, ok := unsigned(data, pos, width)
	if !ok || off > uint64(pos) {
		return 0, false
	}
	return pos - int(off), true
}

// number returns the position of the value's number, following indirection.
func (v Value) number() (typ Type, pos, width int, ok bool) {
	switch v.typ {
	case Int, Uint, Float, Bool:
		return v.typ, v.pos, v.width, true
	case IndirectInt, IndirectUint, IndirectFloat:
		pos, ok = follow(v.data, v.pos, v.width)
		return v.typ - IndirectInt + Int, pos, v.inner, ok
	}
	return Null, 0, 0, false
}

// Int reads a number as an integer; floats are truncated.
func (v Value) Int() (int64, bool) {
	typ, pos, width, ok := v.number()
	if !ok {
		return 0, false
	}
	switch typ {
	case Int:
		return signed(v.data, pos, width)
	case Uint, Bool:
		u, ok := unsigned(v.data, pos, width)
		return int64(u), ok
	}
	f, ok := float(v.data, pos, width)
	if !ok || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// Float reads a number as a float.
func (v Value) Float() (float64, bool) {
	typ, pos, width, ok := v.number()
	if !ok {
		return 0, false
	}
	switch typ {
	case Int:
		i, ok := signed(v.data, pos, width)
		return float64(i), ok
	case Uint, Bool:
		u, ok := unsigned(v.data, pos, width)
		return float64(u), ok
	}
	return float(v.data, pos, width)
}

// Bool reads a boolean, or whether a number is not zero.
func (v Value) Bool() (value, ok bool) {
	f, ok := v.Float()
	return f != 0, ok
}

// Bytes reads a blob, a string or a key without a copy.
func (v Value) Bytes() ([]byte, bool) {
	pos, ok := follow(v.data, v.pos, v.width)
	if !ok {
		return nil, false
	}
	switch v.typ {
	case Key:
		n := bytes.IndexByte(v.data[pos:], 0)
		if n < 0 {
			return nil, false
		}
		return v.data[pos : pos+n : pos+n], true
	case String, Blob:
		n, ok := unsigned(v.data, pos-v.inner, v.inner)
		if !ok || n > uint64(len(v.data)-pos) {
			return nil, false
		}
		return v.data[pos : pos+int(n) : pos+int(n)], true
	}
	return nil, false
}

// Text reads a string or a key.
func (v Value) Text() (string, bool) {
	if v.typ != String && v.typ != Key {
		return "", false
	}
	b, ok := v.Bytes()
	if !ok || !utf8.Valid(b) {
		return "", false
	}
	return string(b), true
}

// list is the position of a vector, with elements of one type or a type byte each.
type list struct {
	pos, n int
	typ    Type // of typed vectors, Null otherwise
	each   bool
}

func (v Value) list() (l list, ok bool) {
	l.pos, ok = follow(v.data, v.pos, v.width)
	if !ok {
		return l, false
	}
	switch t := v.typ; {
	case t == Map || t == Vector:
		l.each = true
	case t >= VectorInt && t <= VectorString:
		l.typ = t - VectorInt + Int
	case t == VectorBool:
		l.typ = Bool
	case t >= VectorInt2 && t <= VectorFloat4:
		l.typ = (t-VectorInt2)%3 + Int
		l.n = int(t-VectorInt2)/3 + 2
		return l, l.pos+l.n*v.inner <= len(v.data)
	default:
		return l, false
	}
	n, ok := unsigned(v.data, l.pos-v.inner, v.inner)
	size := uint64(v.inner)
	if l.each {
		size++
	}
	if !ok || n > uint64(len(v.data)-l.pos)/size {
		return l, false
	}
	l.n = int(n)
	return l, true
}

// Len is the number of elements of a vector or entries of a map, 0 for others.
func (v Value) Len() int {
	l, ok := v.list()
	if !ok {
		return 0
	}
	return l.n
}

// At returns an element of a vector or a value of a map, null outside of its length.
func (v Value) At(i int) Value {
	l, ok := v.list()
	if !ok || i < 0 || i >= l.n {
		return Value{}
	}
	if l.each {
		return value(v.data, l.pos+i*v.inner, v.inner, v.data[l.pos+l.n*v.inner+i])
	}
	// Strings of a typed vector have sizes of the vector's width.
	return Value{data: v.data, pos: l.pos + i*v.inner, width: v.inner, inner: v.inner, typ: l.typ}
}

// KeyAt returns the key of a map's entry.
func (v Value) KeyAt(i int) (string, bool) {
	l, ok := v.list()
	if !ok || v.typ != Map || i < 0 || i >= l.n {
		return "", false
	}
	// Before the values: offset to the keys, width of the keys, length.
	keys, ok := follow(v.data, l.pos-3*v.inner, v.inner)
	if !ok {
		return "", false
	}
	width, ok := unsigned(v.data, l.pos-2*v.inner, v.inner)
	if !ok || width > 8 {
		return "", false
	}
	return Value{data: v.data, pos: keys + i*int(width), width: int(width), inner: 1, typ: Key}.Text()
}

// Get returns the value of a map entry. Maps are short: it compares each key.
func (v Value) Get(key string) (Value, bool) {
	if v.typ != Map {
		return Value{}, false
	}
	for i := range v.Len() {
		if k, ok := v.KeyAt(i); ok && k == key {
			return v.At(i), true
		}
	}
	return Value{}, false
}

// GetInt returns an integer entry of a map, def if it is absent.
func (v Value) GetInt(key string, def int64) int64 {
	if e, ok := v.Get(key); ok {
		if i, ok := e.Int(); ok {
			return i
		}
	}
	return def
}

// GetFloat returns a float entry of a map, def if it is absent.
func (v Value) GetFloat(key string, def float64) float64 {
	if e, ok := v.Get(key); ok {
		if f, ok := e.Float(); ok {
			return f
		}
	}
	return def
}

// GetBool returns a boolean entry of a map, def if it is absent.
func (v Value) GetBool(key string, def bool) bool {
	if e, ok := v.Get(key); ok {
		if b, ok := e.Bool(); ok {
			return b
		}
	}
	return def
}

// GetText returns a string entry of a map, def if it is absent.
func (v Value) GetText(key, def string) string {
	if e, ok := v.Get(key); ok {
		if s, ok := e.Text(); ok {
			return s
		}
	}
	return def
}

// GetInts returns a vector of integers in a map, nil if it is absent or has another type.
func (v Value) GetInts(key string) []int64 {
	e, ok := v.Get(key)
	if !ok {
		return nil
	}
	var out []int64
	for i := range e.Len() {
		x, ok := e.At(i).Int()
		if !ok {
			return nil
		}
		out = append(out, x)
	}
	return out
}

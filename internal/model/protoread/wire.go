package protoread

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// MaxDepth bounds the nesting of messages, as in protocol-buffer libraries.
const MaxDepth = 100

// Error is a malformed message and its byte offset in the file.
type Error struct {
	Offset int64
	Msg    string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (byte %d)", e.Msg, e.Offset) }

// Reader walks the fields of one message in file order. After [Reader.Next] has
// returned true the accessors read the current field; the first error ends the
// walk and stays in [Reader.Err].
type Reader struct {
	buf   []byte
	pos   int
	base  int64 // offset of buf in the file
	depth int
	err   error

	num protowire.Number
	typ protowire.Type
	tag int    // position of the current field's tag in buf
	val int    // position of its value in buf
	u   uint64 // value of a varint or fixed field
	b   []byte // value of a length-delimited field
}

// NewReader walks the whole of data as one message at offset 0.
func NewReader(data []byte) Reader { return Reader{buf: data} }

// Next moves to the next field and reports whether there is one.
func (r *Reader) Next() bool {
	if r.err != nil || r.pos >= len(r.buf) {
		return false
	}
	r.tag = r.pos
	num, typ, n := protowire.ConsumeTag(r.buf[r.pos:])
	if n < 0 {
		return r.fail(r.pos, "bad field tag")
	}
	r.pos += n
	r.num, r.typ, r.val, r.b, r.u = num, typ, r.pos, nil, 0
	rest := r.buf[r.pos:]
	switch typ {
	case protowire.VarintType:
		r.u, n = protowire.ConsumeVarint(rest)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(rest)
		r.u = uint64(v)
	case protowire.Fixed64Type:
		r.u, n = protowire.ConsumeFixed64(rest)
	case protowire.BytesType:
		var size uint64
		size, n = protowire.ConsumeVarint(rest)
		if n < 0 {
			break
		}
		if size > uint64(len(rest)-n) {
			return r.fail(r.pos, fmt.Sprintf("field %d claims %d bytes where %d are left", num, size, len(rest)-n))
		}
		r.val += n
		end := n + int(size)
		r.b = rest[n:end:end]
		n = end
	default:
		return r.fail(r.tag, fmt.Sprintf("field %d has wire type %d, which no current writer uses", num, typ))
	}
	if n < 0 {
		return r.fail(r.pos, fmt.Sprintf("field %d is cut short or malformed", num))
	}
	r.pos += n
	return true
}

func (r *Reader) fail(pos int, msg string) bool {
	if r.err == nil {
		r.err = &Error{Offset: r.base + int64(pos), Msg: msg}
	}
	return false
}

// Messages iterates over the remaining fields with a number, as messages.
func (r Reader) Messages(num int) iter.Seq[Reader] {
	return func(yield func(Reader) bool) {
		for r.Next() {
			if r.Num() == num && !yield(r.Message()) {
				return
			}
		}
	}
}

// Err returns what ended the walk early, nil at the regular end.
func (r *Reader) Err() error { return r.err }

// Num is the number of the current field.
func (r *Reader) Num() int { return int(r.num) }

// Offset is the offset of the current field's value in the file; before the first Next it is the
// offset of the message.
func (r *Reader) Offset() int64 { return r.base + int64(r.val) }

// Start is the offset of the message in the file.
func (r *Reader) Start() int64 { return r.base }

func (r *Reader) want(t protowire.Type, what string) bool {
	if r.typ == t {
		return true
	}
	return r.fail(r.tag, fmt.Sprintf("field %d is not %s (wire type %d)", r.num, what, r.typ))
}

// Int reads the current field as a varint integer.
func (r *Reader) Int() int64 {
	if !r.want(protowire.VarintType, "an integer") {
		return 0
	}
	return int64(r.u)
}

// Float reads the current field as a 32-bit float.
func (r *Reader) Float() float32 {
	if !r.want(protowire.Fixed32Type, "a float") {
		return 0
	}
	return math.Float32frombits(uint32(r.u))
}

// Bytes returns the current field's bytes, a view of the file. It is never nil
// for a field that is present.
func (r *Reader) Bytes() []byte {
	if !r.want(protowire.BytesType, "bytes") || r.b == nil {
		return []byte{}
	}
	return r.b
}

// Str reads the current field as a string, a copy.
func (r *Reader) Str() string { return string(r.Bytes()) }

// Message returns a reader of the current field as a message.
func (r *Reader) Message() Reader {
	if !r.want(protowire.BytesType, "a message") {
		return Reader{err: r.err}
	}
	if r.depth+1 > MaxDepth {
		r.fail(r.tag, fmt.Sprintf("messages nest deeper than %d", MaxDepth))
		return Reader{err: r.err}
	}
	return Reader{buf: r.b, base: r.base + int64(r.val), depth: r.depth + 1}
}

// Scan reads the remaining fields of the message and returns [Reader.Err]. fields alternates field
// numbers (int) and pointers that receive the values: *int64, *uint64 or *bool for an integer,
// *float64 for a 32-bit float, *[]byte or *string for bytes. A *[]int64 receives all integers of
// equal fields, and a func(Reader) is called with each inner message. Other fields are skipped;
// the last of equal numbers counts.
func (r *Reader) Scan(fields ...any) error {
	for r.Next() {
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i].(int) != r.Num() {
				continue
			}
			switch to := fields[i+1].(type) {
			case *int64:
				*to = r.Int()
			case *uint64:
				*to = uint64(r.Int())
			case *bool:
				*to = r.Int() != 0
			case *float64:
				*to = float64(r.Float())
			case *[]int64:
				*to = r.Ints(*to)
			case func(Reader):
				to(r.Message())
			case *[]byte:
				*to = r.Bytes()
			case *string:
				*to = r.Str()
			default:
				// naming the type would move variables to the heap
				panic("protoread: Scan into a type that it does not support")
			}
		}
	}
	return r.err
}

// Ints appends the current field's integers, packed or single, to dst.
func (r *Reader) Ints(dst []int64) []int64 {
	if r.typ == protowire.VarintType {
		return append(dst, int64(r.u))
	}
	if !r.want(protowire.BytesType, "a list of integers") {
		return dst
	}
	n := 0
	for _, c := range r.b {
		if c < 0x80 {
			n++
		}
	}
	dst = slices.Grow(dst, n)
	for b := r.b; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			r.fail(r.val+len(r.b)-len(b), "malformed integer in a packed list")
			return dst
		}
		dst = append(dst, int64(v))
		b = b[n:]
	}
	return dst
}

// Floats appends the current field's 32-bit floats, packed or single, to dst.
func (r *Reader) Floats(dst []float32) []float32 {
	if r.typ == protowire.Fixed32Type {
		return append(dst, math.Float32frombits(uint32(r.u)))
	}
	if !r.want(protowire.BytesType, "a list of floats") {
		return dst
	}
	if len(r.b)%4 != 0 {
		r.fail(r.val, fmt.Sprintf("packed floats take %d bytes, not a multiple of 4", len(r.b)))
		return dst
	}
	dst = slices.Grow(dst, len(r.b)/4)
	for b := r.b; len(b) > 0; b = b[4:] {
		v, _ := protowire.ConsumeFixed32(b)
		dst = append(dst, math.Float32frombits(v))
	}
	return dst
}

// Doubles appends the current field's 64-bit floats, packed or single, to dst.
func (r *Reader) Doubles(dst []float64) []float64 {
	if r.typ == protowire.Fixed64Type {
		return append(dst, math.Float64frombits(r.u))
	}
	if !r.want(protowire.BytesType, "a list of doubles") {
		return dst
	}
	if len(r.b)%8 != 0 {
		r.fail(r.val, fmt.Sprintf("packed doubles take %d bytes, not a multiple of 8", len(r.b)))
		return dst
	}
	dst = slices.Grow(dst, len(r.b)/8)
	for b := r.b; len(b) > 0; b = b[8:] {
		v, _ := protowire.ConsumeFixed64(b)
		dst = append(dst, math.Float64frombits(v))
	}
	return dst
}

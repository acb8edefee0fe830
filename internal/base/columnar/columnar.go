// Package columnar stores long slices of numbers in a compact binary format, shared by the saved
// profile and the web page.
//
// An accompanying JSON text describes the columns (a list of [Ref]); the columns follow one
// another in the order of that list, little-endian, without gaps. The package imports the
// standard library only and knows nothing of profiles.
package columnar

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// Ref describes the place and encoding of a column.
type Ref struct {
	// Path is the place in the text: names of members and indices of lists.
	Path []any `json:"path"`
	// Type is the encoding.
	Type Code `json:"type"`
	// Length is the number of entries.
	Length int `json:"length"`
	// First is the first value of an NS column, in nanoseconds.
	First int64 `json:"first,omitzero"`
}

// Code is the encoding of a column.
type Code string

// Encodings.
const (
	F64 Code = "f64" // 64-bit floating point
	F32 Code = "f32" // 32-bit floating point
	I64 Code = "i64" // 64-bit integers
	I32 Code = "i32" // 32-bit integers
	I16 Code = "i16" // 16-bit integers
	I8  Code = "i8"  // 8-bit integers
	NS  Code = "ns"  // 32-bit steps from the value before, in nanoseconds, for seconds
)

// Width returns the number of bytes of an entry, 0 for an unknown code.
func (c Code) Width() int {
	return map[Code]int{F64: 8, F32: 4, I64: 8, I32: 4, I16: 2, I8: 1, NS: 4}[c]
}

// Number is the type of column values.
type Number interface{ int32 | int64 | float64 }

// Writer collects columns and writes them in sequence.
type Writer struct {
	Refs []Ref
	put  []func(io.Writer) error
	buf  []byte // of the column that is written
}

// Add adds a column. code is the encoding: I32 and I64 are narrowed to the required width, NS is
// for times and becomes F64 if they are not whole nanoseconds. The values are read when the
// columns are written.
func Add[T Number](c *Writer, code Code, values []T, path ...any) {
	ref := Ref{Path: slices.Clone(path), Type: code, Length: len(values)}
	switch code {
	case I32, I64:
		ref.Type = narrow(values)
	case NS:
		ref.Type, ref.First = steps(values, func(x, y float64) bool { return math.Abs(x-y) <= 1e-12 })
	}
	c.take(ref, write(c, ref, values))
}

// AddExact is [Add] for seconds that must be restored bit-exactly: whole nanoseconds are
// delta-encoded if that gives the same bits (which excludes negative zero), others are stored in
// full.
func AddExact(c *Writer, values []float64, path ...any) {
	ref := Ref{Path: slices.Clone(path), Type: F64, Length: len(values)}
	ref.Type, ref.First = steps(values, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
	c.take(ref, write(c, ref, values))
}

func (c *Writer) take(ref Ref, put func(io.Writer) error) {
	c.Refs = append(c.Refs, ref)
	c.put = append(c.put, put)
}

func write[T Number](c *Writer, ref Ref, values []T) func(io.Writer) error {
	return func(w io.Writer) error {
		const room = 1 << 15
		if c.buf == nil {
			c.buf = make([]byte, 0, room)
		}
		buf, last := c.buf[:0], ref.First
		for _, x := range values {
			switch ref.Type {
			case F64:
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(float64(x)))
			case F32:
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(float32(x)))
			case I64:
				buf = binary.LittleEndian.AppendUint64(buf, uint64(int64(x)))
			case I32:
				buf = binary.LittleEndian.AppendUint32(buf, uint32(int32(x)))
			case I16:
				buf = binary.LittleEndian.AppendUint16(buf, uint16(int16(x)))
			case I8:
				buf = append(buf, byte(int8(x)))
			case NS:
				n := int64(math.Round(float64(x) * 1e9))
				buf = binary.LittleEndian.AppendUint32(buf, uint32(int32(n-last)))
				last = n
			}
			if len(buf) > room-8 {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		_, err := w.Write(buf)
		return err
	}
}

// WriteTo writes the columns and returns the number of bytes.
func (c *Writer) WriteTo(w io.Writer) (int64, error) {
	count := &counter{w: w}
	for _, put := range c.put {
		if err := put(count); err != nil {
			return count.n, err
		}
	}
	return count.n, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// narrow returns the narrowest code that holds all values.
func narrow[T Number](values []T) Code {
	var low, high T
	for _, x := range values {
		low, high = min(low, x), max(high, x)
	}
	switch {
	case low >= -1<<7 && high < 1<<7:
		return I8
	case low >= -1<<15 && high < 1<<15:
		return I16
	case int64(low) >= math.MinInt32 && int64(high) <= math.MaxInt32:
		return I32
	}
	return I64
}

// steps returns NS for times that are whole nanoseconds with small enough deltas, and F64 for
// others. Most clocks count nanoseconds; deltas take a third of the space.
func steps[T Number](values []T, same func(x, y float64) bool) (code Code, first int64) {
	if len(values) == 0 {
		return F64, 0
	}
	first = int64(math.Round(float64(values[0]) * 1e9))
	last := first
	for _, v := range values {
		x := float64(v)
		n := math.Round(x * 1e9)
		// Decoding starts from an integer: it cannot restore negative zero.
		if !same(x, (n+0)/1e9) || !(math.Abs(n-float64(last)) <= math.MaxInt32) {
			return F64, 0
		}
		last = int64(n)
	}
	return NS, first
}

// fits reports whether values of type T may be stored with a code.
func fits[T Number](c Code) bool {
	var x T
	switch any(x).(type) {
	case int32:
		return c == I8 || c == I16 || c == I32
	case int64:
		return c == I8 || c == I16 || c == I32 || c == I64
	}
	return c.Width() > 0
}

// Read reads the column of a ref. It allocates no more than what it reads. The error says what is
// wrong with the ref, such as a code that does not suit the type, or that the data is truncated.
func Read[T Number](r io.Reader, ref Ref) ([]T, error) {
	width := ref.Type.Width()
	if !fits[T](ref.Type) || ref.Length < 0 {
		return nil, fmt.Errorf("column %v has type %q and length %d", ref.Path, ref.Type, ref.Length)
	}
	out := make([]T, 0, min(ref.Length, 1<<16))
	buf := make([]byte, min(ref.Length, 1<<15/width)*width)
	last := ref.First
	for left := ref.Length; left > 0; {
		n := min(left, len(buf)/width)
		part := buf[:n*width]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, fmt.Errorf("column %v: %w", ref.Path, err)
		}
		for i := range n {
			b := part[i*width:]
			switch ref.Type {
			case F64:
				out = append(out, T(math.Float64frombits(binary.LittleEndian.Uint64(b))))
			case F32:
				out = append(out, T(math.Float32frombits(binary.LittleEndian.Uint32(b))))
			case I64:
				out = append(out, T(int64(binary.LittleEndian.Uint64(b))))
			case I32:
				out = append(out, T(int32(binary.LittleEndian.Uint32(b))))
			case I16:
				out = append(out, T(int16(binary.LittleEndian.Uint16(b))))
			case I8:
				out = append(out, T(int8(b[0])))
			case NS:
				last += int64(int32(binary.LittleEndian.Uint32(b)))
				out = append(out, T(float64(last)/1e9))
			}
		}
		left -= n
	}
	return out, nil
}

package tensor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
)

// Tensor is one value: type, shape and little-endian elements in row-major
// order. The zero value is an invalid tensor. During shape inference a Tensor
// may have type and shape but no elements; [Tensor.Known] tells.
type Tensor struct {
	Type  Type
	Shape []int // nil or empty: scalar
	// Data holds the elements, packed for types below eight bits. It may lie in
	// a read-only mapping. nil when the elements are not known, non-nil (maybe
	// empty) when they are.
	Data    []byte
	Strings []string  // elements of String tensors, UTF-8; name of a Resource
	Elems   []*Tensor // elements of containers
	// Elem is the element type of a container, used when Elems is empty.
	Elem  Type
	Quant *Quant // nil for plain tensors
}

// Quant holds affine quantisation: real = Scale * (q - Zero).
type Quant struct {
	Scale []float32 // one, or one a channel along Axis
	Zero  []int64   // same length as Scale (never shorter)
	Axis  int       // channel axis when len(Scale) > 1
	Block int       // block size along the axis for blockwise scales, else 0
}

// New makes a zeroed tensor. Containers and strings get no Data.
func New(t Type, shape ...int) *Tensor {
	x := &Tensor{Type: t, Shape: shape}
	x.Alloc()
	return x
}

// Alloc gives x fresh zeroed elements for its type and shape.
func (x *Tensor) Alloc() {
	n := x.Len()
	switch {
	case x.Type == String:
		x.Strings = make([]string, n)
		x.Data = []byte{}
	case x.Type.IsContainer() || x.Type == Resource:
		x.Data = []byte{}
	default:
		// Whole words keep typed views of the data aligned.
		b := x.Type.Bytes(n)
		w := hugepages.Make[uint64]((b+7)/8 + 1)
		x.Data = unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(w)*8)[:b:b]
	}
}

// Number is an element type that has a Go representation.
type Number interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// TypeError is what [Of] panics with: an operator met elements of another type
// than it was made for.
type TypeError struct {
	Type Type   // of the tensor
	As   string // the Go type asked for
}

// Error implements error.
func (e *TypeError) Error() string {
	return fmt.Sprintf("elements of %v where %s is expected", e.Type, e.As)
}

// Of views the elements of x as a slice of T without a copy. T must be the Go type of
// the element: uint16 for the two 16-bit floats, uint8 for bool, 8-bit floats and packed
// types too. It panics with a [TypeError] otherwise. [Words] views any bits.
func Of[T Number | complex64 | complex128 | bool](x *Tensor) []T {
	if x.Type != Invalid && !viewed[T](x.Type) {
		var z T
		panic(&TypeError{x.Type, fmt.Sprintf("%T", z)})
	}
	return view[T](x)
}

// EmptyError is what [Single] panics with.
type EmptyError struct{ Shape []int }

// Error gives the shape.
func (e *EmptyError) Error() string {
	return "a tensor of shape " + FormatShape(e.Shape) + " where one element is expected"
}

// Single is the first element of x, for operands that have one. It panics with an
// [EmptyError] if absent, and as [Of] does.
func Single[T Number | complex64 | complex128 | bool](x *Tensor) T {
	v := Of[T](x)
	if len(v) == 0 {
		panic(&EmptyError{x.Shape})
	}
	return v[0]
}

// Words views the elements of x as unsigned integers of their width, for whoever moves
// or compares them as they are. It panics with a [TypeError] when the width differs.
func Words[T uint8 | uint16 | uint32 | uint64](x *Tensor) []T {
	var z T
	if b := x.Type.Bits(); max(b, 8) != 8*int(unsafe.Sizeof(z)) && b > 0 || x.Type == String {
		panic(&TypeError{x.Type, fmt.Sprintf("%T", z)})
	}
	return view[T](x)
}

func view[T any](x *Tensor) []T {
	var z T
	n := len(x.Data) / int(unsafe.Sizeof(z))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(x.Data))), n)
}

// viewed reports whether T is the Go type of elements of t.
func viewed[T any](t Type) bool {
	var z T
	switch any(z).(type) {
	case float32:
		return t == Float32
	case float64:
		return t == Float64
	case int8:
		return t == Int8
	case int16:
		return t == Int16
	case int32:
		return t == Int32
	case int64:
		return t == Int64
	case uint8:
		b := t.Bits()
		return t == Uint8 || t == Bool || b > 0 && b <= 8 && t != Int8
	case uint16:
		return t == Uint16 || t == Float16 || t == BFloat16
	case uint32:
		return t == Uint32
	case uint64:
		return t == Uint64
	case bool:
		return t == Bool
	case complex64:
		return t == Complex64
	case complex128:
		return t == Complex128
	}
	return false
}

// From makes a tensor of the given type over a copy of v.
func From[T Number | complex64 | complex128](t Type, shape []int, v []T) *Tensor {
	x := &Tensor{Type: t, Shape: slices.Clone(shape)}
	x.Alloc()
	copy(Of[T](x), v)
	return x
}

// Len is the number of elements: the product of the dimensions, 1 for a scalar.
func (x *Tensor) Len() int { return Elements(x.Shape) }

// Rank is the number of dimensions.
func (x *Tensor) Rank() int { return len(x.Shape) }

// Bytes is the size of the elements in bytes; for strings the sum of lengths.
func (x *Tensor) Bytes() int {
	if x.Type == String {
		n := 0
		for _, s := range x.Strings {
			n += len(s)
		}
		return n
	}
	if x.Type.IsContainer() {
		n := 0
		for _, e := range x.Elems {
			n += e.Bytes()
		}
		return n
	}
	return x.Type.Bytes(x.Len())
}

// Held is what the elements take of memory, in bytes, about: with the headers of
// strings and of the elements of containers.
func (x *Tensor) Held() int {
	switch {
	case x == nil:
		return 0
	case x.Type == String:
		return 16*len(x.Strings) + x.Bytes()
	case x.Type.IsContainer():
		n := 0
		for _, e := range x.Elems {
			n += elemHeader + e.Held()
		}
		return n
	}
	return len(x.Data)
}

// elemHeader is about what a tensor takes beside its elements, in bytes.
const elemHeader = 192

// Beyond is [Tensor.Held] without the elements of a container that one of the others
// begins or ends with in the same order, and so shares.
func (x *Tensor) Beyond(others ...*Tensor) int {
	if !x.Type.IsContainer() {
		return x.Held()
	}
	elems := x.Elems
	for _, o := range others {
		if o == nil || !o.Type.IsContainer() {
			continue
		}
		before, after := elems, o.Elems
		for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
			before, after = before[1:], after[1:]
		}
		for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
			before, after = before[:len(before)-1], after[:len(after)-1]
		}
		if len(before) < len(elems) {
			elems = before
		}
	}
	n := 0
	for _, e := range elems {
		n += elemHeader + e.Held()
	}
	return n
}

// Known reports whether the elements are present and not only type and shape.
func (x *Tensor) Known() bool { return x != nil && x.Data != nil }

// Clone copies x with its elements; the copy is writable.
func (x *Tensor) Clone() *Tensor {
	y := *x
	y.Shape = slices.Clone(x.Shape)
	if x.Data != nil && x.Type != String && !x.Type.IsContainer() {
		y.Alloc()
		copy(y.Data, x.Data)
	}
	y.Strings = slices.Clone(x.Strings)
	if x.Elems != nil {
		y.Elems = make([]*Tensor, len(x.Elems))
		for i, e := range x.Elems {
			y.Elems[i] = e.Clone()
		}
	}
	return &y
}

// Elements multiplies the dimensions. Negative dimensions count as they are:
// check with [CheckShape] first.
func Elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// MaxBytes bounds a single tensor, 64 GiB: larger shapes are treated as errors
// in the model, so that a hostile shape cannot ask for unbounded memory.
const MaxBytes = 1 << 36

// CheckShape returns the number of elements, or an error for negative
// dimensions and for sizes over [MaxBytes].
func CheckShape(t Type, shape []int) (int, error) {
	n := 1
	zero := false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %s has a negative dimension", FormatShape(shape))
		}
		if d == 0 {
			zero = true
			continue
		}
		if n > MaxBytes/d {
			return 0, fmt.Errorf("shape %s is too large", FormatShape(shape))
		}
		n *= d
	}
	if zero {
		return 0, nil
	}
	if b := t.Bits(); b > 0 && n > MaxBytes/((b+7)/8) {
		return 0, fmt.Errorf("shape %s of %v is too large", FormatShape(shape), t)
	}
	return n, nil
}

// FormatShape writes "1x224x224x3", "scalar" for rank 0 and "?" for unknown
// (negative) dimensions.
func FormatShape(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	var b strings.Builder
	for i, d := range shape {
		if i > 0 {
			b.WriteByte('x')
		}
		if d < 0 {
			b.WriteByte('?')
		} else {
			b.WriteString(strconv.Itoa(d))
		}
	}
	return b.String()
}

// Strides returns row-major strides in elements.
func Strides(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// Next advances a multi-index in row-major order; false after the last one.
func Next(at, size []int) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < size[i] {
			return true
		}
		at[i] = 0
	}
	return false
}

// Unravel writes the multi-index of a flat row-major position.
func Unravel(pos int, size, at []int) {
	for i := len(size) - 1; i >= 0; i-- {
		at[i] = pos % size[i]
		pos /= size[i]
	}
}

// Broadcast returns the NumPy broadcast of the shapes, or an error that names
// the two that do not agree.
func Broadcast(shapes ...[]int) ([]int, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]int, rank)
	for i := range out {
		out[i] = 1
	}
	for _, s := range shapes {
		for i, d := range s {
			j := rank - len(s) + i
			switch {
			case out[j] == d || d == 1:
			case out[j] == 1:
				out[j] = d
			default:
				return nil, fmt.Errorf("shapes %s and %s do not broadcast", FormatShape(out), FormatShape(s))
			}
		}
	}
	return out, nil
}

package gguf

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Limits of what a file may declare. Each list is also bounded by the bytes that are left.
const (
	maxName   = 1 << 16 // bytes of a key or a tensor's name
	maxNested = 4       // arrays within arrays
	maxDims   = 4
	minAlign  = 8
	maxAlign  = 1 << 20
)

// Error says what is wrong with a file, and where.
type Error struct {
	Offset int64 // in the file
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Text) }

// Kinds of metadata values.
const (
	kindUint8 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
	numKinds
)

// kindBytes has the sizes of the kinds that have one.
var kindBytes = [numKinds]int{
	kindUint8: 1, kindInt8: 1, kindUint16: 2, kindInt16: 2, kindUint32: 4, kindInt32: 4, kindFloat32: 4,
	kindBool: 1, kindUint64: 8, kindInt64: 8, kindFloat64: 8,
}

// Array is a list of the metadata, such as the words of a tokenizer. Its values stay in the file.
type Array struct {
	Len  int
	kind uint32
	data []byte // of kinds with a size
}

// Float returns value i as a number, false if the array has no numbers or is too short.
func (a Array) Float(i int) (float64, bool) {
	if a.kind >= numKinds || kindBytes[a.kind] == 0 || i >= a.Len {
		return 0, false
	}
	x, ok := number(scalar(a.kind, a.data[i*kindBytes[a.kind]:]))
	return x, ok
}

// Tensor is an entry of the list of tensors.
type Tensor struct {
	Name string
	// Shape has the slowest dimension first, which the file has last.
	Shape []int
	Type  Type
	// Data holds the elements, part of the file's data.
	Data []byte
	// Offset is that of the elements in the file.
	Offset int64
}

// Len is the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is the content of a GGUF file.
type File struct {
	Version int
	// Meta has int64, uint64, float64, bool, string or Array by key.
	Meta    map[string]any
	Tensors []*Tensor
	byName  map[string]*Tensor
}

// Tensor returns the tensor with a name, nil if it is absent.
func (f *File) Tensor(name string) *Tensor { return f.byName[name] }

// Text returns a metadata string, "" without one.
func (f *File) Text(key string) string {
	s, _ := f.Meta[key].(string)
	return s
}

// Float returns a metadata number, def without one.
func (f *File) Float(key string, def float64) float64 {
	if x, ok := number(f.Meta[key]); ok {
		return x
	}
	return def
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case float64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// ParseFile reads the structure of a file. Tensors are slices of data. The error is an [Error].
func ParseFile(data []byte) (*File, error) {
	r := &reader{data: data}
	f, err := r.file()
	if err != nil {
		return nil, err
	}
	return f, nil
}

// reader reads from the front of data. After the first error all reads return zeros.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Offset: int64(at), Text: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) left() int { return len(r.data) - r.at }

// take returns the next n bytes, nil if there are fewer.
func (r *reader) take(n uint64, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(r.left()) {
		r.fail(r.at, "the file ends within %s: %d bytes are declared, %d are left: download it again", what, n, r.left())
		return nil
	}
	b := r.data[r.at:][:n]
	r.at += int(n)
	return b
}

func (r *reader) u32(what string) uint32 {
	if b := r.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(what string) uint64 {
	if b := r.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads the length of a list whose entries take at least size bytes each.
func (r *reader) count(size int, what string) int {
	at := r.at
	n := r.u64(what)
	if r.err == nil && n > uint64(r.left()/size) {
		r.fail(at, "%d %s are declared, the rest of the file can hold %d at most", n, what, r.left()/size)
		return 0
	}
	return int(n)
}

func (r *reader) text(most int, what string) string {
	at := r.at
	n := r.u64(what)
	if r.err == nil && most > 0 && n > uint64(most) {
		r.fail(at, "%s has %d bytes, expected %d at most", what, n, most)
	}
	b := r.take(n, what)
	if r.err == nil && most > 0 && !utf8.Valid(b) {
		r.fail(at, "%s is not UTF-8", what)
	}
	return string(b)
}

// scalar decodes a number of a kind with a size.
func scalar(kind uint32, b []byte) any {
	le := binary.LittleEndian
	switch kind {
	case kindUint8:
		return uint64(b[0])
	case kindInt8:
		return int64(int8(b[0]))
	case kindUint16:
		return uint64(le.Uint16(b))
	case kindInt16:
		return int64(int16(le.Uint16(b)))
	case kindUint32:
		return uint64(le.Uint32(b))
	case kindInt32:
		return int64(int32(le.Uint32(b)))
	case kindFloat32:
		return float64(math.Float32frombits(le.Uint32(b)))
	case kindBool:
		return b[0] != 0
	case kindUint64:
		return le.Uint64(b)
	case kindInt64:
		return int64(le.Uint64(b))
	}
	return math.Float64frombits(le.Uint64(b))
}

func (r *reader) value(kind uint32, depth int, key string) any {
	switch {
	case kind == kindString:
		return r.text(0, "the value of "+key)
	case kind == kindArray:
		return r.array(depth, key)
	case kind >= numKinds:
		r.fail(r.at-4, "metadata %q has a value of kind %d, expected 0 to %d", key, kind, numKinds-1)
		return nil
	}
	if b := r.take(uint64(kindBytes[kind]), "the value of "+key); b != nil {
		return scalar(kind, b)
	}
	return nil
}

func (r *reader) array(depth int, key string) any {
	at := r.at
	a := Array{kind: r.u32("the value of " + key)}
	if depth == maxNested {
		r.fail(at, "metadata %q nests more than %d arrays", key, maxNested)
	}
	if a.kind >= numKinds {
		r.fail(at, "metadata %q is a list of kind %d, expected 0 to %d", key, a.kind, numKinds-1)
	}
	if r.err != nil {
		return nil
	}
	if size := kindBytes[a.kind]; size > 0 {
		a.Len = r.count(size, "values of "+key)
		a.data = r.take(uint64(a.Len*size), "the value of "+key)
		return a
	}
	a.Len = r.count(8, "values of "+key) // a string has at least its length, an array more
	for range a.Len {
		if r.err != nil {
			return nil
		}
		if a.kind == kindString {
			r.take(r.u64("the value of "+key), "the value of "+key)
		} else {
			r.array(depth+1, key)
		}
	}
	return a
}

func (r *reader) file() (*File, error) {
	f := &File{Meta: map[string]any{}, byName: map[string]*Tensor{}}
	if string(r.take(4, "the header")) != "GGUF" {
		r.fail(0, "no GGUF file: it must begin with \"GGUF\"")
	}
	version := r.u32("the header")
	switch {
	case r.err != nil:
	case version&0xffff == 0 && version != 0:
		r.fail(4, "the file is for big-endian computers: convert the model again without --bigendian")
	case version < 2 || version > 3:
		r.fail(4, "version %d, expected 2 or 3: convert the model with a current llama.cpp", version)
	}
	f.Version = int(version)
	tensors := r.count(24, "tensors")
	keys := r.count(13, "metadata keys")
	for i := 0; i < keys && r.err == nil; i++ {
		at := r.at
		key := r.text(maxName, "a metadata key")
		v := r.value(r.u32("the value of "+key), 0, key)
		if _, twice := f.Meta[key]; twice {
			r.fail(at, "metadata %q occurs twice", key)
		}
		f.Meta[key] = v
	}
	for i := 0; i < tensors && r.err == nil; i++ {
		r.tensor(f)
	}
	r.place(f)
	return f, r.err
}

// tensor reads an entry of the list of tensors.
func (r *reader) tensor(f *File) {
	at := r.at
	t := &Tensor{Name: r.text(maxName, "a tensor's name")}
	dims := r.u32("a tensor's shape")
	if dims > maxDims {
		r.fail(at, "tensor %q has %d dimensions, expected %d at most", t.Name, dims, maxDims)
	}
	n := uint64(1)
	for i := uint32(0); i < dims && r.err == nil; i++ {
		d := r.u64("a tensor's shape")
		// The smallest type has 1.6 bits an element: eight elements a byte of the file bound it.
		if d == 0 || d > uint64(len(r.data))*8/n {
			r.fail(at, "tensor %q: dimension %d is %d, which the file of %d bytes cannot hold", t.Name, i, d, len(r.data))
			return
		}
		n *= d
		t.Shape = append(t.Shape, int(d))
	}
	t.Type = Type(r.u32("a tensor's type"))
	t.Offset = int64(min(r.u64("a tensor's offset"), math.MaxInt64))
	if r.err != nil {
		return
	}
	info, ok := types[t.Type]
	row := 1
	if len(t.Shape) > 0 {
		row = t.Shape[0]
	}
	slices.Reverse(t.Shape)
	switch {
	case !ok:
		r.fail(at, "tensor %q has type %d, which is unknown or was removed from GGUF", t.Name, uint32(t.Type))
	case row%info.block != 0:
		r.fail(at, "tensor %q: rows of %d elements are not a multiple of %d, the block of %v", t.Name, row, info.block, t.Type)
	case f.byName[t.Name] != nil:
		r.fail(at, "tensor %q occurs twice", t.Name)
	}
	f.Tensors, f.byName[t.Name] = append(f.Tensors, t), t
}

// place finds the data of the tensors, which begins at an aligned offset after the list.
func (r *reader) place(f *File) {
	if r.err != nil {
		return
	}
	align := f.Float("general.alignment", 32)
	if align < minAlign || align > maxAlign || align != math.Trunc(align) || int(align)&(int(align)-1) != 0 {
		r.fail(0, "general.alignment is %v, expected a power of two from %d to %d", align, minAlign, maxAlign)
		return
	}
	start := int64(r.at+int(align)-1) &^ (int64(align) - 1)
	for _, t := range f.Tensors {
		n := int64(t.Type.Size(t.Len()))
		if t.Offset%int64(align) != 0 {
			r.fail(r.at, "tensor %q begins at offset %d, expected a multiple of %d", t.Name, t.Offset, int(align))
			return
		}
		if t.Offset > int64(len(r.data))-start-n {
			r.fail(int(start), "tensor %q needs %d bytes at offset %d, the file ends before: download it again, or open all parts of a split model", t.Name, n, t.Offset)
			return
		}
		t.Offset += start
		t.Data = r.data[t.Offset:][:n:n]
	}
	r.overlap(f)
}

// overlap fails if two tensors share bytes.
func (r *reader) overlap(f *File) {
	list := slices.Clone(f.Tensors)
	slices.SortStableFunc(list, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.Offset+int64(len(a.Data)) > b.Offset {
			r.fail(int(b.Offset), "tensors %q and %q overlap: download the file again", a.Name, b.Name)
			return
		}
	}
}

package onnxruntime

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// value creates a library value from a tensor, in memory of the library, which has the alignment
// that its kernels prefer.
func (l *library) value(t *external.Tensor) (v uintptr, err error) {
	kind := element(t.DType)
	if kind == 0 {
		return 0, external.Errorf(external.Rejected, "ONNX Runtime has no element type %s, which the input %s has", t.DType, t.Name)
	}
	n := count(t.Shape)
	want := size(kind, n)
	if kind == isString {
		want = 0
		if int64(len(t.Strings)) != n {
			return 0, external.Errorf(external.Rejected, "input %s: %d strings for the shape %v", t.Name, len(t.Strings), t.Shape)
		}
	}
	if n < 0 || int64(len(t.Data)) != want {
		return 0, external.Errorf(external.Rejected, "input %s: %d bytes for %s%v, which takes %d", t.Name, len(t.Data), t.DType, t.Shape, want)
	}
	var m mem
	defer m.free()
	shape := make([]int64, max(1, len(t.Shape)))
	for i, d := range t.Shape {
		shape[i] = int64(d)
	}
	m.pin.Pin(&shape[0])
	out := new(uintptr)
	if err := l.call(l.f.CreateTensorAsOrtValue, l.allocator, uintptr(unsafe.Pointer(&shape[0])), uintptr(len(t.Shape)), uintptr(kind), uintptr(unsafe.Pointer(out))); err != nil {
		return 0, failed(external.Rejected, "input "+t.Name, err)
	}
	defer func() {
		if err != nil {
			invoke(l.f.ReleaseValue, *out)
			v = 0
		}
	}()
	if kind == isString {
		if n == 0 {
			return *out, nil
		}
		if err := l.call(l.f.FillStringTensor, *out, m.texts(t.Strings), uintptr(n)); err != nil {
			return 0, failed(external.Rejected, "input "+t.Name, err)
		}
		return *out, nil
	}
	data := new(uintptr)
	if err := l.call(l.f.GetTensorMutableData, *out, uintptr(unsafe.Pointer(data))); err != nil {
		return 0, failed(external.Rejected, "input "+t.Name, err)
	}
	if len(t.Data) > 0 {
		if *data == 0 {
			return 0, external.Errorf(external.NoMemory, "ONNX Runtime: no memory for the input %s of %d bytes", t.Name, len(t.Data))
		}
		copy(unsafe.Slice((*byte)(at(*data)), len(t.Data)), t.Data)
	}
	return *out, nil
}

// maxRank bounds the dimensions of values from the library.
const maxRank = 1 << 10

// described reads element type and dimensions of an OrtTensorTypeAndShapeInfo.
func (l *library) described(info uintptr) (kind int, dims []int64, err error) {
	k, n := new(int32), new(uint64)
	if err := l.call(l.f.GetTensorElementType, info, uintptr(unsafe.Pointer(k))); err != nil {
		return 0, nil, err
	}
	if err := l.call(l.f.GetDimensionsCount, info, uintptr(unsafe.Pointer(n))); err != nil {
		return 0, nil, err
	}
	if *n > maxRank {
		return 0, nil, fmt.Errorf("a tensor of %d dimensions", *n)
	}
	var m mem
	defer m.free()
	w := make([]int64, max(1, *n))
	m.pin.Pin(&w[0])
	if err := l.call(l.f.GetDimensions, info, uintptr(unsafe.Pointer(&w[0])), uintptr(*n)); err != nil {
		return 0, nil, err
	}
	return int(*k), w[:*n], nil
}

// tensor copies a library value. A value that is not a dense tensor is returned without elements,
// its kind in place of the element type.
func (l *library) tensor(name string, v uintptr) (external.Tensor, error) {
	t := external.Tensor{Name: name}
	kind := new(int32)
	if v == 0 {
		t.DType = kinds[6]
		return t, nil
	}
	if err := l.call(l.f.GetValueType, v, uintptr(unsafe.Pointer(kind))); err != nil {
		return t, err
	}
	if *kind != isTensor {
		t.DType = kinds[int(*kind)]
		return t, nil
	}
	has := new(int32)
	if err := l.call(l.f.HasValue, v, uintptr(unsafe.Pointer(has))); err != nil || *has == 0 {
		t.DType = kinds[6]
		return t, err
	}
	info := new(uintptr)
	if err := l.call(l.f.GetTensorTypeAndShape, v, uintptr(unsafe.Pointer(info))); err != nil {
		return t, err
	}
	elem, dims, err := l.described(*info)
	invoke(l.f.ReleaseTensorTypeAndShapeInfo, *info)
	if err != nil {
		return t, err
	}
	n := count(dims)
	if n < 0 {
		return t, fmt.Errorf("output %s has the shape %v", name, dims)
	}
	t.DType, t.Shape = dtype(elem), make([]int, len(dims))
	for i, d := range dims {
		t.Shape[i] = int(d)
	}
	if elem == isString {
		t.Strings, err = l.strings(v, int(n))
		return t, err
	}
	bytes := size(elem, n)
	if bytes == 0 {
		return t, nil
	}
	data := new(uintptr)
	if err := l.call(l.f.GetTensorMutableData, v, uintptr(unsafe.Pointer(data))); err != nil {
		return t, err
	}
	if *data == 0 {
		return t, fmt.Errorf("output %s has no elements in the memory of the processor", name)
	}
	t.Data = slices.Clone(unsafe.Slice((*byte)(at(*data)), bytes))
	return t, nil
}

// maxStrings bounds the bytes of a tensor's strings.
const maxStrings = 1 << 32

func (l *library) strings(v uintptr, n int) ([]string, error) {
	if n == 0 {
		return nil, nil
	}
	total := new(uint64)
	if err := l.call(l.f.GetStringTensorDataLength, v, uintptr(unsafe.Pointer(total))); err != nil {
		return nil, err
	}
	if *total > maxStrings {
		return nil, fmt.Errorf("strings of %d bytes", *total)
	}
	var m mem
	defer m.free()
	text, starts := make([]byte, *total+1), make([]uint64, n)
	m.pin.Pin(&starts[0])
	if err := l.call(l.f.GetStringTensorContent, v, m.bytes(text), uintptr(*total), uintptr(unsafe.Pointer(&starts[0])), uintptr(n)); err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i, from := range starts {
		to := *total
		if i+1 < n {
			to = starts[i+1]
		}
		if from > to || to > *total {
			return nil, fmt.Errorf("string %d lies at %d to %d of %d", i, from, to, *total)
		}
		out[i] = string(text[from:to])
	}
	return out, nil
}

// port is an input or output of a model as the library declares it.
type port struct {
	name string
	kind int // of value
	elem int
	// -1 for dynamic dimensions; none for an unknown rank, a scalar, or anything but a tensor
	dims []int64
}

// fits returns an error if a tensor does not match the input.
func (p *port) fits(t *external.Tensor) error {
	if p.kind != isTensor {
		return external.Errorf(external.Rejected, "ONNX Runtime: the input %s is a %s; only tensors can be fed", p.name, kinds[p.kind])
	}
	if e := element(t.DType); e != p.elem {
		return external.Errorf(external.Rejected, "ONNX Runtime: the input %s takes %s, not %s", p.name, dtype(p.elem), t.DType)
	}
	ok := len(p.dims) == 0 || len(p.dims) == len(t.Shape)
	for i := range p.dims {
		ok = ok && (p.dims[i] < 0 || p.dims[i] == int64(t.Shape[i]))
	}
	if !ok {
		return external.Errorf(external.Rejected, "ONNX Runtime: the input %s takes the shape %v (-1 is open), not %v", p.name, p.dims, t.Shape)
	}
	return nil
}

// fixed reports whether the model declares a static shape. An unknown rank looks like that of a
// scalar.
func (p *port) fixed() bool {
	return p.kind == isTensor && p.elem != isString && len(p.dims) > 0 && !slices.ContainsFunc(p.dims, func(d int64) bool { return d < 0 })
}

// ports lists inputs or outputs of a session.
func (l *library) ports(session, counts, name, info uintptr) ([]port, error) {
	n := new(uint64)
	if err := l.call(counts, session, uintptr(unsafe.Pointer(n))); err != nil {
		return nil, err
	}
	if *n > 1<<20 {
		return nil, fmt.Errorf("a model of %d inputs or outputs", *n)
	}
	out := make([]port, *n)
	for i := range out {
		p := &out[i]
		text, of := new(uintptr), new(uintptr)
		if err := l.call(name, session, uintptr(i), l.allocator, uintptr(unsafe.Pointer(text))); err != nil {
			return nil, err
		}
		p.name = goText(*text)
		if err := l.call(l.f.AllocatorFree, l.allocator, *text); err != nil {
			return nil, err
		}
		if err := l.call(info, session, uintptr(i), uintptr(unsafe.Pointer(of))); err != nil {
			return nil, err
		}
		err := l.typed(p, *of)
		invoke(l.f.ReleaseTypeInfo, *of)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// typed reads an OrtTypeInfo.
func (l *library) typed(p *port, info uintptr) error {
	kind, tensor := new(int32), new(uintptr)
	if err := l.call(l.f.GetOnnxTypeFromTypeInfo, info, uintptr(unsafe.Pointer(kind))); err != nil {
		return err
	}
	if p.kind = int(*kind); p.kind != isTensor {
		return nil
	}
	if err := l.call(l.f.CastTypeInfoToTensorInfo, info, uintptr(unsafe.Pointer(tensor))); err != nil || *tensor == 0 {
		return err
	}
	var err error
	p.elem, p.dims, err = l.described(*tensor)
	return err
}

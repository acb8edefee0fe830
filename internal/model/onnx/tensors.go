package onnx

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// namedTensor is a decoded TensorProto.
type namedTensor struct {
	*tensor.Tensor
	name string
	data int64 // offset of the raw elements in the file, -1 if absent
}

// tensorFields collects the fields of a TensorProto, which may be in any order.
type tensorFields struct {
	typ      tensor.Type
	shape    []int
	raw      []byte // nil if absent
	rawAt    int64
	floats   []float32
	doubles  []float64
	ints     []int64 // int32_data, int64_data or uint64_data
	strs     []string
	external []rawEntry
	location int64
}

func (d *decoder) tensor(r protoread.Reader) (namedTensor, error) {
	off := r.Start()
	out := namedTensor{data: -1}
	var f tensorFields
	var dims []int64
	for r.Next() {
		switch r.Num() {
		case tensorDims:
			var err error
			dims = r.Ints(dims[:0])
			if f.shape, err = appendDims(f.shape, dims, r.Offset()); err != nil {
				return out, under(err, "dims")
			}
		case tensorDataType:
			n := r.Int()
			if f.typ = ElemType(n); f.typ == tensor.Invalid && r.Err() == nil {
				return out, under(errorf(r.Offset(), "unknown element type %d", n), "data_type")
			}
		case tensorSegment:
			return out, under(errorf(r.Offset(), "tensors in segments are not supported"), "segment")
		case tensorName:
			out.name = d.str(&r)
		case tensorRawData:
			f.raw, f.rawAt = r.Bytes(), r.Offset()
		case tensorFloatData:
			f.floats = r.Floats(f.floats)
		case tensorDoubleData:
			f.doubles = r.Doubles(f.doubles)
		case tensorInt32Data, tensorInt64Data, tensorUint64Data:
			f.ints = r.Ints(f.ints)
		case tensorStringData:
			f.strs = append(f.strs, r.Str())
		case tensorExternalData:
			e, err := d.entry(r.Message())
			if err != nil {
				return out, underAt(err, "external_data", len(f.external))
			}
			f.external = append(f.external, e)
		case tensorDataLocation:
			f.location = r.Int()
		}
	}
	if err := r.Err(); err != nil {
		return out, err
	}
	if f.typ == tensor.Invalid {
		return out, errorf(off, "tensor %q has no element type", out.name)
	}
	n, err := tensor.CheckShape(f.typ, f.shape)
	if err != nil {
		return out, errorf(off, "tensor %q: %w", out.name, err)
	}
	out.Tensor = &tensor.Tensor{Type: f.typ, Shape: f.shape}
	if f.location == locationExternal {
		if f.typ == tensor.String {
			return out, errorf(off, "tensor %q: strings cannot be external data", out.name)
		}
		out.Data, err = d.ext.slice(f.external, f.typ.Bytes(n))
		if err != nil {
			return out, under(errorf(off, "tensor %q: %w", out.name, err), "external_data")
		}
		return out, nil
	}
	if f.raw != nil && f.typ != tensor.String && (len(f.raw) > 0 || n == 0) {
		if want := f.typ.Bytes(n); len(f.raw) != want {
			return out, under(errorf(f.rawAt, "tensor %q: %d bytes, but %s of %v takes %d",
				out.name, len(f.raw), tensor.FormatShape(f.shape), f.typ, want), "raw_data")
		}
		out.Data, out.data = f.raw, f.rawAt
		return out, nil
	}
	if err := f.fill(out.Tensor, n); err != nil {
		return out, errorf(off, "tensor %q: %w", out.name, err)
	}
	return out, nil
}

// fill stores elements from the typed fields.
func (f *tensorFields) fill(t *tensor.Tensor, n int) error {
	count := func(got, want int, field string) error {
		if got != want {
			return fmt.Errorf("%d elements in %s, but %s of %v takes %d", got, field, tensor.FormatShape(t.Shape), t.Type, want)
		}
		return nil
	}
	var err error
	switch t.Type {
	case tensor.String:
		if err = count(len(f.strs), n, "string_data"); err == nil {
			t.Data, t.Strings = []byte{}, nonNil(f.strs)
		}
	case tensor.Float32:
		if err = count(len(f.floats), n, "float_data"); err == nil {
			*t = *tensor.From(t.Type, t.Shape, f.floats)
		}
	case tensor.Complex64:
		if err = count(len(f.floats), 2*n, "float_data"); err == nil {
			t.Alloc()
			copy(tensor.Of[float32](&tensor.Tensor{Type: tensor.Float32, Data: t.Data}), f.floats)
		}
	case tensor.Float64:
		if err = count(len(f.doubles), n, "double_data"); err == nil {
			*t = *tensor.From(t.Type, t.Shape, f.doubles)
		}
	case tensor.Complex128:
		if err = count(len(f.doubles), 2*n, "double_data"); err == nil {
			t.Alloc()
			copy(tensor.Of[float64](&tensor.Tensor{Type: tensor.Float64, Data: t.Data}), f.doubles)
		}
	case tensor.Int64, tensor.Uint64:
		if err = count(len(f.ints), n, "integer data"); err == nil {
			t.Alloc()
			narrow(tensor.Words[uint64](t), f.ints)
		}
	default:
		// Packed types have one byte, so several elements, per entry.
		if err = count(len(f.ints), t.Type.Bytes(n)/max(t.Type.Bits()/8, 1), "integer data"); err != nil {
			break
		}
		t.Alloc()
		switch max(t.Type.Bits()/8, 1) {
		case 1:
			narrow(t.Data, f.ints)
		case 2:
			narrow(tensor.Words[uint16](t), f.ints)
		case 4:
			narrow(tensor.Words[uint32](t), f.ints)
		}
	}
	return err
}

func narrow[T uint8 | uint16 | uint32 | uint64](dst []T, src []int64) {
	for i, v := range src {
		dst[i] = T(v)
	}
}

// sparse expands a SparseTensorProto: values in coordinate form.
func (d *decoder) sparse(r protoread.Reader) (namedTensor, error) {
	off := r.Start()
	var values, indices namedTensor
	var dims []int64
	var err error
	for r.Next() {
		switch r.Num() {
		case sparseValues:
			if values, err = d.tensor(r.Message()); err != nil {
				return values, under(err, "values")
			}
		case sparseIndices:
			if indices, err = d.tensor(r.Message()); err != nil {
				return values, under(err, "indices")
			}
		case sparseDims:
			dims = r.Ints(dims)
		}
	}
	out := namedTensor{name: values.name, data: -1}
	if err := r.Err(); err != nil {
		return out, err
	}
	shape, err := appendDims(nil, dims, off)
	if err != nil {
		return out, under(err, "dims")
	}
	if values.Tensor == nil {
		return out, errorf(off, "sparse tensor has no values")
	}
	if values.Rank() != 1 || values.Type.Bits() < 8 {
		return out, errorf(off, "sparse tensor %q: values are %s of %v", out.name, tensor.FormatShape(values.Shape), values.Type)
	}
	n, err := tensor.CheckShape(values.Type, shape)
	if err != nil {
		return out, errorf(off, "sparse tensor %q: %w", out.name, err)
	}
	if d.dense -= int64(values.Type.Bytes(n)); d.dense < 0 {
		return out, errorf(off, "sparse tensor %q: %s of %v is far larger than the file", out.name, tensor.FormatShape(shape), values.Type)
	}
	flat, err := flatIndices(indices.Tensor, values.Len(), shape, n)
	if err != nil {
		return out, errorf(off, "sparse tensor %q: %w", out.name, err)
	}
	out.Tensor = tensor.New(values.Type, shape...)
	w := values.Type.Bytes(1)
	for i, at := range flat {
		copy(out.Data[at*w:at*w+w], values.Data[i*w:])
	}
	return out, nil
}

// flatIndices converts the indices of count sparse values (linear, or one row of coordinates
// each) to linear ones below n.
func flatIndices(x *tensor.Tensor, count int, shape []int, n int) ([]int, error) {
	if count == 0 {
		return nil, nil
	}
	if x == nil || x.Type != tensor.Int64 {
		return nil, fmt.Errorf("indices are missing or not int64")
	}
	idx := tensor.Of[int64](x)
	flat := make([]int, count)
	switch {
	case x.Rank() == 1 && len(idx) == count:
		for i, v := range idx {
			if v < 0 || v >= int64(n) {
				return nil, fmt.Errorf("index %d is outside %d elements", v, n)
			}
			flat[i] = int(v)
		}
	case x.Rank() == 2 && x.Shape[0] == count && x.Shape[1] == len(shape):
		strides := tensor.Strides(shape)
		for i := range flat {
			for k, dim := range shape {
				v := idx[i*len(shape)+k]
				if v < 0 || v >= int64(dim) {
					return nil, fmt.Errorf("index %d is outside dimension %d", v, dim)
				}
				flat[i] += int(v) * strides[k]
			}
		}
	default:
		return nil, fmt.Errorf("indices of shape %s for %d values of rank %d", tensor.FormatShape(x.Shape), count, len(shape))
	}
	return flat, nil
}

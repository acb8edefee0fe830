package onnx

import (
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// attrFields collects the fields of an AttributeProto. The type field selects the value field; in
// files of the first IR versions it is the one that is present.
type attrFields struct {
	kind, seen int64
	f          float32
	i          int64
	s          string
	floats     []float32
	ints       []int64
	strs       []string
	tensors    []*tensor.Tensor
	sparse     []*tensor.Tensor
	graphs     []*rawGraph
	types      []string
}

func (d *decoder) attribute(r protoread.Reader) (a rawAttr, err error) {
	a.off = r.Start()
	var f attrFields
	for r.Next() {
		switch r.Num() {
		case attrName:
			a.name = d.str(&r)
		case attrRef:
			a.ref = d.str(&r)
		case attrType:
			f.kind = r.Int()
		default:
			if err := d.attrField(&f, &r); err != nil {
				return a, err
			}
		}
	}
	if err := r.Err(); err != nil {
		return a, err
	}
	if a.name == "" {
		return a, errorf(a.off, "attribute has no name")
	}
	if a.ref != "" {
		return a, nil // the caller supplies the value
	}
	if f.kind == kindUndefined {
		f.kind = f.seen
	}
	if a.val, err = f.value(); err != nil {
		err = errorf(a.off, "%w", err)
	}
	return a, err
}

// attrField reads the current field if it is one of the value fields.
func (d *decoder) attrField(f *attrFields, r *protoread.Reader) error {
	kind := int64(kindUndefined)
	switch r.Num() {
	case attrF:
		f.f, kind = r.Float(), kindFloat
	case attrI:
		f.i, kind = r.Int(), kindInt
	case attrS:
		f.s, kind = r.Str(), kindString
	case attrFloats:
		f.floats, kind = r.Floats(f.floats), kindFloats
	case attrInts:
		f.ints, kind = r.Ints(f.ints), kindInts
	case attrStrings:
		f.strs, kind = append(f.strs, d.str(r)), kindStrings
	case attrT, attrTensors:
		t, err := d.tensor(r.Message())
		if err != nil {
			return under(err, "t")
		}
		f.tensors = append(f.tensors, t.Tensor)
		kind = either(r, attrT, kindTensor, kindTensors)
	case attrSparse, attrSparseSlice:
		t, err := d.sparse(r.Message())
		if err != nil {
			return under(err, "sparse_tensor")
		}
		f.sparse = append(f.sparse, t.Tensor)
		kind = either(r, attrSparse, kindSparse, kindSparses)
	case attrG, attrGraphs:
		g, err := d.graph(r.Message())
		if err == nil && r.Err() == nil && len(g.outputs) == 0 {
			err = errorf(g.off, "graph %q has no output", g.name)
		}
		if err != nil {
			return under(err, "g")
		}
		f.graphs = append(f.graphs, g)
		kind = either(r, attrG, kindGraph, kindGraphs)
	case attrTP, attrTypeProtos:
		t, err := d.typeProto(r.Message())
		if err != nil {
			return under(err, "tp")
		}
		f.types = append(f.types, t.String())
		kind = either(r, attrTP, kindTypeProto, kindTypeProtos)
	}
	if kind != kindUndefined {
		f.seen = kind
	}
	return nil
}

// either distinguishes a single value from a list by the current field.
func either(r *protoread.Reader, single int, one, list int64) int64 {
	if r.Num() == single {
		return one
	}
	return list
}

// value returns the attribute's value by its type.
func (f *attrFields) value() (any, error) {
	switch f.kind {
	case kindFloat:
		return f.f, nil
	case kindInt:
		return f.i, nil
	case kindString:
		return f.s, nil
	case kindFloats:
		return nonNil(f.floats), nil
	case kindInts:
		return nonNil(f.ints), nil
	case kindStrings:
		return nonNil(f.strs), nil
	case kindTensor:
		return only(f.tensors, "tensor")
	case kindTensors:
		return nonNil(f.tensors), nil
	case kindSparse:
		return only(f.sparse, "sparse tensor")
	case kindSparses:
		return nonNil(f.sparse), nil
	case kindGraph:
		return only(f.graphs, "graph")
	case kindGraphs:
		return nonNil(f.graphs), nil
	case kindTypeProto:
		return only(f.types, "type")
	case kindTypeProtos:
		return nonNil(f.types), nil
	case kindUndefined:
		return nil, errors.New("attribute has neither type nor value")
	}
	return nil, fmt.Errorf("attribute has unknown type %d", f.kind)
}

// only returns the single value of a list.
func only[T any](v []T, what string) (any, error) {
	if len(v) != 1 {
		return nil, fmt.Errorf("attribute of type %s has %d values", what, len(v))
	}
	return v[0], nil
}

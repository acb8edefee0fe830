package onnx

import (
	"strings"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// valueInfo is a declared name with its type.
type valueInfo struct {
	name string
	off  int64
	typeInfo
}

// typeInfo is a decoded TypeProto.
type typeInfo struct {
	typ      tensor.Type
	elem     tensor.Type // element type of containers
	inner    string      // spelling of the contained type
	shape    []int
	hasShape bool
	dimNames []string
}

// String formats the type, such as "seq(tensor(float32))".
func (t typeInfo) String() string {
	switch t.typ {
	case tensor.Invalid:
		return "undefined"
	case tensor.Sequence:
		return "seq(" + t.inner + ")"
	case tensor.Optional:
		return "optional(" + t.inner + ")"
	case tensor.Map:
		return "map(" + t.inner + ")"
	}
	return "tensor(" + t.typ.String() + ")"
}

func (d *decoder) valueInfo(r protoread.Reader) (v valueInfo, err error) {
	v.off = r.Start()
	for r.Next() {
		switch r.Num() {
		case infoName:
			v.name = d.str(&r)
		case infoType:
			if v.typeInfo, err = d.typeProto(r.Message()); err != nil {
				return v, under(err, "type")
			}
		}
	}
	return v, r.Err()
}

func (d *decoder) typeProto(r protoread.Reader) (t typeInfo, err error) {
	for r.Next() {
		var kind string
		switch r.Num() {
		case typeTensor, typeSparse:
			t, err = d.tensorType(r.Message())
			kind = "tensor_type"
		case typeSequence:
			t, err = d.containerType(r.Message(), tensor.Sequence)
			kind = "sequence_type"
		case typeOptional:
			t, err = d.containerType(r.Message(), tensor.Optional)
			kind = "optional_type"
		case typeMap:
			t, err = d.mapType(r.Message())
			kind = "map_type"
		}
		if err != nil {
			return t, under(err, kind)
		}
	}
	return t, r.Err()
}

func (d *decoder) tensorType(r protoread.Reader) (t typeInfo, err error) {
	off := r.Start()
	for r.Next() {
		switch r.Num() {
		case tensorTypeElem:
			n := r.Int()
			if t.typ = ElemType(n); t.typ == tensor.Invalid && n != 0 && r.Err() == nil {
				return t, errorf(r.Offset(), "unknown element type %d", n)
			}
		case tensorTypeShape:
			t.hasShape = true
			if err := d.shape(r.Message(), &t); err != nil {
				return t, under(err, "shape")
			}
		}
	}
	if r.Err() == nil && t.hasShape {
		known := make([]int, 0, len(t.shape))
		for _, n := range t.shape {
			if n > 0 {
				known = append(known, n)
			}
		}
		if _, err := tensor.CheckShape(t.typ, known); err != nil {
			return t, under(errorf(off, "%w", err), "shape")
		}
	}
	return t, r.Err()
}

// shape reads dimensions; named, absent and negative ones are -1.
func (d *decoder) shape(r protoread.Reader, t *typeInfo) error {
	t.shape = []int{}
	for r.Next() {
		if r.Num() != shapeDim {
			continue
		}
		size, name := -1, ""
		m := r.Message()
		for m.Next() {
			switch m.Num() {
			case dimValue:
				n := m.Int()
				if n > maxDim {
					return underAt(errorf(m.Offset(), "dimension %d is too large", n), "dim", len(t.shape))
				}
				size = max(int(n), -1)
			case dimParam:
				name = d.str(&m)
			}
		}
		if err := m.Err(); err != nil {
			return underAt(err, "dim", len(t.shape))
		}
		t.shape = append(t.shape, size)
		if name != "" && t.dimNames == nil {
			t.dimNames = make([]string, len(t.shape)-1, cap(t.shape))
		}
		if t.dimNames != nil {
			t.dimNames = append(t.dimNames, name)
		}
	}
	return r.Err()
}

func (d *decoder) containerType(r protoread.Reader, kind tensor.Type) (t typeInfo, err error) {
	t.typ = kind
	for r.Next() {
		if r.Num() != containerElem {
			continue
		}
		e, err := d.typeProto(r.Message())
		if err != nil {
			return t, under(err, "elem_type")
		}
		t.elem, t.inner = e.typ, e.String()
		// A sequence's tensors share a declared shape, and an optional has its element's. Both
		// would be mistaken for the container's own shape, and are not useful once the container
		// is opened.
	}
	return t, r.Err()
}

func (d *decoder) mapType(r protoread.Reader) (t typeInfo, err error) {
	t.typ = tensor.Map
	var key, value string
	for r.Next() {
		switch r.Num() {
		case mapTypeKey:
			key = ElemType(r.Int()).String()
		case mapTypeValue:
			e, err := d.typeProto(r.Message())
			if err != nil {
				return t, under(err, "value_type")
			}
			t.elem, value = e.typ, e.String()
		}
	}
	t.inner = strings.Join([]string{key, value}, ",")
	return t, r.Err()
}

package onnx

import (
	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// ParseTensor reads a serialized TensorProto, such as the input_0.pb of a test.
// Elements may be a view of data.
func ParseTensor(data []byte) (*tensor.Tensor, error) {
	return parseValue(data, func(d *decoder, r protoread.Reader) (*tensor.Tensor, error) {
		t, err := d.tensor(r)
		return t.Tensor, err
	})
}

// ParseSequence reads a serialized SequenceProto.
func ParseSequence(data []byte) (*tensor.Tensor, error) {
	return parseValue(data, (*decoder).sequence)
}

// ParseOptional reads a serialized OptionalProto.
func ParseOptional(data []byte) (*tensor.Tensor, error) {
	return parseValue(data, (*decoder).optional)
}

// ParseValue reads a serialized value whose message depends on its declared type.
func ParseValue(data []byte, declared tensor.Type) (*tensor.Tensor, error) {
	switch declared {
	case tensor.Sequence:
		return ParseSequence(data)
	case tensor.Optional:
		return ParseOptional(data)
	case tensor.Map:
		return parseValue(data, (*decoder).mapValue)
	}
	return ParseTensor(data)
}

func parseValue(data []byte, read func(*decoder, protoread.Reader) (*tensor.Tensor, error)) (t *tensor.Tensor, err error) {
	defer func() { err = under(err, "") }()
	d := &decoder{ext: &external{}, intern: map[string]string{}, dense: 16<<20 + 64*int64(len(data))}
	return read(d, protoread.NewReader(data))
}

// container makes a sequence, optional or map of the elements.
func container(kind tensor.Type, elems []*tensor.Tensor) *tensor.Tensor {
	t := &tensor.Tensor{Type: kind, Data: []byte{}, Elems: elems}
	if len(elems) > 0 && kind != tensor.Map {
		t.Elem = elems[0].Type
	}
	return t
}

// element reads one element of a container, by the kind of message.
func (d *decoder) element(kind string, r protoread.Reader) (t *tensor.Tensor, err error) {
	var n namedTensor
	switch kind {
	case "tensor":
		n, err = d.tensor(r)
		t = n.Tensor
	case "sparse_tensor":
		n, err = d.sparse(r)
		t = n.Tensor
	case "sequence":
		t, err = d.sequence(r)
	case "map":
		t, err = d.mapValue(r)
	case "optional":
		t, err = d.optional(r)
	}
	return t, err
}

func (d *decoder) sequence(r protoread.Reader) (*tensor.Tensor, error) {
	kinds := map[int]string{
		sequenceTensors: "tensor", sequenceSparse: "sparse_tensor", sequenceSequences: "sequence",
		sequenceMaps: "map", sequenceOptionals: "optional",
	}
	elems := []*tensor.Tensor{}
	for r.Next() {
		kind, ok := kinds[r.Num()]
		if !ok {
			continue
		}
		e, err := d.element(kind, r.Message())
		if err != nil {
			return nil, underAt(err, kind+"_values", len(elems))
		}
		elems = append(elems, e)
	}
	return container(tensor.Sequence, elems), r.Err()
}

func (d *decoder) optional(r protoread.Reader) (*tensor.Tensor, error) {
	kinds := map[int]string{
		optionalTensor: "tensor", optionalSparse: "sparse_tensor", optionalSequence: "sequence",
		optionalMap: "map", optionalOptional: "optional",
	}
	elems := []*tensor.Tensor{}
	for r.Next() {
		kind, ok := kinds[r.Num()]
		if !ok {
			continue
		}
		e, err := d.element(kind, r.Message())
		if err != nil {
			return nil, under(err, kind+"_value")
		}
		elems = []*tensor.Tensor{e} // the fields are mutually exclusive: the last one counts
	}
	return container(tensor.Optional, elems), r.Err()
}

// mapValue reads a MapProto as a tensor of keys and a sequence or tensor of values.
func (d *decoder) mapValue(r protoread.Reader) (*tensor.Tensor, error) {
	off := r.Start()
	var keys []int64
	var strs []string
	keyType := tensor.Int64
	values := container(tensor.Sequence, []*tensor.Tensor{})
	for r.Next() {
		switch r.Num() {
		case mapKeyType:
			keyType = ElemType(r.Int())
		case mapKeys:
			keys = r.Ints(keys)
		case mapStringKeys:
			strs = append(strs, r.Str())
		case mapValues:
			var err error
			if values, err = d.sequence(r.Message()); err != nil {
				return nil, under(err, "values")
			}
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	k := &tensor.Tensor{Type: tensor.String, Shape: []int{len(strs)}, Data: []byte{}, Strings: strs}
	if keyType != tensor.String {
		f := tensorFields{ints: keys}
		k = &tensor.Tensor{Type: keyType, Shape: []int{len(keys)}}
		if !keyType.IsInteger() || keyType.Bits() < 8 {
			return nil, errorf(off, "map with keys of %v", keyType)
		}
		if err := f.fill(k, len(keys)); err != nil {
			return nil, errorf(off, "keys: %w", err)
		}
	}
	v := values
	if len(values.Elems) == 1 && values.Elems[0].Rank() == 1 {
		v = values.Elems[0] // all values in one tensor
	} else if n := len(values.Elems); n != k.Len() {
		return nil, errorf(off, "map has %d keys and %d values", k.Len(), n)
	}
	return container(tensor.Map, []*tensor.Tensor{k, v}), nil
}

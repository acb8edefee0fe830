package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		e    Error
		want string
	}{
		{Error{File: "a", Path: "graph.x", Offset: 7, Err: errors.New("bad")}, "a: graph.x: bad (at byte 7)"},
		{Error{Path: "graph", Offset: 0, Err: errors.New("bad")}, "graph: bad (at byte 0)"},
		{Error{File: "a", Offset: -1, Err: errors.New("bad")}, "a: bad"},
	} {
		if got := tt.e.Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	if under(nil, "x") != nil || underAt(nil, "x", 1) != nil {
		t.Error("no error becomes one")
	}
	plain := errors.New("plain")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{under(plain, "a"), "a: plain"},
		{under(underAt(plain, "b", 3), "a"), "a.b[3]: plain"},
		{under(under(plain, "[3]"), "a"), "a[3]: plain"},
		{under(under(plain, "a"), ""), "a: plain"},
		{under(&Error{Path: "functions[0]", Offset: -1, Err: plain, whole: true}, "graph"), "functions[0]: plain"},
		{under(&protoread.Error{Offset: 5, Msg: "cut"}, "a"), "a: cut (at byte 5)"},
	} {
		if tt.err.Error() != tt.want {
			t.Errorf("%q, want %q", tt.err, tt.want)
		}
	}
	if !errors.Is(under(plain, "a"), plain) {
		t.Error("the cause is lost")
	}
}

func refused(t *testing.T, data []byte, path, want string) {
	t.Helper()
	m, err := Parse(data, "m.onnx", "")
	var e *Error
	if m != nil || !errors.As(err, &e) || e.Path != path || !strings.Contains(e.Err.Error(), want) {
		t.Errorf("model %v, error %v\nwant %q at %q", m, err, want, path)
	}
}

// tens writes a tensor "w" of dimensions.
func tens(typ int64, dims []int64, parts ...func(*message)) func(*message) {
	return sub(graphInitializer, append([]func(*message){num(tensorDataType, typ), str(tensorName, "w"), func(b *message) {
		for _, d := range dims {
			b.int(tensorDims, d)
		}
	}}, parts...)...)
}

func packedInts(field protowire.Number, v ...int64) func(*message) {
	var b []byte
	for _, x := range v {
		b = protowire.AppendVarint(b, uint64(x))
	}
	return raw(field, b...)
}

func packedFloats(field protowire.Number, bits ...uint32) func(*message) {
	var b []byte
	for _, x := range bits {
		b = protowire.AppendFixed32(b, x)
	}
	return raw(field, b...)
}

func packedDoubles(field protowire.Number, bits ...uint64) func(*message) {
	var b []byte
	for _, x := range bits {
		b = protowire.AppendFixed64(b, x)
	}
	return raw(field, b...)
}

// TestTypedFields stores elements of each type in the field that the format has for it, and one
// too few or too many.
func TestTypedFields(t *testing.T) {
	t.Parallel()
	const one32, two32 = 0x3f800000, 0x40000000
	const one64, two64 = 0x3ff0000000000000, 0x4000000000000000
	for _, tt := range []struct {
		name  string
		typ   int64
		n     int64
		field func(*message)
		want  []byte
		text  string
	}{
		{"float", 1, 2, packedFloats(tensorFloatData, one32, two32), []byte{0, 0, 128, 63, 0, 0, 0, 64}, ""},
		{"float short", 1, 2, packedFloats(tensorFloatData, one32), nil, "1 elements in float_data, but 2 of float32 takes 2"},
		{"double", 11, 1, packedDoubles(tensorDoubleData, one64), []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, ""},
		{"double long", 11, 1, packedDoubles(tensorDoubleData, one64, two64), nil, "2 elements in double_data, but 1 of float64 takes 1"},
		{"complex", 14, 1, packedFloats(tensorFloatData, one32, two32), []byte{0, 0, 128, 63, 0, 0, 0, 64}, ""},
		{"complex half", 14, 1, packedFloats(tensorFloatData, one32), nil, "1 elements in float_data, but 1 of complex64 takes 2"},
		{"complex128", 15, 1, packedDoubles(tensorDoubleData, one64, two64), []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40}, ""},
		{"complex128 half", 15, 1, packedDoubles(tensorDoubleData, one64), nil, "complex128 takes 2"},
		{"int64", 7, 2, packedInts(tensorInt64Data, -1, 2), []byte{255, 255, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0, 0, 0}, ""},
		{"uint64", 13, 1, packedInts(tensorUint64Data, -2), []byte{254, 255, 255, 255, 255, 255, 255, 255}, ""},
		{"int64 short", 7, 2, packedInts(tensorInt64Data, -1), nil, "1 elements in integer data, but 2 of int64 takes 2"},
		{"int32", 6, 2, packedInts(tensorInt32Data, -1, 258), []byte{255, 255, 255, 255, 2, 1, 0, 0}, ""},
		{"uint32", 12, 1, packedInts(tensorUint64Data, 1<<32-1), []byte{255, 255, 255, 255}, ""},
		{"int16", 5, 2, packedInts(tensorInt32Data, -2, 258), []byte{254, 255, 2, 1}, ""},
		{"half by bits", 10, 1, packedInts(tensorInt32Data, 0x3c00), []byte{0, 0x3c}, ""},
		{"int8", 3, 2, packedInts(tensorInt32Data, -1, 5), []byte{255, 5}, ""},
		{"bool", 9, 2, packedInts(tensorInt32Data, 1, 0), []byte{1, 0}, ""},
		{"int8 short", 3, 2, packedInts(tensorInt32Data, -1), nil, "1 elements in integer data, but 2 of int8 takes 2"},
		{"three half bytes", 22, 3, packedInts(tensorInt32Data, 0x21, 3), []byte{0x21, 3}, ""},
		{"three half bytes in one", 22, 3, packedInts(tensorInt32Data, 0x21), nil, "1 elements in integer data, but 3 of int4 takes 2"},
		{"raw", 5, 2, raw(tensorRawData, 1, 2, 3, 4), []byte{1, 2, 3, 4}, ""},
		{"raw long", 5, 2, raw(tensorRawData, 1, 2, 3, 4, 5), nil, "5 bytes, but 2 of int16 takes 4"},
		{"empty raw beside elements", 3, 1, func(b *message) { raw(tensorRawData)(b); packedInts(tensorInt32Data, 7)(b) }, []byte{7}, ""},
		{"nothing", 3, 0, func(*message) {}, []byte{}, ""},
		{"raw nothing", 3, 0, raw(tensorRawData), []byte{}, ""},
		{"raw for nothing", 3, 0, raw(tensorRawData, 1), nil, "1 bytes, but 0 of int8 takes 0"},
	} {
		data := model(input("x"), tens(tt.typ, []int64{tt.n}, tt.field), node("Add y = x w"))
		if tt.text != "" {
			path := "graph.initializer[0]"
			if strings.Contains(tt.text, "bytes, but") {
				path += ".raw_data"
			}
			refused(t, data, path, tt.text)
			continue
		}
		v := mustParse(t, data).Main().Values[0]
		if diff := cmp.Diff(tt.want, append([]byte{}, v.Const.Data...)); diff != "" || v.Type != elemTypes[tt.typ] || !cmp.Equal(v.Shape, []int{int(tt.n)}) {
			t.Errorf("%s: %v %v %s", tt.name, v.Type, v.Shape, diff)
		}
		if isRaw := tt.name == "raw" || tt.name == "raw nothing"; isRaw != (v.Offset > 0) || isRaw && tt.n > 0 && string(data[v.Offset:v.Offset+4]) != "\x01\x02\x03\x04" {
			t.Errorf("%s: elements at byte %d", tt.name, v.Offset)
		}
	}
	strs := model(input("x"), tens(8, []int64{2}, str(tensorStringData, "a"), str(tensorStringData, ""), raw(tensorRawData, 1)), node("Add y = x w"))
	if c := mustParse(t, strs).Main().Values[0].Const; !cmp.Equal(c.Strings, []string{"a", ""}) {
		t.Errorf("strings %q", c.Strings)
	}
	refused(t, model(tens(8, []int64{2}, str(tensorStringData, "a"))), "graph.initializer[0]", "1 elements in string_data, but 2 of string takes 2")
	refused(t, model(tens(8, []int64{1}, num(tensorDataLocation, 1))), "graph.initializer[0]", "strings cannot be external data")
	refused(t, model(tens(0, nil)), "graph.initializer[0].data_type", "unknown element type 0")
	refused(t, model(tens(27, nil)), "graph.initializer[0].data_type", "unknown element type 27")
	refused(t, model(tens(-1, nil)), "graph.initializer[0].data_type", "unknown element type -1")
	refused(t, model(tens(1, []int64{1<<40 + 1})), "graph.initializer[0].dims", "dimension 1099511627777")
	if ElemType(26) != tensor.Int2 || ElemType(27) != tensor.Invalid || ElemType(-1) != tensor.Invalid || dataType(tensor.Invalid) != 0 || dataType(tensor.Sequence) != 0 || dataType(tensor.Float32) != 1 {
		t.Error("numbers of element types")
	}
}

// TestSparseCoordinates has values by linear index and by rows of coordinates.
func TestSparseCoordinates(t *testing.T) {
	t.Parallel()
	values := func(v ...byte) func(*message) {
		return sub(sparseValues, num(tensorDims, int64(len(v))), num(tensorDataType, 3), str(tensorName, "w"), raw(tensorRawData, v...))
	}
	indices := func(dims []int64, v ...int64) func(*message) {
		return sub(sparseIndices, num(tensorDataType, 7), func(b *message) {
			for _, d := range dims {
				b.int(tensorDims, d)
			}
		}, packedInts(tensorInt64Data, v...))
	}
	of := func(dims []int64, parts ...func(*message)) []byte {
		return model(input("x"), sub(graphSparse, append(parts, packedInts(sparseDims, dims...))...), node("Add y = x w"))
	}
	for _, tt := range []struct {
		name string
		data []byte
		want []byte
		text string
	}{
		{"linear", of([]int64{2, 3}, values(7, 8), indices([]int64{2}, 5, 0)), []byte{8, 0, 0, 0, 0, 7}, ""},
		{"coordinates", of([]int64{2, 3}, values(7, 8), indices([]int64{2, 2}, 1, 2, 0, 1)), []byte{0, 8, 0, 0, 0, 7}, ""},
		{"none", of([]int64{2}, values()), []byte{0, 0}, ""},
		{"index at the end", of([]int64{2, 3}, values(7), indices([]int64{1}, 6)), nil, "index 6 is outside 6 elements"},
		{"negative index", of([]int64{2, 3}, values(7), indices([]int64{1}, -1)), nil, "index -1 is outside 6"},
		{"row at the end", of([]int64{2, 3}, values(7), indices([]int64{1, 2}, 2, 0)), nil, "index 2 is outside dimension 2"},
		{"column at the end", of([]int64{2, 3}, values(7), indices([]int64{1, 2}, 1, 3)), nil, "index 3 is outside dimension 3"},
		{"negative column", of([]int64{2, 3}, values(7), indices([]int64{1, 2}, 1, -1)), nil, "index -1 is outside dimension 3"},
		{"too few", of([]int64{2, 3}, values(7, 8), indices([]int64{1}, 0)), nil, "indices of shape 1 for 2 values of rank 2"},
		{"too few rows", of([]int64{2, 3}, values(7, 8), indices([]int64{1, 2}, 0, 0)), nil, "indices of shape 1x2 for 2 values"},
		{"short rows", of([]int64{2, 3}, values(7, 8), indices([]int64{2, 1}, 0, 0)), nil, "indices of shape 2x1 for 2 values of rank 2"},
		{"no indices", of([]int64{2}, values(7)), nil, "indices are missing"},
		{"no values", of([]int64{2}), nil, "sparse tensor has no values"},
		{"indices of a type", of([]int64{2}, values(7), sub(sparseIndices, num(tensorDims, 1), num(tensorDataType, 3), raw(tensorRawData, 0))), nil, "not int64"},
		{"table of values", of([]int64{2}, sub(sparseValues, num(tensorDims, 1), num(tensorDims, 1), num(tensorDataType, 3), str(tensorName, "w"), raw(tensorRawData, 1))), nil, "values are 1x1 of int8"},
		{"half bytes", of([]int64{2}, sub(sparseValues, num(tensorDims, 1), num(tensorDataType, 22), str(tensorName, "w"), raw(tensorRawData, 1))), nil, "values are 1 of int4"},
	} {
		if tt.text != "" {
			refused(t, tt.data, "graph.sparse_initializer[0]", tt.text)
			continue
		}
		v := mustParse(t, tt.data).Main().Values[0]
		if diff := cmp.Diff(tt.want, v.Const.Data); diff != "" || v.Name != "w" || v.Offset != -1 {
			t.Errorf("%s: %q at %d, %s", tt.name, v.Name, v.Offset, diff)
		}
	}
	// Both tensors are told apart in the path.
	bad := num(tensorDataType, 99)
	refused(t, of([]int64{2}, sub(sparseValues, bad)), "graph.sparse_initializer[0].values.data_type", "99")
	refused(t, of([]int64{2}, values(7), sub(sparseIndices, bad)), "graph.sparse_initializer[0].indices.data_type", "99")
	refused(t, of([]int64{-2}, values(7), indices([]int64{1}, 0)), "graph.sparse_initializer[0].dims", "dimension -2")
}

// TestDeclaredTypes spells types and their shapes as files declare them.
func TestDeclaredTypes(t *testing.T) {
	t.Parallel()
	dim := func(v int64) func(*message) { return sub(shapeDim, num(dimValue, v)) }
	named := func(s string) func(*message) { return sub(shapeDim, str(dimParam, s)) }
	float := sub(typeTensor, num(tensorTypeElem, 1))
	for _, tt := range []struct {
		name, spelt string
		parts       func(*message)
		want        graph.Value
	}{
		{"nothing", "undefined", func(*message) {}, graph.Value{}},
		{"no shape", "tensor(float32)", float, graph.Value{Type: tensor.Float32}},
		{"scalar", "tensor(float32)", sub(typeTensor, num(tensorTypeElem, 1), sub(tensorTypeShape)), graph.Value{Type: tensor.Float32, HasShape: true, Shape: []int{}}},
		{"numbers", "tensor(int64)", sub(typeTensor, num(tensorTypeElem, 7), sub(tensorTypeShape, dim(2), dim(0), dim(-5), sub(shapeDim))), graph.Value{Type: tensor.Int64, HasShape: true, Shape: []int{2, 0, -1, -1}}},
		{"names", "tensor(int8)", sub(typeTensor, num(tensorTypeElem, 3), sub(tensorTypeShape, dim(2), named("n"), dim(3))), graph.Value{Type: tensor.Int8, HasShape: true, Shape: []int{2, -1, 3}, DimNames: []string{"", "n", ""}}},
		{"first name", "tensor(int8)", sub(typeTensor, num(tensorTypeElem, 3), sub(tensorTypeShape, named("n"), named("m"))), graph.Value{Type: tensor.Int8, HasShape: true, Shape: []int{-1, -1}, DimNames: []string{"n", "m"}}},
		{"sparse", "tensor(int8)", sub(typeSparse, num(tensorTypeElem, 3)), graph.Value{Type: tensor.Int8}},
		{"sequence", "seq(tensor(float32))", sub(typeSequence, sub(containerElem, float)), graph.Value{Type: tensor.Sequence, Elem: tensor.Float32}},
		{"optional", "optional(seq(tensor(float32)))", sub(typeOptional, sub(containerElem, sub(typeSequence, sub(containerElem, float)))), graph.Value{Type: tensor.Optional, Elem: tensor.Sequence}},
		{"map", "map(int64,tensor(float32))", sub(typeMap, num(mapTypeKey, 7), sub(mapTypeValue, float)), graph.Value{Type: tensor.Map, Elem: tensor.Float32}},
	} {
		m := mustParse(t, model(sub(graphInput, str(infoName, "x"), sub(infoType, tt.parts)), output("x")))
		want := tt.want
		want.Name, want.Offset = "x", -1
		if diff := cmp.Diff(&want, m.Main().Values[0]); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		m = mustParse(t, model(node("Foo y =", attr("a", kindTypeProto, sub(attrTP, tt.parts)))))
		if got := m.Main().Nodes[0].Attrs["a"]; got != tt.spelt {
			t.Errorf("%s is spelt %q, want %q", tt.name, got, tt.spelt)
		}
	}
	const at = "graph.input[0].type."
	unknown := sub(typeTensor, num(tensorTypeElem, 27))
	for path, parts := range map[string]func(*message){
		"tensor_type":                         unknown,
		"sequence_type.elem_type.tensor_type": sub(typeSequence, sub(containerElem, unknown)),
		"optional_type.elem_type.tensor_type": sub(typeOptional, sub(containerElem, unknown)),
		"map_type.value_type.tensor_type":     sub(typeMap, sub(mapTypeValue, unknown)),
	} {
		refused(t, model(sub(graphInput, str(infoName, "x"), sub(infoType, parts))), at+path, "unknown element type 27")
	}
	refused(t, model(sub(graphInput, str(infoName, "x"), sub(infoType, sub(typeTensor, num(tensorTypeElem, 1), sub(tensorTypeShape, dim(1), dim(1<<40+1)))))), at+"tensor_type.shape.dim[1]", "dimension 1099511627777 is too large")
	refused(t, model(sub(graphInput, str(infoName, "x"), sub(infoType, sub(typeTensor, num(tensorTypeElem, 1), sub(tensorTypeShape, dim(1<<40)))))), at+"tensor_type.shape", "too large")
}

// TestAttributeKinds reads a value by its declared type and, of files without one, by what is
// there.
func TestAttributeKinds(t *testing.T) {
	t.Parallel()
	float := func(field protowire.Number, v float32) func(*message) {
		return func(b *message) { b.float(field, v) }
	}
	one := func(field protowire.Number, v byte) func(*message) {
		return sub(field, num(tensorDataType, 3), raw(tensorRawData, v))
	}
	scalar := func(v int8) *tensor.Tensor { return &tensor.Tensor{Type: tensor.Int8, Data: []byte{byte(v)}} }
	spars := func(field protowire.Number) func(*message) {
		return sub(field, sub(sparseValues, num(tensorDims, 0), num(tensorDataType, 3)), num(sparseDims, 1))
	}
	zero := &tensor.Tensor{Type: tensor.Int8, Shape: []int{1}, Data: []byte{0}}
	typ := func(field protowire.Number) func(*message) {
		return sub(field, sub(typeTensor, num(tensorTypeElem, 1)))
	}
	for _, tt := range []struct {
		kind        int64
		parts       []func(*message)
		want, empty any // empty: without the value; nil where that is an error
	}{
		{kindFloat, []func(*message){float(attrF, 1.5)}, float32(1.5), float32(0)},
		{kindInt, []func(*message){num(attrI, -7)}, int64(-7), int64(0)},
		{kindString, []func(*message){str(attrS, "s")}, "s", ""},
		{kindFloats, []func(*message){float(attrFloats, 1), float(attrFloats, 2)}, []float32{1, 2}, []float32{}},
		{kindInts, []func(*message){num(attrInts, 1), num(attrInts, -2)}, []int64{1, -2}, []int64{}},
		{kindStrings, []func(*message){str(attrStrings, "a"), str(attrStrings, "")}, []string{"a", ""}, []string{}},
		{kindTensor, []func(*message){one(attrT, 3)}, scalar(3), nil},
		{kindTensors, []func(*message){one(attrTensors, 3), one(attrTensors, 4)}, []*tensor.Tensor{scalar(3), scalar(4)}, []*tensor.Tensor{}},
		{kindSparse, []func(*message){spars(attrSparse)}, zero, nil},
		{kindSparses, []func(*message){spars(attrSparseSlice), spars(attrSparseSlice)}, []*tensor.Tensor{zero, zero}, []*tensor.Tensor{}},
		{kindTypeProto, []func(*message){typ(attrTP)}, "tensor(float32)", nil},
		{kindTypeProtos, []func(*message){typ(attrTypeProtos), typ(attrTypeProtos)}, []string{"tensor(float32)", "tensor(float32)"}, []string{}},
		{kindGraph, []func(*message){sub(attrG, output(""))}, graph.GraphRef(1), nil},
		{kindGraphs, []func(*message){sub(attrGraphs, output("")), sub(attrGraphs, output(""))}, []graph.GraphRef{1, 2}, []graph.GraphRef{}},
	} {
		of := func(parts ...func(*message)) []byte {
			return model(node("Foo y =", sub(nodeAttribute, append([]func(*message){str(attrName, "a")}, parts...)...)))
		}
		for _, declared := range []bool{true, false} {
			parts := tt.parts
			if declared {
				parts = append([]func(*message){num(attrType, tt.kind)}, parts...)
			}
			if diff := cmp.Diff(graph.Attrs{"a": tt.want}, mustParse(t, of(parts...)).Main().Nodes[0].Attrs); diff != "" {
				t.Errorf("type %d, declared %v: %s", tt.kind, declared, diff)
			}
		}
		if tt.empty == nil {
			refused(t, of(num(attrType, tt.kind)), `graph.node[0].attribute["a"]`, "has 0 values")
			if tt.kind != kindGraph {
				refused(t, of(append([]func(*message){num(attrType, tt.kind), tt.parts[0]}, tt.parts...)...), `graph.node[0].attribute["a"]`, "has 2 values")
			}
			continue
		}
		if diff := cmp.Diff(graph.Attrs{"a": tt.empty}, mustParse(t, of(num(attrType, tt.kind))).Main().Nodes[0].Attrs); diff != "" {
			t.Errorf("type %d without a value: %s", tt.kind, diff)
		}
	}
	refused(t, model(node("Foo y =", sub(nodeAttribute, str(attrName, "a")))), `graph.node[0].attribute["a"]`, "neither type nor value")
	refused(t, model(node("Foo y =", attr("a", 15))), `graph.node[0].attribute["a"]`, "unknown type 15")
	refused(t, model(node("Foo y =", attr("a", kindInt), sub(nodeAttribute))), "graph.node[0].attribute[1]", "attribute has no name")
	refused(t, model(node("Foo y =", attr("a", kindTensor, sub(attrT)))), `graph.node[0].attribute["a"].t`, "no element type")
	refused(t, model(node("Foo y =", attr("a", kindSparse, sub(attrSparse)))), `graph.node[0].attribute["a"].sparse_tensor`, "no values")
	refused(t, model(node("Foo y =", attr("a", kindTypeProto, sub(attrTP, sub(typeTensor, num(tensorTypeElem, 99)))))), `graph.node[0].attribute["a"].tp.tensor_type`, "99")
}

// TestConstantNodes turns Constant nodes into constants when the attribute's name fits its type.
func TestConstantNodes(t *testing.T) {
	t.Parallel()
	float := func(field protowire.Number) func(*message) { return func(b *message) { b.float(field, 2) } }
	two := []byte{0, 0, 0, 64}
	for _, tt := range []struct {
		name string
		kind int64
		part func(*message)
		typ  tensor.Type
		rank int
		data []byte
	}{
		{"value", kindTensor, sub(attrT, num(tensorDataType, 1), raw(tensorRawData, two...)), tensor.Float32, 0, two},
		{"sparse_value", kindSparse, sub(attrSparse, sub(sparseValues, num(tensorDims, 0), num(tensorDataType, 3)), num(sparseDims, 1)), tensor.Int8, 1, []byte{0}},
		{"value_float", kindFloat, float(attrF), tensor.Float32, 0, two},
		{"value_floats", kindFloats, float(attrFloats), tensor.Float32, 1, two},
		{"value_int", kindInt, num(attrI, 5), tensor.Int64, 0, []byte{5, 0, 0, 0, 0, 0, 0, 0}},
		{"value_ints", kindInts, num(attrInts, 5), tensor.Int64, 1, []byte{5, 0, 0, 0, 0, 0, 0, 0}},
		{"value_string", kindString, str(attrS, "s"), tensor.String, 0, []byte{}},
		{"value_strings", kindStrings, str(attrStrings, "s"), tensor.String, 1, []byte{}},
	} {
		m := mustParse(t, model(node("Constant c =", attr(tt.name, tt.kind, tt.part)), node("Foo y = c")))
		v := m.Main().Values[0]
		if v.Const == nil || v.Type != tt.typ || len(v.Shape) != tt.rank || !v.HasShape || !cmp.Equal(v.Const.Data, tt.data) || len(m.Main().Nodes) != 1 {
			t.Errorf("%s: %+v of %d nodes", tt.name, v, len(m.Main().Nodes))
		}
		if tt.typ == tensor.String && !cmp.Equal(v.Const.Strings, []string{"s"}) {
			t.Errorf("%s: %q", tt.name, v.Const.Strings)
		}
		// Under another name, in another domain, with an input or a second attribute it stays a
		// node.
		for _, n := range []func(*message){
			node("Constant c =", attr("other", tt.kind, tt.part)),
			node("d:Constant c =", attr(tt.name, tt.kind, tt.part)),
			node("Constant c = x", attr(tt.name, tt.kind, tt.part)),
			node("Constant c =", attr(tt.name, tt.kind, tt.part), attr("other", kindInt)),
		} {
			if m := mustParse(t, model(input("x"), n, node("Foo y = c"))); len(m.Main().Nodes) != 2 {
				t.Errorf("%s: %d nodes", tt.name, len(m.Main().Nodes))
			}
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	refused(t, model(sub(graphInput)), "graph.input[0]", "input has no name")
	refused(t, model(input("x"), sub(graphInitializer, num(tensorDataType, 3), num(tensorDims, 0))), "graph.initializer[0]", "initializer has no name")
	refused(t, model(scalar("w"), sparse(4, 1)), "graph.sparse_initializer[0]", `"w" is defined twice`)
	refused(t, model(scalar("v"), node("Relu v =")), "graph.node[0].output[0]", `"v" is defined twice`)
	refused(t, modelWith([]func(*message){sub(modelFunctions)}, input("x")), "functions[0]", "function has no name")
	refused(t, msg(sub(modelOpsetImport, num(opsetVersion, -1)), sub(modelGraph)), "opset_import", "operator-set version -1")
	refused(t, msg(sub(modelOpsetImport, num(opsetVersion, 1<<20+1)), sub(modelGraph)), "opset_import", "operator-set version 1048577")
	m := mustParse(t, msg(sub(modelOpsetImport, str(opsetDomain, "ai.onnx"), num(opsetVersion, 1<<20)), sub(modelOpsetImport, str(opsetDomain, "d")), sub(modelGraph),
		str(modelProducer, "maker"), str(modelProducerVersion, "7"), str(modelDoc, "doc"), sub(modelTraining), num(modelIRVersion, 9),
		sub(modelMetadata, str(entryKey, "k"), str(entryValue, "v"))))
	if diff := cmp.Diff(map[string]int{"": 1 << 20, "d": 0}, m.Opsets); diff != "" {
		t.Error(diff)
	}
	if m.Producer != "maker 7" || m.Description != "doc" || m.IRVersion != 9 || m.Format != "onnx" || !cmp.Equal(m.Metadata, []graph.Metadata{{Name: "k", Data: []byte("v")}}) {
		t.Errorf("%+v", m)
	}
	if diff := cmp.Diff([]string{"Training information in the file is ignored."}, m.Warnings); diff != "" {
		t.Error(diff)
	}
	// Old files have no imports: version 1 without a remark.
	for ir, want := range map[int64]int{2: 0, 3: 1} {
		m := mustParse(t, msg(num(modelIRVersion, ir), sub(modelGraph, input("x"), node("Relu y = x"), node("Relu z = y"))))
		if len(m.Warnings) != want || m.Main().Nodes[0].Version != 1 {
			t.Errorf("IR version %d: %q", ir, m.Warnings)
		}
	}
}

// TestCycleText names the nodes of a cycle in the order of the data, and five at most.
func TestCycleText(t *testing.T) {
	t.Parallel()
	ring := func(n int) []byte {
		parts := []func(*message){input("x"), node("Relu free = x")}
		for i := range n {
			parts = append(parts, node(fmt.Sprintf("Add v%d = x v%d", i, (i+n-1)%n)))
		}
		return model(parts...)
	}
	for n, want := range map[int]string{
		2: "cycle: node 2 (Add \"\"), node 1 (Add \"\")",
		5: "node 5 (Add \"\"), node 1 (Add \"\"), node 2 (Add \"\"), node 3 (Add \"\"), node 4 (Add \"\")",
		6: "node 6 (Add \"\"), node 1 (Add \"\"), node 2 (Add \"\"), node 3 (Add \"\"), node 4 (Add \"\"), and 1 more",
	} {
		_, err := Parse(ring(n), "", "")
		if err == nil {
			t.Fatalf("a ring of %d is accepted", n)
		}
		text, _, _ := strings.Cut(err.Error(), " (at byte")
		first := strings.Count(text, "node ")
		if first != min(n, 5) || n > 5 != strings.Contains(text, fmt.Sprintf("and %d more", n-5)) || strings.Contains(text, "node 0") {
			t.Errorf("ring of %d: %q\nlike %q", n, text, want)
		}
		// Each node but the first is read by what follows it.
		at := []int{}
		for _, p := range strings.Split(text, "node ")[1:] {
			var i int
			if _, err := fmt.Sscanf(p, "%d", &i); err != nil {
				t.Fatal(err)
			}
			at = append(at, i)
		}
		for k := 1; k < len(at); k++ {
			if at[k] != at[k-1]%n+1 {
				t.Errorf("ring of %d: nodes %v are not in the order of the data", n, at)
			}
		}
	}
}

// TestCallDepth allows a hundred functions within each other.
func TestCallDepth(t *testing.T) {
	t.Parallel()
	build := func(depth int) []byte {
		fs := []func(*message){function("F1", "a", "b", nodeIn(functionNode, "Relu b = a"))}
		for i := 2; i <= depth; i++ {
			fs = append(fs, function(fmt.Sprintf("F%d", i), "a", "b", nodeIn(functionNode, fmt.Sprintf("local:F%d b = a", i-1))))
		}
		return modelWith(fs, input("x"), node(fmt.Sprintf("local:F%d y = x", depth)), output("y"))
	}
	if n := mustParse(t, build(100)).Main().Nodes; len(n) != 1 || len(n[0].Function) != 100 || n[0].Function[0] != "F100" {
		t.Errorf("%d nodes", len(n))
	}
	_, err := Parse(build(101), "", "")
	if err == nil || !strings.Contains(err.Error(), "deeper than 100") {
		t.Errorf("101 calls within each other: %v", err)
	}
}

// TestExternalBytes reads exactly what the entries say, and maps a file once.
func TestExternalBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.bin"), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		entries []string
		want    []byte
		text    string
	}{
		{[]string{"location", "w.bin"}, []byte{1, 2, 3, 4}, ""},
		{[]string{"location", "./w.bin", "offset", " 6 ", "length", "4", "checksum", "x"}, []byte{7, 8, 9, 10}, ""},
		{[]string{"location", "w.bin", "offset", "7"}, nil, `"w.bin" has 10 bytes, but the tensor needs 4 at 7`},
		{[]string{"location", "w.bin", "offset", "9223372036854775807"}, nil, "needs 4 at 9223372036854775807"},
		{[]string{"location", "w.bin", "length", "5"}, nil, "length 5, but the tensor takes 4 bytes"},
		{[]string{"location", "w.bin", "length", "0"}, nil, "length 0, but"},
		{[]string{"location", "w.bin", "length", "-1"}, nil, `length: "-1" is not a size`},
		{[]string{"location", "w.bin", "offset", "x"}, nil, `offset: "x" is not a size`},
		{[]string{"location", "..w.bin"}, nil, "no such file"},
	} {
		m, err := Parse(model(externalTensor(1, tt.entries...), input("x"), node("Add y = x w")), "m.onnx", dir)
		if tt.text != "" {
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%q: error %v, want %q", tt.entries, err, tt.text)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, m.Main().Values[0].Const.Data); diff != "" {
			t.Errorf("%q: %s", tt.entries, diff)
		}
		if err := errors.Join(m.Check(), m.Close()); err != nil {
			t.Error(err)
		}
	}
	if _, err := Parse(model(externalTensor(1, "location", "w.bin")), "m.onnx", ""); err == nil || !strings.Contains(err.Error(), "was not opened from a folder") {
		t.Errorf("without a folder: %v", err)
	}
	x := &external{dir: dir}
	for _, name := range []string{"w.bin", "./w.bin"} {
		if _, err := x.file(name); err != nil || len(x.files) != 1 {
			t.Errorf("%s: %d files, %v", name, len(x.files), err)
		}
	}
	if err := x.check(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "w.bin"), []byte{1}, 0o600); err != nil {
		t.Fatal(err)
	}
	if x.check() == nil {
		t.Error("a changed file is not noticed")
	}
	if err := x.close(); err != nil || x.files != nil {
		t.Error(err)
	}
}

// TestValues reads the messages of containers.
func TestValues(t *testing.T) {
	t.Parallel()
	one := func(field protowire.Number, dims int, v ...byte) func(*message) {
		return sub(field, num(tensorDataType, 3), func(b *message) {
			if dims > 0 {
				b.int(tensorDims, int64(len(v)))
			}
		}, raw(tensorRawData, v...))
	}
	show := func(x *tensor.Tensor) string {
		var s func(x *tensor.Tensor) string
		s = func(x *tensor.Tensor) string {
			if x.Elems == nil {
				return fmt.Sprintf("%v%v%v%v", x.Type, x.Shape, x.Data, x.Strings)
			}
			out := x.Type.String() + "<" + x.Elem.String() + ">("
			for _, e := range x.Elems {
				out += s(e) + ";"
			}
			return out + ")"
		}
		return s(x)
	}
	inner := func(field protowire.Number) func(*message) { return sub(field, one(sequenceTensors, 0, 9)) }
	values := func(parts ...func(*message)) func(*message) { return sub(mapValues, parts...) }
	for _, tt := range []struct {
		name string
		typ  tensor.Type
		data []byte
		want string
		text string
	}{
		{"tensor", tensor.Int8, msg(num(tensorDataType, 3), raw(tensorRawData, 5)), "int8[][5][]", ""},
		{"sequence", tensor.Sequence, msg(num(sequenceElemType, 1), one(sequenceTensors, 0, 1), one(sequenceTensors, 0, 2)), "sequence<int8>(int8[][1][];int8[][2][];)", ""},
		{"empty", tensor.Sequence, nil, "sequence<invalid>()", ""},
		{"sequences", tensor.Sequence, msg(inner(sequenceSequences), sub(sequenceOptionals)), "sequence<sequence>(sequence<int8>(int8[][9][];);optional<invalid>();)", ""},
		{"optional", tensor.Optional, msg(one(optionalTensor, 0, 1), one(optionalTensor, 0, 2)), "optional<int8>(int8[][2][];)", ""},
		{"optional sequence", tensor.Optional, msg(inner(optionalSequence)), "optional<sequence>(sequence<int8>(int8[][9][];);)", ""},
		{"map", tensor.Map, msg(num(mapKeyType, 3), num(mapKeys, -1), num(mapKeys, 4), values(one(sequenceTensors, 0, 7), one(sequenceTensors, 0, 8))), "map<invalid>(int8[2][255 4][];sequence<int8>(int8[][7][];int8[][8][];);)", ""},
		{"map of one tensor", tensor.Map, msg(num(mapKeyType, 8), str(mapStringKeys, "a"), str(mapStringKeys, "b"), values(one(sequenceTensors, 1, 7, 8))), "map<invalid>(string[2][][a b];int8[2][7 8][];)", ""},
		{"map without values", tensor.Map, msg(num(mapKeyType, 7), num(mapKeys, 4)), "", "map has 1 keys and 0 values"},
		{"map of floats", tensor.Map, msg(num(mapKeyType, 1)), "", "map with keys of float32"},
		{"map of half bytes", tensor.Map, msg(num(mapKeyType, 22)), "", "map with keys of int4"},
		{"bad element", tensor.Sequence, msg(one(sequenceTensors, 0, 1), sub(sequenceTensors)), "", "tensor_values[1]: tensor \"\" has no element type"},
		{"bad optional", tensor.Optional, msg(sub(optionalSparse)), "", "sparse_tensor_value: sparse tensor has no values"},
		{"bad values", tensor.Map, msg(values(sub(sequenceMaps, num(mapKeyType, 1)))), "", "values.map_values[0]: map with keys of float32"},
	} {
		x, err := ParseValue(tt.data, tt.typ)
		switch {
		case tt.text != "":
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.text)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case show(x) != tt.want:
			t.Errorf("%s: %s, want %s", tt.name, show(x), tt.want)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	value := func(v graph.Value) *graph.Model {
		return &graph.Model{Graphs: []*graph.Graph{{Values: []*graph.Value{&v}}}}
	}
	withAttr := func(a any) *graph.Model {
		return &graph.Model{Graphs: []*graph.Graph{{Nodes: []*graph.Node{{Op: "Foo", Name: "n", Inputs: []int{-1}, Attrs: graph.Attrs{"a": a}}}}, {}}}
	}
	for _, tt := range []struct {
		name, text string
		m          *graph.Model
	}{
		{"nothing", "no graph", &graph.Model{}},
		{"quantised", `value "q": ONNX has no quantised`, value(graph.Value{Name: "q", Quant: &tensor.Quant{}})},
		{"container", `value "c": cannot write a tensor of sequence`, value(graph.Value{Name: "c", Const: &tensor.Tensor{Type: tensor.Sequence}})},
		{"unknown elements", "cannot write a tensor of float32", value(graph.Value{Const: &tensor.Tensor{Type: tensor.Float32, Shape: []int{1}}})},
		{"strings", "1 strings for shape 2", value(graph.Value{Const: &tensor.Tensor{Type: tensor.String, Shape: []int{2}, Strings: []string{"a"}, Data: []byte{}}})},
		{"bytes", "7 bytes for 2 of float32", value(graph.Value{Const: &tensor.Tensor{Type: tensor.Float32, Shape: []int{2}, Data: make([]byte, 7)}})},
		{"shape", "negative", value(graph.Value{Const: &tensor.Tensor{Type: tensor.Float32, Shape: []int{-2}, Data: []byte{}}})},
		{"attribute", `node 0 (Foo "n"): attribute "a": value of type int`, withAttr(1)},
		{"main graph as a body", `attribute "a": graph 0 of 2`, withAttr(graph.GraphRef(0))},
		{"graph past the end", `graph 2 of 2`, withAttr([]graph.GraphRef{1, 2})},
		{"tensor of an attribute", `attribute "a"`, withAttr([]*tensor.Tensor{{Type: tensor.Map}})},
	} {
		if _, err := Encode(tt.m); err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.text)
		}
	}
	data, err := Encode(withAttr(true))
	if err != nil {
		t.Fatal(err)
	}
	d := &decoder{ext: &external{}, intern: map[string]string{}}
	m, err := d.model(protoread.NewReader(append(data, msg(sub(99))...)))
	if err != nil || m.ir != 4 || m.graph.nodes[0].attrs[0].val != int64(1) {
		t.Errorf("IR version %d, %v", m.ir, err)
	}
}

// TestEncodeBodies writes bodies whose values have names of the enclosing graph, or none.
func TestEncodeBodies(t *testing.T) {
	t.Parallel()
	w := tensor.From(tensor.Float32, []int{1}, []float32{3})
	main := &graph.Graph{Name: "main", Inputs: []int{0}, Outputs: []int{2}, Values: []*graph.Value{
		{ID: 0, Name: "x", Type: tensor.Float32}, {ID: 1, Name: "w", Type: tensor.Float32, Shape: []int{1}, HasShape: true, Const: w}, {ID: 2, Name: "y", Type: tensor.Float32},
	}}
	body := func(i int) *graph.Graph {
		return &graph.Graph{Index: i, Name: fmt.Sprintf("body%d", i), Parent: main, Outputs: []int{2}, Captures: []graph.Capture{{Inner: 0, Outer: 0}}, Values: []*graph.Value{
			{ID: 0, Name: "another name", Type: tensor.Float32},
			{ID: 1, Name: "w", Type: tensor.Float32, Shape: []int{1}, HasShape: true, Const: w},
			{ID: 2, Name: "y", Type: tensor.Float32},
			{ID: 3, Type: tensor.Float32},
		}, Nodes: []*graph.Node{{Op: "Add", Inputs: []int{0, 1}, Outputs: []int{3}}, {Index: 1, Op: "Relu", Inputs: []int{3}, Outputs: []int{2}}}}
	}
	// By name "a" comes first, but its graph is the second.
	main.Nodes = []*graph.Node{{Op: "If", Inputs: []int{0}, Outputs: []int{2}, Attrs: graph.Attrs{"a": graph.GraphRef(2), "b": []graph.GraphRef{1}}}}
	m := &graph.Model{IRVersion: 9, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{main, body(1), body(2)}}
	data, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	back := mustParse(t, data)
	if back.IRVersion != 9 || len(back.Graphs) != 3 || back.Graphs[1].Name != "body1" || back.Graphs[2].Name != "body2" {
		t.Fatalf("IR version %d, %d graphs", back.IRVersion, len(back.Graphs))
	}
	for _, g := range back.Graphs[1:] {
		if len(g.Captures) != 1 || len(g.Nodes) != 2 || g.Values[g.Nodes[0].Inputs[1]].Const == nil {
			t.Errorf("%s: captures %v, nodes %q", g.Name, g.Captures, lines(g))
		}
		if name := g.Values[g.Outputs[0]].Name; name == "y" || !strings.HasPrefix(name, "y_") {
			t.Errorf("%s: the result is called %q, which the enclosing graph has", g.Name, name)
		}
	}
}

package tflite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Slots of tables, as the schema numbers its fields.
const (
	modelVersion, modelSubgraphs, modelDescription, modelMetadata, modelSignatures = 0, 2, 3, 6, 7
	opCode, opInputs, opOutputs, opOptionsType, opOptions, opCustomOptions         = 0, 1, 2, 3, 4, 5
	opIntermediates, opLargeOffset, opLargeSize, opOptions2Type, opOptions2        = 8, 9, 10, 11, 12
	tensorQuant, tensorVariable, tensorSparsity, tensorSignature                   = 4, 5, 6, 7
	tensorHasRank, tensorExternal                                                  = 8, 10
)

// table makes a table by a function, to have it in one expression.
func made(set func(o *flatbuffer.Object)) *flatbuffer.Object {
	o := &flatbuffer.Object{}
	set(o)
	return o
}

// with builds the model after a change of its root and its graph: fields set later count.
func (f *file) with(t testing.TB, change func(root, g *flatbuffer.Object)) []byte {
	t.Helper()
	root, g := &flatbuffer.Object{}, &flatbuffer.Object{}
	g.Tables(0, f.tensors)
	flatbuffer.Int32s(g, 1, f.inputs)
	flatbuffer.Int32s(g, 2, f.outputs)
	g.Tables(3, f.operators)
	root.Int32(modelVersion, 3, 0)
	root.Tables(1, f.codes)
	root.Tables(modelSubgraphs, []*flatbuffer.Object{g})
	root.Tables(4, append([]*flatbuffer.Object{{}}, f.buffers...))
	change(root, g)
	b, err := flatbuffer.Build(root, identifier)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// abs is a graph of one operator ABS from tensor 0 to tensor 1.
func abs() *file { return chain(2, [2]int{0, 1}) }

// refusal checks that a model is refused, with the path and a part of the text.
func refusal(t *testing.T, data []byte, path, text string) {
	t.Helper()
	m, err := Parse(data, "m.tflite")
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("model %+v, error %v: want one at %s", m, err, path)
	}
	if e.File != "m.tflite" || e.Path != path || !strings.Contains(e.Err.Error(), text) || e.Offset <= 0 || e.Offset >= int64(len(data)) {
		t.Errorf("error %q at %q, byte %d of %d\nwant  %q at %q", e.Err, e.Path, e.Offset, len(data), text, path)
	}
}

func parse(t *testing.T, data []byte) *graph.Model {
	t.Helper()
	m, err := Parse(data, "m.tflite")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		e    Error
		want string
	}{
		{Error{File: "a", Path: "Model.x", Offset: 7, Err: errors.New("bad")}, "a: Model.x at byte 7: bad"},
		{Error{File: "a", Path: "Model", Err: errors.New("bad")}, "a: Model at byte 0: bad"},
		{Error{File: "a", Offset: -1, Err: errors.New("bad")}, "a: bad"},
	} {
		if got := tt.e.Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	inner := &Error{File: "inner", Offset: 3, Err: errors.New("x")}
	if got := fileError("outer", fmt.Errorf("more: %w", inner)); !errors.Is(got, inner) || strings.Contains(got.Error(), "outer") {
		t.Errorf("an error that has its place gets another: %v", got)
	}
	var e *Error
	if plain := errors.New("plain"); !errors.As(fileError("outer", plain), &e) || e.Offset != -1 || e.File != "outer" || !errors.Is(e, plain) {
		t.Errorf("error without a place: %+v", e)
	}
}

// TestRefusedModels has one thing wrong at a time, at the edge of what is right where there is one.
func TestRefusedModels(t *testing.T) {
	t.Parallel()
	op := func(set func(o *flatbuffer.Object)) func(*file) { return func(f *file) { set(f.operators[0]) } }
	ten := func(set func(o *flatbuffer.Object)) func(*file) { return func(f *file) { set(f.tensors[0]) } }
	for _, tt := range []struct {
		name, path, text string
		change           func(f *file)
		root             func(root, g *flatbuffer.Object)
	}{
		{name: "version", path: "Model.version", text: "schema version 4, only 3", root: func(r, _ *flatbuffer.Object) { r.Int32(modelVersion, 4, 0) }},
		{name: "no graph", path: "Model.subgraphs", text: "no subgraph", root: func(r, _ *flatbuffer.Object) { r.Tables(modelSubgraphs, nil) }},
		{name: "operator code", path: "Model.subgraphs[0].operators[0].opcode_index", text: "code 1 of 1", change: op(func(o *flatbuffer.Object) { o.Int32(opCode, 1, 0) })},
		{name: "input", path: "Model.subgraphs[0].operators[0].inputs", text: "entry 0 is tensor 2 of 2", change: op(func(o *flatbuffer.Object) { flatbuffer.Int32s(o, opInputs, []int{2}) })},
		{name: "negative input", path: "Model.subgraphs[0].operators[0].inputs", text: "entry 1 is tensor -2", change: op(func(o *flatbuffer.Object) { flatbuffer.Int32s(o, opInputs, []int{0, -2}) })},
		{name: "output", path: "Model.subgraphs[0].operators[0].outputs", text: "entry 0 is tensor 2 of 2", change: op(func(o *flatbuffer.Object) { flatbuffer.Int32s(o, opOutputs, []int{2}) })},
		{name: "intermediate", path: "Model.subgraphs[0].operators[0].intermediates", text: "tensor 2 of 2", change: op(func(o *flatbuffer.Object) { flatbuffer.Int32s(o, opIntermediates, []int{1, 2}) })},
		{name: "absent graph input", path: "Model.subgraphs[0].inputs", text: "entry 0 is tensor -1", change: func(f *file) { f.inputs = []int{-1} }},
		{name: "graph output", path: "Model.subgraphs[0].outputs", text: "entry 0 is tensor 2", change: func(f *file) { f.outputs = []int{2} }},
		{name: "type", path: "Model.subgraphs[0].tensors[0].type", text: "type 23 is not", change: ten(func(o *flatbuffer.Object) { o.Uint8(1, 23, 0) })},
		{name: "negative type", path: "Model.subgraphs[0].tensors[0].type", text: "type -1 is not", change: ten(func(o *flatbuffer.Object) { o.Uint8(1, 255, 0) })},
		{name: "shape", path: "Model.subgraphs[0].tensors[0].shape", text: "dimension 1 is -2", change: ten(func(o *flatbuffer.Object) { flatbuffer.Int32s(o, 0, []int{3, -2}) })},
		{name: "signature shape", path: "Model.subgraphs[0].tensors[0].shape_signature", text: "dimension 0 is -2", change: ten(func(o *flatbuffer.Object) { flatbuffer.Int32s(o, tensorSignature, []int{-2}) })},
		{name: "external", path: "Model.subgraphs[0].tensors[0].external_buffer", text: "separate file", change: ten(func(o *flatbuffer.Object) { o.Int32(tensorExternal, 1, 0) })},
		{name: "buffer", path: "Model.subgraphs[0].tensors[0].buffer", text: "buffer 1 of 1", change: ten(func(o *flatbuffer.Object) { o.Int32(2, 1, 0) })},
		{
			name: "metadata buffer", path: "Model.metadata[0].buffer", text: "buffer 1 of 1",
			root: func(r, _ *flatbuffer.Object) {
				r.Tables(modelMetadata, []*flatbuffer.Object{made(func(o *flatbuffer.Object) { o.Int32(1, 1, 0) })})
			},
		},
		{
			name: "signature graph", path: "Model.signature_defs[0].subgraph_index", text: "subgraph 1 of 1",
			root: func(r, _ *flatbuffer.Object) {
				r.Tables(modelSignatures, []*flatbuffer.Object{made(func(o *flatbuffer.Object) { o.Int32(4, 1, 0) })})
			},
		},
		{
			name: "signature input", path: "Model.signature_defs[0].inputs[1].tensor_index", text: "tensor 2 of 2",
			root: func(r, _ *flatbuffer.Object) {
				bad := made(func(o *flatbuffer.Object) { o.Int32(1, 2, 0) })
				r.Tables(modelSignatures, []*flatbuffer.Object{made(func(o *flatbuffer.Object) { o.Tables(0, []*flatbuffer.Object{{}, bad}) })})
			},
		},
		{
			name: "signature output", path: "Model.signature_defs[0].outputs[0].tensor_index", text: "tensor 9 of 2",
			root: func(r, _ *flatbuffer.Object) {
				bad := made(func(o *flatbuffer.Object) { o.Int32(1, 9, 0) })
				r.Tables(modelSignatures, []*flatbuffer.Object{made(func(o *flatbuffer.Object) { o.Tables(1, []*flatbuffer.Object{bad}) })})
			},
		},
		{
			name: "buffer behind the end", path: "Model.buffers[1].offset", text: "truncated",
			change: func(f *file) {
				f.buffers = append(f.buffers, made(func(o *flatbuffer.Object) { o.Int64(1, 1<<40, 0); o.Int64(2, 1, 0) }))
			},
		},
		{
			name: "custom options behind the end", path: "Model.subgraphs[0].operators[0].large_custom_options_offset", text: "truncated",
			change: func(f *file) {
				f.codes[0] = made(func(o *flatbuffer.Object) { o.Uint8(0, 32, 0); o.String(1, "Odd") })
				f.operators[0].Int64(opLargeOffset, 2, 0)
				f.operators[0].Int64(opLargeSize, 1<<40, 0)
			},
		},
		{
			name: "graph attribute", path: "Model.subgraphs[0].operators[0].builtin_options.else_subgraph_index", text: "subgraph 1 of 1",
			change: func(f *file) {
				f.codes[0] = made(func(o *flatbuffer.Object) { o.Uint8(0, 118, 0) }) // IF
				f.operators[0].Uint8(opOptionsType, 92, 0)
				f.operators[0].Table(opOptions, made(func(o *flatbuffer.Object) { o.Int32(1, 1, 0) }))
			},
		},
		{
			name: "negative graph attribute", path: "Model.subgraphs[0].operators[0].builtin_options.then_subgraph_index", text: "subgraph -1 of 1",
			change: func(f *file) {
				f.codes[0] = made(func(o *flatbuffer.Object) { o.Uint8(0, 118, 0) })
				f.operators[0].Uint8(opOptionsType, 92, 0)
				f.operators[0].Table(opOptions, made(func(o *flatbuffer.Object) { o.Int32(0, -1, 0) }))
			},
		},
		{
			name: "list of graphs", path: "Model.subgraphs[0].operators[0].builtin_options_2.branch_subgraph_indices", text: "entry 1 is subgraph 1 of 1",
			change: func(f *file) {
				// STABLEHLO_CASE
				f.codes[0] = made(func(o *flatbuffer.Object) { o.Uint8(0, 127, 0); o.Int32(3, 209, 0) })
				f.operators[0].Uint8(opOptions2Type, 23, 0)
				f.operators[0].Table(opOptions2, made(func(o *flatbuffer.Object) { flatbuffer.Int32s(o, 0, []int{0, 1}) }))
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := abs()
			if tt.change != nil {
				tt.change(f)
			}
			refusal(t, f.with(t, func(root, g *flatbuffer.Object) {
				if tt.root != nil {
					tt.root(root, g)
				}
			}), tt.path, tt.text)
		})
	}
}

// TestAcceptedModels has the last value of each range that is right.
func TestAcceptedModels(t *testing.T) {
	t.Parallel()
	f := abs()
	f.codes = []*flatbuffer.Object{
		// the byte alone: ABS
		made(func(o *flatbuffer.Object) { o.Uint8(0, 101, 0) }),
		// both: the larger, GELU
		made(func(o *flatbuffer.Object) { o.Uint8(0, 127, 0); o.Int32(3, 150, 0) }),
		// newer than this schema
		made(func(o *flatbuffer.Object) { o.Int32(3, 210, 0); o.Int32(2, 0, 1) }),
		// a byte below zero: ADD
		made(func(o *flatbuffer.Object) { o.Uint8(0, 0xff, 0) }),
		// the last that is known
		made(func(o *flatbuffer.Object) { o.Int32(3, 209, 0); o.Int32(2, 7, 1) }),
		made(func(o *flatbuffer.Object) { o.Uint8(0, 32, 0); o.String(1, "Special") }), // custom
	}
	f.operators = nil
	for i := range f.codes {
		f.operators = append(f.operators, made(func(o *flatbuffer.Object) {
			o.Int32(opCode, int32(i), 0)
			flatbuffer.Int32s(o, opInputs, []int{0, -1})
			flatbuffer.Int32s(o, opOutputs, []int{1 + i})
			flatbuffer.Int32s(o, opIntermediates, []int{-1, i})
		}))
		if i > 0 {
			f.tensor([]int{1}, 0, 0)
		}
	}
	f.outputs = []int{len(f.codes)}
	sig := func(name string, id int32) []*flatbuffer.Object {
		return []*flatbuffer.Object{made(func(o *flatbuffer.Object) { o.String(0, name); o.Int32(1, id, 0) })}
	}
	m := parse(t, f.with(t, func(root, g *flatbuffer.Object) {
		g.String(4, "inner")
		root.String(modelDescription, "what it is")
		root.Tables(modelMetadata, []*flatbuffer.Object{made(func(o *flatbuffer.Object) { o.String(0, "empty") })})
		root.Tables(modelSignatures, []*flatbuffer.Object{made(func(o *flatbuffer.Object) {
			o.Tables(0, sig("x", 0))
			o.Tables(1, sig("y", int32(len(f.codes)))) // the last tensor
			o.String(2, "serve")
		})})
	}))
	type node struct {
		Domain, Op string
		Version    int
	}
	var got []node
	for i, n := range m.Main().Nodes {
		got = append(got, node{n.Domain, n.Op, n.Version})
		if diff := cmp.Diff(graph.Attrs{"intermediates": []int64{-1, int64(i)}}, n.Attrs); diff != "" || n.Index != i {
			t.Errorf("node %d has index %d, %s", i, n.Index, diff)
		}
	}
	want := []node{{"tflite", "ABS", 1}, {"tflite", "GELU", 1}, {"tflite", "BUILTIN_210", 1}, {"tflite", "ADD", 1}, {"tflite", "STABLEHLO_CASE", 7}, {"tflite.custom", "Special", 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Operator code 210 is not known."}, m.Warnings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]graph.Signature{{Key: "serve", Inputs: []graph.SignatureTensor{{Name: "x"}}, Outputs: []graph.SignatureTensor{{Name: "y", Value: 6}}}}, m.Signatures); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]graph.Metadata{{Name: "empty"}}, m.Metadata); diff != "" {
		t.Error(diff)
	}
	if m.Name != "inner" || m.Description != "what it is" || m.IRVersion != 3 || m.Format != "tflite" || m.Path != "m.tflite" || m.FileBytes == 0 {
		t.Errorf("model %+v", m)
	}
}

// TestOutsideBuffers keeps bytes behind the FlatBuffer: the last byte of the file counts,
// one more does not exist; offsets 0 and 1 say that they are absent.
func TestOutsideBuffers(t *testing.T) {
	t.Parallel()
	build := func(offset, size int64) []byte {
		f := abs()
		f.buffers = []*flatbuffer.Object{made(func(o *flatbuffer.Object) {
			o.Bytes(0, []byte{1, 0, 0, 0}, 16)
			o.Int64(1, offset, -1)
			o.Int64(2, size, -1)
		})}
		f.tensor([]int{1}, 2, 1)
		return append(f.bytes(t), 7, 0, 0, 0)
	}
	size := int64(len(build(0, 0)))
	for _, tt := range []struct {
		offset, size int64
		want         int32
		refused      bool
	}{
		{0, 99, 1, false}, {1, 99, 1, false}, {size - 4, 4, 7, false}, {size - 4, 5, 0, true}, {size - 3, 4, 0, true}, {size + 1, 0, 0, true}, {size + 1, math.MaxInt64, 0, true}, {math.MinInt64, 4, 0, true},
	} {
		data := build(tt.offset, tt.size)
		if tt.refused {
			refusal(t, data, "Model.buffers[1].offset", fmt.Sprintf("outside the file of %d bytes", size))
			continue
		}
		if v := parse(t, data).Main().Values[2]; v.Const == nil || tensor.Of[int32](v.Const)[0] != tt.want {
			t.Errorf("offset %d: %+v, want %d", tt.offset, v.Const, tt.want)
		}
	}
	// Options of a custom operator that lie behind the buffer.
	for _, tt := range []struct {
		offset, size int64
		want         []byte
	}{{0, 4, []byte{5}}, {1, 4, []byte{5}}, {-1, 4, []byte{7, 0, 0, 0}}, {-1, 3, []byte{7, 0, 0}}} {
		custom := func(offset int64) []byte {
			f := abs()
			f.codes[0] = made(func(o *flatbuffer.Object) { o.Uint8(0, 32, 0) })
			f.operators[0].Bytes(opCustomOptions, []byte{5}, 4)
			f.operators[0].Int64(opLargeOffset, offset, -9)
			f.operators[0].Int64(opLargeSize, tt.size, -9)
			return append(f.bytes(t), 7, 0, 0, 0)
		}
		off := tt.offset
		if off < 0 {
			off = int64(len(custom(0))) - 4
		}
		if diff := cmp.Diff(graph.Attrs{"custom_options": tt.want}, parse(t, custom(off)).Main().Nodes[0].Attrs); diff != "" {
			t.Errorf("offset %d: %s", tt.offset, diff)
		}
	}
}

// TestBufferZero stands for "no data", whatever it holds.
func TestBufferZero(t *testing.T) {
	t.Parallel()
	f := abs()
	m := parse(t, f.with(t, func(root, _ *flatbuffer.Object) {
		root.Tables(4, []*flatbuffer.Object{made(func(o *flatbuffer.Object) { o.Bytes(0, []byte{1, 2, 3, 4}, 16) })})
	}))
	if v := m.Main().Values[0]; v.Const != nil || v.Offset != -1 {
		t.Errorf("value %+v has data", v)
	}
	if len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "Buffer 0 holds 4 bytes") {
		t.Errorf("warnings %q", m.Warnings)
	}
}

// TestWarningsAreFew has the same remark on n operators: three are told, then that there are more.
func TestWarningsAreFew(t *testing.T) {
	t.Parallel()
	for n, want := range []int{0, 1, 2, 3, 4, 4, 4} {
		f := abs()
		for i := range n {
			f.codes = append(f.codes, made(func(o *flatbuffer.Object) { o.Int32(3, int32(300+i), 0) }))
		}
		m := parse(t, f.bytes(t))
		if len(m.Warnings) != want {
			t.Errorf("%d unknown codes: %q", n, m.Warnings)
		}
		if n > 3 && m.Warnings[3] != "Further tensors or operators with: unknown operator code." {
			t.Errorf("last of %q", m.Warnings)
		}
	}
}

// TestOptionDefaults reads tables without fields: the defaults are those of the schema.
func TestOptionDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op, number, number2 uint8
		code                int32
		want                graph.Attrs
		warning             string
	}{
		{op: 3, number: 1, want: graph.Attrs{
			"padding": "SAME", "stride_w": int64(0), "stride_h": int64(0), "fused_activation_function": "NONE", "dilation_w_factor": int64(1), "dilation_h_factor": int64(1), "quantized_bias_type": "FLOAT32",
		}},
		{op: 0, number: 11, want: graph.Attrs{"fused_activation_function": "NONE", "pot_scale_int16": true}},
		{op: 41, number: 28, want: graph.Attrs{"fused_activation_function": "NONE", "pot_scale_int16": true}},
		{op: 25, number: 9, want: graph.Attrs{"beta": float32(0)}},
		{op: 103, number: 80, want: graph.Attrs{"idx_out_type": "INT32"}},
		{op: 52, number: 69, want: graph.Attrs{
			"fused_activation_function": "NONE", "cell_clip": float32(0), "proj_clip": float32(0), "merge_outputs": false, "time_major": true, "asymmetric_quantize_inputs": false,
		}},
		// RESHAPE: a vector that is absent
		{op: 22, number: 17, want: graph.Attrs{}},
		// ABS: no fields at all
		{op: 101, number: 78, want: graph.Attrs{}},
		// another's table, but ABS has nothing to lose
		{op: 101, number: 1, want: graph.Attrs{}},
		// an empty table of another says nothing
		{op: 3, number: 78, want: graph.Attrs{}},
		// ADD's for CONV_2D
		{op: 3, number: 11, want: graph.Attrs{}, warning: "type 11, which is not its own"},
		// no such table
		{op: 101, number: 200, want: graph.Attrs{}, warning: "type 200"},
		// STABLEHLO_ADD has no table
		{op: 127, code: 163, number2: 1, want: graph.Attrs{}, warning: "type 1"},
		// STABLEHLO_CONCATENATE
		{op: 127, code: 169, number2: 1, want: graph.Attrs{"dimension": int64(0)}},
		// its number in the other union
		{op: 127, code: 169, number: 1, want: graph.Attrs{}, warning: "type 1"},
	} {
		f := abs()
		f.codes[0] = made(func(o *flatbuffer.Object) { o.Uint8(0, tt.op, 0); o.Int32(3, tt.code, 0) })
		f.operators[0].Uint8(opOptionsType, tt.number, 0)
		f.operators[0].Uint8(opOptions2Type, tt.number2, 0)
		if tt.number != 0 {
			f.operators[0].Table(opOptions, &flatbuffer.Object{})
		}
		if tt.number2 != 0 {
			f.operators[0].Table(opOptions2, &flatbuffer.Object{})
		}
		m := parse(t, f.bytes(t))
		n := m.Main().Nodes[0]
		if diff := cmp.Diff(tt.want, n.Attrs); diff != "" {
			t.Errorf("%s with table %d/%d: %s", n.Op, tt.number, tt.number2, diff)
		}
		if told := strings.Join(m.Warnings, "\n"); tt.warning == "" && told != "" || !strings.Contains(told, tt.warning) {
			t.Errorf("%s with table %d/%d: warnings %q, want %q", n.Op, tt.number, tt.number2, told, tt.warning)
		}
	}
	// A number with no table beside it says nothing either.
	f := abs()
	f.operators[0].Uint8(opOptionsType, 200, 0)
	if m := parse(t, f.bytes(t)); len(m.Warnings) != 0 {
		t.Errorf("warnings %q", m.Warnings)
	}
}

// TestStoredOptions has one field of every width, at numbers that are not their neighbours'.
func TestStoredOptions(t *testing.T) {
	t.Parallel()
	f := abs()
	f.codes[0] = made(func(o *flatbuffer.Object) { o.Uint8(0, 3, 0) })
	f.operators[0].Uint8(opOptionsType, 1, 0)
	f.operators[0].Table(opOptions, made(func(o *flatbuffer.Object) {
		o.Uint8(0, 1, 0)   // VALID
		o.Int32(1, 5, 0)   // stride_w
		o.Int32(2, -6, 0)  // stride_h
		o.Uint8(3, 3, 0)   // RELU6
		o.Int32(4, 7, 1)   // dilation_w_factor
		o.Uint8(6, 200, 0) // a type below zero as a signed byte
	}))
	want := graph.Attrs{
		"padding": "VALID", "stride_w": int64(5), "stride_h": int64(-6), "fused_activation_function": "RELU6", "dilation_w_factor": int64(7), "dilation_h_factor": int64(1), "quantized_bias_type": "UNKNOWN_-56",
	}
	if diff := cmp.Diff(want, parse(t, f.bytes(t)).Main().Nodes[0].Attrs); diff != "" {
		t.Error(diff)
	}
	for i, want := range map[int64]string{0: "SAME", 1: "VALID", 2: "UNKNOWN_2", -1: "UNKNOWN_-1"} {
		if got := padding.text(i); got != want {
			t.Errorf("padding %d is %q, want %q", i, got, want)
		}
		if n, ok := padding.number(want); !ok || n != i {
			t.Errorf("%q is padding %d, %v", want, n, ok)
		}
	}
	for _, bad := range []string{"same", "UNKNOWN_", "UNKNOWN_x", "7", "UNKNOWN_99999999999"} {
		if n, ok := padding.number(bad); ok {
			t.Errorf("%q is padding %d", bad, n)
		}
	}
}

// TestTensorRoles says which tensors are constants: those with bytes that nothing else makes.
func TestTensorRoles(t *testing.T) {
	t.Parallel()
	f := abs() // 0 to 1
	data := f.buffer(0, 0, 128, 63)
	for _, o := range f.tensors {
		o.Int32(2, int32(data), 0) // input and result have buffers
	}
	f.tensor([]int{1}, 0, data)                                   // 2: a constant
	f.tensor([]int{1}, 0, data).Bool(tensorVariable, true, false) // 3: a state with a start
	f.tensor([]int{1}, 0, 0).Bool(tensorVariable, true, false)    // 4: a state from zero
	f.tensor([]int{0, 3}, 0, 0)                                   // 5: nothing to store
	f.tensor([]int{1}, 13, data)                                  // 6: a resource
	f.tensor([]int{1}, 14, data)                                  // 7: a variant
	f.tensor(nil, 0, 0)                                           // 8: no rank, no data
	f.tensor(nil, 0, 0).Bool(tensorHasRank, true, false)          // 9: a scalar without data
	state := f.tensor([]int{4}, 0, 0)                             // 10: a fed state of unknown size
	state.Bool(tensorVariable, true, false)
	flatbuffer.Int32s(state, tensorSignature, []int{-1})
	f.inputs = append(f.inputs, 10)
	// 11: a constant has a size
	flatbuffer.Int32s(f.tensor([]int{1}, 0, data), tensorSignature, []int{-1})
	known := f.tensor([]int{2, 3}, 0, 0) // 12
	flatbuffer.Int32s(known, tensorSignature, []int{5, 3})
	// 13: of another rank
	flatbuffer.Int32s(f.tensor([]int{2, 3}, 0, 0), tensorSignature, []int{-1})
	m := parse(t, f.bytes(t))
	type role struct {
		Const, Variable, HasShape bool
		Shape, Placeholder        []int
	}
	one := []int{1}
	want := []role{
		{HasShape: true, Shape: one},
		{HasShape: true, Shape: one},
		{Const: true, HasShape: true, Shape: one},
		{Const: true, Variable: true, HasShape: true, Shape: one},
		{Variable: true, HasShape: true, Shape: one},
		{Const: true, HasShape: true, Shape: []int{0, 3}},
		{HasShape: true, Shape: one},
		{HasShape: true, Shape: one},
		{},
		{HasShape: true},
		{HasShape: true, Shape: []int{4}},
		{Const: true, HasShape: true, Shape: one},
		{HasShape: true, Shape: []int{5, 3}},
		{HasShape: true, Shape: []int{2, 3}},
	}
	for i, v := range m.Main().Values {
		if diff := cmp.Diff(want[i], role{v.Const != nil, v.Variable, v.HasShape, v.Shape, v.Placeholder}); diff != "" {
			t.Errorf("tensor %d: %s", i, diff)
		}
		if v.ID != i || v.Const == nil && v.Offset != -1 {
			t.Errorf("tensor %d: id %d, offset %d", i, v.ID, v.Offset)
		}
	}
	told := strings.Join(m.Warnings, "\n")
	for _, text := range []string{"Tensor 0 \"\" has a buffer of 4 bytes but is an input", "Tensor 1 \"\" has a buffer of 4 bytes", "Tensor 6 \"\" of type resource has a buffer", "Tensor 7", "Tensor 13 \"\" has a shape of rank 2 and a signature of rank 1"} {
		if !strings.Contains(told, text) {
			t.Errorf("no warning %q in\n%s", text, told)
		}
	}
	if len(m.Warnings) != 5 {
		t.Errorf("%d warnings:\n%s", len(m.Warnings), told)
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	pack := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	}
	for _, tt := range []struct {
		name  string
		b     []byte
		shape []int
		want  []string
		text  string
	}{
		{name: "two", b: append(pack(2, 16, 17, 19), "abc"...), shape: []int{2}, want: []string{"a", "bc"}},
		{name: "empty ones", b: pack(2, 16, 16, 16), shape: []int{1, 2}, want: []string{"", ""}},
		{name: "none", b: pack(0, 8), shape: []int{0}, want: []string{}},
		{name: "three bytes", b: []byte{0, 0, 0}, shape: []int{1}, text: "3 bytes are too few"},
		{name: "no offsets", b: pack(1), shape: []int{1}, text: "2 offsets in 4 bytes"},
		{name: "one offset short", b: pack(1, 12), shape: []int{1}, text: "2 offsets in 8 bytes"},
		{name: "another count", b: pack(1, 12, 12), shape: []int{2}, text: "1 strings for shape 2"},
		{name: "into the head", b: append(pack(1, 11, 12), 'x'), shape: []int{1}, text: "string 0 lies at bytes 11 to 12 of 13"},
		{name: "backwards", b: append(pack(2, 16, 17, 16), 'x'), shape: []int{2}, text: "string 1 lies at bytes 17 to 16"},
		{name: "past the end", b: append(pack(1, 12, 14), 'x'), shape: []int{1}, text: "string 0 lies at bytes 12 to 14 of 13"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := abs()
			f.tensor(tt.shape, 5, f.buffer(tt.b...))
			if tt.text != "" {
				refusal(t, f.bytes(t), "Model.subgraphs[0].tensors[2].buffer", tt.text)
				return
			}
			c := parse(t, f.bytes(t)).Main().Values[2].Const
			if diff := cmp.Diff(tt.want, c.Strings); diff != "" || len(c.Data) != 0 {
				t.Errorf("%d bytes, %s", len(c.Data), diff)
			}
			if tt.name != "none" { // a writer's own order
				if diff := cmp.Diff(tt.b, packStrings(tt.want)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestConstantSizes needs as many bytes as the elements take, half bytes rounded up.
func TestConstantSizes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ   uint8
		shape []int
		bytes int
	}{{0, []int{2, 3}, 24}, {1, []int{3}, 6}, {17, []int{3}, 2}, {19, []int{5}, 2}, {10, []int{1}, 8}, {11, []int{2}, 32}, {9, nil, 1}} {
		for n := max(tt.bytes-1, 1); n <= tt.bytes+1; n++ {
			f := abs()
			f.tensor(tt.shape, tt.typ, f.buffer(make([]byte, n)...))
			if n != tt.bytes {
				refusal(t, f.bytes(t), "Model.subgraphs[0].tensors[2].buffer", fmt.Sprintf("buffer 1 has %d bytes", n))
				continue
			}
			if c := parse(t, f.bytes(t)).Main().Values[2].Const; c == nil || len(c.Data) != n {
				t.Errorf("type %d of %v: %+v", tt.typ, tt.shape, c)
			}
		}
	}
}

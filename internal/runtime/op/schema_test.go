package op_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

const table = `
# a comment
@real = float32|float64
[]
Join 1: a:T, b:T? -> y:T; T = real # axis:i! mode:s
Join 5: a:T, b:U -> y:U; T = real; U = real|int32
Many 1: x:T+ -> y:T*~; T = real|int8
[lite]
Conv 0: x:float32, w:float32|int8 -> y:float32
Conv 0: x:int8, w:int8 -> y:int8
`

func schemas(t *testing.T) *op.Schemas {
	t.Helper()
	s, err := op.ParseSchemas(table, op.Malformed)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

// of makes values of the types; Invalid stands for an absent one.
func of(types ...tensor.Type) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, y := range types {
		if y == tensor.Invalid {
			out = append(out, nil)
			continue
		}
		out = append(out, &tensor.Tensor{Type: y})
	}
	return out
}

func TestSchemasCheck(t *testing.T) {
	t.Parallel()
	const f, d, i8, i32, none = tensor.Float32, tensor.Float64, tensor.Int8, tensor.Int32, tensor.Invalid
	axis := graph.Attrs{"axis": int64(1)}
	for _, tt := range []struct {
		name    string
		op      string
		version int
		attrs   graph.Attrs
		in, out []*tensor.Tensor
		want    string // expected in the error; empty: no error
	}{
		{"fits", "Join", 1, axis, of(f, f), of(f), ""},
		{"optional input absent", "Join", 4, axis, of(f), of(f), ""},
		{"optional input left out", "Join", 1, axis, of(d, none), of(d), ""},
		{"type that it does not take", "Join", 1, axis, of(i32, i32), of(i32), "input 0 (a) is int32"},
		{"two types for a variable", "Join", 1, axis, of(f, d), of(f), "both must have one type"},
		{"output of another type", "Join", 1, axis, of(f, f), of(d), "output 0 (y) is float64"},
		{"own variables", "Join", 5, nil, of(f, i32), of(i32), ""},
		{"required since", "Join", 5, nil, of(f), of(i32), "input 1 (b) is missing"},
		{"required but absent", "Join", 5, nil, of(none, i32), of(i32), "input 0 (a) is missing"},
		{"too many", "Join", 1, axis, of(f, f, f), of(f), "3 inputs are given"},
		{"surplus ones that are absent", "Join", 1, axis, of(f, f, none), of(f), ""},
		{"output absent", "Join", 1, axis, of(f, f), of(none), "output 0 (y) is missing"},
		{"attribute missing", "Join", 1, nil, of(f, f), of(f), `attribute "axis" is missing`},
		{"attribute of another kind", "Join", 1, graph.Attrs{"axis": float32(1)}, of(f, f), of(f), `attribute "axis" is not an integer`},
		{"older than the first", "Join", 0, axis, of(f, f), of(f), ""},
		{"row of one type", "Many", 1, nil, of(f, f, f), of(f, i8), ""},
		{"row of two types", "Many", 1, nil, of(f, i8), nil, "both must have one type"},
		{"empty row", "Many", 1, nil, nil, nil, "input 0 (x) is missing"},
		{"unknown operator", "Other", 1, nil, of(i8), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := schemas(t).Check(&graph.Node{Op: tt.op, Version: tt.version, Attrs: tt.attrs}, tt.in, tt.out)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err != nil && !errors.Is(err, op.ErrMalformed) {
				t.Errorf("%v is not malformed", err)
			}
		})
	}
}

// TestSchemasForms matches any one form of an operator, but no mixture of two.
func TestSchemasForms(t *testing.T) {
	t.Parallel()
	s, n := schemas(t), &graph.Node{Domain: "lite", Op: "Conv", Version: 3}
	for _, tt := range []struct {
		in, out []*tensor.Tensor
		fits    bool
	}{
		{of(tensor.Float32, tensor.Float32), of(tensor.Float32), true},
		{of(tensor.Float32, tensor.Int8), of(tensor.Float32), true},
		{of(tensor.Int8, tensor.Int8), of(tensor.Int8), true},
		{of(tensor.Int8, tensor.Float32), of(tensor.Int8), false},
		{of(tensor.Int8, tensor.Int8), of(tensor.Float32), false},
	} {
		if err := s.Check(n, tt.in, tt.out); (err == nil) != tt.fits {
			t.Errorf("%v %v: %v", tt.in[0].Type, tt.in[1].Type, err)
		}
	}
}

func TestSchemasOutputs(t *testing.T) {
	t.Parallel()
	got := schemas(t).Outputs(&graph.Node{Op: "Join", Version: 1, Outputs: []int{0}}, of(tensor.Float64))
	if len(got) != 1 || got[0] != tensor.Float64 {
		t.Errorf("outputs %v, want float64", got)
	}
}

func TestSchemasUnknown(t *testing.T) {
	t.Parallel()
	got := schemas(t).Unknown(&graph.Node{Op: "Join", Version: 1, Attrs: graph.Attrs{"axis": int64(1), "b": int64(1), "a": "x"}})
	if len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("unknown attributes %q, want a and b", got)
	}
}

func TestParseSchemasFaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"@x = float33", "Op: x:float32 -> y:float32"} {
		if _, err := op.ParseSchemas(text, op.Malformed); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	for _, text := range []string{"Op 1: x:T -> y:T", "Op 1: x:float32", "Op 1: x:float32*, y:int8 ->", "Op 1: -> # axis"} {
		s, err := op.ParseSchemas(text, op.Malformed)
		if err == nil {
			err = s.Validate()
		}
		if err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

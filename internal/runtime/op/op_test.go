package op_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	for _, tt := range []struct {
		err  error
		want string
		is   error
	}{
		{op.Unsupported("type %v", tensor.Int8), "not supported: type int8", op.ErrUnsupported},
		{op.Unknown(7), "not supported: version 7", op.ErrUnknown},
		{op.Malformed("input %d", 3), "input 3", op.ErrMalformed},
		{&op.LimitError{Want: 2*mib + 1, Limit: 2 * mib}, "needs 2.1 MiB of memory, the limit is 2.0 MiB", nil},
		{&op.LimitError{Want: 3 * mib, Limit: gib - 1}, "needs 3.0 MiB of memory, the limit is 1024.0 MiB", nil},
		{&op.LimitError{Want: gib + 1, Limit: gib}, "needs 1.1 GiB of memory, the limit is 1.0 GiB", nil},
		{&op.LimitError{Want: 5 * gib / 2, Limit: 3 * gib / 2}, "needs 2.5 GiB of memory, the limit is 1.5 GiB", nil},
		{&op.LoopError{Limit: 90 * time.Second}, "its loop had not ended after 1m30s, which is the limit for loops without a known end", nil},
		{&op.WorkError{Want: 12e9, Limit: 4e9}, "this constant takes 12 thousand million operations to compute, the limit is 4", nil},
	} {
		if tt.err.Error() != tt.want || tt.is != nil && !errors.Is(tt.err, tt.is) {
			t.Errorf("%q, want %q, wraps %v", tt.err, tt.want, tt.is)
		}
	}
	// Unknown implies unsupported, but not the other way round.
	if !errors.Is(op.Unknown(1), op.ErrUnsupported) || errors.Is(op.Unsupported("x"), op.ErrUnknown) {
		t.Error("unknown and unsupported")
	}
	if got := (&op.Call{}).Errorf("a %d", 1).Error(); got != "a 1" {
		t.Error(got)
	}
}

func TestCallInputs(t *testing.T) {
	t.Parallel()
	a, b := tensor.New(tensor.Int8, 1), tensor.New(tensor.Int8, 2)
	c := &op.Call{In: []*tensor.Tensor{a, nil, b}, Out: []*tensor.Tensor{b, nil}}
	for i, want := range map[int]*tensor.Tensor{-1: nil, 0: a, 1: nil, 2: b, 3: nil} {
		if c.Input(i) != want || c.Has(i) != (want != nil) {
			t.Errorf("input %d is %v", i, c.Input(i))
		}
	}
	for i, want := range map[int]bool{-1: false, 0: true, 1: false, 2: false} {
		if c.Wants(i) != want {
			t.Errorf("output %d is wanted: %v", i, c.Wants(i))
		}
	}
	for n, want := range map[int]string{0: "", 1: "", 2: "input 1 is missing", 3: "input 1 is missing"} {
		if err := c.NeedInputs(n); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d inputs: %v, want %q", n, err, want)
		}
	}
	if err := (&op.Call{In: []*tensor.Tensor{a}}).NeedInputs(2); err == nil {
		t.Error("an input that is not in the list is there")
	}
	c.SetOut(0, tensor.Float32, []int{3})
	c.SetOut(1, tensor.Float32, []int{3})
	c.SetOut(2, tensor.Float32, []int{3})
	if b.Type != tensor.Float32 || !cmp.Equal(b.Shape, []int{3}) || c.Out[1] != nil {
		t.Errorf("output %+v", b)
	}
}

func TestConst(t *testing.T) {
	t.Parallel()
	g := &graph.Graph{Values: []*graph.Value{{}, {Const: tensor.New(tensor.Int8, 1)}, {Const: tensor.New(tensor.Int8, 1), Variable: true}}}
	c := &op.Call{Graph: g, Node: &graph.Node{Inputs: []int{0, 1, 2, -1}}}
	for i, want := range map[int]bool{-1: false, 0: false, 1: true, 2: false, 3: false, 4: false} {
		if c.Const(i) != want {
			t.Errorf("input %d is constant: %v", i, c.Const(i))
		}
	}
	c.Fixed = []bool{true, false}
	for i, want := range map[int]bool{-1: false, 0: true, 1: false, 2: false} {
		if c.Const(i) != want {
			t.Errorf("input %d is fixed: %v", i, c.Const(i))
		}
	}
	if (&op.Call{Node: &graph.Node{Inputs: []int{1}}}).Const(0) {
		t.Error("a node of no graph has a constant")
	}
}

// TestLimits requests exactly the limit and one byte more.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := &op.Call{Limit: 64, Out: []*tensor.Tensor{{Quant: &tensor.Quant{}}}}
	refused := func(err error, want, limit int) {
		t.Helper()
		if e, ok := errors.AsType[*op.LimitError](err); !ok || e.Want != want || e.Limit != limit {
			t.Errorf("error %v, want one for %d of %d bytes", err, want, limit)
		}
	}
	if err := c.Afford(64); err != nil {
		t.Error(err)
	}
	refused(c.Afford(65), 65, 64)
	if err := c.AffordTensor(tensor.Float32, []int{4, 4}); err != nil {
		t.Error(err)
	}
	refused(c.AffordTensor(tensor.Float32, []int{17}), 68, 64)
	if err := c.AffordTensor(tensor.String, []int{4}); err != nil { // 16 bytes each
		t.Error(err)
	}
	refused(c.AffordTensor(tensor.String, []int{5}), 80, 64)
	refused(c.AffordText(65), 65, 64)
	if err := c.AffordText(64); err != nil {
		t.Error(err)
	}
	if c.AffordTensor(tensor.Float32, []int{-1}) == nil {
		t.Error("a negative dimension has memory")
	}
	free := &op.Call{}
	if err := errors.Join(free.Afford(1<<40), free.AffordText(op.MaxText)); err != nil {
		t.Error(err)
	}
	refused(free.AffordText(op.MaxText+1), op.MaxText+1, op.MaxText)
	wide := &op.Call{Limit: 1 << 40}
	refused(wide.AffordText(op.MaxText+1), op.MaxText+1, op.MaxText)

	q := c.Out[0].Quant
	x, err := c.Make(0, tensor.Int16, []int{3})
	if err != nil || x != c.Out[0] || x.Type != tensor.Int16 || !cmp.Equal(x.Shape, []int{3}) || len(x.Data) != 6 || x.Quant != q {
		t.Errorf("%+v, %v", x, err)
	}
	_, err = c.Make(0, tensor.Int16, []int{33})
	refused(err, 66, 64)

	if b := c.Scratch(10); len(b) != 10 || c.ScratchBytes() != 10 {
		t.Errorf("%d bytes of %d", len(b), c.ScratchBytes())
	}
	if f := op.ScratchOf[float32](c, 5); len(f) != 5 || c.ScratchBytes() != 30 {
		t.Errorf("%d floats, %d bytes", len(f), c.ScratchBytes())
	}
	defer func() {
		e, ok := recover().(error)
		if !ok {
			t.Error("no panic with an error")
		}
		refused(e, 65, 64)
	}()
	c.Scratch(65)
}

func TestInts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		x    *tensor.Tensor
		want []int
		text string
	}{
		{tensor.From(tensor.Int64, []int{2}, []int64{-1, 1 << 40}), []int{-1, 1 << 40}, ""},
		{tensor.From(tensor.Int32, []int{1, 2}, []int32{-7, 3}), []int{-7, 3}, ""},
		{tensor.From(tensor.Uint8, nil, []uint8{200}), []int{200}, ""},
		{tensor.New(tensor.Int64, 0), []int{}, ""},
		{nil, nil, "tensor is missing"},
		{tensor.New(tensor.Float32, 1), nil, "float32 tensor where integers are expected"},
		{tensor.New(tensor.Bool, 1), nil, "bool tensor"},
	} {
		got, err := op.Ints(tt.x)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%v, want %q; %s", err, tt.text, diff)
		}
	}
	if _, err := op.Ints(&tensor.Tensor{Type: tensor.Int64, Shape: []int{1}}); !errors.Is(err, op.ErrDynamic) {
		t.Errorf("elements that are not known: %v", err)
	}
}

func TestAxis(t *testing.T) {
	t.Parallel()
	for axis, want := range map[int]int{-3: 0, -1: 2, 0: 0, 2: 2} {
		if got, err := op.Axis(axis, 3); err != nil || got != want {
			t.Errorf("axis %d is %d, %v", axis, got, err)
		}
	}
	for _, axis := range []int{-4, 3} {
		if _, err := op.Axis(axis, 3); err == nil || err.Error() != fmt.Sprintf("axis %d is outside rank 3", axis) {
			t.Errorf("axis %d: %v", axis, err)
		}
	}
	if _, err := op.Axis(0, 0); err == nil {
		t.Error("a scalar has an axis")
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	got := op.Versions(op.Def{Name: "A", Until: 9, InPlace: true}, 1, 7)
	if len(got) != 2 || got[0].Since != 1 || got[1].Since != 7 || got[0].Name != "A" || !got[1].InPlace || got[1].Until != 9 {
		t.Errorf("%+v", got)
	}
	ran := false
	run, err := op.Simple(func(*op.Call) error { ran = true; return nil })(nil)
	if err != nil || run(nil) != nil || !ran {
		t.Error("nothing to prepare")
	}
}

// TestFind finds the definition with the highest matching version and, among equal ones, the
// last.
func TestFind(t *testing.T) {
	t.Parallel()
	def := func(domain, name string, since, until int, doc string) op.Def {
		return op.Def{Domain: domain, Name: name, Since: since, Until: until, Types: []tensor.Type{tensor.Type(len(doc))}}
	}
	r := op.NewRegistry(
		[]op.Def{def("", "A", 1, 6, "1"), def("", "A", 13, 0, "333"), def("", "A", 7, 10, "22"), def("d", "A", 0, 0, "4444")},
		[]op.Def{def("", "A", 7, 10, "55555"), def("", "0", 2, 0, "666666")},
	)
	for _, tt := range []struct {
		domain, name  string
		version, want int
	}{
		{"", "A", 0, 0},
		{"", "A", 1, 1},
		{"", "A", 6, 1},
		{"", "A", 7, 5},
		{"", "A", 10, 5},
		{"", "A", 11, 0},
		{"", "A", 12, 0},
		{"", "A", 13, 3},
		{"", "A", 99, 3},
		{"d", "A", 0, 4},
		{"d", "A", 1, 4},
		{"", "B", 1, 0},
		{"e", "A", 1, 0},
		{"", "0", 1, 0},
		{"", "0", 2, 6},
	} {
		d, got := r.Find(tt.domain, tt.name, tt.version), 0
		if d != nil {
			got = int(d.Types[0])
		}
		if got != tt.want {
			t.Errorf("%s:%s %d is definition %d, want %d", tt.domain, tt.name, tt.version, got, tt.want)
		}
	}
	var all []string
	for _, d := range r.All() {
		all = append(all, fmt.Sprintf("%s:%s %d", d.Domain, d.Name, d.Since))
	}
	if diff := cmp.Diff([]string{":0 2", ":A 1", ":A 7", ":A 13", "d:A 0"}, all); diff != "" {
		t.Error(diff)
	}
}

// TestRegistrySchemas looks up several tables: the first one that has the operator decides.
func TestRegistrySchemas(t *testing.T) {
	t.Parallel()
	parse := func(text string) *op.Schemas {
		s, err := op.ParseSchemas(text, op.Unsupported)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := op.NewRegistry()
	r.Schemas = []*op.Schemas{parse("[]\nA 1: x:int8 -> y:int8 # a:i"), parse("[lite]\nB 1: x:int8 -> y:float32 # b:i")}
	one := []*tensor.Tensor{{Type: tensor.Int16}}
	for _, tt := range []struct {
		n    graph.Node
		want string
	}{
		{graph.Node{Op: "A", Version: 1}, "input 0 (x) is int16 where int8 is expected"},
		{graph.Node{Domain: "lite", Op: "B", Version: 1}, "input 0 (x) is int16"},
		{graph.Node{Op: "B", Version: 1}, ""},
	} {
		if err := r.Check(&tt.n, one, one); (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !errors.Is(err, op.ErrUnsupported)) {
			t.Errorf("%s: %v, want %q", tt.n.Key(), err, tt.want)
		}
	}
	b := &graph.Node{Domain: "lite", Op: "B", Version: 1, Outputs: []int{0}, Attrs: graph.Attrs{"c": int64(1), graph.RoundsRows: int64(1)}}
	if got := r.OutputTypes(b, []*tensor.Tensor{{Type: tensor.Int8}}); !cmp.Equal(got, []tensor.Type{tensor.Float32}) {
		t.Errorf("types %v", got)
	}
	if got := r.OutputTypes(&graph.Node{Op: "C", Outputs: []int{0, 1}}, nil); !cmp.Equal(got, make([]tensor.Type, 2)) {
		t.Errorf("types of what nobody knows: %v", got)
	}
	if got := r.UnknownAttributes(b); !cmp.Equal(got, []string{"c"}) {
		t.Errorf("unknown attributes %q", got)
	}
	if got := r.UnknownAttributes(&graph.Node{Op: "C", Attrs: graph.Attrs{"c": int64(1)}}); got != nil {
		t.Errorf("unknown attributes of what nobody knows: %q", got)
	}
}

// TestSchemaOutputs derives types from a single type, from a variable and from the attribute
// "to".
func TestSchemaOutputs(t *testing.T) {
	t.Parallel()
	s, err := op.ParseSchemas(`
@real = float32|float64
[]
One 1: x:int8 -> y:float16, z:T; T = real
Var 1: x:T, k:int64 -> y:T, z:int64
Cast 1: x:real -> y:T; T = real|int8
Row 1: x:T+ -> y:T+; T = real
Mixed 1: x:T+~ -> y:T+~; T = real
Two 1: x:int8 -> y:int8
Two 1: x:int16 -> y:int16
`, op.Malformed)
	if err != nil {
		t.Fatal(err)
	}
	s.Elem = func(n int64) tensor.Type { return map[int64]tensor.Type{3: tensor.Int8}[n] }
	const none = tensor.Invalid
	for _, tt := range []struct {
		op   string
		to   int64
		in   []*tensor.Tensor
		want []tensor.Type
	}{
		{"One", 0, of(tensor.Int8), []tensor.Type{tensor.Float16, none}},
		{"One", 0, of(tensor.Int16), []tensor.Type{none, none}}, // a mismatch determines no types
		{"Var", 0, of(tensor.Float64, tensor.Int64), []tensor.Type{none, none}},
		{"Cast", 3, of(tensor.Float32), []tensor.Type{tensor.Int8}},
		{"Cast", 4, of(tensor.Float32), []tensor.Type{none}},
		{"Cast", 0, of(tensor.Float32), []tensor.Type{none}},
		{"Row", 0, of(tensor.Float64, tensor.Float64), []tensor.Type{tensor.Float64}},
		{"Mixed", 0, of(tensor.Float64), []tensor.Type{none}},
		{"Two", 0, of(tensor.Int8), []tensor.Type{none}},
		{"Other", 0, of(tensor.Int8), []tensor.Type{none}},
	} {
		n := &graph.Node{Op: tt.op, Version: 1, Outputs: make([]int, len(tt.want)), Attrs: graph.Attrs{}}
		if tt.to != 0 {
			n.Attrs["to"] = tt.to
		}
		if tt.op == "Var" { // T has no types: the table is wrong
			if err := s.Validate(); err == nil {
				t.Error("a variable without types passes")
			}
			continue
		}
		if got := s.Outputs(n, tt.in); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.op, got, tt.want)
		}
	}
	if s.Has("", "One", 1) != true || s.Has("", "Other", 1) || s.Has("lite", "One", 1) {
		t.Error("operators that the table has")
	}
}

// TestSchemaKinds accepts each kind of attribute and rejects all others.
func TestSchemaKinds(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"a number": float32(1), "an integer": int64(1), "a string": "s", "a tensor": &tensor.Tensor{}, "a graph": graph.GraphRef(1),
		"a list of numbers": []float32{1}, "a list of integers": []int64{1}, "a list of strings": []string{"s"}, "a list of tensors": []*tensor.Tensor{}, "a list of graphs": []graph.GraphRef{},
	}
	also := map[string]any{"an integer": true, "a string": []byte("s")}
	for letter, kind := range map[string]string{
		"f": "a number", "i": "an integer", "s": "a string", "t": "a tensor", "g": "a graph", "F": "a list of numbers", "I": "a list of integers", "S": "a list of strings", "T": "a list of tensors", "G": "a list of graphs",
	} {
		s, err := op.ParseSchemas("[]\nA 1: -> # a:"+letter, op.Malformed)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range values {
			err := s.Check(&graph.Node{Op: "A", Version: 1, Attrs: graph.Attrs{"a": v}}, nil, nil)
			if (err == nil) != (name == kind) || err != nil && err.Error() != `attribute "a" is not `+kind {
				t.Errorf("%s for %s: %v", name, letter, err)
			}
		}
		if v, ok := also[kind]; ok {
			if err := s.Check(&graph.Node{Op: "A", Version: 1, Attrs: graph.Attrs{"a": v}}, nil, nil); err != nil {
				t.Error(err)
			}
		}
		if err := s.Check(&graph.Node{Op: "A", Version: 1}, nil, nil); err != nil {
			t.Errorf("an attribute that is not required: %v", err)
		}
	}
}

// TestSchemaTexts formats types in errors: two with "or", more than eight truncated.
func TestSchemaTexts(t *testing.T) {
	t.Parallel()
	s, err := op.ParseSchemas(`[]
Two 1: int8|int16 ->
Ten 1: float32|float64|float16|bfloat16|int8|int16|int32|int64|uint8|uint16 ->
Eight 1: float32|float64|float16|bfloat16|int8|int16|int32|int64 ->
Forms 1: x:int8* ->
Forms 1: x:int16* ->
`, op.Malformed)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, in []*tensor.Tensor, want string) {
		t.Helper()
		err := s.Check(&graph.Node{Op: name, Version: 1}, in, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	check("Two", of(tensor.Bool), "input 0 is bool where int8 or int16 is expected")
	check("Ten", of(tensor.Bool), " and 2 more is expected")
	check("Eight", of(tensor.Bool), " or ")
	check("Forms", of(tensor.Bool, tensor.Invalid), "(bool, none) -> ()")
	many := make([]*tensor.Tensor, 10)
	for i := range many {
		many[i] = &tensor.Tensor{Type: tensor.Bool}
	}
	check("Forms", many, "(bool, bool, bool, bool, bool, bool, bool, bool, and 2 more) -> ()")
	check("Forms", many[:8], "(bool, bool, bool, bool, bool, bool, bool, bool) -> ()")
	check("Forms", []*tensor.Tensor{{Type: tensor.Bool}, {}}, "(bool, any) -> ()")
	// A value without a type matches any.
	if err := s.Check(&graph.Node{Op: "Two", Version: 1}, []*tensor.Tensor{{}}, nil); err != nil {
		t.Error(err)
	}
}

func TestSchemaLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\n\n@a = int9":                 `line 3: "int9" is not a type`,
		"# c\n[]\nA x: ->":              `line 3: "x" is not a version`,
		"A: ->":                         `line 1: "" is not a version`,
		"[d]\nA 1: x:int8":              "d A 1: no outputs in",
		"[d]\nA 1: -> # a":              `attribute "a" has no kind`,
		"[d]\nA 2: x:T -> ; T = int9":   `d A 2: "int9" is not a type`,
		"[d]\nA 1: x:int8+, y:int8 -> ": "only the last one may stand for many",
		"[d]\nA 1: -> x:int8*, y:int8":  "only the last one may stand for many",
		"[d]\nA 1: -> x:U":              `"U" is not a type`,
	} {
		s, err := op.ParseSchemas(text, op.Malformed)
		if err == nil {
			err = s.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	// An optional accepts a sequence, which stands for an optional that holds it.
	s, err := op.ParseSchemas("[]\nA 1: x:optional -> \nB 1: x:sequence -> ", op.Malformed)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		op   string
		typ  tensor.Type
		fits bool
	}{{"A", tensor.Optional, true}, {"A", tensor.Sequence, true}, {"A", tensor.Map, false}, {"B", tensor.Optional, false}, {"B", tensor.Sequence, true}} {
		if err := s.Check(&graph.Node{Op: tt.op, Version: 1}, of(tt.typ), nil); (err == nil) != tt.fits {
			t.Errorf("%s of %v: %v", tt.op, tt.typ, err)
		}
	}
}

// TestUnknownOperators says whether the operator, its domain or its version is unknown.
func TestUnknownOperators(t *testing.T) {
	t.Parallel()
	r := op.NewRegistry([]op.Def{{Name: "Old", Since: 1, Until: 6}, {Name: "Old", Since: 7, Until: 9}, {Name: "New", Since: 13}})
	for _, c := range []struct {
		domain, name string
		version      int
		want         string
	}{
		{graph.ONNX, "Old", 13, "not supported: version 13; known: 1 to 6, 7 to 9"},
		{graph.ONNX, "New", 7, "not supported: version 7; known: from 13"},
		{graph.ONNX, "Nowt", 13, "not supported: unknown operator"},
		{graph.TFLiteCustom, "Mine", 1, "not supported: custom operator"},
		{"acme", "MyNMS", 1, `not supported: unknown domain "acme"`},
	} {
		if err := r.Unknown(c.domain, c.name, c.version); err.Error() != c.want || !errors.Is(err, op.ErrUnknown) {
			t.Errorf("%q, want %q", err, c.want)
		}
	}
}

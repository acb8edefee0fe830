package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

func TestShortNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ path, name, want string }{
		{"net.yml", "", "net"},
		{"a.zip!dir/net.onnx", "x", "net"},
		{"net.bin", "", "net.bin"},
		{".tflite", "inner", "inner"},
		{".", "inner", "inner"},
	} {
		if got := (&Model{Path: tt.path, Name: tt.name}).ShortName(); got != tt.want {
			t.Errorf("path %q, name %q: %q, want %q", tt.path, tt.name, got, tt.want)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ domain, want string }{
		{"", "Op"}, {"tflite", "Op"}, {"tflite.custom", "CUSTOM:Op"}, {"com.microsoft", "com.microsoft:Op"}, {"ai.onnx.ml", "ai.onnx.ml:Op"},
	} {
		if got := (&Node{Domain: tt.domain, Op: "Op"}).Key(); got != tt.want {
			t.Errorf("domain %q: %q, want %q", tt.domain, got, tt.want)
		}
	}
}

// TestAttrs reads each attribute by every accessor: of another type it counts as absent.
func TestAttrs(t *testing.T) {
	t.Parallel()
	x := &tensor.Tensor{}
	a := Attrs{
		"i": int64(7), "zero": int64(0), "yes": true, "no": false, "f": float32(1.5), "s": "text", "b": []byte("bytes"),
		"is": []int64{3, -4}, "none": []int64{}, "fs": []float32{2}, "ss": []string{"a"}, "t": x, "g": GraphRef(2), "first": GraphRef(0),
	}
	for name, want := range map[string]int{"i": 7, "zero": 0, "yes": 1, "no": 0, "f": 9, "s": 9, "is": 9, "absent": 9} {
		if got := a.Int(name, 9); got != want {
			t.Errorf("integer %s is %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string][2]bool{"i": {true, true}, "zero": {}, "yes": {true, true}, "no": {}, "f": {false, true}, "absent": {false, true}} {
		if got := [2]bool{a.Bool(name, false), a.Bool(name, true)}; got != want {
			t.Errorf("truth of %s is %v, want %v", name, got, want)
		}
	}
	if a.Float("f", 9) != 1.5 || a.Float("i", 9) != 9 || a.Float("absent", 9) != 9 {
		t.Error("floats")
	}
	if a.Str("s", "d") != "text" || a.Str("b", "d") != "bytes" || a.Str("i", "d") != "d" || a.Str("absent", "d") != "d" {
		t.Error("strings")
	}
	if !slices.Equal(a.Ints("is"), []int{3, -4}) || a.Ints("none") == nil || len(a.Ints("none")) != 0 || a.Ints("i") != nil || a.Ints("absent") != nil {
		t.Error("integers")
	}
	if !slices.Equal(a.Floats("fs"), []float32{2}) || a.Floats("f") != nil || !slices.Equal(a.Strs("ss"), []string{"a"}) || a.Strs("s") != nil {
		t.Error("lists")
	}
	if a.Tensor("t") != x || a.Tensor("i") != nil {
		t.Error("tensors")
	}
	for name, want := range map[string]int{"g": 2, "first": 0} {
		if got, ok := a.Graph(name); !ok || got != want {
			t.Errorf("graph %s is %d, %v", name, got, ok)
		}
	}
	if _, ok := a.Graph("i"); ok || !a.Has("no") || a.Has("absent") {
		t.Error("presence")
	}
}

// sound is a model of two graphs in which everything that may be there is: a constant,
// a variable, scratch memory, a captured value, absent inputs and outputs.
func sound() *Model {
	value := func(id int, change func(*Value)) *Value {
		v := &Value{ID: id, Name: "v"}
		change(v)
		return v
	}
	plain := func(*Value) {}
	return &Model{Graphs: []*Graph{
		{
			Name: "main", Inputs: []int{0}, Outputs: []int{4, -1, 1},
			Values: []*Value{
				value(0, plain), value(1, func(v *Value) { v.Const = &tensor.Tensor{} }), value(2, func(v *Value) { v.Variable = true }),
				value(3, func(v *Value) { v.Scratch = true }), value(4, plain), value(5, plain),
			},
			Nodes: []*Node{
				{Op: "First", Name: "n0", Inputs: []int{0, -1, 1, 2, 3}, Outputs: []int{5, -1}},
				{Index: 1, Op: "Second", Name: "n1", Inputs: []int{5}, Outputs: []int{4}, Attrs: Attrs{"body": GraphRef(1)}},
			},
		},
		{Index: 1, Name: "body", Captures: []Capture{{Inner: 0}}, Values: []*Value{value(0, plain)}, Outputs: []int{0}},
	}}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if err := sound().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want  string
		spoil func(m *Model)
	}{
		{"model has no graph", func(m *Model) { m.Graphs = nil }},
		{`graph 0 "main": value 1 has id 2`, func(m *Model) { m.Main().Values[1].ID = 2 }},
		{"input 6 is not a value (there are 6)", func(m *Model) { m.Main().Inputs[0] = 6 }},
		{"input -1 is not a value", func(m *Model) { m.Main().Inputs[0] = -1 }},
		{`graph 1 "body": captured value 1 is not a value`, func(m *Model) { m.Graphs[1].Captures[0].Inner = 1 }},
		{`graph 1 "body": captured value -1`, func(m *Model) { m.Graphs[1].Captures[0].Inner = -1 }},
		{`graph 1 "body": output 0 ("v") is never made`, func(m *Model) { m.Graphs[1].Captures = nil }},
		{`node 1 (Second "n1") has index 2`, func(m *Model) { m.Main().Nodes[1].Index = 2 }},
		{`node 0 (First "n0"): input 1 is value 6 of 6`, func(m *Model) { m.Main().Nodes[0].Inputs[1] = 6 }},
		{`node 0 (First "n0"): input 1 is value -2 of 6`, func(m *Model) { m.Main().Nodes[0].Inputs[1] = -2 }},
		{`node 0 (First "n0"): input 1 ("v") is read before it is made`, func(m *Model) { m.Main().Nodes[0].Inputs[1] = 4 }},
		{`node 0 (First "n0"): input 0 ("v") is read before`, func(m *Model) { m.Main().Inputs = nil }},
		{`node 0 (First "n0"): input 2 ("v") is read before`, func(m *Model) { m.Main().Values[1].Const = nil }},
		{`node 0 (First "n0"): input 3 ("v") is read before`, func(m *Model) { m.Main().Values[2].Variable = false }},
		{`node 0 (First "n0"): input 4 ("v") is read before`, func(m *Model) { m.Main().Values[3].Scratch = false }},
		{`node 1 (Second "n1"): input 0 ("v") is read before`, func(m *Model) { m.Main().Nodes[0].Outputs[0] = -1 }},
		{`node 1 (Second "n1"): output 0 is value 6 of 6`, func(m *Model) { m.Main().Nodes[1].Outputs[0] = 6 }},
		{`node 1 (Second "n1"): output 0 is value -2 of 6`, func(m *Model) { m.Main().Nodes[1].Outputs[0] = -2 }},
		{`node 1 (Second "n1"): attribute "body" names graph 2 of 2`, func(m *Model) { m.Main().Nodes[1].Attrs["body"] = GraphRef(2) }},
		{`node 1 (Second "n1"): attribute "body" names graph -1 of 2`, func(m *Model) { m.Main().Nodes[1].Attrs["body"] = GraphRef(-1) }},
		{"output 0 is value 6 of 6", func(m *Model) { m.Main().Outputs[0] = 6 }},
		{"output 1 is value -2 of 6", func(m *Model) { m.Main().Outputs[1] = -2 }},
		{`output 0 ("v") is never made`, func(m *Model) { m.Main().Nodes[1].Outputs = nil }},
	} {
		m := sound()
		tt.spoil(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	m := sound()
	m.Main().Nodes[1].Attrs["body"] = GraphRef(0) // the first graph there is
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
}

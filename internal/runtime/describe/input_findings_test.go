package describe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/inputuse"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	input := func(name string, assumed ...int64) profile.Tensor {
		return profile.Tensor{Name: name, Shape: []int64{1, 3, 1}, Declared: []int64{-1, 3, -1}, Assumed: assumed}
	}
	for _, tt := range []struct {
		name   string
		format string
		inputs []profile.Tensor
		want   string // part of the text, "" for no finding
	}{
		{"nothing open", "onnx", []profile.Tensor{{Name: "x", Shape: []int64{1, 3}}}, ""},
		{"given", "onnx", []profile.Tensor{input("x")}, ""},
		{"taken", "onnx", []profile.Tensor{input("x", 2)}, "set to 1: x ?x3x? as 1x3x1."},
		{"a batch of ONNX", "onnx", []profile.Tensor{input("x", 0)}, "x ?x3x? as 1x3x1."},
		{"a batch that the file keeps", "tflite", []profile.Tensor{input("x", 0)}, ""},
		{"more than a batch", "tflite", []profile.Tensor{input("x", 0, 2)}, "x ?x3x? as 1x3x1."},
		{"many", "onnx", []profile.Tensor{input("a", 2), input("b", 2), input("c"), input("d", 2), input("e", 2), input("f", 2)}, "e ?x3x? as 1x3x1 and 1 more."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &profile.Profile{Model: profile.Model{Format: tt.format, Inputs: tt.inputs}}
			f := Open(p, func() *inputs.Hint { return nil })
			switch {
			case f == nil && tt.want != "":
				t.Error("no finding")
			case f != nil && (tt.want == "" || !strings.Contains(f.Text, tt.want)):
				t.Errorf("%q, want one with %q", f.Text, tt.want)
			case f != nil && (f.ID != "model.shapes" || f.Severity != profile.Warning):
				t.Errorf("%s %s, want a warning of model.shapes", f.ID, f.Severity)
			}
		})
	}
}

// TestCommand makes commands that a shell accepts unchanged.
func TestCommand(t *testing.T) {
	t.Parallel()
	shapes := &inputs.Hint{Shapes: [][]int{nil, {1, 128}}}
	for _, tt := range []struct {
		name string
		p    profile.Profile
		h    *inputs.Hint
		want string
	}{
		{"no hint", profile.Profile{}, nil, ""},
		{"shapes", profile.Profile{Model: profile.Model{Path: "a/b.onnx", Inputs: []profile.Tensor{{Name: "x"}, {Name: "ids"}}}}, shapes, "opmeter profile a/b.onnx --shape ids=1x128"},
		{"names with blanks and quotes", profile.Profile{Model: profile.Model{Path: "my model.onnx", Inputs: []profile.Tensor{{}, {Name: "it's $x"}}}}, shapes, `opmeter profile 'my model.onnx' --shape 'it'\''s $x=1x128'`},
		{"a member of an archive", profile.Profile{Model: profile.Model{Path: "m.mltk.zip!m.tflite", Inputs: []profile.Tensor{{}, {Name: "x"}}}}, shapes, "opmeter profile m.mltk.zip --shape x=1x128"},
		{"no file", profile.Profile{Model: profile.Model{Name: "net", Inputs: []profile.Tensor{{}, {Name: "x"}}}}, shapes, "opmeter profile net --shape x=1x128"},
		{"names of dimensions", profile.Profile{Model: profile.Model{Path: "m"}}, &inputs.Hint{Order: []string{"batch", "seq len"}, Dims: map[string]int{"batch": 1, "seq len": 128}}, "opmeter profile m --dim batch=1 --dim 'seq len=128'"},
		{"on a target", profile.Profile{Model: profile.Model{Path: "m", Inputs: []profile.Tensor{{}, {Name: "x"}}}, Target: profile.Target{ID: "chip", Kind: profile.TargetSimulator}}, shapes, "opmeter profile m --on chip --shape x=1x128"},
		{
			"with data",
			profile.Profile{Model: profile.Model{Path: "m", Inputs: []profile.Tensor{{Name: "a"}, {Name: "x"}}}, Settings: profile.Settings{Inputs: map[string]profile.InputSource{"a": {Kind: "file", File: "a b.npy"}}}},
			shapes, "opmeter profile m --shape x=1x128 --input 'a=a b.npy'",
		},
		{"what was taken already", profile.Profile{Model: profile.Model{Path: "m", Inputs: []profile.Tensor{{}, {Name: "x", Shape: []int64{1, 128}}}}}, shapes, "opmeter profile m --batch 8"},
		{"a shape that was given", profile.Profile{Model: profile.Model{Path: "m", Inputs: []profile.Tensor{{Name: "in put", Declared: []int64{-1, -1}, Shape: []int64{1, 512}}, {Name: "x"}}}, Settings: profile.Settings{Threads: new(int64(2))}}, shapes, "opmeter profile m --shape 'in put=1x512' --shape x=1x128 --threads 2"},
		{"a batch that would contradict a shape", profile.Profile{Model: profile.Model{Path: "m", Inputs: []profile.Tensor{{Name: "in", Declared: []int64{-1, -1}, Shape: []int64{1, 512}}, {Name: "x", Shape: []int64{1, 128}}}}}, shapes, ""},
		{"a count", profile.Profile{Model: profile.Model{Path: "m", Inputs: []profile.Tensor{{}, {Name: "x"}}}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}, shapes, "opmeter summary m --shape x=1x128"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Command(&tt.p, tt.h); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestFed(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Model: profile.Model{Inputs: []profile.Tensor{
		{Name: "a", Shape: []int64{1, 3}, Declared: []int64{-1, 3}}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"},
	}}}
	one := 1
	Fed(p, []inputs.Source{
		{Assumed: []bool{true, false}},
		{Use: &inputuse.Use{Kind: inputuse.Mask, Fill: &one}},
		{Use: &inputuse.Use{Kind: inputuse.Indices, Below: 7}},
		{Use: &inputuse.Use{Kind: inputuse.Shape, Values: []int{1, 2}}},
		{Use: &inputuse.Use{Kind: inputuse.Shape, Values: make([]int, 100)}},
	})
	var got []*profile.Made
	for _, in := range p.Model.Inputs {
		got = append(got, in.Made)
	}
	want := []*profile.Made{
		nil,
		{Use: profile.UseMask, Fill: new(int64(1))},
		{Use: profile.UseIndices, Below: new(int64(7))},
		{Use: profile.UseShape, Values: []int64{1, 2}},
		{Use: profile.UseShape},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("made (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int64{0}, p.Model.Inputs[0].Assumed); d != "" {
		t.Errorf("assumed (-want +got):\n%s", d)
	}
}

// TestComputed counts weights that are computed when the model is loaded, but not those that are
// only moved.
func TestComputed(t *testing.T) {
	t.Parallel()
	f32 := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }
	for _, tt := range []struct {
		name string
		make func(add func(op string, c *tensor.Tensor, a graph.Attrs, in ...int) int) int
		want int64
	}{
		{"in the file", func(add func(string, *tensor.Tensor, graph.Attrs, ...int) int) int { return add("", f32(4, 3), nil) }, 0},
		{"transposed", func(add func(string, *tensor.Tensor, graph.Attrs, ...int) int) int {
			return add("Transpose", nil, nil, add("", f32(3, 4), nil))
		}, 0},
		{"of a shape", func(add func(string, *tensor.Tensor, graph.Attrs, ...int) int) int {
			return add("ConstantOfShape", nil, nil, add("", tensor.From(tensor.Int64, []int{2}, []int64{4, 3}), nil))
		}, 12},
		{"of a shape and moved", func(add func(string, *tensor.Tensor, graph.Attrs, ...int) int) int {
			return add("Transpose", nil, nil, add("ConstantOfShape", nil, nil, add("", tensor.From(tensor.Int64, []int{2}, []int64{3, 4}), nil)))
		}, 12},
		{"of a row", func(add func(string, *tensor.Tensor, graph.Attrs, ...int) int) int {
			return add("Expand", nil, nil, add("", f32(1, 3), nil), add("", tensor.From(tensor.Int64, []int{2}, []int64{4, 3}), nil))
		}, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := &graph.Graph{}
			value := func(c *tensor.Tensor) int {
				v := &graph.Value{ID: len(g.Values), Type: tensor.Float32, Const: c}
				if c != nil {
					v.Type, v.Shape, v.HasShape = c.Type, c.Shape, true
				}
				g.Values = append(g.Values, v)
				return v.ID
			}
			add := func(op string, c *tensor.Tensor, a graph.Attrs, in ...int) int {
				out := value(c)
				if op != "" {
					g.Nodes = append(g.Nodes, &graph.Node{Index: len(g.Nodes), Op: op, Version: 17, Inputs: in, Outputs: []int{out}, Attrs: a})
				}
				return out
			}
			x := value(nil)
			g.Values[x].Shape, g.Values[x].HasShape = []int{1, 4}, true
			y := add("MatMul", nil, nil, x, tt.make(add))
			g.Inputs, g.Outputs = []int{x}, []int{y}
			m := &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, Opsets: map[string]int{"": 17}}
			p, err := plan.Make(m, []*tensor.Tensor{f32(1, 4)}, plan.Options{Registry: operators.Registry()})
			if err != nil {
				t.Fatal(err)
			}
			d, err := Model(p, p.Slots(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := int64(0)
			if n := d.Totals.ComputedParams; n != nil {
				got = *n
			}
			if got != tt.want {
				t.Errorf("%d computed, want %d", got, tt.want)
			}
		})
	}
}

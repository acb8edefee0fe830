package inputs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputuse"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// TestTerms checks which names of dimensions are composed of others.
func TestTerms(t *testing.T) {
	t.Parallel()
	known := []string{"batch", "n", "m", "past_len", "seq_len", "total_len"}
	for _, c := range []struct {
		name  string
		known []string
		want  [][]string
	}{
		{"n", known, nil},
		{"n+1", known, [][]string{{"n"}, {"1"}}},
		{"2 * n + m", known, [][]string{{"2", "n"}, {"m"}}},
		{"1+2", known, nil}, // contains no name
		{"n+k", known, nil}, // unknown name
		{"n+(m)", known, nil},
		{"n+n2", append(known, "n+n2"), nil},
		{"total_len", known, [][]string{{"past_len"}, {"seq_len"}}},
		{"TOTAL-len", known, [][]string{{"past_len"}, {"seq_len"}}},
		{"totally", known, nil},
		// two candidates for the new positions
		{"total", []string{"total", "past", "seq", "length"}, nil},
		// two candidates for the cached positions
		{"total", []string{"total", "past", "cache", "seq"}, nil},
		// no name for the new positions
		{"total", []string{"total", "past_sequence"}, nil},
		// other words for both
		{"total", []string{"total", "cache", "sequence"}, [][]string{{"cache"}, {"sequence"}}},
		// a batch is neither
		{"total", []string{"total", "batch_seq", "past", "len"}, [][]string{{"past"}, {"len"}}},
		// nor is another total
		{"total", []string{"total", "total_seq", "past", "length"}, [][]string{{"past"}, {"length"}}},
	} {
		got := terms(c.name, c.known)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s of %v (-want +got):\n%s", c.name, c.known, d)
		}
		if compound(c.name, c.known) != (c.want != nil) {
			t.Errorf("%s is a compound: %v", c.name, c.want == nil)
		}
	}
}

func TestDimName(t *testing.T) {
	t.Parallel()
	v := &graph.Value{Shape: []int{-1, 3, -1, -1}, DimNames: []string{"n", "fixed", ""}}
	for i, want := range []string{"n", "", "", "", ""} {
		if got := dimName(v, i); got != want {
			t.Errorf("dimension %d: %q, want %q", i, got, want)
		}
	}
	g := open([]string{"b", "n", "3"}, []string{"n", "m", "b"}).Main()
	if got := DimNames(g); !slices.Equal(got, []string{"b", "n", "m"}) {
		t.Errorf("names %v", got)
	}
}

func TestUsualSizes(t *testing.T) {
	t.Parallel()
	shape := func(typ tensor.Type, d ...int) *graph.Value { return &graph.Value{Type: typ, Shape: d} }
	f, i := tensor.Float32, tensor.Int64
	for _, c := range []struct {
		v     *graph.Value
		axis  int
		batch bool
	}{
		{shape(f, -1, 3), 0, true},
		{shape(f, -1), 0, true},
		{shape(i, -1), 0, false}, // a list of numbers
		{shape(i, -1, 4), 0, true},
		{shape(f, -1, -1), 1, false},
		{shape(f, 2, -1, 64), 1, true}, // a state: layers, batch, units
		{shape(f, -1, -1, 64), 1, false},
		{shape(f, 2, -1, -1), 1, false},
		{shape(f, 2, 3, -1, 64), 2, false},
	} {
		if got := isBatch(c.v, c.axis); got != c.batch {
			t.Errorf("dimension %d of %v: batch %v", c.axis, c.v.Shape, got)
		}
	}
	for _, c := range []struct {
		op   string
		v    *graph.Value
		axis int
		want int
	}{
		{"Conv", shape(f, -1, 3, -1, -1), 2, 224},
		{"MaxPool", shape(f, -1, 3, -1, -1), 3, 224},
		{"RESIZE_BILINEAR", shape(f, -1, -1, -1, 3), 1, 224},
		{"Conv", shape(f, -1, 1, -1), 2, 16000}, // a waveform
		{"Conv", shape(f, -1, 80, -1), 2, 128},
		{"Conv", shape(f, -1, -1), 1, 512},
		{"MatMul", shape(f, -1, -1), 1, 512},
		{"MatMul", shape(f, -1, -1, 8), 1, 128},
		{"MatMul", shape(f, -1, 3, -1, -1), 2, 128},
		{"Conv", shape(i, -1, -1), 1, 128}, // tokens
	} {
		g := &graph.Graph{Values: []*graph.Value{c.v, {}}, Inputs: []int{0}, Outputs: []int{1}, Nodes: []*graph.Node{{Op: c.op, Inputs: []int{0}, Outputs: []int{1}}}}
		if got := defaultSize(g, 0, c.axis); got != c.want {
			t.Errorf("dimension %d of %v into %s: %d, want %d", c.axis, c.v.Shape, c.op, got, c.want)
		}
	}
}

// TestConsumer: the first convolution or pooling after an input is found through operators that
// preserve an image, along their first input.
func TestConsumer(t *testing.T) {
	t.Parallel()
	node := func(op string, out int, in ...int) *graph.Node {
		return &graph.Node{Op: op, Inputs: in, Outputs: []int{out}}
	}
	for _, c := range []struct {
		name  string
		nodes []*graph.Node
		want  string
	}{
		{"none", nil, ""},
		{"at once", []*graph.Node{node("Conv", 1, 0)}, "Conv"},
		{"through others", []*graph.Node{node("Cast", 1, 0), node("Sub", 2, 1, 5), node("Transpose", 3, 2), node("CONV_2D", 4, 3)}, "CONV_2D"},
		{"the first", []*graph.Node{node("AveragePool", 1, 0), node("Conv", 2, 0)}, "AveragePool"},
		{"not through a product", []*graph.Node{node("MatMul", 1, 0), node("Conv", 2, 1)}, ""},
		{"as weights", []*graph.Node{node("Conv", 1, 5, 0)}, ""},
		{"of another", []*graph.Node{node("Conv", 1, 5), node("Identity", 2, 0)}, ""},
		{"transposed", []*graph.Node{node("TRANSPOSE_CONV", 1, 4, 5, 0)}, "TRANSPOSE_CONV"},
		{"the shape of a transposed one", []*graph.Node{node("TRANSPOSE_CONV", 1, 4, 0)}, ""},
		{"resized", []*graph.Node{node("Resize", 1, 0)}, "Resize"},
		{"resized otherwise", []*graph.Node{node("RESIZE_NEAREST_NEIGHBOR", 1, 0)}, "RESIZE_NEAREST_NEIGHBOR"},
		{"nothing read", []*graph.Node{node("Conv", 1)}, ""},
		{"absent output", []*graph.Node{node("Identity", -1, 0), node("Conv", 1, -1)}, ""},
	} {
		if got := consumer(&graph.Graph{Nodes: c.nodes}, 0); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	three := 3
	for _, typ := range []tensor.Type{tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Uint64, tensor.Float32, tensor.Float64} {
		q := &tensor.Quant{}
		x := &tensor.Tensor{Type: typ, Shape: []int{2}, Quant: q}
		for _, c := range []struct {
			u    *inputuse.Use
			want []float64 // nil: no shape
		}{
			{&inputuse.Use{Values: []int{5, 7}}, []float64{5, 7}},
			{&inputuse.Use{Values: []int{5, 7, 9}}, []float64{5, 7}},
			{&inputuse.Use{Fill: &three}, []float64{3, 3}},
			{&inputuse.Use{Values: []int{5}}, nil},
			{&inputuse.Use{}, nil},
		} {
			got, err := elements(x, c.u, 0)
			if err != nil || (got == nil) != (c.want == nil) {
				t.Errorf("%v of %+v: %v, %v", typ, c.u, got, err)
				continue
			}
			for i, w := range c.want {
				if v := tensor.At(got, i); v != w || got.Type != typ || got.Quant != q {
					t.Errorf("%v of %+v: element %d is %v, want %v", typ, c.u, i, v, w)
				}
			}
		}
	}
	if _, err := elements(&tensor.Tensor{Type: tensor.Int32, Shape: []int{-1}}, &inputuse.Use{}, 0); err == nil {
		t.Error("a shape that is open")
	}
	for typ, want := range map[tensor.Type]bool{tensor.Int32: true, tensor.Int64: true, tensor.Uint32: true, tensor.Uint64: true, tensor.Int8: false, tensor.Uint8: false, tensor.Int16: false, tensor.Float32: false, tensor.Bool: false} {
		if isWideInt(typ) != want {
			t.Errorf("%v stands for numbers of things: %v", typ, !want)
		}
	}
	for _, c := range []struct {
		typ   tensor.Type
		shape []int
		want  bool
	}{
		{tensor.Float32, []int{8}, true},
		{tensor.Float64, []int{1}, true},
		{tensor.Float32, nil, true},
		{tensor.Float32, []int{9}, false},
		{tensor.Float32, []int{1, 2}, false},
		{tensor.Int8, []int{2}, false},
		{tensor.Float32, []int{-1}, false},
	} {
		if got := isShortList(&tensor.Tensor{Type: c.typ, Shape: c.shape}); got != c.want {
			t.Errorf("%v %v is a short list: %v", c.typ, c.shape, got)
		}
	}
}

// TestBatch: the batch replaces the first dimension, unless its name occurs in another position
// of an input whose first dimension is fixed.
func TestBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		inputs [][]string
		o      Options
		want   [][]int
	}{
		{"fixed first", [][]string{{"1", "4"}}, Options{Batch: 5}, [][]int{{5, 4}}},
		{"a scalar has none", [][]string{{}, {"1"}}, Options{Batch: 5}, [][]int{{}, {5}}},
		{"a state", [][]string{{"b", "4"}, {"2", "b", "3"}}, Options{Batch: 5}, [][]int{{5, 4}, {2, 5, 3}}},
		{"at both places", [][]string{{"b", "4"}, {"b", "b"}}, Options{Batch: 5}, [][]int{{5, 4}, {5, 5}}},
		{"the name is given", [][]string{{"b", "4"}, {"2", "b"}}, Options{Batch: 5, Dims: map[string]int{"b": 3}}, [][]int{{5, 4}, {2, 3}}},
		{"overrides", [][]string{{"1", "4"}}, Options{Batch: 5, Overrides: synth.Overrides{Dims: map[string][]int{"a": {2, 9}}}}, [][]int{{5, 9}}},
		{"overrides of a scalar", [][]string{{}}, Options{Batch: 5, Overrides: synth.Overrides{Dims: map[string][]int{"a": {}}}}, [][]int{{}}},
		{"a shape", [][]string{{"1", "4"}}, Options{Batch: 5, Shapes: map[string][]int{"a": {2, 9}}}, [][]int{{2, 9}}},
	} {
		xs, src, err := Shapes(open(c.inputs...), c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for k, x := range xs {
			if !slices.Equal(x.Shape, c.want[k]) || src[k].Assumed != nil {
				t.Errorf("%s: input %d is %v, assumed %v; want %v", c.name, k, x.Shape, src[k].Assumed, c.want[k])
			}
		}
	}
}

// TestLimitOfInputs checks the memory limit of all inputs together, to the byte. Shapes alone need
// no memory.
func TestLimitOfInputs(t *testing.T) {
	t.Parallel()
	m := open([]string{"5"}, []string{"5"})
	for limit, fails := range map[int]bool{0: false, 40: false, 39: true, 20: true, 19: true} {
		if _, _, err := Shapes(m, Options{MaxBytes: limit}); err != nil {
			t.Errorf("shapes within %d: %v", limit, err)
		}
		if _, _, err := Inputs(m, Options{MaxBytes: limit}); (err != nil) != fails || fails && !strings.Contains(err.Error(), "memory") {
			t.Errorf("40 bytes within %d: %v", limit, err)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	t.Parallel()
	if got := quoteAll(nil); got != "none" {
		t.Error(got)
	}
	if got := quoteAll([]string{"a", `b"`}); got != `"a", "b\""` {
		t.Error(got)
	}
	if got := (&OptionError{"shape", "no"}).Error(); got != "shape: no" {
		t.Error(got)
	}
	v := &graph.Value{Name: "x", Type: tensor.Resource}
	var src Source
	if _, err := generate(v, nil, 0, &src, Options{}); err == nil || !strings.Contains(err.Error(), `"x" has to be given`) {
		t.Errorf("a resource is drawn: %v", err)
	}
	for _, o := range []Options{{Zeros: true}, {Overrides: synth.Overrides{Fill: map[string]synth.Fill{"y": {Const: new(2.0)}}}}} {
		v := &graph.Value{Name: "y", Type: tensor.Float32}
		src := Source{Kind: "random", Use: &inputuse.Use{Below: 1}}
		x, err := generate(v, []int{3}, 0, &src, o)
		if err != nil {
			t.Fatal(err)
		}
		want, kind := 2.0, "random"
		if o.Zeros {
			want, kind = 0, "zeros"
		}
		for i := range 3 {
			if tensor.At(x, i) != want || src.Kind != kind {
				t.Errorf("%+v: element %d is %v, %s", o, i, tensor.At(x, i), src.Kind)
			}
		}
	}
	src = Source{Use: &inputuse.Use{Below: 2}}
	x, err := generate(&graph.Value{Name: "z", Type: tensor.Int64}, []int{100}, 0, &src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for i := range 100 {
		seen[tensor.At(x, i)] = true
	}
	if len(seen) != 2 || !seen[0] || !seen[1] {
		t.Errorf("numbers below 2: %v", seen)
	}
}

package inputuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// net builds a graph of one integer input "n" from lines of "Op out in in". Names that begin with
// a digit or a bracket are constants: "7", "[1 2]", "1.0"; "_" is an absent input.
type net struct {
	g   *graph.Graph
	ids map[string]int
}

func newNet(n []int, shapes map[string][]int) *net {
	b := &net{g: &graph.Graph{}, ids: map[string]int{}}
	b.value("n", n, tensor.Int64)
	for name, s := range shapes {
		b.value(name, s, tensor.Int64)
	}
	b.g.Inputs = []int{0}
	return b
}

func (b *net) value(name string, shape []int, t tensor.Type) int {
	if id, ok := b.ids[name]; ok {
		return id
	}
	v := &graph.Value{ID: len(b.g.Values), Name: name, Type: t, Shape: shape, HasShape: shape != nil}
	b.g.Values = append(b.g.Values, v)
	b.ids[name] = v.ID
	return v.ID
}

func (b *net) in(name string) int {
	if name == "_" {
		return -1
	}
	if id, ok := b.ids[name]; ok {
		return id
	}
	id := b.value(name, nil, tensor.Int64)
	v := b.g.Values[id]
	switch {
	case strings.HasPrefix(name, "["):
		var list []int64
		for _, f := range strings.Split(strings.Trim(name, "[]"), ",") {
			var x int64
			if _, err := fmt.Sscan(f, &x); err == nil {
				list = append(list, x)
			}
		}
		v.Const = tensor.From(tensor.Int64, []int{len(list)}, list)
	case strings.Contains(name, "."):
		var x float32
		if _, err := fmt.Sscan(name, &x); err == nil {
			v.Type, v.Const = tensor.Float32, tensor.From(tensor.Float32, []int{}, []float32{x})
		}
	default:
		var x int64
		if _, err := fmt.Sscan(name, &x); err == nil {
			v.Const = tensor.From(tensor.Int64, []int{}, []int64{x})
		}
	}
	if v.Const != nil {
		v.Shape, v.HasShape = v.Const.Shape, true
	}
	return id
}

func (b *net) node(domain, line string, a graph.Attrs) {
	f := strings.Fields(line)
	n := &graph.Node{Index: len(b.g.Nodes), Domain: domain, Op: f[0], Attrs: a}
	for _, name := range f[2:] {
		n.Inputs = append(n.Inputs, b.in(name))
	}
	for _, name := range strings.Split(f[1], ",") {
		n.Outputs = append(n.Outputs, b.in(name))
	}
	b.g.Nodes = append(b.g.Nodes, n)
}

// said formats a use as "shape 1 2 3", "indices below 7", "mask all 1".
func said(u *Use) string {
	switch {
	case u == nil:
		return ""
	case u.Fill != nil:
		return fmt.Sprintf("%s all %d", u.Kind, *u.Fill)
	case u.Below > 0:
		return fmt.Sprintf("%s below %d", u.Kind, u.Below)
	}
	return fmt.Sprintf("%s %v", u.Kind, u.Values)
}

type line struct {
	domain, text string
	attrs        graph.Attrs
}

func onnx(text string) line { return line{text: text} }

func lite(text string, pairs ...any) line { return with(graph.TFLite, text, pairs...) }

func with(domain, text string, pairs ...any) line {
	a := graph.Attrs{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v := pairs[i+1]
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		a[pairs[i].(string)] = v
	}
	return line{domain, text, a}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		n      []int
		shapes map[string][]int
		lines  []line
		want   string
	}{
		{"nothing", []int{3}, nil, []line{onnx("Neg y n")}, ""},
		{"reshape to what the file declares", []int{2}, map[string][]int{"x": {2, 6}, "y": {3, 4}}, []line{onnx("Reshape y x n")}, "shape [3 4]"},
		{"reshape to what is not declared", []int{3}, map[string][]int{"x": {2, 6}}, []line{onnx("Reshape y x n")}, "shape [2 6 1]"},
		{"reshape to fewer axes", []int{1}, map[string][]int{"x": {2, 6}}, []line{onnx("Reshape y x n")}, "shape [12]"},
		{"expand", []int{2}, map[string][]int{"x": {2, 6}}, []line{onnx("Expand y x n")}, "shape [2 6]"},
		{"constant of shape", []int{3}, nil, []line{onnx("ConstantOfShape y n")}, "shape [1 1 1]"},
		{"through cast and identity", []int{2}, map[string][]int{"x": {2, 6}, "a": {2}, "b": {2}}, []line{onnx("Cast a n"), onnx("Identity b a"), onnx("Expand y x b")}, "shape [2 6]"},
		{"one dimension of a shape", []int{}, map[string][]int{"x": {2, 6}, "u": {1}, "s": {2}}, []line{onnx("Unsqueeze u n [0]"), onnx("Concat s [2] u"), onnx("Expand y x s")}, "shape [6]"},
		{"a dimension and more", []int{}, map[string][]int{"x": {2, 6}, "a": {}, "u": {1}, "s": {2}}, []line{onnx("Add a n 4"), onnx("Unsqueeze u a [0]"), onnx("Concat s [2] u"), onnx("Expand y x s")}, "shape [2]"},
		{"a part of a list", []int{3}, map[string][]int{"x": {2, 6}, "p": {2}}, []line{onnx("Slice p n [1] [3]"), onnx("Expand y x p")}, "shape [1 2 6]"},
		{"picked from a list", []int{3}, map[string][]int{"x": {2, 6}, "p": {2}}, []line{onnx("Gather p n [2,0]"), onnx("Expand y x p")}, "shape [6 1 2]"},
		{"rows of a table", []int{5}, map[string][]int{"t": {7, 2}}, []line{onnx("Gather y t n")}, "indices below 7"},
		{"columns of a table", []int{5}, map[string][]int{"t": {7, 2}}, []line{{"", "Gather y t n", graph.Attrs{"axis": int64(-1)}}}, "indices below 2"},
		{"rows of two tables", []int{5}, map[string][]int{"t": {7, 2}, "u": {5, 2}}, []line{onnx("Gather y t n"), onnx("Gather z u n")}, "indices below 5"},
		{"rows from the third on", []int{5}, map[string][]int{"t": {7, 2}, "a": {5}}, []line{onnx("Add a n 2"), onnx("Gather y t a")}, "indices below 5"},
		{"places in two axes", []int{4, 2}, map[string][]int{"t": {7, 3, 100}}, []line{onnx("GatherND y t n")}, "indices below 3"},
		{"behind a mask of its own", []int{5}, map[string][]int{"t": {7, 2}}, []line{onnx("Gather y t n"), onnx("Equal z n 0")}, "indices below 7"},
		{"bert's mask", []int{1, 8}, map[string][]int{"u": {1, 1, 8}, "f": {1, 1, 8}}, []line{onnx("Unsqueeze u n [1]"), onnx("Cast f u"), onnx("Sub y 1.0 f")}, "mask all 1"},
		{"a condition", []int{1, 8}, map[string][]int{"c": {1, 8}, "x": {1, 8}}, []line{onnx("Cast c n"), onnx("Where y c x x")}, "mask all 1"},
		{"sample rate", []int{}, nil, []line{onnx("Equal c n 16000")}, "choice all 16000"},
		{"sample rate as a list", []int{1}, map[string][]int{"a": {}}, []line{onnx("Reshape a n []"), onnx("Equal c a 8000")}, "choice all 8000"},
		{"tokens against padding", []int{1, 8}, nil, []line{onnx("Equal c n 3")}, ""},
		{"axes", []int{1}, map[string][]int{"x": {2, 3, 4}}, []line{onnx("ReduceMean y x n")}, "axes [2]"},
		{"best", []int{1}, map[string][]int{"x": {2, 9}, "v": {2, 4}}, []line{onnx("TopK v,i x n")}, "count all 4"},
		{"window's end", []int{1}, map[string][]int{"x": {8, 9}}, []line{onnx("Slice y x [2] n [1]")}, "bounds [11]"},
		{"window's begin", []int{2}, map[string][]int{"x": {8, 9}}, []line{onnx("Slice y x n [8,9]")}, "bounds all 0"},
		{"classes of a loss", []int{4}, map[string][]int{"x": {4, 6}}, []line{onnx("SoftmaxCrossEntropyLoss y x n")}, "indices below 6"},
		{"places that were pooled", []int{1, 1, 2, 2}, map[string][]int{"x": {1, 1, 2, 2}}, []line{onnx("MaxUnpool y x n")}, "indices below 4"},
		{"length of a transform", []int{}, map[string][]int{"x": {1, 20, 1}}, []line{onnx("DFT y x n")}, "length all 20"},
		{"image of columns", []int{2}, map[string][]int{"x": {1, 4, 25}}, []line{onnx("Col2Im y x n [2,2]")}, "shape [2 26]"},
		{"columns of a feature table", []int{2}, map[string][]int{"x": {3, 5}}, []line{{graph.ONNXML, "ArrayFeatureExtractor y x n", nil}}, "indices below 5"},
		{"paddings", []int{4}, map[string][]int{"x": {8, 9}, "y": {8, 12}}, []line{onnx("Pad y x n")}, "paddings [0 0 0 3]"},
		{"repeats", []int{2}, map[string][]int{"x": {8, 9}, "y": {16, 9}}, []line{onnx("Tile y x n")}, "count [2 1]"},
		{"lengths of sequences", []int{2}, map[string][]int{"x": {12, 2, 4}}, []line{onnx("LSTM y x w r b n")}, "length all 12"},
		{"lengths that positions are compared with", []int{2}, map[string][]int{"p": {12}, "u": {2, 1}}, []line{onnx("Unsqueeze u n [1]"), onnx("Less y p u")}, "length all 12"},
		{"a number that figures are compared with", []int{2, 12}, map[string][]int{"p": {2, 12}}, []line{onnx("Less y p n")}, ""},
		{"range", []int{}, map[string][]int{"y": {6}}, []line{onnx("Range y 2 n 3")}, "bounds all 20"},
		{
			"keys of a cache",
			[]int{1, 5},
			map[string][]int{"q": {1, 2, 8}, "p": {1, 1, 3, 8}, "s": {1}, "l": {1}},
			[]line{onnx("ReduceSum s n [1]"), onnx("Sub l s 1"), {graph.Microsoft, "GroupQueryAttention y q k v p pv l t", nil}},
			"mask all 1",
		},
		{"length of keys", []int{1}, map[string][]int{"q": {1, 2, 8}, "p": {1, 1, 3, 8}}, []line{{graph.Microsoft, "GroupQueryAttention y q k v p pv n t", nil}}, "length all 4"},
		{"length of a buffer that the keys fill", []int{1}, map[string][]int{"q": {1, 2, 8}, "p": {1, 1, 9, 8}, "z": {1, 1, 9, 8}}, []line{{graph.Microsoft, "GroupQueryAttention y,z q k v p pv l n", nil}}, "length all 9"},
		{"last key of a buffer", []int{1}, map[string][]int{"q": {1, 2, 8}, "p": {1, 1, 9, 8}, "z": {1, 1, 9, 8}}, []line{{graph.Microsoft, "GroupQueryAttention y,z q k v p pv n t", nil}}, "length all 8"},
		{"length of a cache that grows", []int{1}, map[string][]int{"q": {1, 2, 8}, "p": {1, 1, 9, 8}, "z": {1, 1, 11, 8}}, []line{{graph.Microsoft, "GroupQueryAttention y,z q k v p pv l n", nil}}, "length all 11"},
		{"angles", []int{1, 5}, map[string][]int{"x": {1, 5, 8}, "c": {32, 4}}, []line{{graph.Microsoft, "RotaryEmbedding y x n c s", nil}}, "indices below 32"},
		{"same", []int{4}, map[string][]int{"w": {3, 4, 4, 2}, "x": {1, 5, 6, 2}}, []line{lite("TRANSPOSE_CONV y n w x", "padding", "SAME", "stride_h", 2, "stride_w", 3)}, "shape [1 10 18 3]"},
		{"valid", []int{4}, map[string][]int{"w": {3, 4, 4, 2}, "x": {1, 5, 6, 2}}, []line{lite("TRANSPOSE_CONV y n w x", "padding", "VALID", "stride_h", 2, "stride_w", 3)}, "shape [1 12 19 3]"},
		{"same, one less", []int{4}, map[string][]int{"w": {3, 4, 4, 2}, "x": {1, 5, 6, 2}, "y": {1, 9, 18, 3}}, []line{lite("TRANSPOSE_CONV y n w x", "padding", "SAME", "stride_h", 2, "stride_w", 3)}, "shape [1 9 18 3]"},
		{"placeholder of one", []int{4}, map[string][]int{"w": {3, 4, 4, 2}, "x": {1, 5, 6, 2}, "y": {1, 1, 1, 1}}, []line{lite("TRANSPOSE_CONV y n w x", "padding", "SAME", "stride_h", 2, "stride_w", 3)}, "shape [1 10 18 3]"},
		{"resize", []int{2}, map[string][]int{"x": {1, 5, 6, 2}, "y": {1, 10, 12, 2}}, []line{lite("RESIZE_BILINEAR y x n")}, "shape [10 12]"},
		{"begin", []int{3}, map[string][]int{"x": {4, 5, 6}}, []line{lite("SLICE y x n [2,2,2]")}, "bounds all 0"},
		{"size", []int{3}, map[string][]int{"x": {4, 5, 6}}, []line{lite("SLICE y x [0,0,0] n")}, "bounds [4 5 6]"},
		{"clamped", []int{5}, map[string][]int{"t": {16, 2}, "a": {5}}, []line{lite("MAXIMUM a n 0"), lite("GATHER y t a")}, "indices below 16"},
		{"negative ones wrapped", []int{5}, map[string][]int{"t": {16, 2}, "a": {5}, "b": {5}, "c": {5}}, []line{lite("LESS c n 0"), lite("ADD a n 16"), lite("SELECT b c a n"), lite("GATHER y t b")}, "indices below 16"},
		{"scatter", []int{4, 1}, map[string][]int{"u": {4, 3}}, []line{lite("SCATTER_ND y n u [9,3]")}, "indices below 9"},
		{"permutation", []int{3}, map[string][]int{"x": {4, 5, 6}}, []line{lite("TRANSPOSE y x n")}, "axes [0 1 2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newNet(tt.n, tt.shapes)
			for _, l := range tt.lines {
				b.node(l.domain, l.text, l.attrs)
			}
			m := &graph.Model{Graphs: []*graph.Graph{b.g}}
			if got := said(Of(m)[0]); got != tt.want {
				t.Errorf("used as %q, want %q", got, tt.want)
			}
		})
	}
}

// TestBodies follows uses into the graphs that control flow runs, for captured values and for
// arguments.
func TestBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		line  line
		named bool // the body captures the value by name
	}{
		{"captured by a branch", with("", "If y c", "then_branch", graph.GraphRef(1)), true},
		{"handed to a branch", lite("IF y c n", "then_subgraph_index", graph.GraphRef(1)), false},
		{"a state of a loop", lite("WHILE y n", "body_subgraph_index", graph.GraphRef(1)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := newNet([]int{5}, map[string][]int{"t": {7, 2}})
			body.g.Index = 1
			body.node("", "Gather y t n", nil)
			main := newNet([]int{5}, nil)
			main.node(tt.line.domain, tt.line.text, tt.line.attrs)
			if tt.named {
				body.g.Parent, body.g.Inputs = main.g, nil
				body.g.Captures = []graph.Capture{{Inner: 0, Outer: 0}}
			}
			m := &graph.Model{Graphs: []*graph.Graph{main.g, body.g}}
			if d := cmp.Diff("indices below 7", said(Of(m)[0])); d != "" {
				t.Errorf("use (-want +got):\n%s", d)
			}
		})
	}
}

// TestItself terminates for a graph that runs itself.
func TestItself(t *testing.T) {
	t.Parallel()
	main := newNet([]int{5}, nil)
	body := newNet([]int{5}, nil)
	body.g.Index = 1
	for _, b := range []*net{main, body} {
		b.node(graph.TFLite, "WHILE y n", graph.Attrs{"body_subgraph_index": graph.GraphRef(1)})
	}
	if u := Of(&graph.Model{Graphs: []*graph.Graph{main.g, body.g}})[0]; u != nil {
		t.Errorf("used as %q", said(u))
	}
}

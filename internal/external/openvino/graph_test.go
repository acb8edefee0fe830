package openvino

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// ir writes a graph as OpenVINO does: layers "name type names-of-its-output reads...", with what
// was fused after a "|" behind the name.
func ir(lines ...string) string {
	var layers, edges strings.Builder
	at := map[string]int{}
	for i, l := range lines {
		f := strings.Fields(l)
		name, origins, _ := strings.Cut(f[0], "|")
		at[name] = i
		names := ""
		if f[2] != "-" {
			names = " names=\"" + f[2] + "\""
		}
		fmt.Fprintf(&layers, "<layer id=\"%d\" name=\"%s\" type=\"%s\" version=\"opset1\"><data originalLayersNames=\"%s\"/><input>", i, name, f[1], origins)
		for k, from := range f[3:] {
			fmt.Fprintf(&layers, "<port id=\"%d\"><dim>1</dim></port>", k)
			fmt.Fprintf(&edges, "<edge from-layer=\"%d\" from-port=\"9\" to-layer=\"%d\" to-port=\"%d\"/>", at[from], i, k)
		}
		fmt.Fprintf(&layers, "</input><output><port id=\"9\" precision=\"FP32\"%s><dim>-1</dim><dim>3</dim></port></output></layer>", names)
	}
	return "<?xml version=\"1.0\"?><net name=\"x\" version=\"11\"><layers>" + layers.String() + "</layers><edges>" + edges.String() + "</edges><rt_info/></net>"
}

func parse(t *testing.T, lines ...string) *irGraph {
	t.Helper()
	g, err := readIR(strings.NewReader(ir(lines...)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestReadIR(t *testing.T) {
	t.Parallel()
	g := parse(t, "x Parameter x", "w Const -", `c|c,r Convolution a,b\,c x w`)
	c := &g.layers[2]
	if len(g.layers) != 3 || c.name != "c" || c.op != "Convolution" || !slices.Equal(c.origins, []string{"c", "r"}) || !g.layers[1].constant {
		t.Errorf("%+v", g.layers)
	}
	if !slices.Equal(c.outs[0].names, []string{"a", "b,c"}) || !slices.Equal(c.outs[0].dims, []int64{-1, 3}) {
		t.Errorf("%+v", c.outs)
	}
	if !slices.Equal(c.from, []end{{0, 0}, {1, 0}}) || !slices.Equal(g.layers[0].to, []int{2}) {
		t.Errorf("%+v %+v", c.from, g.layers[0].to)
	}
	whole := ir("x Parameter x", "r Result - x")
	for n := range len(whole) {
		if g, err := readIR(strings.NewReader(whole[:n])); err == nil {
			t.Fatalf("%d of %d bytes are read: %+v", n, len(whole), g)
		}
	}
}

// TestBodies: layers of bodies are not those of the graph.
func TestBodies(t *testing.T) {
	t.Parallel()
	text := strings.Replace(ir("x Parameter x", "l Loop y x"), "</layer></layers>", "<body><layers><layer id=\"0\" name=\"inner\" type=\"Add\"><output><port id=\"1\" names=\"z\"/></output></layer></layers><edges><edge from-layer=\"0\" from-port=\"9\" to-layer=\"1\" to-port=\"0\"/></edges></body></layer></layers>", 1)
	g, err := readIR(strings.NewReader(text))
	if err != nil || len(g.layers) != 2 || len(g.layers[1].outs) != 1 || len(g.layers[0].to) != 1 {
		t.Errorf("%v %+v", err, g)
	}
}

// net makes a model's graph of lines "OP out in...".
func net(format string, lines ...string) *graph.Model {
	g := &graph.Graph{}
	ids := map[string]int{}
	value := func(name string) int {
		id, ok := ids[name]
		if !ok {
			id = len(g.Values)
			ids[name] = id
			g.Values = append(g.Values, &graph.Value{ID: id, Name: name})
		}
		return id
	}
	for i, l := range lines {
		f := strings.Fields(l)
		n := &graph.Node{Index: i, Op: f[0], Name: "n" + f[1]}
		for _, in := range f[2:] {
			n.Inputs = append(n.Inputs, value(in))
		}
		n.Outputs = []int{value(f[1])}
		g.Nodes = append(g.Nodes, n)
	}
	return &graph.Model{Format: format, Graphs: []*graph.Graph{g}}
}

// TestCountedOff: names of tensors are gone between transposed layers; kinds in order, and where
// data comes from, lead back.
func TestCountedOff(t *testing.T) {
	t.Parallel()
	m := net("tflite", "CONV_2D a x", "CONV_2D b a", "CONV_2D c a", "ADD d b c", "SOFTMAX e d")
	read := parse(t,
		"x Parameter x", "Convolution_9 Convolution - x", "Transpose_90 ReLU - Convolution_9",
		"Convolution_40 Convolution - Transpose_90", "Convolution_20 Convolution - Transpose_90",
		"Transpose_91 Add - Convolution_20 Convolution_40", "4 SoftMax e Transpose_91", "r Result - 4")
	ran := parse(t,
		"x Input - ", "x_f32_bf16_Convolution_9 Reorder - x", "Convolution_9|Convolution_9,Transpose_90 Convolution - x_f32_bf16_Convolution_9",
		"Convolution_20|Convolution_20 Convolution - Convolution_9", "Convolution_40|Convolution_40,Transpose_91 Convolution - Convolution_9 Convolution_20",
		"4|4 Softmax - Convolution_40", "r Output - 4")
	g := newGraphs(read, ran, m)
	for name, want := range map[string][]string{
		"Convolution_9": {"a"}, "Convolution_20": {"b"}, "Convolution_40": {"c", "d"}, "4": {"e"}, "x_f32_bf16_Convolution_9": nil,
	} {
		h, where := g.classify(name)
		slices.Sort(h.Within)
		if where != executed || !slices.Equal(h.Within, want) {
			t.Errorf("%s makes %v, want %v", name, h.Within, want)
		}
	}
	// What goes from layer to layer has the model's names where they are known.
	for name, want := range map[string][2]string{
		"x_f32_bf16_Convolution_9": {"x", "openvino:x_f32_bf16_Convolution_9#0"}, "Convolution_9": {"openvino:x_f32_bf16_Convolution_9#0", "a"}, "Convolution_20": {"a", "b"}, "Convolution_40": {"a b", "d"}, "4": {"d", "e"},
	} {
		h, _ := g.classify(name)
		if strings.Join(h.Inputs, " ") != want[0] || strings.Join(h.Outputs, " ") != want[1] {
			t.Errorf("%s: %v to %v, want %v", name, h.Inputs, h.Outputs, want)
		}
	}
	if _, where := g.classify("Transpose_90"); where != fused {
		t.Error("a node that is not executed stands as one")
	}
}

// TestNotCountedOff: layers that read other data than the operators in their place are not these.
func TestNotCountedOff(t *testing.T) {
	t.Parallel()
	m := net("tflite", "CONV_2D a x", "CONV_2D b a", "CONV_2D c x")
	read := parse(t, "x Parameter x", "Convolution_1 Convolution - x", "Convolution_2 Convolution - x", "Convolution_3 Convolution - Convolution_2")
	own := owners(read, opsOf(m.Main()))
	if own[2] == 1 || own[3] == 2 {
		t.Errorf("layers belong to %v", own)
	}
}

// TestNamed: nodes of ONNX keep their names; what a converter made of one goes into it.
func TestNamed(t *testing.T) {
	t.Parallel()
	m := net("onnx", "Relu a x", "Softmax b a", "Split c b", "Neg d c")
	read := parse(t, "x Parameter x", "na ReLU a x", "Reshape_7 Reshape - na", "Softmax_8 SoftMax - Reshape_7", "nb Reshape b Softmax_8", "nc Split c nb", "nd Negative d nc", "r Result - nd")
	ran := parse(t, "x Input -", "na|na Relu - x", "Softmax_8|Softmax_8 Softmax - na", "nb|nb Reshape - Softmax_8", "VariadicSplit_77|VariadicSplit_77 VariadicSplit - nb", "nd|nd Eltwise - VariadicSplit_77", "r Output - nd")
	g := newGraphs(read, ran, m)
	for name, want := range map[string][]string{"na": {"a"}, "Softmax_8": {"b"}, "VariadicSplit_77": {"c"}, "nd": {"d"}} {
		if h, _ := g.classify(name); !slices.Equal(h.Outputs, want) {
			t.Errorf("%s makes %v, want %v", name, h.Outputs, want)
		}
	}
	if h, _ := g.classify("na"); !slices.Equal(h.Nodes, []string{"na"}) {
		t.Errorf("%+v", h)
	}
}

func FuzzReadIR(f *testing.F) {
	f.Add([]byte(ir("x Parameter x", "w Const -", `c|c,r Convolution a,b\,c x w`, "r Result - c")))
	f.Add([]byte(`<net><layers><layer id="0" name="a" type="Loop"><body><layers/></body><output><port id="1"><dim>x</dim></port></output></layer></layers><edges><edge from-layer="0" from-port="1" to-layer="0" to-port="0"/></edges></net>`))
	m := net("tflite", "CONV_2D a x", "ADD b a x", "SOFTMAX c b")
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := readIR(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		for i := range g.layers {
			for _, e := range g.layers[i].from {
				if e.layer >= len(g.layers) || e.layer >= 0 && e.out >= len(g.layers[e.layer].outs) {
					t.Fatalf("layer %d reads %+v", i, e)
				}
			}
		}
		newGraphs(g, g, m)
	})
}

package tflm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// val makes a value of bytes, or of another type.
func val(typ tensor.Type, shape ...int) *graph.Value {
	return &graph.Value{Type: typ, Shape: shape, HasShape: true}
}

// node adds an operator with new values.
func node(g *graph.Graph, op string, attrs graph.Attrs, in, out []*graph.Value) *graph.Node {
	n := &graph.Node{Index: len(g.Nodes), Op: op, Domain: graph.TFLite, Attrs: attrs}
	put := func(v *graph.Value) int {
		if v == nil {
			return -1
		}
		v.ID = len(g.Values)
		g.Values = append(g.Values, v)
		return v.ID
	}
	for _, v := range in {
		n.Inputs = append(n.Inputs, put(v))
	}
	for _, v := range out {
		n.Outputs = append(n.Outputs, put(v))
	}
	g.Nodes = append(g.Nodes, n)
	return n
}

func model(gs ...*graph.Graph) *graph.Model {
	for i, g := range gs {
		g.Index = i
	}
	return &graph.Model{Format: "tflite", Graphs: gs}
}

// TestScratch has the working memory of kernels, as their makers' sources ask for it. The
// reference kernels ask for none here.
func TestScratch(t *testing.T) {
	t.Parallel()
	const i8, i4, i16, f32 = tensor.Int8, tensor.Int4, tensor.Int16, tensor.Float32
	vals := func(v ...*graph.Value) []*graph.Value { return v }
	stride := func(h, w int) graph.Attrs { return graph.Attrs{"stride_h": int64(h), "stride_w": int64(w)} }
	dilated := func(h, w int) graph.Attrs {
		return graph.Attrs{"dilation_h_factor": int64(h), "dilation_w_factor": int64(w)}
	}
	type by map[Kernels]int
	for _, c := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*graph.Value
		out      *graph.Value
		want     by
	}{
		// A column of the window in 16 bits, twice: 3*2*5 = 30 values, rounded up to 32.
		{"convolution", "CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 7, 3, 2, 5)), val(i8, 1, 4, 6, 7), by{CMSISNN: 4 * 32, CMSISMVE: 4 * 32, MVP: 2 * 120}},
		{"convolution, 33 values", "CONV_2D", nil, vals(val(i8, 1, 4, 6, 11), val(i8, 7, 3, 1, 11)), val(i8, 1, 4, 6, 7), by{CMSISNN: 4 * 36, CMSISMVE: 4 * 48, MVP: 2 * 264}},
		// The accelerator refuses it, and CMSIS-NN runs it.
		{"too wide for the accelerator", "CONV_2D", nil, vals(val(i8, 1, 40, 40, 60), val(i8, 60, 3, 3, 60)), val(i8, 1, 40, 40, 60), by{CMSISNN: 4 * 540, CMSISMVE: 4 * 544, MVP: 4 * 540, MVPFirst: 4 * 540}},
		{"1x1", "CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 7, 1, 1, 5)), val(i8, 1, 4, 6, 7), by{MVP: 2 * 120}},
		{"1x1 with steps", "CONV_2D", stride(2, 1), vals(val(i8, 1, 4, 6, 8), val(i8, 7, 1, 1, 8)), val(i8, 1, 2, 6, 7), by{CMSISNN: 32, CMSISMVE: 64, MVP: 2 * 192}},
		{"1x1 with steps across", "CONV_2D", stride(1, 2), vals(val(i8, 1, 4, 6, 8), val(i8, 7, 1, 1, 8)), val(i8, 1, 4, 3, 7), by{CMSISNN: 32, CMSISMVE: 64, MVP: 2 * 192}},
		{"1x3", "CONV_2D", nil, vals(val(i8, 1, 4, 6, 8), val(i8, 7, 1, 3, 8)), val(i8, 1, 4, 6, 7), by{CMSISNN: 4 * 24, CMSISMVE: 4 * 32, MVP: 2 * 192}},
		{"3x1", "CONV_2D", nil, vals(val(i8, 1, 4, 6, 8), val(i8, 7, 3, 1, 8)), val(i8, 1, 4, 6, 7), by{CMSISNN: 4 * 24, CMSISMVE: 4 * 32, MVP: 2 * 192}},
		// Other types are left to the reference kernels, which unpack weights of 4 bits.
		{"convolution of floats", "CONV_2D", nil, vals(val(f32, 1, 4, 6, 5), val(f32, 7, 3, 2, 5)), val(f32, 1, 4, 6, 7), by{}},
		{"weights of 4 bits with 16-bit activations", "CONV_2D", nil, vals(val(i16, 1, 4, 6, 5), val(i4, 7, 3, 2, 5)), val(i16, 1, 4, 6, 7), by{Reference: 210, CMSISNN: 210, CMSISMVE: 210, MVP: 210, MVPFirst: 210}},
		{"weights of three dimensions", "CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 7, 3, 2)), val(i8, 1, 4, 6, 7), by{}},
		{"no weights", "CONV_2D", nil, vals(val(i8, 1, 4, 6, 5)), val(i8, 1, 4, 6, 7), by{}},
		{"input of three dimensions", "CONV_2D", nil, vals(val(i8, 4, 6, 5), val(i8, 7, 3, 2, 5)), val(i8, 1, 4, 6, 7), by{}},

		{"depthwise 3x3", "DEPTHWISE_CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 1, 3, 3, 5)), val(i8, 1, 4, 6, 5), by{CMSISMVE: 4 * 8 * 9}},
		{"depthwise 3x2", "DEPTHWISE_CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 1, 3, 2, 5)), val(i8, 1, 4, 6, 5), by{CMSISNN: 2 * 5 * 6, CMSISMVE: 4 * 8 * 6}},
		{"depthwise 2x3", "DEPTHWISE_CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 1, 2, 3, 5)), val(i8, 1, 4, 6, 5), by{CMSISNN: 2 * 5 * 6, CMSISMVE: 4 * 8 * 6}},
		// Helium does 124 channels at a time.
		{"depthwise, 123 channels", "DEPTHWISE_CONV_2D", nil, vals(val(i8, 1, 4, 6, 123), val(i8, 1, 3, 3, 123)), val(i8, 1, 4, 6, 123), by{CMSISMVE: 4 * 124 * 9}},
		{"depthwise, 125 channels", "DEPTHWISE_CONV_2D", nil, vals(val(i8, 1, 4, 6, 125), val(i8, 1, 3, 3, 125)), val(i8, 1, 4, 6, 125), by{CMSISMVE: 4 * 124 * 9}},
		{"depthwise with a multiplier", "DEPTHWISE_CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 1, 2, 2, 10)), val(i8, 1, 4, 6, 10), by{}},
		{"depthwise, dilated", "DEPTHWISE_CONV_2D", dilated(2, 1), vals(val(i8, 1, 4, 6, 5), val(i8, 1, 2, 2, 5)), val(i8, 1, 4, 6, 5), by{}},
		{"depthwise, dilated across", "DEPTHWISE_CONV_2D", dilated(1, 2), vals(val(i8, 1, 4, 6, 5), val(i8, 1, 2, 2, 5)), val(i8, 1, 4, 6, 5), by{}},

		{"dense", "FULLY_CONNECTED", nil, vals(val(i8, 1, 9), val(i8, 7, 9)), val(i8, 1, 7), by{CMSISMVE: 28}},
		{"dense, weights of 4 bits", "FULLY_CONNECTED", nil, vals(val(i8, 1, 9), val(i4, 7, 9)), val(i8, 1, 7), by{Reference: 63, CMSISMVE: 28}},
		{"dense, weights of one dimension", "FULLY_CONNECTED", nil, vals(val(i8, 1, 9), val(i8, 63)), val(i8, 1, 7), by{}},
		{"average", "AVERAGE_POOL_2D", nil, vals(val(i8, 1, 4, 6, 5)), val(i8, 1, 2, 3, 5), by{CMSISNN: 20}},
		{"average of three dimensions", "AVERAGE_POOL_2D", nil, vals(val(i8, 4, 6, 5)), val(i8, 2, 3, 5), by{}},
		{"mean", "MEAN", nil, vals(val(i8, 1, 4, 4, 2), val(tensor.Int32, 2)), val(i8, 1, 2), by{Reference: 8 + 16 + 8, CMSISNN: 32, CMSISMVE: 32, MVP: 32, MVPFirst: 32}},
		{"transposed", "TRANSPOSE_CONV", nil, vals(val(tensor.Int32, 4), val(i8, 2, 2, 2, 3), val(i8, 1, 4, 4, 3)), val(i8, 1, 8, 8, 2), by{Reference: 512, CMSISNN: 512, CMSISMVE: 512, MVP: 512, MVPFirst: 512}},
	} {
		for _, k := range []Kernels{Reference, CMSISNN, CMSISMVE, MVP, MVPFirst, ""} {
			first, second := &graph.Graph{}, &graph.Graph{}
			node(first, "RELU", nil, vals(val(i8, 1)), vals(val(i8, 1)))
			node(second, "RELU", nil, vals(val(i8, 1)), vals(val(i8, 1)))
			copied := func(list []*graph.Value) (out []*graph.Value) {
				for _, v := range list {
					c := *v
					out = append(out, &c)
				}
				return out
			}
			node(second, c.op, c.attrs, copied(c.in), copied([]*graph.Value{c.out}))
			list, unknown := scratch(model(first, second), k)
			sum, want := 0, c.want[k]
			if k == "" {
				want = c.want[Reference]
			}
			for _, s := range list {
				sum += s.Bytes
				if s.Graph != 1 || s.Node != 1 || s.Bytes <= 0 {
					t.Errorf("%s, %s: %+v", c.name, k, s)
				}
			}
			if sum != want || unknown != nil {
				t.Errorf("%s, %q: %d bytes, want %d (unknown %q)", c.name, k, sum, want, unknown)
			}
		}
	}
	// Custom operators are not the vendors' either.
	g := &graph.Graph{}
	node(g, "CONV_2D", nil, vals(val(i8, 1, 4, 6, 5), val(i8, 7, 3, 2, 5)), vals(val(i8, 1, 4, 6, 7))).Domain = graph.TFLiteCustom
	if list, unknown := scratch(model(g), CMSISNN); len(list) != 0 || len(unknown) != 1 {
		t.Errorf("a custom operator: %+v, unknown %q", list, unknown)
	}
}

// TestInUse has what is in memory while each node runs: its operands, what later nodes
// read, and its working memory; each piece rounded up to 16 bytes.
func TestInUse(t *testing.T) {
	t.Parallel()
	const i8 = tensor.Int8
	// 0 -> MEAN -> 1 -> RELU -> 2 -> ADD with 0 -> 3; 4 is nobody's; axes are constant.
	g := &graph.Graph{Inputs: []int{0, 6}, Outputs: []int{3}}
	for i, n := range []int{100, 20, 20, 33, 1000, 0, 500} {
		v := val(i8, n)
		v.ID = i
		g.Values = append(g.Values, v)
	}
	axes := val(tensor.Int32, 1)
	axes.ID, axes.Const = 5, tensor.From(tensor.Int32, []int{1}, []int32{0})
	g.Values[5] = axes
	g.Nodes = []*graph.Node{
		{Index: 0, Op: "MEAN", Domain: graph.TFLite, Inputs: []int{0, 5}, Outputs: []int{1}},
		{Index: 1, Op: "RELU", Domain: graph.TFLite, Inputs: []int{1}, Outputs: []int{2}},
		{Index: 2, Op: "ADD", Domain: graph.TFLite, Inputs: []int{2, 0}, Outputs: []int{3}},
	}
	a, err := Plan(model(g), Reference)
	if err != nil || a.Plan == nil {
		t.Fatalf("%v, %+v", err, a)
	}
	// Rounded up: 112, 32, 32, 48. MEAN asks for sums (4 x 20 = 80), dimensions (4) and axes
	// (4): 80 + 16 + 16. Input 6 is read by nobody.
	if want := []int{112 + 32 + 80 + 16 + 16, 112 + 32 + 32, 112 + 32 + 48}; !slices.Equal(a.NodeBytes, want) {
		t.Errorf("in use: %v, want %v", a.NodeBytes, want)
	}
	if a.PeakBytes != 256 || a.Total() != a.Plan.Bytes+a.PersistentBytes || a.PersistentBytes <= 0 || a.Problem != "" || len(a.Scratch) != 3 {
		t.Errorf("%+v", a)
	}
	// An output that is read early lives to the end.
	g.Outputs = []int{3, 1}
	if a, err = Plan(model(g), Reference); err != nil || !slices.Equal(a.NodeBytes, []int{256, 176, 224}) {
		t.Errorf("with a second output: %v, %v", a.NodeBytes, err)
	}
}

// TestPlanErrors says what cannot be planned; what is known beside it stays.
func TestPlanErrors(t *testing.T) {
	t.Parallel()
	if _, err := Plan(&graph.Model{Format: "onnx"}, Reference); err == nil || !strings.Contains(err.Error(), "this one is onnx") {
		t.Errorf("another format: %v", err)
	}
	if _, err := Plan(&graph.Model{Format: "tflite"}, Reference); err == nil {
		t.Error("a model without a graph is planned")
	}
	g := &graph.Graph{Inputs: []int{0}, Outputs: []int{1}}
	node(g, "RELU", nil, []*graph.Value{val(tensor.Int8, -1, 4)}, []*graph.Value{val(tensor.Int8, 1, 4)})
	a, err := Plan(model(g), Reference)
	// 132 bytes of the interpreter, 2 tensors of 12, a node of 32, its data of 28 rounded up to
	// 224; then two lists of one pointer, each rounded up, before tensors of 32.
	if err != nil || a.Plan != nil || a.Problem == "" || a.Total() != 0 || a.PersistentBytes != 240+32+16+32 || a.NodeBytes != nil {
		t.Errorf("open dimensions: %+v, %v", a, err)
	}
	// A value without a shape is a scalar, and the model stays as it is.
	g = &graph.Graph{Inputs: []int{0}, Outputs: []int{1}}
	node(g, "RELU", nil, []*graph.Value{{Type: tensor.Int8, Shape: []int{7}}}, []*graph.Value{val(tensor.Int8, 1, 4)})
	a, err = Plan(model(g), Reference)
	if err != nil || a.Plan == nil || a.Plan.Bytes != 32 || g.Values[0].HasShape {
		t.Errorf("without a shape: %+v, %v", a, err)
	}
	for _, e := range a.Plan.Entries {
		if e.Value == 0 && e.Bytes != 1 {
			t.Errorf("a scalar: %+v", e)
		}
	}
	// No node at all: allocators of 36, 44, 36 and 8 bytes and a graph of 8, rounded up.
	if a, err := Plan(model(&graph.Graph{}), Reference); err != nil || a.PeakBytes != 0 || a.Total() != 144 {
		t.Errorf("an empty graph: %+v, %v", a, err)
	}
	if got := (&Arena{Plan: &memplan.Plan{Bytes: 3}, PersistentBytes: 4}).Total(); got != 7 {
		t.Errorf("in all %d", got)
	}
}

// TestRefusedNodes numbers what is refused over all graphs, with texts, and takes what
// programs register themselves.
func TestRefusedNodes(t *testing.T) {
	t.Parallel()
	const f32, f16, i8, u8, i4, i16, i32 = tensor.Float32, tensor.Float16, tensor.Int8, tensor.Uint8, tensor.Int4, tensor.Int16, tensor.Int32
	a, b := &graph.Graph{}, &graph.Graph{}
	vals := func(ts ...tensor.Type) (out []*graph.Value) {
		for _, typ := range ts {
			if typ == tensor.Invalid {
				out = append(out, nil)
				continue
			}
			out = append(out, val(typ, 1))
		}
		return out
	}
	node(a, "RELU", nil, vals(i8), nil)
	node(a, "GELU", nil, vals(i8), nil)
	node(b, "MYSTERY", nil, vals(f16), nil).Domain = graph.TFLiteCustom
	node(b, "CONV_2D", nil, vals(f32, i8), nil)
	node(b, "WHILE", nil, vals(i8), nil)
	m := model(a, b)
	got, needs := Refused(m, 2021)
	want := []Refusal{
		{0, 1, RefusedOperator, "GELU: TensorFlow Lite Micro has no kernel for it"},
		{1, 1, RefusedMixture, "CONV_2D: a hybrid: activations in float32 with weights in int8"},
		{1, 2, RefusedOperator, "WHILE: a kernel came in 2022, after this runtime"},
	}
	for i := range got {
		// The domain before the operator's name is told elsewhere.
		if _, rest, ok := strings.Cut(got[i].Text, "."); ok && strings.HasPrefix(got[i].Text, "tflite.") {
			got[i].Text = rest
		}
	}
	if d := cmp.Diff(want, got); d != "" || needs != 2020 {
		t.Errorf("needs %d (-want +got):\n%s", needs, d)
	}
	for _, c := range []struct {
		op    string
		types []tensor.Type
		year  int
		want  RefusalCode
		text  string
	}{
		{"UNIDIRECTIONAL_SEQUENCE_LSTM", []tensor.Type{i8, tensor.Invalid, i8}, Latest, "", ""},
		{"UNIDIRECTIONAL_SEQUENCE_LSTM", []tensor.Type{i8, f32, i8}, Latest, "", ""},
		{"UNIDIRECTIONAL_SEQUENCE_LSTM", []tensor.Type{f32, tensor.Invalid, i8}, Latest, RefusedMixture, "float32 with weights in int8"},
		{"SVDF", []tensor.Type{i8, f32}, Latest, RefusedMixture, "activations in int8 with weights in float32"},
		{"SVDF", []tensor.Type{i8}, Latest, "", ""},
		{"SVDF", []tensor.Type{tensor.Invalid, i8}, Latest, "", ""},
		{"FULLY_CONNECTED", []tensor.Type{i32, i32}, Latest, RefusedType, "no kernel computes in int32"},
		{"FULLY_CONNECTED", []tensor.Type{u8, i8}, 2020, RefusedType, "no kernel computes in uint8"},
		{"FULLY_CONNECTED", []tensor.Type{u8, u8}, 2021, RefusedType, "no kernel computes in uint8"},
		{"FULLY_CONNECTED", []tensor.Type{i8, i4}, 2022, RefusedMixture, "weights of 4 bits are taken from 2023 on"},
		{"FULLY_CONNECTED", []tensor.Type{i8, i4}, 2023, "", ""},
		{"FULLY_CONNECTED", []tensor.Type{i16, i4}, Latest, RefusedMixture, "activations in int16 with weights in int4"},
		{"DEQUANTIZE", []tensor.Type{f16}, Latest, RefusedMixture, "float16"},
		{"RESHAPE", []tensor.Type{f16}, Latest, RefusedType, "no kernel takes float16"},
		{"RESHAPE", []tensor.Type{tensor.BFloat16}, Latest, RefusedType, "bfloat16"},
		{"RESHAPE", []tensor.Type{tensor.Float64}, Latest, RefusedType, "float64"},
		{"RESHAPE", []tensor.Type{tensor.Complex64}, Latest, RefusedType, "complex64"},
		{"RESHAPE", []tensor.Type{tensor.Complex128}, Latest, RefusedType, "complex128"},
		{"RESHAPE", []tensor.Type{tensor.String}, Latest, RefusedType, "string"},
		{"RESHAPE", []tensor.Type{i4}, Latest, "", ""},
		{"RESHAPE", nil, Latest, "", ""},
		{"MUL", []tensor.Type{u8}, 2020, "", ""},
		{"MUL", []tensor.Type{u8}, 2021, RefusedType, "no kernel computes in uint8"},
		{"MUL", []tensor.Type{i4}, 2020, RefusedType, "no kernel computes in int4"},
		{"MUL", []tensor.Type{i16}, Latest, "", ""},
		{"IF", []tensor.Type{tensor.Bool}, 2020, RefusedOperator, "a kernel came in 2021"},
		{"IF", []tensor.Type{tensor.Bool}, 2021, "", ""},
		{"REDUCE_MIN", []tensor.Type{i8}, 2024, RefusedOperator, "a kernel came in 2025"},
	} {
		g := &graph.Graph{}
		node(g, c.op, nil, vals(c.types...), nil)
		got, needs := Refused(model(g), c.year)
		name := fmt.Sprintf("%s of %v in %d", c.op, c.types, c.year)
		switch {
		case c.want == "" && (len(got) != 0 || needs < 2020 || needs > c.year):
			t.Errorf("%s: %+v, needs %d", name, got, needs)
		case c.want != "" && (len(got) != 1 || got[0].Code != c.want || !strings.Contains(got[0].Text, c.text) || needs != 0):
			t.Errorf("%s: %+v, needs %d, want %s %q", name, got, needs, c.want, c.text)
		}
	}
}

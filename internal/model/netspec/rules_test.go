package netspec_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/netspec"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

func model(t *testing.T, text string) *graph.Model {
	t.Helper()
	m, err := netspec.Read(strings.NewReader(text), "dir/net.yaml")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// last is the last node of a network and its output.
func last(m *graph.Model) (*graph.Node, *graph.Value) {
	n := m.Main().Nodes[len(m.Main().Nodes)-1]
	return n, m.Main().Values[n.Outputs[0]]
}

// TestLayers builds one layer on an image of 1x8x6x4: its operator, its result's shape,
// its weights' shapes and the options that follow from the text.
func TestLayers(t *testing.T) {
	t.Parallel()
	const head = "input: {shape: [1, 8, 6, 4]}\nlayers: ["
	for _, tt := range []struct {
		layer, op string
		shape     []int
		weights   [][]int
		attrs     graph.Attrs
	}{
		{"{op: conv, filters: 5}", "CONV_2D", []int{1, 8, 6, 5}, [][]int{{5, 1, 1, 4}, {5}}, graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "dilation_h_factor": int64(1), "fused_activation_function": "NONE"}},
		{"{op: conv, filters: 5, kernel: 3, stride: [2, 4], activation: relu6}", "CONV_2D", []int{1, 4, 2, 5}, [][]int{{5, 3, 3, 4}, {5}}, graph.Attrs{"stride_h": int64(2), "stride_w": int64(4), "fused_activation_function": "RELU6"}},
		{"{op: conv, filters: 5, kernel: [3, 2], padding: valid}", "CONV_2D", []int{1, 6, 5, 5}, [][]int{{5, 3, 2, 4}, {5}}, graph.Attrs{"padding": "VALID"}},
		{"{op: conv, filters: 5, kernel: 3, padding: valid, stride: 2, dilation: [2, 1]}", "CONV_2D", []int{1, 2, 2, 5}, nil, graph.Attrs{"dilation_h_factor": int64(2), "dilation_w_factor": int64(1)}},
		{"{op: conv, filters: 1, kernel: [8, 6], padding: valid}", "CONV_2D", []int{1, 1, 1, 1}, nil, nil},
		{"{op: depthwise, kernel: 3}", "DEPTHWISE_CONV_2D", []int{1, 8, 6, 4}, [][]int{{1, 3, 3, 4}, {4}}, graph.Attrs{"depth_multiplier": int64(1)}},
		{"{op: depthwise, kernel: 3, multiplier: 2, stride: 3}", "DEPTHWISE_CONV_2D", []int{1, 3, 2, 8}, [][]int{{1, 3, 3, 8}, {8}}, graph.Attrs{"depth_multiplier": int64(2), "stride_w": int64(3)}},
		{"{op: transpose_conv, filters: 3, kernel: 3, stride: 2}", "TRANSPOSE_CONV", []int{1, 16, 12, 3}, [][]int{{4}, {3, 3, 3, 4}, {3}}, graph.Attrs{"padding": "SAME", "stride_h": int64(2)}},
		{"{op: transpose_conv, filters: 3, kernel: [3, 9], stride: [2, 1], padding: valid}", "TRANSPOSE_CONV", []int{1, 17, 14, 3}, nil, graph.Attrs{"stride_w": int64(1)}},
		{"{op: dense, units: 7}", "FULLY_CONNECTED", []int{1, 8, 6, 7}, [][]int{{7, 4}, {7}}, graph.Attrs{"keep_num_dims": true, "weights_format": "DEFAULT"}},
		{"{op: dense, units: 7, bias: false, activation: relu}", "FULLY_CONNECTED", []int{1, 8, 6, 7}, [][]int{{7, 4}}, graph.Attrs{"fused_activation_function": "RELU"}},
		{"{op: avg_pool}", "AVERAGE_POOL_2D", []int{1, 1, 1, 4}, nil, graph.Attrs{"filter_height": int64(8), "filter_width": int64(6), "stride_h": int64(8), "stride_w": int64(6), "padding": "VALID"}},
		{"{op: max_pool, kernel: [2, 3]}", "MAX_POOL_2D", []int{1, 4, 2, 4}, nil, graph.Attrs{"filter_height": int64(2), "filter_width": int64(3), "stride_h": int64(2), "stride_w": int64(3)}},
		{"{op: max_pool, kernel: 3, stride: 1}", "MAX_POOL_2D", []int{1, 6, 4, 4}, nil, graph.Attrs{"stride_h": int64(1)}},
		{"{op: max_pool, kernel: 3, padding: same}", "MAX_POOL_2D", []int{1, 3, 2, 4}, nil, graph.Attrs{"padding": "SAME"}},
		{"{op: mean}", "MEAN", []int{1, 4}, [][]int{{2}}, graph.Attrs{"keep_dims": false}},
		{"{op: mean, keep_dims: true}", "MEAN", []int{1, 1, 1, 4}, nil, graph.Attrs{"keep_dims": true}},
		{"{op: mean, axis: -1}", "MEAN", []int{1, 8, 6}, [][]int{{1}}, nil},
		{"{op: add, from: [prev, prev], activation: relu}", "ADD", []int{1, 8, 6, 4}, nil, graph.Attrs{"fused_activation_function": "RELU"}},
		{"{op: sub, from: [prev, input]}", "SUB", []int{1, 8, 6, 4}, nil, nil},
		{"{op: mul, from: [input, block]}", "MUL", []int{1, 8, 6, 4}, nil, nil},
		{"{op: concat, from: [prev, prev, prev]}", "CONCATENATION", []int{1, 8, 6, 12}, nil, graph.Attrs{"axis": int64(3)}},
		{"{op: concat, from: [prev, prev], axis: 1}", "CONCATENATION", []int{1, 16, 6, 4}, nil, graph.Attrs{"axis": int64(1)}},
		{"{op: reshape, shape: [2, -1, 3]}", "RESHAPE", []int{2, 32, 3}, [][]int{{3}}, nil},
		{"{op: reshape, shape: [192]}", "RESHAPE", []int{192}, [][]int{{1}}, nil},
		{"{op: flatten}", "RESHAPE", []int{1, 192}, [][]int{{2}}, nil},
		{"{op: transpose, perm: [0, 3, 1, 2]}", "TRANSPOSE", []int{1, 4, 8, 6}, [][]int{{4}}, nil},
		{"{op: pad, pad: [[0, 0], [1, 2], [3, 0], [0, 4]]}", "PAD", []int{1, 11, 9, 8}, [][]int{{4, 2}}, nil},
		{"{op: resize}", "RESIZE_BILINEAR", []int{1, 16, 12, 4}, [][]int{{2}}, graph.Attrs{"align_corners": false, "half_pixel_centers": true}},
		{"{op: resize, stride: [1, 64]}", "RESIZE_BILINEAR", []int{1, 8, 384, 4}, nil, nil},
		{"{op: softmax}", "SOFTMAX", []int{1, 8, 6, 4}, nil, graph.Attrs{"beta": float32(1)}},
		{"{op: leaky_relu}", "LEAKY_RELU", []int{1, 8, 6, 4}, nil, graph.Attrs{"alpha": float32(0.1)}},
		{"{op: leaky_relu, alpha: 0.5}", "LEAKY_RELU", []int{1, 8, 6, 4}, nil, graph.Attrs{"alpha": float32(0.5)}},
		{"{op: tanh}", "TANH", []int{1, 8, 6, 4}, nil, graph.Attrs{}},
	} {
		for _, typ := range []string{"", "type: int8\n"} {
			m := model(t, typ+head+tt.layer+"]")
			n, out := last(m)
			if n.Op != tt.op || !slices.Equal(out.Shape, tt.shape) {
				t.Errorf("%s%s: %s to %v, want %s to %v", typ, tt.layer, n.Op, out.Shape, tt.op, tt.shape)
			}
			var weights [][]int
			for _, id := range n.Inputs {
				if id >= 0 && m.Main().Values[id].Const != nil {
					weights = append(weights, m.Main().Values[id].Shape)
				}
			}
			if tt.weights != nil && !cmp.Equal(weights, tt.weights) {
				t.Errorf("%s%s: constants %v, want %v", typ, tt.layer, weights, tt.weights)
			}
			for k, want := range tt.attrs {
				if n.Attrs[k] != want {
					t.Errorf("%s%s: %s is %v, want %v", typ, tt.layer, k, n.Attrs[k], want)
				}
			}
			if want := map[string]tensor.Type{"": tensor.Float32, "type: int8\n": tensor.Int8}[typ]; out.Type != want || (out.Quant != nil) != (typ != "") {
				t.Errorf("%s%s: %v, quantised %v", typ, tt.layer, out.Type, out.Quant)
			}
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	// What the constants of layers hold.
	for layer, want := range map[string][]int32{
		"{op: transpose, perm: [0, 3, 1, 2]}": {0, 3, 1, 2}, "{op: reshape, shape: [2, -1, 3]}": {2, 32, 3}, "{op: flatten}": {-1, 192}, "{op: mean}": {1, 2}, "{op: mean, axis: -2}": {2}, "{op: resize, stride: [2, 3]}": {16, 18},
		"{op: pad, pad: [[0, 0], [1, 2], [3, 0], [0, 4]]}": {0, 0, 1, 2, 3, 0, 0, 4},
	} {
		m := model(t, head+layer+"]")
		n, _ := last(m)
		if got := tensor.Of[int32](m.Main().Values[n.Inputs[1]].Const); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", layer, got, want)
		}
	}
}

// TestScales has the quantisation of results: spans by hand, 255 steps.
func TestScales(t *testing.T) {
	t.Parallel()
	for layer, want := range map[string][2]float64{
		"{op: conv, filters: 1}": {12. / 255, 0}, "{op: conv, filters: 1, activation: relu}": {6. / 255, -128}, "{op: conv, filters: 1, activation: relu6}": {6. / 255, -128}, "{op: softmax}": {1. / 256, -128}, "{op: logistic}": {1. / 256, -128},
		"{op: tanh}": {1. / 128, 0}, "{op: relu}": {6. / 255, -128}, "{op: add, from: [prev, prev]}": {16. / 255, 0}, "{op: add, from: [prev, prev], activation: relu}": {8. / 255, -128}, "{op: max_pool, kernel: 2}": {4. / 255, 0}, "{op: hard_swish}": {4. / 255, 0},
	} {
		_, out := last(model(t, "type: int8\ninput: {shape: [1, 4, 4, 2]}\nlayers: ["+layer+"]"))
		if q := out.Quant; len(q.Scale) != 1 || !(math.Abs(float64(q.Scale[0])-want[0]) < 1e-7) || float64(q.Zero[0]) != want[1] {
			t.Errorf("%s: %+v, want %v", layer, q, want)
		}
	}
	m := model(t, "type: int8\ninput: {shape: [1, 4, 4, 2]}\nlayers: [{op: depthwise, kernel: 3, multiplier: 2}]")
	n, _ := last(m)
	v := m.Main().Values
	x, w, b := v[n.Inputs[0]].Quant, v[n.Inputs[1]].Quant, v[n.Inputs[2]].Quant
	if w.Axis != 3 || len(w.Scale) != 4 || len(b.Scale) != 4 || v[n.Inputs[2]].Type != tensor.Int32 {
		t.Fatalf("weights %+v, bias %+v", w, b)
	}
	dev := math.Sqrt(2. / 9) // nine inputs of an output: by He's rule
	for i := range 4 {
		if b.Scale[i] != x.Scale[0]*w.Scale[i] || w.Zero[i] != 0 || float64(w.Scale[i]) < dev*4/127*.75 || float64(w.Scale[i]) > dev*4/127*1.25 {
			t.Errorf("channel %d: weights %v, bias %v, input %v", i, w.Scale[i], b.Scale[i], x.Scale[0])
		}
	}
}

// TestNames of a network, of layers within and after blocks, and of values that would have the
// same.
func TestNames(t *testing.T) {
	t.Parallel()
	m := model(t, `
seed: 7
input: {shape: [1, 2, 2, 2], name: x}
layers:
  - {op: relu, name: a}
  - repeat: 2
    name: stage
    layers:
      - {op: relu6, name: a}
      - {op: add, from: [a, block]}
  - {op: sub, from: [stage, a]}
  - {op: mul, from: [x, prev]}
`)
	g := m.Main()
	var got []string
	for _, n := range g.Nodes {
		s := n.Op + ":"
		for _, id := range append(slices.Clone(n.Inputs), n.Outputs...) {
			s += " " + g.Values[id].Name
		}
		got = append(got, s)
	}
	want := []string{"RELU: x a", "RELU6: a a_2", "ADD: a_2 a add", "RELU6: add a_3", "ADD: a_3 add add_2", "SUB: add_2 a sub", "MUL: x sub mul"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m.Name != "net" || g.Name != "net" || m.Format != "tflite" || m.IRVersion != 3 || !slices.Equal(g.Inputs, []int{0}) || g.Values[g.Outputs[0]].Name != "mul" {
		t.Errorf("model %q of format %s, output %v", m.Name, m.Format, g.Outputs)
	}
	if named := model(t, "name: other\ninput: {shape: [1]}\nlayers: [{op: relu}]"); named.Name != "other" || named.Main().Values[0].Name != "input" {
		t.Errorf("name %q", named.Name)
	}
	weights := func(seed int) []float32 {
		m := model(t, fmt.Sprintf("seed: %d\ninput: {shape: [1, 64]}\nlayers: [{op: dense, units: 64}]", seed))
		n, _ := last(m)
		return tensor.Of[float32](m.Main().Values[n.Inputs[1]].Const)
	}
	a := weights(1)
	if !slices.Equal(a, weights(1)) || slices.Equal(a, weights(2)) {
		t.Error("weights follow the seed")
	}
	var sum, squares float64
	for _, w := range a {
		sum += float64(w)
		squares += float64(w) * float64(w)
	}
	// 4096 draws of deviation sqrt(2/64) = 0.177: five times the errors of mean and deviation.
	if n := float64(len(a)); !(math.Abs(sum/n) < 5*.177/64) || !(math.Abs(math.Sqrt(squares/n)-math.Sqrt(2./64)) < 5*.177/90) {
		t.Errorf("mean %v, deviation %v", sum/n, math.Sqrt(squares/n))
	}
}

// TestCompound counts what the larger layers are made of.
func TestCompound(t *testing.T) {
	t.Parallel()
	ops := func(m *graph.Model) string {
		var out []string
		for _, n := range m.Main().Nodes {
			out = append(out, n.Op)
		}
		return strings.Join(out, " ")
	}
	for _, typ := range []string{"", "type: int8\n"} {
		m := model(t, typ+"input: {shape: [1, 3, 8]}\nlayers: [{op: layer_norm}]")
		if _, out := last(m); ops(m) != "MEAN SUB MUL MEAN ADD RSQRT MUL MUL ADD" || !slices.Equal(out.Shape, []int{1, 3, 8}) {
			t.Errorf("layer_norm: %s to %v", ops(m), out.Shape)
		}
		m = model(t, typ+"input: {shape: [1, 3, 8]}\nlayers: [{op: attention, heads: 2}]")
		split := "FULLY_CONNECTED RESHAPE TRANSPOSE "
		if _, out := last(m); ops(m) != split+split+split+"BATCH_MATMUL MUL SOFTMAX BATCH_MATMUL TRANSPOSE RESHAPE FULLY_CONNECTED" || !slices.Equal(out.Shape, []int{1, 3, 8}) {
			t.Errorf("attention: %s to %v", ops(m), out.Shape)
		}
		g := m.Main()
		for i, want := range map[int][]int{1: {1, 3, 2, 4}, 2: {1, 2, 3, 4}, 9: {1, 2, 3, 3}, 12: {1, 2, 3, 4}} {
			if got := g.Values[g.Nodes[i].Outputs[0]].Shape; !slices.Equal(got, want) {
				t.Errorf("attention, node %d: %v, want %v", i, got, want)
			}
		}
		if g.Nodes[9].Attrs["adj_y"] != true || g.Nodes[12].Attrs["adj_y"] != false {
			t.Error("products of attention")
		}
		m = model(t, typ+"input: {shape: [2, 3, 8]}\nlayers: [{op: lstm, units: 5}]")
		n, out := last(m)
		if n.Op != "UNIDIRECTIONAL_SEQUENCE_LSTM" || !slices.Equal(out.Shape, []int{2, 3, 5}) || len(n.Inputs) != 24 {
			t.Fatalf("lstm: %s to %v of %d inputs", n.Op, out.Shape, len(n.Inputs))
		}
		for i, id := range n.Inputs {
			want := map[bool][]int{i >= 1 && i <= 4: {5, 8}, i >= 5 && i <= 8: {5, 5}, i >= 12 && i <= 15: {5}, i == 18 || i == 19: {2, 5}, i == 0: {2, 3, 8}}[true]
			if (id < 0) != (want == nil) || id >= 0 && !slices.Equal(m.Main().Values[id].Shape, want) {
				t.Errorf("lstm, input %d is %d, want shape %v", i, id, want)
			}
			if id >= 0 && m.Main().Values[id].Variable != (i == 18 || i == 19) {
				t.Errorf("lstm, input %d keeps its value: %v", i, m.Main().Values[id].Variable)
			}
		}
	}
}

func TestRefusedLayers(t *testing.T) {
	t.Parallel()
	const head = "input: {shape: [1, 8, 6, 4]}\nlayers:\n"
	line := func(s string) string { return head + "  - " + s }
	for want, text := range map[string]string{
		"line 3: conv: kernel, stride and dilation are 1 or more":                line("{op: conv, filters: 1, kernel: -1}"),
		"line 3: conv: kernel, stride and dilation are 1 or more ":               line("{op: conv, filters: 1, stride: [1, -2]}"),
		"line 3: conv: kernel [9 1] does not fit into 8x6":                       line("{op: conv, filters: 1, kernel: [9, 1], padding: valid}"),
		"line 3: conv: kernel [1 7] does not fit":                                line("{op: conv, filters: 1, kernel: [1, 7], padding: valid}"),
		"line 3: transpose_conv: filters is missing":                             line("{op: transpose_conv}"),
		"line 3: depthwise: multiplier -1":                                       line("{op: depthwise, multiplier: -1}"),
		"line 3: depthwise: multiplier 65537":                                    line("{op: depthwise, multiplier: 65537}"),
		"line 3: dense: units is missing":                                        line("{op: dense}"),
		"line 3: mean: axis 4 is outside rank 4":                                 line("{op: mean, axis: 4}"),
		"line 3: mean: axis -1 is outside rank 4":                                line("{op: mean, axis: -5}"),
		"line 3: concat: 1 inputs: name them":                                    line("{op: concat}"),
		"line 3: relu: 2 inputs":                                                 line("{op: relu, from: [prev, prev]}"),
		"line 3: add: 3 inputs":                                                  line("{op: add, from: [prev, prev, prev]}"),
		"line 3: reshape: shape [5] does not hold the 192 elements of [1 8 6 4]": line("{op: reshape, shape: [5]}"),
		"line 3: reshape: shape [] does not hold":                                line("{op: reshape}"),
		"shape [-1 -1]: one dimension may be -1":                                 line("{op: reshape, shape: [-1, -1]}"),
		"shape [0]: one dimension may be -1, the others are 1 or more":           line("{op: reshape, shape: [0]}"),
		"shape [-1 5] does not hold":                                             line("{op: reshape, shape: [-1, 5]}"),
		"perm [0 1 2] does not order 4 axes":                                     line("{op: transpose, perm: [0, 1, 2]}"),
		"perm [0 1 2 2] does not order":                                          line("{op: transpose, perm: [0, 1, 2, 2]}"),
		"pad has 1 entries for 4 axes":                                           line("{op: pad, pad: [[0, 0]]}"),
		"pad entry [0]: two numbers":                                             line("{op: pad, pad: [[0, 0], [0], [0, 0], [0, 0]]}"),
		"pad entry [0 -1]":                                                       line("{op: pad, pad: [[0, 0], [0, -1], [0, 0], [0, 0]]}"),
		"a stride (the factor, 1 to 64)":                                         line("{op: resize, stride: 65}"),
		"a stride (the factor, 1 to 64) ":                                        line("{op: resize, stride: [1, -1]}"),
		"an input [batch, time, features] and units":                             line("{op: lstm, units: 3}"),
		"multiple of -1 heads":                                                   "input: {shape: [1, 4, 8]}\nlayers: [{op: attention, heads: -1}]",
		"an input [batch, time, features] and units ":                            "input: {shape: [1, 4, 8]}\nlayers: [{op: lstm}]",
		"input has shape [1 4], an image [N,H,W,C] was expected":                 "input: {shape: [1, 4]}\nlayers: [{op: conv, filters: 1}]",
		"input: shape [1 0] has a dimension below 1":                             "input: {shape: [1, 0]}\nlayers: [{op: relu}]",
		"shapes [1 8 6 4] and [1 8 6 2] differ beside axis 1":                    head + "  - {op: conv, filters: 2}\n  - {op: concat, from: [input, prev], axis: 1}",
		"inputs have ranks 4 and 2":                                              head + "  - {op: flatten}\n  - {op: concat, from: [input, prev]}",
		"inputs are quantised differently":                                       "type: int8\n" + head + "  - {op: conv, filters: 2}\n  - {op: concat, from: [input, prev]}",
		"line 3: a block has layers and no op":                                   line("{op: relu, repeat: 2}"),
		"line 3: a block has layers and no op ":                                  line("{repeat: 2}"),
		"line 3: repeat 1001: use 1 to 1000":                                     line("{repeat: 1001, layers: [{op: relu}]}"),
		"line 3: repeat -1: use 1 to 1000":                                       line("{repeat: -1, layers: [{op: relu}]}"),
		"line 3: a layer is written as {op: conv":                                line("relu"),
		`line 3: "x" is neither a number nor [height, width]`:                    line("{op: conv, kernel: x}"),
		`no layer named "a" before this one`:                                     head + "  - {repeat: 1, layers: [{op: relu, name: a}]}\n  - {op: add, from: [a, prev]}",
		"weights of shape [1073741825 1 1 4] are empty or too large":             line("{op: conv, filters: 1073741825}"),
		"description is larger than 1048576 bytes":                               line("{op: relu}") + strings.Repeat("#", 1<<20),
	} {
		_, err := netspec.Read(strings.NewReader(text), "net.yaml")
		if want = strings.TrimSuffix(want, " "); err == nil || !strings.HasPrefix(err.Error(), "net.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for text, want := range map[string]bool{"layers: []": true, "name: x\nlayers: 3": true, "layer: []": false, "[layers]": false, "": false, "a: [": false, "layers": false} {
		if netspec.Describes(strings.NewReader(text)) != want {
			t.Errorf("%q describes a network: %v", text, !want)
		}
	}
	if ops := netspec.Ops(); len(ops) == 0 || !slices.IsSorted(ops) {
		t.Errorf("%d kinds of layers: %v", len(ops), ops)
	}
}

// TestPlainErrors names what is wrong in the terms of a description, and only the first of many.
func TestPlainErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1":                             `line 1: unknown key "a"`,
		"a: 1\nb: 1\nc: 1\nd: 1\ne: 1":     `line 1: unknown key "a"; line 2: unknown key "b"; line 3: unknown key "c"; 2 more`,
		"layers: {}":                       "line 1: a map, expected a list of layers",
		"input: 7":                         "line 1: a number, expected a map with name and shape",
		"seed: x":                          "line 1: a text, expected a number that is at least 0",
		"name: [1]":                        "line 1: a list, expected a text",
		"input: {shape: [1, x]}":           "line 1: a text, expected a number",
		"input: {shape: [1], size: 3}":     `line 1: unknown key "size"`,
		"layers: [{op: conv, filters: x}]": "line 1: a text, expected a number",
	} {
		_, err := netspec.Parse(strings.NewReader(text))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, expected %s", text, err, want)
		}
	}
}

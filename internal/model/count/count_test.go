package count_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// x makes a float32 tensor without elements.
func x(shape ...int) *tensor.Tensor { return &tensor.Tensor{Type: tensor.Float32, Shape: shape} }

func list(ts ...*tensor.Tensor) []*tensor.Tensor { return ts }

func ints(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

type numbers struct{ Ops, MACs, Executed any }

func TestCount(t *testing.T) {
	t.Parallel()
	lite, on, ms := graph.TFLite, graph.ONNX, graph.Microsoft
	valid := graph.Attrs{"padding": "VALID", "stride_h": int64(1), "stride_w": int64(1)}
	tests := []struct {
		name   string
		domain string
		op     string
		attrs  graph.Attrs
		in     []*tensor.Tensor
		out    []*tensor.Tensor
		want   numbers
	}{
		// 3x3 outputs of a 3x3 window over 3x3: 9*9 taps of which 49 meet the input.
		{"conv same", lite, "CONV_2D", graph.Attrs{"padding": "SAME", "fused_activation_function": "RELU6"}, list(x(2, 3, 3, 4), x(5, 3, 3, 4), x(5)), list(x(2, 3, 3, 5)), numbers{2*3240 + 90 + 180, 2 * 9 * 5 * 36, 2 * 49 * 5 * 4}},
		{"conv valid", lite, "CONV_2D", valid, list(x(1, 5, 5, 2), x(3, 3, 3, 2)), list(x(1, 3, 3, 3)), numbers{2 * 486, 486, 486}},
		{"conv grouped", lite, "CONV_2D", valid, list(x(1, 3, 3, 4), x(6, 3, 3, 2)), list(x(1, 1, 1, 6)), numbers{2 * 108, 108, 108}},
		{"depthwise", lite, "DEPTHWISE_CONV_2D", graph.Attrs{"padding": "SAME", "stride_h": int64(2), "stride_w": int64(2)}, list(x(1, 4, 4, 3), x(1, 3, 3, 6), x(6)), list(x(1, 2, 2, 6)), numbers{2*216 + 24, 216, 25 * 6}},
		{"transposed", lite, "TRANSPOSE_CONV", graph.Attrs{"padding": "SAME", "stride_h": int64(2), "stride_w": int64(2)}, list(x(4), x(5, 3, 3, 2), x(1, 2, 2, 2)), list(x(1, 4, 4, 5)), numbers{2 * 360, 360, 25 * 2 * 5}},
		{"fully connected", lite, "FULLY_CONNECTED", graph.Attrs{"fused_activation_function": "RELU"}, list(x(3, 10), x(4, 10), x(4)), list(x(3, 4)), numbers{240 + 12 + 12, 120, 120}},
		{"batch matmul, adjoint", lite, "BATCH_MATMUL", graph.Attrs{"adj_x": true}, list(x(2, 7, 3), x(2, 7, 5)), list(x(2, 3, 5)), numbers{420, 210, 210}},
		{"softmax", lite, "SOFTMAX", nil, list(x(2, 10)), list(x(2, 10)), numbers{100, 0, 0}},
		{"reshape", lite, "RESHAPE", nil, list(x(2, 10)), list(x(20)), numbers{0, 0, 0}},
		{"svdf", lite, "SVDF", graph.Attrs{"rank": int64(2)}, list(x(1, 8), x(6, 8), x(6, 5), x(3)), list(x(1, 3)), numbers{2*78 + 3 + 3, 78, 78}},
		{"no rule", lite, "NEW_OPERATOR", nil, list(x(1)), list(x(1)), numbers{}},
		{"data dependent", lite, "UNIQUE", nil, list(x(9)), list(x(-1)), numbers{nil, 0, 0}},
		{"unknown shape", lite, "CONV_2D", valid, list(x(-1, 5, 5, 2), x(3, 3, 3, 2)), list(x(-1, 3, 3, 3)), numbers{}},
		{"missing input", lite, "CONV_2D", valid, list(x(1, 5, 5, 2)), list(x(1, 3, 3, 3)), numbers{}},
		{"low rank", lite, "CONV_2D", valid, list(x(5), x(3)), list(x(1)), numbers{}},
		{"too large", lite, "FULLY_CONNECTED", nil, list(x(1, 1<<30), x(1<<30, 1<<30)), list(x(1<<28, 16)), numbers{}},
		{"custom", graph.TFLiteCustom, "Mystery", nil, list(x(1)), list(x(1)), numbers{}},

		{"Conv 1-D", on, "Conv", graph.Attrs{"pads": []int64{1, 1}}, list(x(1, 2, 4), x(3, 2, 3)), list(x(1, 3, 4)), numbers{2 * 72, 72, 10 * 6}},
		{"Conv grouped, dilated", on, "Conv", graph.Attrs{"group": int64(2), "dilations": []int64{2, 2}}, list(x(1, 4, 5, 5), x(6, 2, 3, 3), x(6)), list(x(1, 6, 1, 1)), numbers{2*108 + 6, 108, 108}},
		{"Conv auto_pad", on, "Conv", graph.Attrs{"auto_pad": "SAME_LOWER"}, list(x(1, 1, 4), x(1, 1, 2)), list(x(1, 1, 4)), numbers{16, 8, 7}},
		{"ConvTranspose", on, "ConvTranspose", graph.Attrs{"strides": []int64{2}, "pads": []int64{1, 1}}, list(x(1, 2, 3), x(2, 4, 4)), list(x(1, 4, 6)), numbers{2 * 96, 96, 80}},
		{"QLinearConv", on, "QLinearConv", nil, list(x(1, 2, 3, 3), x(), x(), x(4, 2, 3, 3), x(), x(), x(), x(), x(4)), list(x(1, 4, 1, 1)), numbers{2*72 + 4 + 16, 72, 72}},
		{"Gemm", on, "Gemm", graph.Attrs{"transA": int64(1)}, list(x(7, 3), x(7, 5), x(5)), list(x(3, 5)), numbers{210 + 15, 105, 105}},
		{"MatMul, vectors", on, "MatMul", nil, list(x(7), x(7)), list(x()), numbers{14, 7, 7}},
		{"MatMulNBits", ms, "MatMulNBits", nil, list(x(2, 3, 64), x(10, 2, 16)), list(x(2, 3, 10)), numbers{2 * 3840, 3840, 3840}},
		{"Einsum product", on, "Einsum", graph.Attrs{"equation": "bij, bjk -> bik"}, list(x(2, 3, 4), x(2, 4, 5)), list(x(2, 3, 5)), numbers{240, 120, 120}},
		{"Einsum ellipsis", on, "Einsum", graph.Attrs{"equation": "...ij,...jk->...ik"}, list(x(2, 3, 4), x(4, 5)), list(x(2, 3, 5)), numbers{240, 120, 120}},
		{"Einsum transposition", on, "Einsum", graph.Attrs{"equation": "ij->ji"}, list(x(3, 4)), list(x(4, 3)), numbers{0, 0, 0}},
		{"Einsum sum", on, "Einsum", graph.Attrs{"equation": "ij->i"}, list(x(3, 4)), list(x(3)), numbers{12, 0, 0}},
		{"Einsum bad", on, "Einsum", graph.Attrs{"equation": "ijk->i"}, list(x(3, 4)), list(x(3)), numbers{}},
		{"LSTM", on, "LSTM", nil, list(x(5, 2, 3), x(1, 16, 3), x(1, 16, 4), x(1, 32)), list(x(5, 1, 2, 4)), numbers{2*1120 + 10*18*4 + 320, 10 * (48 + 64), 1120}},
		{"GRU", on, "GRU", nil, list(x(5, 2, 3), x(2, 12, 3), x(2, 12, 4)), list(x(5, 2, 2, 4)), numbers{2*1680 + 10*14*8, 10 * 2 * (36 + 48), 1680}},
		{"RNN", on, "RNN", nil, list(x(5, 2, 3), x(1, 4, 3), x(1, 4, 4)), list(x(5, 1, 2, 4)), numbers{2*280 + 40, 10 * (12 + 16), 280}},
		{"Attention", on, "Attention", graph.Attrs{"q_num_heads": int64(2), "kv_num_heads": int64(1)}, list(x(1, 3, 8), x(1, 5, 4), x(1, 5, 6)), list(x(1, 3, 12)), numbers{2*300 + 6*30, 2 * 3 * 5 * (4 + 6), 300}},
		{"Attention with past", on, "Attention", nil, list(x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4), nil, x(1, 2, 7, 4)), list(x(1, 2, 3, 4)), numbers{2*576 + 6*72, 2 * 3 * 12 * 8, 576}},
		{"com.microsoft Attention", ms, "Attention", graph.Attrs{"num_heads": int64(2)}, list(x(1, 3, 8), x(8, 24), x(24)), list(x(1, 3, 8)), numbers{2*(576+144) + 6*18 + 72, 576 + 2*9*8, 576 + 144}},
		{"GroupQueryAttention", ms, "GroupQueryAttention", graph.Attrs{"num_heads": int64(4), "kv_num_heads": int64(2)}, list(x(1, 1, 16), x(1, 1, 8), x(1, 1, 8), x(1, 2, 9, 4), x(1, 2, 9, 4)), list(x(1, 1, 16), x(1, 2, 10, 4), x(1, 2, 10, 4)), numbers{640 + 240, 4 * 10 * 8, 320}},
		{"MaxPool", on, "MaxPool", graph.Attrs{"kernel_shape": []int64{2, 2}}, list(x(1, 1, 4, 4)), list(x(1, 1, 2, 2)), numbers{16, 0, 0}},
		{"Resize linear", on, "Resize", graph.Attrs{"mode": "linear"}, list(x(1, 1, 2, 2)), list(x(1, 1, 4, 4)), numbers{16 * 9, 0, 0}},
		{"Resize nearest", on, "Resize", nil, list(x(1, 1, 2, 2)), list(x(1, 1, 4, 4)), numbers{0, 0, 0}},
		{"DFT", on, "DFT", graph.Attrs{"axis": int64(1)}, list(x(1, 16, 2)), list(x(1, 16, 2)), numbers{5 * 16 * 4, 0, 0}},
		{"DFT real, inputs", on, "DFT", nil, list(x(3, 16, 1), nil, ints(1)), list(x(3, 16, 2)), numbers{3 * 5 * 16 * 4 / 2, 0, 0}},
		{"Det", on, "Det", nil, list(x(3, 3)), list(x()), numbers{18, 0, 0}},
		{"If", on, "If", nil, list(x()), list(x(1)), numbers{0, 0, 0}},
		{"Adam", graph.ONNXTraining, "Adam", nil, list(x(), x(), x(5), x(5), x(5), x(5)), list(x(5)), numbers{70, 0, 0}},
		{"linear model", graph.ONNXML, "LinearRegressor", graph.Attrs{"coefficients": make([]float32, 4), "intercepts": make([]float32, 1)}, list(x(3, 4)), list(x(3, 1)), numbers{27, 12, 12}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &graph.Node{Domain: tt.domain, Op: tt.op, Attrs: tt.attrs, Version: 20}
			if tt.name == "DFT" {
				n.Version = 17
			}
			w := count.Count(&graph.Model{}, &graph.Graph{}, n, tt.in, tt.out)
			got := numbers{number(w.Ops), number(w.MACs), number(w.MACsExecuted)}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func number(v *int64) any {
	if v == nil {
		return nil
	}
	return int(*v)
}

func TestTraffic(t *testing.T) {
	t.Parallel()
	w := tensor.New(tensor.Float32, 4, 10)
	axes := ints(1)
	g := &graph.Graph{Values: []*graph.Value{{Type: tensor.Float32}, {Type: tensor.Float32, Const: w}, {Type: tensor.Int64, Const: axes}, {Type: tensor.Float32, Const: w, Sparse: &graph.Sparse{StoredBytes: 20}}}}
	node := func(op string, ids ...int) *graph.Node { return &graph.Node{Op: op, Inputs: ids} }
	tests := []struct {
		name    string
		n       *graph.Node
		in, out []*tensor.Tensor
		want    [4]any // params, weight bytes, read, written
	}{
		{"weights", node("MatMul", 0, 1), list(x(2, 4), w), list(x(2, 10)), [4]any{40, 160, 32 + 160, 80}},
		{"sparse weights", node("MatMul", 0, 3), list(x(2, 4), w), list(x(2, 10)), [4]any{40, 20, 32 + 160, 80}},
		{"axes are not weights", node("Squeeze", 0, 2), list(x(2, 1), axes), list(x(2)), [4]any{0, 0, 8 + 8, 8}},
		{"weights twice", node("MatMul", 1, 1), list(w, w), list(x(4, 4)), [4]any{40, 160, 320, 64}},
		{"look-up", node("Gather", 1, 2), list(w, axes), list(x(1, 10)), [4]any{40, 160, 40 + 8, 40}},
		{"shape only", node("Shape", 0), list(x(9)), list(ints(9)), [4]any{0, 0, 0, 8}},
		{"unknown shape", node("Relu", 0), list(x(-1)), list(x(-1)), [4]any{0, 0, nil, nil}},
		{"absent", node("Clip", 0, -1), list(x(2), nil), list(x(2)), [4]any{0, 0, 8, 8}},
		{"absent output", &graph.Node{Op: "Dropout", Inputs: []int{0}, Outputs: []int{0, -1}}, list(x(2)), list(x(2), nil), [4]any{0, 0, 8, 8}},
		{"an output of which nothing is known", &graph.Node{Op: "NonZero", Inputs: []int{0}, Outputs: []int{0}}, list(x(2)), list(nil), [4]any{0, 0, 8, nil}},
		{"an input of which nothing is known", &graph.Node{Op: "Relu", Inputs: []int{0}, Outputs: []int{0}}, list(nil), list(x(2)), [4]any{0, 0, nil, 8}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := count.Count(&graph.Model{}, g, tt.n, tt.in, tt.out)
			got := [4]any{number(w.Params), number(w.WeightBytes), number(w.BytesRead), number(w.BytesWritten)}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	truth := func(v byte) *tensor.Tensor { return &tensor.Tensor{Type: tensor.Bool, Data: []byte{v}} }
	unknown := &tensor.Tensor{Type: tensor.Bool}
	// Graph 1 passes its condition through Identity; graph 2 computes it.
	m := &graph.Model{Graphs: []*graph.Graph{
		{},
		{Inputs: []int{0, 1}, Outputs: []int{2}, Values: []*graph.Value{{}, {}, {}}, Nodes: []*graph.Node{{Op: "Identity", Inputs: []int{1}, Outputs: []int{2}}}},
		{Inputs: []int{0, 1}, Outputs: []int{2}, Values: []*graph.Value{{}, {}, {}}, Nodes: []*graph.Node{{Op: "Not", Inputs: []int{1}, Outputs: []int{2}}}},
		{Inputs: []int{0, 1}, Outputs: []int{2}, Values: []*graph.Value{{}, {}, {Type: tensor.Bool, Const: truth(1)}}},
	}}
	loop := func(g int) graph.Attrs { return graph.Attrs{"body": graph.GraphRef(g)} }
	tests := []struct {
		name  string
		op    string
		attrs graph.Attrs
		in    []*tensor.Tensor
		want  []any
	}{
		{"if true", "If", graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}, list(truth(1)), []any{0, 1}},
		{"if false", "IF", graph.Attrs{"then_subgraph_index": graph.GraphRef(1), "else_subgraph_index": graph.GraphRef(2)}, list(truth(0)), []any{1, 0}},
		{"if unknown", "If", graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}, list(unknown), []any{nil, nil}},
		{"loop", "Loop", loop(1), list(ints(7), truth(1)), []any{7}},
		{"loop without condition", "Loop", loop(1), list(ints(7), nil), []any{7}},
		{"loop with constant condition", "Loop", loop(3), list(ints(7), nil), []any{7}},
		{"loop that may end", "Loop", loop(2), list(ints(7), truth(1)), []any{nil}},
		{"loop never", "Loop", loop(1), list(ints(7), truth(0)), []any{0}},
		{"loop of unknown length", "Loop", loop(1), list(x(), truth(1)), []any{nil}},
		{"scan", "Scan", graph.Attrs{"body": graph.GraphRef(1), "num_scan_inputs": int64(1)}, list(x(3), x(9, 2)), []any{9}},
		{"while", "WHILE", graph.Attrs{"cond_subgraph_index": graph.GraphRef(1), "body_subgraph_index": graph.GraphRef(2)}, list(x(1)), []any{nil, nil}},
		{"plain", "Add", nil, list(x(1)), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []any
			for _, c := range count.Bodies(m, &graph.Node{Op: tt.op, Attrs: tt.attrs}, tt.in, nil) {
				got = append(got, number(c.Times))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		n    graph.Node
		want string
	}{
		{graph.Node{Domain: graph.TFLite, Op: "CONV_2D", Attrs: graph.Attrs{"padding": "SAME", "stride_w": int64(2), "stride_h": int64(1), "dilation_w_factor": int64(2), "fused_activation_function": "RELU6"}}, "padding:same stride:2x1 dilation:2x1 activation:relu6"},
		{graph.Node{Domain: graph.TFLite, Op: "MEAN", Attrs: graph.Attrs{"keep_dims": true}}, "keep_dims:true"},
		{graph.Node{Op: "Conv", Attrs: graph.Attrs{"kernel_shape": []int64{3, 3}, "strides": []int64{1, 1}, "pads": []int64{1, 1, 1, 1}, "group": int64(8)}}, "kernel:3x3 pads:1,1,1,1 group:8"},
		{graph.Node{Op: "Cast", Attrs: graph.Attrs{"to": int64(7)}}, "to:int64"},
		{graph.Node{Op: "Relu"}, ""},
	}
	for _, tt := range tests {
		if got := words(describe.Options(&tt.n)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.n.Op, got, tt.want)
		}
	}
}

// TestEveryOperatorHasARule holds the rules against what the engine runs and
// against the operators of the ONNX node tests.
func TestEveryOperatorHasARule(t *testing.T) {
	t.Parallel()
	defs := operators.Registry().All()
	for _, d := range defs {
		n := &graph.Node{Domain: d.Domain, Op: d.Name}
		if !count.Has(n) && d.Domain != graph.TFLiteCustom {
			t.Errorf("no rule for %s", n.Key())
		}
	}
	t.Logf("%d definitions of the engine", len(defs))
	for _, r := range material.Table(t, "models", "onnx_node_tests", "onnx_node_tests_by_op.csv") {
		n := &graph.Node{Op: r["op"]}
		if d, o, ok := strings.Cut(r["op"], ":"); ok {
			n.Domain, n.Op = d, o
		}
		if !count.Has(n) {
			t.Errorf("no rule for %s", n.Key())
		}
	}
}

// words writes options as the MLTK profiler does.
func words(options []profile.Option) string {
	var s []string
	for _, o := range options {
		s = append(s, o.Key+":"+o.Value)
	}
	return strings.Join(s, " ")
}

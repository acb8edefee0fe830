package engine_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// TestKernelNames checks the kernel names that steps report for operators with several kernels,
// in pure Go.
func TestKernelNames(t *testing.T) {
	defer simd.Use(simd.Go)()
	f32 := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
		x, w  *tensor.Tensor
		fixed bool // the weights are constant
		want  string
	}{
		{"Conv", nil, f32(1, 3, 9, 9), f32(4, 3, 5, 5), true, "im2col"},
		{"Conv", graph.Attrs{"group": int64(8)}, f32(1, 8, 9, 9), f32(8, 1, 3, 3), true, "depthwise"},
		{"Conv", nil, f32(1, 32, 16, 16), f32(32, 32, 3, 3), true, "winograd"},
		{"Conv", nil, f32(1, 3, 9, 9), f32(4, 3, 5, 5), false, "unpacked"},
		{"Conv", nil, f32(1, 3, 4, 4, 4), f32(4, 3, 3, 3, 3), true, "im2col"},
		{"MatMul", nil, f32(8, 4), f32(4, 4), true, "packed"},
		{"MatMul", nil, f32(8, 4), f32(4, 4), false, "unpacked"},
		{"MatMul", nil, f32(1, 4), f32(4, 4), false, "thin"},
		{"Gemm", nil, f32(8, 4), f32(4, 4), true, "packed"},
		{"Add", nil, f32(8, 4), f32(4), true, "plain"},
	} {
		g := &graph.Graph{
			Values: []*graph.Value{{ID: 0, Name: "x", Type: tensor.Float32}, {ID: 1, Name: "w", Type: tensor.Float32}, {ID: 2, Name: "y"}},
			Inputs: []int{0}, Outputs: []int{2},
			Nodes: []*graph.Node{{Op: tt.op, Version: 13, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: tt.attrs}},
		}
		in := []*tensor.Tensor{tt.x}
		if tt.fixed {
			g.Values[1].Const = tt.w
		} else {
			g.Inputs, in = []int{0, 1}, append(in, tt.w)
		}
		s, err := engine.New(&graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}}, in, engine.Options{Registry: operators.Registry()})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Steps()[0]; got.Kernel != tt.want {
			t.Errorf("%s of %v and %v: kernel %q, want %q (%v)", tt.op, tt.x.Shape, tt.w.Shape, got.Kernel, tt.want, got.Err)
		}
		s.Close()
	}
}

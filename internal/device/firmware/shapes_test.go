package firmware_test

import (
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/device/firmware"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestMoves has operators that move elements of every width.
func TestMoves(t *testing.T) {
	t.Parallel()
	n := newNet(6)
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Float32} {
		var q *tensor.Quant
		if typ.Bits() <= 16 {
			q = affine(int64(typ.Bits()-9), 0.1) // -1 and 7: what padding is filled with
			if typ == tensor.Uint8 {
				q = affine(77, 0.1)
			}
		}
		in := func(shape ...int) int { return n.input(typ, q, shape...) }
		one := func(op string, attrs graph.Attrs, ins ...int) { n.node(op, attrs, typ, q, ins...) }
		one("RESHAPE", nil, in(2, 3, 4), n.ints(4, 6))
		one("TRANSPOSE", nil, in(2, 3, 4, 5), n.ints(3, 1, 0, 2))
		one("TRANSPOSE", nil, in(7, 19), n.ints(1, 0))
		one("TRANSPOSE", nil, in(2, 3, 2, 3, 2, 3), n.ints(5, 4, 3, 2, 1, 0))
		one("PAD", nil, in(1, 3, 4, 2), n.ints(0, 0, 1, 2, 3, 0, 0, 1))
		one("MIRROR_PAD", graph.Attrs{"mode": "REFLECT"}, in(3, 4, 2), n.ints(2, 1, 1, 2, 0, 0))
		one("MIRROR_PAD", graph.Attrs{"mode": "SYMMETRIC"}, in(3, 4), n.ints(3, 3, 0, 4))
		one("CONCATENATION", graph.Attrs{"axis": int64(2)}, in(2, 3, 4), in(2, 3, 1), in(2, 3, 5))
		one("CONCATENATION", graph.Attrs{"axis": int64(-1)}, in(3, 4), n.random(typ, q, 3, 2))
		one("PACK", graph.Attrs{"axis": int64(1), "values_count": int64(3)}, in(4, 5), in(4, 5), in(4, 5))
		one("GATHER", graph.Attrs{"axis": int64(1)}, in(2, 6, 3), n.ints(5, 0, 3, 3, 1))
		one("STRIDED_SLICE", graph.Attrs{"shrink_axis_mask": int64(4)}, in(5, 6, 7), n.ints(1, 5, 3), n.ints(4, 0, 4), n.ints(2, -2, 1))
		one("SLICE", nil, in(5, 6, 7), n.ints(1, 2, 3), n.ints(3, -1, 2))
		one("TILE", nil, in(2, 3), n.ints(2, 3))
		one("SPACE_TO_DEPTH", graph.Attrs{"block_size": int64(2)}, in(1, 4, 6, 3))
		one("DEPTH_TO_SPACE", graph.Attrs{"block_size": int64(2)}, in(1, 2, 3, 8))
		one("SPACE_TO_BATCH_ND", nil, in(1, 4, 5, 2), n.ints(2, 3), n.ints(0, 0, 1, 0))
		one("BATCH_TO_SPACE_ND", nil, in(6, 2, 2, 2), n.ints(2, 3), n.ints(0, 0, 1, 0))
		one("RESIZE_NEAREST_NEIGHBOR", graph.Attrs{"half_pixel_centers": true}, in(2, 3, 4, 3), n.ints(7, 9))
		one("REVERSE_V2", nil, in(2, 3, 4), n.ints(1))
		one("EXPAND_DIMS", nil, in(2, 3), n.scalar(1))
		one("BROADCAST_TO", nil, in(3, 1, 2), n.ints(2, 3, 4, 2))
		n.nodes("SPLIT", graph.Attrs{"num_splits": int64(3)}, typ, q, 3, n.scalar(1), in(2, 6, 3))
		n.nodes("UNPACK", graph.Attrs{"num": int64(3), "axis": int64(1)}, typ, q, 3, in(2, 3, 4))
	}
	// More elements than a byte numbers, in another order; and inputs that a join rescales.
	n.node("TRANSPOSE", nil, tensor.Int8, affine(0, 1), n.input(tensor.Int8, affine(0, 1), 40, 50, 41), n.ints(2, 0, 1))
	n.node("CONCATENATION", graph.Attrs{"axis": int64(1)}, tensor.Int8, affine(3, 0.1), n.input(tensor.Int8, affine(-5, 0.07), 3, 4), n.input(tensor.Int8, affine(3, 0.1), 3, 2), n.input(tensor.Int8, affine(9, 0.3), 3, 1))
	try(t, n)
}

// TestFunctions has functions of one element, and rows.
func TestFunctions(t *testing.T) {
	t.Parallel()
	n := newNet(7)
	for _, a := range activations[:3] {
		for _, z := range a.zeros {
			x := n.input(a.t, affine(z, 0.05), 3, 7)
			wide := a.t == tensor.Int16
			for _, op := range []string{"RELU", "RELU6", "RELU_N1_TO_1"} {
				n.node(op, nil, a.t, affine(a.zeros[0], 0.06), x)
			}
			zero8, scale := int64(-128), float32(1./256)
			if wide {
				zero8, scale = 0, 1./32768
			}
			if a.t != tensor.Uint8 {
				n.node("LOGISTIC", nil, a.t, affine(zero8, scale), x)
				n.node("TANH", nil, a.t, affine(0, scale*2), x)
			}
			if !wide {
				for _, op := range []string{"HARD_SWISH", "LEAKY_RELU", "ELU", "GELU", "ABS", "SQRT", "EXP", "NEG"} {
					n.node(op, graph.Attrs{"alpha": float32(0.3)}, a.t, affine(z, 0.06), x)
				}
				// What only a conversion to codes reads is part of a table.
				elu := n.node("ELU", nil, tensor.Float32, nil, n.node("DEQUANTIZE", nil, tensor.Float32, nil, x))
				n.g.Outputs = n.g.Outputs[:len(n.g.Outputs)-2]
				n.node("QUANTIZE", nil, a.t, affine(z, 0.07), elu)
			}
			if wide {
				for _, op := range []string{"LEAKY_RELU", "ELU", "GELU", "EXP", "SIN"} {
					n.node(op, graph.Attrs{"alpha": float32(0.3)}, a.t, affine(0, 0.003), n.input(a.t, affine(0, 0.0005), 3, 700))
				}
			}
			n.node("SOFTMAX", graph.Attrs{"beta": float32(1)}, a.t, affine(zero8, scale), x)
			n.node("SOFTMAX", graph.Attrs{"beta": float32(0.02)}, a.t, affine(zero8, scale), n.input(a.t, affine(z, 0.3), 2, 300))
			n.node("DEQUANTIZE", nil, tensor.Float32, nil, x)
			n.node("QUANTIZE", nil, a.t, affine(z, 0.25), n.input(tensor.Float32, nil, 5, 60))
			for _, to := range activations[:3] {
				n.node("QUANTIZE", nil, to.t, affine(to.zeros[0], 0.02), x)
			}
			n.node("QUANTIZE", nil, tensor.Int32, affine(2, 0.001), x)
		}
	}
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Int16} {
		for _, corners := range []bool{false, true} {
			attrs := graph.Attrs{"align_corners": corners, "half_pixel_centers": !corners}
			n.node("RESIZE_BILINEAR", attrs, typ, affine(0, 0.1), n.input(typ, affine(0, 0.1), 2, 3, 4, 3), n.ints(7, 5))
		}
		for _, adj := range []bool{false, true} {
			x, y := []int{2, 1, 3, 4}, []int{3, 4, 5}
			if adj {
				x, y = []int{2, 1, 4, 3}, []int{3, 5, 4}
			}
			q := affine(0, 0.1)
			if typ == tensor.Int8 {
				q = affine(9, 0.1)
			}
			n.node("BATCH_MATMUL", graph.Attrs{"adj_x": adj, "adj_y": adj}, typ, q, n.input(typ, q, x...), n.input(typ, q, y...))
		}
	}
	n.node("BATCH_MATMUL", nil, tensor.Int16, affine(0, 0.1), n.input(tensor.Int16, affine(0, 0.1), 3, 4), n.random(tensor.Int8, affine(0, 0.1), 4, 5))
	n.node("DEQUANTIZE", nil, tensor.Float32, nil, n.input(tensor.Int32, affine(5, 0.1), 9))
	for _, to := range activations[:3] {
		n.node("QUANTIZE", nil, to.t, affine(to.zeros[0], 70000), n.input(tensor.Int32, affine(7, 0.01), 50))
	}
	try(t, n)
}

// TestState has layers with memory, of 8 and 16 bits.
func TestState(t *testing.T) {
	t.Parallel()
	n := newNet(8)
	const in, cells, batch, steps = 5, 6, 2, 3
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Int16} {
		for _, major := range []bool{false, true} {
			q, bias := affine(4, 0.02), tensor.Int32
			if typ == tensor.Int16 {
				q, bias = affine(0, 1./4096), tensor.Int64
			}
			h := affine(-3, 1./128)
			if typ == tensor.Int16 {
				h = affine(0, 1./32768)
			}
			shape := []int{batch, steps, in}
			if major {
				shape = []int{steps, batch, in}
			}
			ins := []int{n.input(typ, q, shape...)}
			for range 4 {
				ins = append(ins, n.random(tensor.Int8, affine(0, 0.01), cells, in))
			}
			for range 4 {
				ins = append(ins, n.random(tensor.Int8, affine(0, 0.01), cells, cells))
			}
			ins = append(ins, -1, -1, -1)
			for range 4 {
				ins = append(ins, n.random(bias, nil, cells))
			}
			ins = append(ins, -1, -1, n.variable(typ, h, batch, cells), n.variable(tensor.Int16, affine(0, 1./2048), batch, cells), -1, -1, -1, -1)
			attrs := graph.Attrs{"time_major": major, "fused_activation_function": "TANH", "cell_clip": map[bool]float32{true: 0.01}[major]}
			n.node("UNIDIRECTIONAL_SEQUENCE_LSTM", attrs, typ, h, ins...)
		}
	}
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Int16} {
		s := affine(0, 0.5)
		ins := []int{
			n.input(tensor.Int8, affine(-7, 0.05), batch, in), n.random(tensor.Int8, affine(0, 0.02), 6, in), n.random(typ, affine(0, 0.01), 6, 4),
			n.random(tensor.Int32, nil, 3), n.variable(typ, s, batch, 24),
		}
		n.node("SVDF", graph.Attrs{"rank": int64(2), "fused_activation_function": "NONE"}, tensor.Int8, affine(5, 40), ins...)
	}
	try(t, n)
}

// TestRefusals lists everything that is missing, each with its layer, and nothing else.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newNet(9)
	f := n.input(tensor.Float32, nil, 1, 4)
	n.node("SOFTMAX", nil, tensor.Float32, nil, f)
	n.node("RELU", nil, tensor.Int8, affine(0, 1), n.input(tensor.Int8, affine(0, 1), 4))
	n.node("NO_SUCH_OPERATOR", nil, tensor.Int8, affine(0, 1), f)
	m := n.model()
	_, err := firmware.Generate(m, firmware.Options{Inputs: inputsOf(m)(0)})
	e, ok := errors.AsType[*firmware.UnsupportedError](err)
	if !ok || len(e.Problems) != 2 || e.Problems[0].Layer != 0 || e.Problems[0].Op != "SOFTMAX" || e.Problems[1].Layer != 2 || e.Problems[1].Op != "NO_SUCH_OPERATOR" {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"2 of the model's operators", "layer 0, SOFTMAX: no kernel for float32 to float32", "layer 2, NO_SUCH_OPERATOR: not supported: unknown operator"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	m.Format = "onnx"
	if _, err := firmware.Generate(m, firmware.Options{}); err == nil || !strings.Contains(err.Error(), "onnx") {
		t.Errorf("an ONNX model: %v", err)
	}
}

// small is a network with most kernels.
func small() *net {
	n := newNet(10)
	q := affine(-1, 0.1)
	conv := graph.Attrs{"padding": "SAME", "fused_activation_function": "RELU"}
	x := n.input(tensor.Int8, q, 1, 6, 6, 4)
	y := n.node("CONV_2D", conv, tensor.Int8, q, x, n.random(tensor.Int8, n.channels(5, 0), 5, 3, 3, 4), n.random(tensor.Int32, nil, 5))
	y = n.node("DEPTHWISE_CONV_2D", conv, tensor.Int8, q, y, n.random(tensor.Int8, n.channels(5, 3), 1, 3, 3, 5), n.random(tensor.Int32, nil, 5))
	y = n.node("PAD", nil, tensor.Int8, q, y, n.ints(0, 0, 1, 1, 1, 1, 0, 0))
	y = n.node("RESHAPE", nil, tensor.Int8, q, y, n.ints(1, 320))
	y = n.node("HARD_SWISH", nil, tensor.Int8, q, y)
	y = n.node("FULLY_CONNECTED", nil, tensor.Int8, q, y, n.random(tensor.Int8, affine(0, 0.02), 7, 320))
	n.node("SOFTMAX", graph.Attrs{"beta": float32(1)}, tensor.Int8, affine(-128, 1./256), y)
	n.g.Outputs = n.g.Outputs[len(n.g.Outputs)-1:]
	return n
}

// TestSameBytes makes a program twice.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	make := func() *firmware.Program {
		m := small().model()
		p, err := firmware.Generate(m, firmware.Options{Inputs: inputsOf(m)(0), SHA256: "0123"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := make(), make()
	if !slices.Equal(slices.Sorted(maps.Keys(a.Files)), slices.Sorted(maps.Keys(b.Files))) {
		t.Error("other files")
	}
	for name := range a.Files {
		if string(a.Files[name]) != string(b.Files[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if a.Inputs[0].Bytes != 144 || a.Outputs[0].Bytes != 7 || len(a.Ops) != 7 || a.Ops[6].Layer != 6 || a.InputBytes != 144 || a.ArenaBytes%16 != 0 {
		t.Errorf("%+v", a)
	}
	try(t, small())
}

// TestCortexM compiles a program, and every kernel, for processors without a warning,
// with and without the agent.
func TestCortexM(t *testing.T) {
	t.Parallel()
	gcc := compiler(t, "arm-none-eabi-gcc")
	m := small().model()
	p, err := firmware.Generate(m, firmware.Options{Inputs: inputsOf(m)(0)})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range allKernels(t) {
		p.Files[name] = data
	}
	dir := write(t, p, "#define OPMETER_IMPLEMENTATION\n#include \"opmeter.h\"\n")
	for _, cpu := range []string{"cortex-m0", "cortex-m3"} {
		for _, agent := range []string{"-DMODEL_NO_AGENT", "-DMODEL_WITH_AGENT"} {
			for _, src := range sources(t, dir) {
				if strings.HasSuffix(src, "main.c") || agent == "-DMODEL_WITH_AGENT" && !strings.HasSuffix(src, "model.c") {
					continue
				}
				args := []string{"-mcpu=" + cpu, "-mthumb", "-O2", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", agent, "-c", src, "-o", filepath.Join(dir, "x.o")}
				if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%s: %v\n%s", filepath.Base(src), err, out)
				}
			}
		}
	}
}

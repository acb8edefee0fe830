package quant

import (
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// bench times the run function alone, on one thread.
func bench(b *testing.B, name string, version int, attrs graph.Attrs, in ...*tensor.Tensor) {
	b.Helper()
	d := op.NewRegistry(allDefs()).Find("", name, version)
	g := &graph.Graph{}
	n := &graph.Node{Op: name, Version: version, Attrs: attrs}
	for i := range in {
		g.Values = append(g.Values, &graph.Value{ID: i, Const: in[i]})
		n.Inputs = append(n.Inputs, i)
	}
	c := &op.Call{Graph: g, Node: n, In: in, Out: []*tensor.Tensor{{}}}
	if err := d.Infer(c); err != nil {
		b.Fatal(err)
	}
	run, err := d.Prepare(c)
	if err != nil {
		b.Fatal(err)
	}
	c.Out[0].Alloc()
	b.SetBytes(int64(in[0].Bytes()))
	b.ReportAllocs()
	for b.Loop() {
		if err := run(c); err != nil {
			b.Fatal(err)
		}
	}
}

func ramp(t tensor.Type, shape ...int) *tensor.Tensor {
	v := make([]float64, tensor.Elements(shape))
	for i := range v {
		v[i] = float64(i%97) - 48
	}
	return number(t, shape, v...)
}

func Benchmark(b *testing.B) {
	x := ramp(tensor.Float32, 1, 64, 56, 56)
	for _, e := range []struct {
		name    string
		op      string
		version int
		attrs   graph.Attrs
		in      []*tensor.Tensor
	}{
		{"add", "Add", 14, nil, []*tensor.Tensor{x, x}},
		{"add scalar", "Add", 14, nil, []*tensor.Tensor{x, ramp(tensor.Float32)}},
		{"add channel", "Add", 14, nil, []*tensor.Tensor{x, ramp(tensor.Float32, 64, 1, 1)}},
		{"add last", "Add", 14, nil, []*tensor.Tensor{x, ramp(tensor.Float32, 56)}},
		{"max", "Max", 13, nil, []*tensor.Tensor{x, x}},
		{"div", "Div", 14, nil, []*tensor.Tensor{x, x}},
		{"less", "Less", 13, nil, []*tensor.Tensor{x, x}},
		{"relu", "Relu", 14, nil, []*tensor.Tensor{x}},
		{"leaky", "LeakyRelu", 16, nil, []*tensor.Tensor{x}},
		{"sigmoid", "Sigmoid", 13, nil, []*tensor.Tensor{x}},
		{"clip", "Clip", 6, graph.Attrs{"min": float32(0), "max": float32(6)}, []*tensor.Tensor{x}},
		{"sqrt", "Sqrt", 13, nil, []*tensor.Tensor{x}},
		{"square", "Pow", 13, nil, []*tensor.Tensor{x, number(tensor.Float32, nil, 2)}},
		{"mean of planes", "ReduceMean", 13, graph.Attrs{"axes": []int64{2, 3}}, []*tensor.Tensor{x}},
		{"mean of channels", "ReduceMean", 13, graph.Attrs{"axes": []int64{1}}, []*tensor.Tensor{x}},
		{"max of planes", "ReduceMax", 13, graph.Attrs{"axes": []int64{2, 3}}, []*tensor.Tensor{x}},
		{"softmax", "Softmax", 13, nil, []*tensor.Tensor{ramp(tensor.Float32, 200, 1000)}},
		{"softmax channels", "Softmax", 13, graph.Attrs{"axis": int64(1)}, []*tensor.Tensor{x}},
		{"quantize", "QuantizeLinear", 13, nil, []*tensor.Tensor{x, number(tensor.Float32, nil, 0.5), number(tensor.Int8, nil, 1)}},
		{"dequantize", "DequantizeLinear", 13, nil, []*tensor.Tensor{ramp(tensor.Int8, 1, 64, 56, 56), number(tensor.Float32, nil, 0.5)}},
		{"cast to int64", "Cast", 13, graph.Attrs{"to": int64(7)}, []*tensor.Tensor{x}},
		{"cast from half", "Cast", 13, graph.Attrs{"to": int64(1)}, []*tensor.Tensor{ramp(tensor.Float16, 1, 64, 56, 56)}},
		{"add half", "Add", 14, nil, []*tensor.Tensor{ramp(tensor.Float16, 1, 64, 56, 56), ramp(tensor.Float16, 1, 64, 56, 56)}},
		{"argmax", "ArgMax", 13, graph.Attrs{"axis": int64(1)}, []*tensor.Tensor{x}},
		{"where", "Where", 16, nil, []*tensor.Tensor{ramp(tensor.Bool, 1, 64, 56, 56), x, x}},
	} {
		b.Run(e.name, func(b *testing.B) { bench(b, e.op, e.version, e.attrs, e.in...) })
	}
}

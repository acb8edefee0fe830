package training

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, []int{len(v)}, v) }

func updates(n int64) *tensor.Tensor { return tensor.From(tensor.Int64, nil, []int64{n}) }

func TestOptimisers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		op    string
		attrs graph.Attrs
		in    []*tensor.Tensor
		want  [][]float32
	}{
		{
			// Two tensors in one step: g = 2 and 4, h = 4 and 25.
			"adagrad", "Adagrad",
			graph.Attrs{"epsilon": float32(1), "decay_factor": float32(.5)},
			[]*tensor.Tensor{f32(3), updates(4), f32(1), f32(2), f32(2), f32(4), f32(0), f32(9)},
			[][]float32{{1 - 2./3}, {2 - 4./6}, {4}, {25}},
		},
		{
			"momentum", "Momentum",
			graph.Attrs{"mode": "standard", "alpha": float32(.5), "beta": float32(9), "norm_coefficient": float32(1)},
			[]*tensor.Tensor{f32(.5), updates(0), f32(1), f32(2), f32(4)},
			[][]float32{{1 - .5*5}, {5}},
		},
		{
			"nesterov", "Momentum",
			graph.Attrs{"mode": "nesterov", "alpha": float32(.5), "beta": float32(2), "norm_coefficient": float32(0)},
			[]*tensor.Tensor{f32(.5), updates(1), f32(1), f32(2), f32(4)},
			[][]float32{{1 - .5*(2+.5*6)}, {6}},
		},
		{
			"adam", "Adam",
			graph.Attrs{"alpha": float32(.5), "beta": float32(.75), "epsilon": float32(0), "norm_coefficient_post": float32(.5)},
			[]*tensor.Tensor{f32(2), updates(1), f32(8), f32(2), f32(0), f32(0)},
			// v = 1, h = 1, rate = 2*sqrt(.25)/.5 = 2
			[][]float32{{.5 * (8 - 2)}, {1}, {1}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := optest.Run(Defs(), optest.Node{Domain: graph.ONNXTraining, Op: tt.op, Version: 1, Attrs: tt.attrs, Outputs: len(tt.want)}, tt.in...)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tt.want {
				if d := cmp.Diff(want, tensor.Of[float32](got[i]), cmpopts.EquateApprox(1e-6, 0)); d != "" {
					t.Errorf("output %d: %s", i, d)
				}
			}
		})
	}
}

// differentiate makes the graph y = Op(Op2(a, b), b) and a call of Gradient on it.
func differentiate(outer, inner string, a, b *tensor.Tensor) *op.Call {
	g := &graph.Graph{}
	for _, name := range []string{"a", "b", "t", "y", "da", "db"} {
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Name: name})
	}
	g.Nodes = []*graph.Node{
		{Index: 0, Op: inner, Inputs: []int{0, 1}, Outputs: []int{2}},
		{Index: 1, Op: outer, Inputs: []int{2, 1}, Outputs: []int{3}},
		{Index: 2, Op: "Gradient", Domain: graph.ONNXTraining, Inputs: []int{0, 1}, Outputs: []int{4, 5}, Attrs: graph.Attrs{"xs": []string{"a", "b"}, "y": "y"}},
	}
	return &op.Call{Graph: g, Node: g.Nodes[2], In: []*tensor.Tensor{a, b}, Out: []*tensor.Tensor{{}, {}}}
}

func TestGradient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outer, inner string
		da, db       []float32
	}{
		{"Add", "Mul", []float32{3, 3}, []float32{1 + 1 + 5 + 1}},          // ab + b
		{"Mul", "Sub", []float32{3, 3}, []float32{1 - 6 + 5 - 6}},          // ab - b²
		{"Div", "Add", []float32{1. / 3, 1. / 3}, []float32{-1./9 - 5./9}}, // a/b + 1
	} {
		t.Run(tt.outer, func(t *testing.T) {
			t.Parallel()
			c := differentiate(tt.outer, tt.inner, f32(1, 5), f32(3)) // b is broadcast
			if err := inferGradient(c); err != nil {
				t.Fatal(err)
			}
			run, err := prepareGradient(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, y := range c.Out {
				y.Alloc()
			}
			if err := run(c); err != nil {
				t.Fatal(err)
			}
			for i, want := range [][]float32{tt.da, tt.db} {
				if d := cmp.Diff(want, tensor.Of[float32](c.Out[i]), cmpopts.EquateApprox(1e-6, 0)); d != "" {
					t.Errorf("output %d: %s", i, d)
				}
			}
		})
	}
	if err := inferGradient(differentiate("Erf", "Add", f32(1), f32(1))); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("derivative without a rule: %v", err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	_, err := optest.Run(Defs(), optest.Node{Domain: graph.ONNXTraining, Op: "Adam", Version: 1}, f32(1), updates(1), f32(1), f32(1, 2), f32(0), f32(0))
	if err == nil {
		t.Error("shapes that differ are taken")
	}
}

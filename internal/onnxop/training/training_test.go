package training

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/optest"
	"github.com/opmeter/opmeter/internal/tensor"
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
			"adagrad", "Adagrad", graph.Attrs{"epsilon": float32(1), "decay_factor": float32(.5)},
			[]*tensor.Tensor{f32(3), updates(4), f32(1), f32(2), f32(2), f32(4), f32(0), f32(9)},
			[][]float32{{1 - 2./3}, {2 - 4./6}, {4}, {25}},
		},
		{
			"momentum", "Momentum", graph.Attrs{"mode": "standard", "alpha": float32(.5), "beta": float32(9), "norm_coefficient": float32(1)},
			[]*tensor.Tensor{f32(.5), updates(0), f32(1), f32(2), f32(4)},
			[][]float32{{1 - .5*5}, {5}},
		},
		{
			"nesterov", "Momentum", graph.Attrs{"mode": "nesterov", "alpha": float32(.5), "beta": float32(2), "norm_coefficient": float32(0)},
			[]*tensor.Tensor{f32(.5), updates(1), f32(1), f32(2), f32(4)},
			[][]float32{{1 - .5*(2+.5*6)}, {6}},
		},
		{
			"adam", "Adam", graph.Attrs{"alpha": float32(.5), "beta": float32(.75), "epsilon": float32(0), "norm_coefficient_post": float32(.5)},
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

func TestRefused(t *testing.T) {
	t.Parallel()
	_, err := optest.Run(Defs(), optest.Node{Domain: graph.ONNXTraining, Op: "Gradient", Version: 1})
	if !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("Gradient: %v", err)
	}
	_, err = optest.Run(Defs(), optest.Node{Domain: graph.ONNXTraining, Op: "Adam", Version: 1}, f32(1), updates(1), f32(1), f32(1, 2), f32(0), f32(0))
	if err == nil {
		t.Error("shapes that differ are taken")
	}
}

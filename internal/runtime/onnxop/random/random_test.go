package random

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func draw(t *testing.T, env *optest.Env, n optest.Node, in ...*tensor.Tensor) []float64 {
	t.Helper()
	n.Version = 22
	out, err := optest.RunEnv(env, Defs(), n, in...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tensor.All[float64](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMoments(t *testing.T) {
	t.Parallel()
	shape := []int64{40000}
	half := tensor.New(tensor.Float32, 40000)
	for i := range tensor.Of[float32](half) {
		tensor.Of[float32](half)[i] = .25
	}
	logits := tensor.From(tensor.Float32, []int{1, 2}, []float32{float32(math.Log(3)), 0})
	for _, tt := range []struct {
		name       string
		node       optest.Node
		in         []*tensor.Tensor
		mean, sdev float64
	}{
		{"normal", optest.Node{Op: "RandomNormal", Attrs: graph.Attrs{"shape": shape, "mean": float32(3), "scale": float32(2)}}, nil, 3, 2},
		{"normal like", optest.Node{Op: "RandomNormalLike", Attrs: graph.Attrs{"dtype": int64(11)}}, []*tensor.Tensor{half}, 0, 1},
		{"uniform", optest.Node{Op: "RandomUniform", Attrs: graph.Attrs{"shape": shape, "low": float32(-1), "dtype": int64(10)}}, nil, 0, 1 / math.Sqrt(3)},
		{"uniform like", optest.Node{Op: "RandomUniformLike"}, []*tensor.Tensor{half}, .5, 1 / math.Sqrt(12)},
		{"bernoulli", optest.Node{Op: "Bernoulli", Attrs: graph.Attrs{"dtype": int64(9)}}, []*tensor.Tensor{half}, .25, math.Sqrt(.25 * .75)},
		{"multinomial", optest.Node{Op: "Multinomial", Attrs: graph.Attrs{"sample_size": int64(40000)}}, []*tensor.Tensor{logits}, .25, math.Sqrt(.25 * .75)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := draw(t, &optest.Env{}, tt.node, tt.in...)
			var sum, squares float64
			for _, x := range v {
				sum += x
				squares += x * x
			}
			n := float64(len(v))
			mean := sum / n
			sdev := math.Sqrt(squares/n - mean*mean)
			if !optest.Within(mean, tt.mean, .03, 0) || !optest.Within(sdev, tt.sdev, .03, 0) {
				t.Errorf("mean %g and deviation %g, want %g and %g", mean, sdev, tt.mean, tt.sdev)
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	n := func(seed float32) optest.Node {
		return optest.Node{Op: "RandomUniform", Attrs: graph.Attrs{"shape": []int64{4}, "seed": seed}}
	}
	env := &optest.Env{}
	first, second := draw(t, env, n(1)), draw(t, env, n(1))
	if cmp.Equal(first, second) {
		t.Error("two runs of a session draw the same numbers")
	}
	if d := cmp.Diff(first, draw(t, &optest.Env{}, n(1))); d != "" {
		t.Errorf("another session draws other numbers: %s", d)
	}
	if cmp.Equal(first, draw(t, &optest.Env{}, n(2))) {
		t.Error("another seed draws the same numbers")
	}
}

package norm

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

// run runs an operator in single and double precision, and returns the former's outputs.
func run(t *testing.T, op string, version int, attrs graph.Attrs, outputs int, want []float64, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	wide := make([]*tensor.Tensor, len(in))
	for i, x := range in {
		if x != nil {
			wide[i] = tensor.New(tensor.Float64, x.Shape...)
			tensor.Fill(wide[i], func(k int) float64 { return tensor.At(x, k) })
		}
	}
	var first []*tensor.Tensor
	for _, use := range [][]*tensor.Tensor{in, wide} {
		out, err := optest.Run(Defs(), optest.Node{Op: op, Version: version, Attrs: attrs, Outputs: outputs}, use...)
		if err != nil {
			t.Fatalf("%s %v: %v", op, attrs, err)
		}
		near(t, op, out[0], want...)
		if !cmp.Equal(out[0].Shape, in[0].Shape) || out[0].Type != use[0].Type {
			t.Errorf("%s: %v of %v", op, out[0].Type, out[0].Shape)
		}
		if first == nil {
			first = out
		}
	}
	return first
}

func near(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	if why := optest.Differ(got, want, 1e-6, 1e-6); why != "" { // some roundings of float32
		t.Errorf("%s: %s", what, why)
	}
}

func refuse(t *testing.T, want, op string, version int, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: version, Attrs: attrs}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", op, err, want)
	}
}

var exact = graph.Attrs{"epsilon": float32(0)}

func with(a graph.Attrs, more graph.Attrs) graph.Attrs {
	out := graph.Attrs{}
	for _, m := range []graph.Attrs{a, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// TestBatchNormalization has two channels of mean 1 and 10, variance 4 and 25.
func TestBatchNormalization(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 2, 1, 2}, 1, 3, 10, 15, 5, -1, 0, 20)
	scale, bias, mean, vari := f32([]int{2}, 1, 10), f32([]int{2}, 0, 100), f32([]int{2}, 1, 10), f32([]int{2}, 4, 25)
	want := []float64{0, 1, 100, 110, 2, -1, 80, 120}
	run(t, "BatchNormalization", 15, exact, 1, want, x, scale, bias, mean, vari)
	run(t, "BatchNormalization", 9, exact, 1, want, x, scale, bias, mean, vari)
	run(t, "BatchNormalization", 6, with(exact, graph.Attrs{"is_test": int64(1)}), 1, want, x, scale, bias, mean, vari)
	run(t, "BatchNormalization", 15, graph.Attrs{"epsilon": float32(5)}, 1, []float64{4. / 3, -4. / 3}, f32([]int{2, 1}, 5, -3), f32([]int{1}, 1), f32([]int{1}, 0), f32([]int{1}, 1), f32([]int{1}, 4))
	run(t, "BatchNormalization", 15, exact, 1, []float64{0, 70, .5, 100}, f32([]int{2, 2}, 1, -5, 2, 10), scale, bias, mean, vari)
	run(t, "BatchNormalization", 15, exact, 1, []float64{1, 2}, f32([]int{2}, 3, 5), f32([]int{1}, 1), f32([]int{1}, 0), f32([]int{1}, 1), f32([]int{1}, 4))
	// Training takes the batch's own: channel 0 has 1 3 5 -1, mean 2, variance 5; channel 1 has
	// 10 15 0 20, mean 11.25, variance 54.6875.
	train := with(exact, graph.Attrs{"training_mode": int64(1), "momentum": float32(.75)})
	r5, r54 := math.Sqrt(5), math.Sqrt(54.6875)
	own := []float64{-1 / r5, 1 / r5, 100 - 12.5/r54, 100 + 37.5/r54, 3 / r5, -3 / r5, 100 - 112.5/r54, 100 + 87.5/r54}
	out := run(t, "BatchNormalization", 15, train, 3, own, x, scale, bias, mean, vari)
	near(t, "running mean", out[1], .75*1+.25*2, .75*10+.25*11.25)
	near(t, "running variance", out[2], .75*4+.25*5, .75*25+.25*54.6875)
	old := run(t, "BatchNormalization", 9, with(exact, graph.Attrs{"momentum": float32(.75)}), 5, own, x, scale, bias, mean, vari)
	near(t, "mean of the batch", old[3], 2, 11.25)
	near(t, "variance of the batch", old[4], 5, 54.6875)
	run(t, "BatchNormalization", 6, exact, 5, own, x, scale, bias, mean, vari)
	refuse(t, "input 3 of shape 3 for 2 channels", "BatchNormalization", 15, nil, x, scale, bias, f32([]int{3}, 1, 2, 3), vari)
	refuse(t, "spatial = 0", "BatchNormalization", 7, graph.Attrs{"spatial": int64(0)}, x, scale, bias, f32([]int{4}, 1, 2, 3, 4), vari)
	refuse(t, "input is a scalar", "BatchNormalization", 15, nil, f32([]int{}, 1), scale, bias, mean, vari)
	refuse(t, "input 4 is missing", "BatchNormalization", 15, nil, x, scale, bias, mean)
}

// TestInstancesAndGroups: 1 3 has mean 2 and deviation 1, 10 30 has 20 and 10.
func TestInstancesAndGroups(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 2, 2}, 1, 3, 10, 30, 5, 9, -7, -3)
	scale, bias := f32([]int{2}, 1, 10), f32([]int{2}, 0, 100)
	each := []float64{-1, 1, 90, 110, -1, 1, 90, 110}
	run(t, "InstanceNormalization", 22, exact, 1, each, x, scale, bias)
	run(t, "GroupNormalization", 21, with(exact, graph.Attrs{"num_groups": int64(2)}), 1, each, x, scale, bias)
	// One group: 1 3 10 30 has mean 11 and variance (100 + 64 + 1 + 361) / 4; 5 9 -7 -3 has 1 and
	// (16 + 64 + 64 + 16) / 4.
	d, e := math.Sqrt(131.5), math.Sqrt(40)
	one := with(exact, graph.Attrs{"num_groups": int64(1)})
	run(t, "GroupNormalization", 21, one, 1, []float64{-10 / d, -8 / d, 100 - 10/d, 100 + 190/d, 4 / e, 8 / e, 100 - 80/e, 100 - 40/e}, x, scale, bias)
	run(t, "GroupNormalization", 18, one, 1, []float64{3 - 20/d, 3 - 16/d, 3 - 2/d, 3 + 38/d, 3 + 8/e, 3 + 16/e, 3 - 16/e, 3 - 8/e}, x, f32([]int{1}, 2), f32([]int{1}, 3))
	four := f32([]int{1, 4, 1}, 1, 3, 10, 30)
	run(t, "GroupNormalization", 18, with(exact, graph.Attrs{"num_groups": int64(2)}), 1, []float64{-1, 1, 90, 110}, four, scale, bias)
	run(t, "GroupNormalization", 21, with(exact, graph.Attrs{"num_groups": int64(2)}), 1, []float64{-1, 12, -97, 1004}, four, f32([]int{4}, 1, 10, 100, 1000), f32([]int{4}, 0, 2, 3, 4))
	run(t, "InstanceNormalization", 22, graph.Attrs{"epsilon": float32(3)}, 1, []float64{-.5, .5}, f32([]int{1, 1, 2}, 1, 3), f32([]int{1}, 1), f32([]int{1}, 0))
	refuse(t, "input 1 of shape 3 for 2 channels", "InstanceNormalization", 22, nil, x, f32([]int{3}, 1, 1, 1), bias)
	refuse(t, "input 2 is missing", "InstanceNormalization", 22, nil, x, scale)
	refuse(t, "input 2x2", "InstanceNormalization", 22, nil, f32([]int{2, 2}, 1, 2, 3, 4), scale, bias)
	refuse(t, "with 0 groups", "GroupNormalization", 21, nil, x, scale, bias)
	refuse(t, "input 2x2x2 with 3 groups", "GroupNormalization", 21, graph.Attrs{"num_groups": int64(3)}, x, scale, bias)
	refuse(t, "input 1 of shape 2 for 1 channels", "GroupNormalization", 18, graph.Attrs{"num_groups": int64(1)}, x, scale, bias)
	refuse(t, "input 1 of shape 1 for 2 channels", "GroupNormalization", 21, graph.Attrs{"num_groups": int64(1)}, x, f32([]int{1}, 1), bias)
}

func TestRows(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 2}, 1, 3, 10, 30)
	out := run(t, "LayerNormalization", 17, exact, 3, []float64{-1, 10, -1, 10}, x, f32([]int{2}, 1, 10))
	near(t, "means", out[1], 2, 20)
	near(t, "inverse deviations", out[2], 1, .1)
	if !cmp.Equal(out[1].Shape, []int{2, 1}) {
		t.Errorf("shape %v", out[1].Shape)
	}
	run(t, "LayerNormalization", 17, exact, 1, []float64{4, 15, 4, 15}, x, f32([]int{2}, 1, 10), f32([]int{2}, 5, 5))
	// a scale a row
	run(t, "LayerNormalization", 17, exact, 1, []float64{-1, 1, -7, 7}, x, f32([]int{2, 1}, 1, 7))
	run(t, "LayerNormalization", 17, exact, 1, []float64{-2, 2, -2, 2}, x, f32([]int{}, 2))
	run(t, "LayerNormalization", 17, exact, 1, []float64{1, 3, 2, 4}, x, f32([]int{1}, 1), f32([]int{2, 1}, 2, 3))
	run(t, "LayerNormalization", 17, exact, 1, []float64{-1, 2, -3, 4}, x, f32([]int{2, 2}, 1, 2, 3, 4))
	d := math.Sqrt(131.5)
	all := run(t, "LayerNormalization", 17, with(exact, graph.Attrs{"axis": int64(0)}), 2, []float64{-10 / d, -16 / d, -3 / d, 76 / d}, x, f32([]int{2, 2}, 1, 2, 3, 4))
	if near(t, "mean", all[1], 11); !cmp.Equal(all[1].Shape, []int{1, 1}) {
		t.Errorf("shape %v", all[1].Shape)
	}
	run(t, "LayerNormalization", 17, graph.Attrs{"epsilon": float32(3)}, 1, []float64{-.5, .5}, f32([]int{2}, 1, 3), f32([]int{1}, 1))
	// 3 4 has a mean square of 12.5, 6 8 of 50.
	y := f32([]int{2, 2}, 3, 4, 6, 8)
	r := math.Sqrt(12.5)
	for _, op := range []string{"RMSNormalization", "SimplifiedLayerNormalization"} {
		out := run(t, op, 23, exact, 2, []float64{3 / r, 40 / r, 3 / r, 40 / r}, y, f32([]int{2}, 1, 10))
		near(t, op+", inverse", out[1], 1/r, .5/r)
		run(t, op, 23, exact, 1, []float64{3 / r, 4 / r, 6 / r, 8 / r}, y, f32([]int{2, 1}, 1, 2))
		run(t, op, 23, graph.Attrs{"epsilon": float32(3.5)}, 1, []float64{.75, 1}, f32([]int{2}, 3, 4), f32([]int{1}, 1))
	}
	wide := tensor.New(tensor.Float64, 1, 2)
	for stash, want := range map[int64]tensor.Type{1: tensor.Float32, 11: tensor.Float64} {
		out, err := optest.Run(Defs(), optest.Node{Op: "LayerNormalization", Version: 17, Attrs: graph.Attrs{"stash_type": stash}, Outputs: 3}, wide, tensor.New(tensor.Float64, 2))
		if err != nil || out[1].Type != want || out[2].Type != want {
			t.Errorf("statistics of type %v, %v", out[1].Type, err)
		}
	}
	refuse(t, "axis 2 is outside rank 2", "LayerNormalization", 17, graph.Attrs{"axis": int64(2)}, x, f32([]int{2}, 1, 1))
	refuse(t, "scale: shape 3 does not broadcast to 2x2", "LayerNormalization", 17, nil, x, f32([]int{3}, 1, 1, 1))
	refuse(t, "bias: shape 1x2x2 does not broadcast to 2x2", "LayerNormalization", 17, nil, x, f32([]int{2}, 1, 1), f32([]int{1, 2, 2}, 1, 1, 1, 1))
	refuse(t, "input 1 is missing", "LayerNormalization", 17, nil, x)
}

func TestLpNormalization(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 2}, 3, -4, 0, 0)
	run(t, "LpNormalization", 22, nil, 1, []float64{.6, -.8, 0, 0}, x)
	run(t, "LpNormalization", 22, graph.Attrs{"p": int64(1)}, 1, []float64{3. / 7, -4. / 7, 0, 0}, x)
	run(t, "LpNormalization", 22, graph.Attrs{"axis": int64(0)}, 1, []float64{.6, 1, .8, 0}, f32([]int{2, 2}, 3, 5, 4, 0))
	run(t, "LpNormalization", 22, graph.Attrs{"axis": int64(1), "p": int64(1)}, 1, []float64{.25, .5, .75, .5, .5, 0, .5, 1}, f32([]int{2, 2, 2}, 1, 2, 3, 2, 1, 0, 1, 5))
	refuse(t, "p = 3", "LpNormalization", 22, graph.Attrs{"p": int64(3)}, x)
	refuse(t, "axis 2", "LpNormalization", 22, graph.Attrs{"axis": int64(2)}, x)
}

// TestNeighbouringChannels has LRN sum squares over channels around: one before and one after of
// 1 2 3 4.
func TestNeighbouringChannels(t *testing.T) {
	t.Parallel()
	x := f32([]int{1, 4, 1}, 1, 2, 3, 4)
	of := func(size int64, alpha, beta, bias float32) graph.Attrs {
		return graph.Attrs{"size": size, "alpha": alpha, "beta": beta, "bias": bias}
	}
	run(t, "LRN", 13, of(3, 3, 1, 0), 1, []float64{1. / 5, 2. / 14, 3. / 29, 4. / 25}, x)
	// an even one has its other behind
	run(t, "LRN", 13, of(2, 2, 1, 1), 1, []float64{1. / 6, 2. / 14, 3. / 26, 4. / 17}, x)
	run(t, "LRN", 13, of(1, 1, .5, 0), 1, []float64{1, 1, 1, 1}, x)
	run(t, "LRN", 13, of(9, 9, 1, 0), 1, []float64{1. / 30, 2. / 30, 3. / 30, 4. / 30}, x)
	// 16 to the -3/4
	run(t, "LRN", 13, of(1, 15, .75, 1), 1, []float64{1. / 8}, f32([]int{1, 1}, 1))
	run(t, "LRN", 13, graph.Attrs{"size": int64(1)}, 1, []float64{100 * math.Pow(2, -.75)}, f32([]int{1, 1}, 100))
	// Images and positions stay separate.
	run(t, "LRN", 13, of(3, 3, 1, 0), 1, []float64{1. / 10, 2. / 20, 3. / 10, 4. / 20, 1. / 2, 0, 1. / 2, 1}, f32([]int{2, 2, 2}, 1, 2, 3, 4, 1, 0, 1, 1))
	refuse(t, "size 0", "LRN", 13, nil, x)
	refuse(t, "input 4", "LRN", 13, of(1, 1, 1, 1), f32([]int{4}, 1, 2, 3, 4))
}

func TestMeanVariance(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 2, 1, 1}, 1, 10, 3, 30)
	run(t, "MeanVarianceNormalization", 13, nil, 1, []float64{-1, -1, 1, 1}, x)
	run(t, "MeanVarianceNormalization", 13, graph.Attrs{"axes": []int64{1}}, 1, []float64{-1, 1, -1, 1}, x)
	run(t, "MeanVarianceNormalization", 13, graph.Attrs{"axes": []int64{-3, 0}}, 1, []float64{-10 / math.Sqrt(131.5), -1 / math.Sqrt(131.5), -8 / math.Sqrt(131.5), 19 / math.Sqrt(131.5)}, x)
	run(t, "MeanVarianceNormalization", 13, graph.Attrs{"axes": []int64{1}}, 1, []float64{-1, -1, 1, 1, 1, -1, -1, 1}, f32([]int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 1, 8))
	run(t, "MeanVarianceNormalization", 13, graph.Attrs{"axes": []int64{0}}, 1, []float64{0, 0}, f32([]int{1, 2}, 7, 8))
	run(t, "MeanVarianceNormalization", 13, graph.Attrs{"axes": []int64{0}}, 1, nil, f32([]int{0, 2}))
	refuse(t, "axis 3", "MeanVarianceNormalization", 13, nil, f32([]int{1, 1, 1}, 1))
	if m, inv := Moments([]float32{1, 3}, 3); m != 2 || inv != .5 {
		t.Errorf("moments %v %v", m, inv)
	}
	if m, inv := Moments([]float32{}, 4); m != 0 || inv != .5 {
		t.Errorf("moments of nothing %v %v", m, inv)
	}
	if inv := InverseRMS([]float32{1, 7}, 0); inv != .2 {
		t.Errorf("inverse root mean square %v", inv)
	}
}

// TestVectors compares normalisations of float32 over any axes with those of the same numbers in
// float64.
func TestVectors(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 9))
	for range 200 {
		shape := []int{1 + r.IntN(3), 1 + r.IntN(5), 1 + r.IntN(20), 1 + r.IntN(40)}
		single, double := tensor.New(tensor.Float32, shape...), tensor.New(tensor.Float64, shape...)
		for i := range tensor.Of[float32](single) {
			v := float32(r.NormFloat64()*3 + 1)
			tensor.Of[float32](single)[i], tensor.Of[float64](double)[i] = v, float64(v)
		}
		var axes []int64
		for a := range shape {
			if r.IntN(2) == 0 {
				axes = append(axes, int64(a))
			}
		}
		for _, n := range []optest.Node{
			{Op: "MeanVarianceNormalization", Version: 13, Attrs: graph.Attrs{"axes": axes}},
			{Op: "LpNormalization", Version: 22, Attrs: graph.Attrs{"axis": int64(r.IntN(4)), "p": int64(1 + r.IntN(2))}},
		} {
			if len(axes) == 0 {
				continue
			}
			got, err := optest.Run(Defs(), n, single)
			if err != nil {
				t.Fatal(err)
			}
			want, err := optest.Run(Defs(), n, double)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range tensor.Of[float64](want[0]) {
				if g := float64(tensor.Of[float32](got[0])[i]); math.Abs(g-w) > 1e-6*(1+math.Abs(w)) {
					t.Fatalf("%s of %v, %v: element %d is %v, want %v", n.Op, shape, n.Attrs, i, g, w)
				}
			}
		}
	}
}

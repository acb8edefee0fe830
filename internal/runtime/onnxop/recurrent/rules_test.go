package recurrent

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func i32(v ...int32) *tensor.Tensor { return tensor.From(tensor.Int32, []int{len(v)}, v) }

// run runs a layer with weights constant and not and in double precision; want lists its outputs.
func run(t *testing.T, op string, attrs graph.Attrs, want [][]float64, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	wide := make([]*tensor.Tensor, len(in))
	for i, x := range in {
		if wide[i] = x; x != nil && x.Type == tensor.Float32 {
			wide[i] = tensor.New(tensor.Float64, x.Shape...)
			tensor.Fill(wide[i], func(k int) float64 { return tensor.At(x, k) })
		}
	}
	fixed := []bool{false, true, true, true, true, true, true, true}
	var last []*tensor.Tensor
	for _, tt := range []struct {
		in    []*tensor.Tensor
		fixed []bool
	}{{in, nil}, {in, fixed}, {wide, fixed}} {
		out, err := optest.Run(Defs(), optest.Node{Op: op, Version: 14, Attrs: attrs, Outputs: len(want), Const: tt.fixed}, tt.in...)
		if err != nil {
			t.Fatalf("%s %v: %v", op, attrs, err)
		}
		for i, w := range want {
			// integers and quarters; some roundings for the curves
			if why := optest.Differ(out[i], w, 1e-6, 1e-6); why != "" {
				t.Errorf("%s %v, output %d: %s", op, attrs, i, why)
			}
		}
		last = out
	}
	return last
}

func refuse(t *testing.T, want, op string, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: 14, Attrs: attrs, Outputs: 2}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v: %v, want %q", op, attrs, err, want)
	}
}

// plain makes all gates linear, so that results are integers.
func plain(n int, more graph.Attrs) graph.Attrs {
	a := graph.Attrs{}
	var names []string
	for range n {
		names = append(names, "Affine")
	}
	a["activations"] = names
	for k, v := range more {
		a[k] = v
	}
	return a
}

// TestRNN follows h = 2 x + 3 h + 1 through 1 2 3.
func TestRNN(t *testing.T) {
	t.Parallel()
	x, w, r, b := f32([]int{3, 1, 1}, 1, 2, 3), f32([]int{1, 1, 1}, 2), f32([]int{1, 1, 1}, 3), f32([]int{1, 2}, .25, .75)
	one := f32([]int{1, 1, 1}, 1)
	run(t, "RNN", plain(1, nil), [][]float64{{3, 14, 49}, {49}}, x, w, r, b)
	run(t, "RNN", plain(1, nil), [][]float64{{2, 10, 36}, {36}}, x, w, r)
	run(t, "RNN", plain(1, nil), [][]float64{{6, 23, 76}, {76}}, x, w, r, b, nil, one)
	run(t, "RNN", plain(1, graph.Attrs{"direction": "reverse"}), [][]float64{{81, 26, 7}, {81}}, x, w, r, b)
	run(t, "RNN", plain(1, graph.Attrs{"clip": float32(10)}), [][]float64{{3, 10, 10}, {10}}, x, w, r, b)
	run(t, "RNN", plain(1, graph.Attrs{"clip": float32(5)}), [][]float64{{-5}}, f32([]int{1, 1, 1}, -9), w, r)
	run(t, "RNN", nil, [][]float64{{math.Tanh(2)}}, f32([]int{1, 1, 1}, 1), w, r)
	// Both directions, the second with h = x + h.
	w2, r2, b2 := f32([]int{2, 1, 1}, 2, 1), f32([]int{2, 1, 1}, 3, 1), f32([]int{2, 2}, .25, .75, 0, 0)
	both := plain(2, graph.Attrs{"direction": "bidirectional"})
	out := run(t, "RNN", both, [][]float64{{3, 6, 14, 5, 49, 3}, {49, 6}}, x, w2, r2, b2)
	if !cmp.Equal(out[0].Shape, []int{3, 2, 1, 1}) || !cmp.Equal(out[1].Shape, []int{2, 1, 1}) {
		t.Errorf("shapes %v %v", out[0].Shape, out[1].Shape)
	}
	run(t, "RNN", both, [][]float64{{6, 106, 23, 105, 76, 103}, {76, 106}}, x, w2, r2, b2, nil, f32([]int{2, 1, 1}, 1, 100))
	// Sequences of two rows and one, forward and backward: positions beyond are zero, the state
	// is that of the last one.
	rows := f32([]int{2, 2, 1}, 1, 10, 2, 20)
	run(t, "RNN", plain(1, nil), [][]float64{{3, 21, 14, 0}, {14, 21}}, rows, w, r, b, i32(2, 1))
	run(t, "RNN", plain(1, graph.Attrs{"direction": "reverse"}), [][]float64{{18, 21, 5, 0}, {18, 21}}, rows, w, r, b, i32(2, 1))
	run(t, "RNN", plain(1, nil), [][]float64{{3, 0, 14, 0}, {14, 7}}, rows, w, r, b, i32(2, 0), f32([]int{1, 2, 1}, 0, 7))
	// Rows first.
	first := plain(2, graph.Attrs{"layout": int64(1), "direction": "bidirectional"})
	out = run(t, "RNN", first, [][]float64{{3, 3, 14, 2, 21, 30, 104, 20}, {14, 3, 104, 30}}, f32([]int{2, 2, 1}, 1, 2, 10, 20), w2, r2, b2)
	if !cmp.Equal(out[0].Shape, []int{2, 2, 2, 1}) || !cmp.Equal(out[1].Shape, []int{2, 2, 1}) {
		t.Errorf("shapes %v %v", out[0].Shape, out[1].Shape)
	}
	run(t, "RNN", first, [][]float64{{6, 13, 23, 12, 51, 230, 194, 220}, {23, 13, 194, 230}}, f32([]int{2, 2, 1}, 1, 2, 10, 20), w2, r2, b2, nil, f32([]int{2, 2, 1}, 1, 10, 10, 200))
	// Two features into two units, four rows: h1 = x1 + 10 x2 + h2, h2 = 100 x1 + h1.
	wide, square := f32([]int{1, 2, 2}, 1, 10, 100, 0), f32([]int{1, 2, 2}, 0, 1, 1, 0)
	run(t, "RNN", plain(1, nil), [][]float64{{21, 100, 2, 200, 30, 0, 11, 100, 100, 21, 200, 2, 0, 30, 100, 11}},
		f32([]int{2, 4, 2}, 1, 2, 2, 0, 0, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0), wide, square)
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{"input 3x1, W", nil, []*tensor.Tensor{f32([]int{3, 1}, 1, 2, 3), w, r}},
		{"W 1x1", nil, []*tensor.Tensor{x, f32([]int{1, 1}, 1), r}},
		{`direction "up"`, graph.Attrs{"direction": "up"}, []*tensor.Tensor{x, w, r}},
		{"input 1 has shape 1x1x1, want 2x1x1", graph.Attrs{"direction": "bidirectional"}, []*tensor.Tensor{x, w, r}},
		{"input 1 has shape 1x1x2, want 1x1x1", nil, []*tensor.Tensor{x, f32([]int{1, 1, 2}, 1, 1), r}},
		{"input 2 has shape 1x2x1, want 1x1x1", nil, []*tensor.Tensor{x, w, f32([]int{1, 2, 1}, 1, 1)}},
		{"input 3 has shape 1x1, want 1x2", nil, []*tensor.Tensor{x, w, r, f32([]int{1, 1}, 1)}},
		{"input 4 has shape 2, want 1", nil, []*tensor.Tensor{x, w, r, nil, i32(1, 1)}},
		{"input 5 has shape 2x1x1, want 1x1x1", nil, []*tensor.Tensor{x, w, r, nil, nil, f32([]int{2, 1, 1}, 1, 1)}},
		{"sequence_lens of float32", nil, []*tensor.Tensor{x, w, r, nil, f32([]int{1}, 1)}},
		{"sequence length 4 of 3", nil, []*tensor.Tensor{x, w, r, nil, i32(4)}},
		{"sequence length -1 of 3", nil, []*tensor.Tensor{x, w, r, nil, i32(-1)}},
		{"2 activations, want 1", plain(2, nil), []*tensor.Tensor{x, w, r}},
		{`activation "Sine"`, graph.Attrs{"activations": []string{"Sine"}}, []*tensor.Tensor{x, w, r}},
		{"input 2 is missing", nil, []*tensor.Tensor{x, w}},
	} {
		refuse(t, tt.want, "RNN", tt.attrs, tt.in...)
	}
}

// TestGRU has x = 2 and h = 4: update 1/2, reset 1/2, candidate 3 x + 1 and ten times the state +
// 2.
func TestGRU(t *testing.T) {
	t.Parallel()
	x, w, r := f32([]int{1, 1, 1}, 2), f32([]int{1, 3, 1}, .25, .25, 3), f32([]int{1, 3, 1}, 0, 0, 10)
	b, h := f32([]int{1, 6}, 0, 0, 1, 0, 0, 2), f32([]int{1, 1, 1}, 4)
	// 7 + 1/2 x 4 x 10 + 2 = 29; half of it and half of 4.
	run(t, "GRU", plain(2, nil), [][]float64{{16.5}, {16.5}}, x, w, r, b, nil, h)
	// 7 + 1/2 (40 + 2) = 28.
	run(t, "GRU", plain(2, graph.Attrs{"linear_before_reset": int64(1)}), [][]float64{{16}, {16}}, x, w, r, b, nil, h)
	run(t, "GRU", plain(2, nil), [][]float64{{4.5}}, x, w, r, b) // without a state 7 + 2 = 9
	// Gates read the state too: update 1/2 + 4/8, reset 1/2 + 4/4.
	run(t, "GRU", plain(2, nil), [][]float64{{4}}, x, w, f32([]int{1, 3, 1}, .125, .25, 10), b, nil, h)
	run(t, "GRU", plain(2, nil), [][]float64{{.5*69 + 2}}, x, w, f32([]int{1, 3, 1}, 0, .25, 10), b, nil, h)
	run(t, "GRU", plain(2, graph.Attrs{"clip": float32(20)}), [][]float64{{12}}, x, w, r, b, nil, h)
	z, c := Sigmoid(1), math.Tanh(.5)
	run(t, "GRU", nil, [][]float64{{(1-z)*c + z*.25}}, f32([]int{1, 1, 1}, 1), f32([]int{1, 3, 1}, 1, 0, .5), f32([]int{1, 3, 1}, 0, 0, 0), nil, nil, f32([]int{1, 1, 1}, .25))
	// Two units, three rows; gates lie behind each other, units within them. Of x = 1: updates
	// 1/2 and 0, resets 1, candidates 1 and 10 and the other unit's state; of x = 2: 1 and 0, 2,
	// 2 and 20.
	w2 := f32([]int{1, 6, 1}, .5, 0, 1, 1, 1, 10)
	r2 := tensor.New(tensor.Float32, 1, 6, 2)
	copy(tensor.Of[float32](r2)[8:], []float32{0, 1, 1, 0}) // candidates read each other
	run(t, "GRU", plain(2, nil), [][]float64{{2, 11, 1, 11, 3, 26}}, f32([]int{1, 3, 1}, 1, 1, 2), w2, r2, nil, nil, f32([]int{1, 3, 2}, 1, 2, 1, 0, 3, 1))
	refuse(t, "input 1 has shape 1x1x1, want 1x3x1", "GRU", nil, x, f32([]int{1, 1, 1}, 1), f32([]int{1, 3, 1}, 0, 0, 0))
}

// TestLSTM has x = 2 and a cell of 4: input 1, output 1/2, forget 1/4, candidate 2.
func TestLSTM(t *testing.T) {
	t.Parallel()
	x, w, r := f32([]int{1, 1, 1}, 2), f32([]int{1, 4, 1}, .5, .25, .125, 1), tensor.New(tensor.Float32, 1, 4, 1)
	h, c := f32([]int{1, 1, 1}, 1), f32([]int{1, 1, 1}, 4)
	run(t, "LSTM", plain(3, nil), [][]float64{{1.5}, {1.5}, {3}}, x, w, r, nil, nil, h, c)
	run(t, "LSTM", plain(3, nil), [][]float64{{1}, {1}, {2}}, x, w, r)
	run(t, "LSTM", plain(3, graph.Attrs{"input_forget": int64(1)}), [][]float64{{1}, {1}, {2}}, x, w, r, nil, nil, h, c)
	// Peepholes: input 1 + 4, forget 1/4 + 2 x 4, cell 33 + 10, output 1/2 + 3 x 43.
	p := f32([]int{1, 3}, 1, 3, 2)
	run(t, "LSTM", plain(3, nil), [][]float64{{129.5 * 43}, {129.5 * 43}, {43}}, x, w, r, nil, nil, h, c, p)
	// The state goes to the input gate: 2, cell 1 + 4; biases to the candidate: 1 + 2 of either
	// kind.
	run(t, "LSTM", plain(3, nil), [][]float64{{2.5}, {2.5}, {5}}, x, w, f32([]int{1, 4, 1}, 1, 0, 0, 0), nil, nil, h, c)
	run(t, "LSTM", plain(3, nil), [][]float64{{3}, {3}, {6}}, x, w, r, f32([]int{1, 8}, 0, 0, 0, 1, 0, 0, 0, 2), nil, h, c)
	run(t, "LSTM", plain(3, nil), [][]float64{{1.5, 5.5}, {5.5}, {5.5}}, f32([]int{2, 1, 1}, 2, 4), f32([]int{1, 4, 1}, .5, .25, .125, .5), r, nil, nil, h, f32([]int{1, 1, 1}, 8))
	// input and candidate 1/2, forget 1/4
	run(t, "LSTM", plain(3, graph.Attrs{"clip": float32(.5)}), [][]float64{{.625}, {.625}, {1.25}}, x, w, r, nil, nil, h, c)
	s := Sigmoid(1)
	now := s*.5 + s*math.Tanh(1)
	run(t, "LSTM", nil, [][]float64{{s * math.Tanh(now)}, {s * math.Tanh(now)}, {now}}, f32([]int{1, 1, 1}, 1), f32([]int{1, 4, 1}, 1, 1, 1, 1), r, nil, nil, h, f32([]int{1, 1, 1}, .5))
	// Functions of input, candidate and result each have their place.
	names := graph.Attrs{"activations": []string{"Affine", "Relu", "LeakyRelu"}, "activation_alpha": []float32{1, .5}}
	run(t, "LSTM", names, [][]float64{{-.25}, {-.25}, {-1}}, x, f32([]int{1, 4, 1}, .5, .25, .125, -1), r, nil, nil, h, f32([]int{1, 1, 1}, -4))
	refuse(t, "input 7 has shape 1x2, want 1x3", "LSTM", nil, x, w, r, nil, nil, h, c, f32([]int{1, 2}, 1, 1))
	refuse(t, "input 6 has shape 1x1x2", "LSTM", nil, x, w, r, nil, nil, h, f32([]int{1, 1, 2}, 1, 1))
}

// TestActivations has each function by its formula, with its own alpha and beta.
func TestActivations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		alpha, beta []float32
		in, want    float64
	}{
		{"Sigmoid", nil, nil, 0, .5},
		{"SIGMOID", nil, nil, 2, 1 / (1 + math.Exp(-2))},
		{"tanh", nil, nil, 1, math.Tanh(1)},
		{"Relu", nil, nil, -1, 0},
		{"Relu", nil, nil, 2, 2},
		{"Softsign", nil, nil, -3, -.75},
		{"Softplus", nil, nil, 0, math.Ln2},
		{"Softplus", nil, nil, 1000, 1000},
		{"Softplus", nil, nil, -1, math.Log(1 + math.Exp(-1))},
		{"Affine", nil, nil, 3, 3},
		{"Affine", []float32{2}, []float32{5}, 3, 11},
		{"LeakyRelu", nil, nil, -1, -.01},
		{"LeakyRelu", []float32{.5}, nil, -1, -.5},
		{"LeakyRelu", nil, nil, 3, 3},
		{"ThresholdedRelu", nil, nil, 1, 0},
		{"ThresholdedRelu", nil, nil, 1.5, 1.5},
		{"ThresholdedRelu", []float32{2}, nil, 1.5, 0},
		{"ScaledTanh", nil, nil, 1, math.Tanh(1)},
		{"ScaledTanh", []float32{2}, []float32{3}, 1, 2 * math.Tanh(3)},
		{"HardSigmoid", nil, nil, 1, .7},
		{"HardSigmoid", nil, nil, 9, 1},
		{"HardSigmoid", nil, nil, -9, 0},
		{"HardSigmoid", []float32{.5}, []float32{.25}, 1, .75},
		{"Elu", nil, nil, -1, math.Exp(-1) - 1},
		{"Elu", []float32{2}, nil, -1, 2*math.Exp(-1) - 2},
		{"Elu", nil, nil, 2, 2},
	} {
		for _, double := range []bool{true, false} {
			f, err := newActivations(graph.Attrs{"activations": []string{tt.name}, "activation_alpha": tt.alpha, "activation_beta": tt.beta}, 1, []string{"Tanh"}, double)
			if err != nil {
				t.Fatal(err)
			}
			// alphas and sigmoid of float32
			if got := f[0][0](tt.in); !optest.Within(got, tt.want, 1e-6, 1e-6) {
				t.Errorf("%s of %v is %v, want %v", tt.name, tt.in, got, tt.want)
			}
		}
	}
	// Functions that take none leave the lists to the next.
	f, err := newActivations(graph.Attrs{"activations": []string{"Relu", "Affine", "Tanh", "Affine"}, "activation_alpha": []float32{2, 3}, "activation_beta": []float32{10}}, 2, []string{"", ""}, true)
	if err != nil || f[0][1](1) != 12 || f[1][1](1) != 3 || f[0][0](-1) != 0 {
		t.Errorf("%v", err)
	}
}

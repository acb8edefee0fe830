package tfliteop

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func near(t *testing.T, got *tensor.Tensor, want []float64, tol float64) {
	t.Helper()
	optest.Near(t, "output", got, want, tol, 0)
}

func ints32(v ...int32) *tensor.Tensor { return tensor.From(tensor.Int32, []int{len(v)}, v) }

func TestReductions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	x := random(r, tensor.Float32, nil, 3, 4, 5, 2)
	for _, axes := range [][]int32{{0}, {1, 2}, {-1}, {0, 3}, {0, 1, 2, 3}, {1, 3}} {
		for name, f := range map[string]func(a, b float64) float64{
			"SUM": func(a, b float64) float64 { return a + b }, "MEAN": func(a, b float64) float64 { return a + b },
			"REDUCE_MAX": math.Max, "REDUCE_MIN": math.Min, "REDUCE_PROD": func(a, b float64) float64 { return a * b },
		} {
			drop := [4]bool{}
			for _, a := range axes {
				drop[(a+4)%4] = true
			}
			n, dims := 1, [4]int{}
			for i, d := range x.Shape {
				if dims[i] = d; drop[i] {
					dims[i] = 1
				}
				n *= dims[i]
			}
			want := make([]float64, n)
			seen := make([]bool, n)
			for i, v := range tensor.Of[float32](x) {
				at, rest := 0, i
				co := [4]int{}
				for k := 3; k >= 0; k-- {
					co[k] = rest % x.Shape[k]
					rest /= x.Shape[k]
				}
				for k := range 4 {
					at *= dims[k]
					if !drop[k] {
						at += co[k]
					}
				}
				if want[at] = f(want[at], float64(v)); !seen[at] {
					seen[at], want[at] = true, float64(v)
				}
			}
			if name == "MEAN" {
				for i := range want {
					want[i] /= float64(x.Len() / n)
				}
			}
			got := run(t, node(name, graph.Attrs{}, tensor.Float32, nil, false, true), x, ints32(axes...))
			near(t, got, want, 1e-5)
		}
	}
	q := random(r, tensor.Int8, optest.Affine(7, 0.1), 2, 6, 6, 3)
	got := run(t, node("MEAN", graph.Attrs{"keep_dims": true}, tensor.Int8, optest.Affine(-3, 0.02), false, true), q, ints32(1, 2))
	var want []float64
	for i := range 2 * 3 {
		var s float64
		for p := range 36 {
			s += float64(at(q, (i/3*36+p)*3+i%3) - 7)
		}
		want = append(want, min(max(s/36*0.1/0.02-3, -128), 127))
	}
	near(t, got, want, 0.51) // half a step of rounding
}

func TestResize(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 8))
	for _, attrs := range []graph.Attrs{{}, {"align_corners": true}, {"half_pixel_centers": true}} {
		q := random(r, tensor.Int8, optest.Affine(0, 1), 1, 4, 5, 2)
		f := tensor.New(tensor.Float32, 1, 4, 5, 2)
		for i := range f.Len() {
			tensor.Of[float32](f)[i] = float32(at(q, i))
		}
		size := ints32(9, 7)
		a := run(t, node("RESIZE_BILINEAR", attrs, tensor.Int8, optest.Affine(0, 1), false, true), q, size)
		b := run(t, node("RESIZE_BILINEAR", attrs, tensor.Float32, nil, false, true), f, size)
		want := make([]float64, 9*7*2)
		for i := range want {
			want[i] = float64(at(a, i))
		}
		near(t, b, want, 1.5) // weights of ten bits, and a rounding
		// The same size is the identity.
		same := run(t, node("RESIZE_NEAREST_NEIGHBOR", attrs, tensor.Int8, optest.Affine(0, 1), false, true), q, ints32(4, 5))
		for i := range q.Len() {
			if at(same, i) != at(q, i) {
				t.Fatalf("%v: nearest to the same size changes element %d", attrs, i)
			}
		}
	}
}

// naiveLSTM is the textbook LSTM with gates i, f, g, o.
func naiveLSTM(x []float32, steps, in, n int, w [8]*tensor.Tensor, b [4]*tensor.Tensor) []float64 {
	sigma := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	h, cell := make([]float64, n), make([]float64, n)
	var out []float64
	for t := range steps {
		next := make([]float64, n)
		for k := range n {
			var g [4]float64
			for j := range 4 {
				g[j] = float64(tensor.Of[float32](b[j])[k])
				for i := range in {
					g[j] += float64(tensor.Of[float32](w[j])[k*in+i]) * float64(x[t*in+i])
				}
				for i := range n {
					g[j] += float64(tensor.Of[float32](w[4+j])[k*n+i]) * h[i]
				}
			}
			cell[k] = sigma(g[1])*cell[k] + sigma(g[0])*math.Tanh(g[2])
			next[k] = sigma(g[3]) * math.Tanh(cell[k])
		}
		copy(h, next)
		out = append(out, next...)
	}
	return out
}

func TestLSTM(t *testing.T) {
	t.Parallel()
	const steps, in, n = 4, 3, 5
	r := rand.New(rand.NewPCG(2, 8))
	var w [8]*tensor.Tensor
	var b [4]*tensor.Tensor
	for i := range w {
		w[i] = random(r, tensor.Float32, nil, n, in)
		if i >= 4 {
			w[i] = random(r, tensor.Float32, nil, n, n)
		}
	}
	for i := range b {
		b[i] = random(r, tensor.Float32, nil, n)
	}
	x := random(r, tensor.Float32, nil, 1, steps, in)
	want := naiveLSTM(tensor.Of[float32](x), steps, in, n, w, b)
	zero := tensor.New(tensor.Float32, 1, n)
	args := []*tensor.Tensor{x, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], nil, nil, nil, b[0], b[1], b[2], b[3], nil, nil, zero, tensor.New(tensor.Float32, 1, n)}
	attrs := graph.Attrs{"fused_activation_function": "TANH"}
	near(t, run(t, node("UNIDIRECTIONAL_SEQUENCE_LSTM", attrs, tensor.Float32, nil), args...), want, 1e-5)

	// Both directions of a bidirectional layer with equal weights: the backward half of the
	// reversed sequence mirrors the forward half.
	both := make([]*tensor.Tensor, 39)
	both[0] = x
	for d := range 2 {
		for i := range 8 {
			both[1+17*d+i] = w[i]
		}
		for i := range 4 {
			both[12+17*d+i] = b[i]
		}
	}
	for i := 35; i < 39; i++ {
		both[i] = tensor.New(tensor.Float32, 1, n)
	}
	nd := node("BIDIRECTIONAL_SEQUENCE_LSTM", graph.Attrs{"fused_activation_function": "TANH", "time_major": false, "merge_outputs": true}, tensor.Float32, nil)
	got := run(t, nd, both...)
	reversed := make([]float32, 0, steps*in)
	for s := steps - 1; s >= 0; s-- {
		reversed = append(reversed, tensor.Of[float32](x)[s*in:(s+1)*in]...)
	}
	back := naiveLSTM(reversed, steps, in, n, w, b)
	var joined []float64
	for s := range steps {
		joined = append(append(joined, want[s*n:][:n]...), back[(steps-1-s)*n:][:n]...)
	}
	near(t, got, joined, 1e-5)
}

func TestHybridIsNearFloat(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 8))
	for _, asym := range []bool{false, true} {
		x := random(r, tensor.Float32, nil, 3, 40)
		w := random(r, tensor.Int8, optest.Affine(0, 0.01), 6, 40)
		got := run(t, node("FULLY_CONNECTED", graph.Attrs{"asymmetric_quantize_inputs": asym}, tensor.Float32, nil, false, true), x, w)
		want := make([]float64, 18)
		for i := range want {
			for k := range 40 {
				want[i] += float64(tensor.Of[float32](x)[i/6*40+k]) * float64(at(w, i%6*40+k)) * 0.01
			}
		}
		near(t, got, want, 0.06)
	}
}

func TestSVDF(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 8))
	const batch, in, filters, memory = 2, 3, 4, 5
	x, f, w := random(r, tensor.Float32, nil, batch, in), random(r, tensor.Float32, nil, filters, in), random(r, tensor.Float32, nil, filters, memory)
	b, state := random(r, tensor.Float32, nil, 2), random(r, tensor.Float32, nil, batch, filters*memory)
	before := state.Clone()
	got := run(t, node("SVDF", graph.Attrs{"rank": int64(2)}, tensor.Float32, nil), x, f, w, b, state)
	want := make([]float64, batch*2)
	s := tensor.Of[float32](before)
	for i := range want {
		want[i] = float64(tensor.Of[float32](b)[i%2])
		for q := i % 2 * 2; q < i%2*2+2; q++ {
			at := (i/2*filters + q) * memory
			for m := range memory {
				v := 0.0
				if m < memory-1 {
					v = float64(s[at+m+1])
				} else {
					for k := range in {
						v += float64(tensor.Of[float32](f)[q*in+k]) * float64(tensor.Of[float32](x)[i/2*in+k])
					}
				}
				want[i] += v * float64(tensor.Of[float32](w)[q*memory+m])
			}
		}
	}
	near(t, got, want, 1e-5)
	if string(state.Data) != string(before.Data) {
		t.Error("a state that is not a variable was written")
	}
}

// TestConv3D checks that the transpose is the adjoint: <conv(x), y> = <x, convᵀ(y)>.
func TestConv3D(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	attrs := graph.Attrs{"padding": "SAME", "stride_d": int64(2), "stride_h": int64(1), "stride_w": int64(2)}
	x, w := random(r, tensor.Float32, nil, 1, 5, 4, 6, 2), random(r, tensor.Float32, nil, 3, 2, 3, 2, 3)
	c := run(t, node("CONV_3D", attrs, tensor.Float32, nil), x, w)
	y := random(r, tensor.Float32, nil, c.Shape...)
	d := run(t, node("CONV_3D_TRANSPOSE", attrs, tensor.Float32, nil, true), ints32(1, 5, 4, 6, 2), w, y)
	dot := func(a, b *tensor.Tensor) (s float64) {
		for i, v := range tensor.Of[float32](a) {
			s += float64(v) * float64(tensor.Of[float32](b)[i])
		}
		return s
	}
	// Both are recorded as well, see TestRecorded.
	if a, b := dot(c, y), dot(x, d); !optest.Within(a, b, 1e-4, 0) || a == 0 {
		t.Errorf("%v and %v", a, b)
	}
}

func TestMatmul(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(10, 8))
	for _, typ := range []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16} {
		for _, adj := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			xs, ys := []int{2, 1, 3, 7}, []int{4, 7, 5}
			if adj[0] {
				xs = []int{2, 1, 7, 3}
			}
			if adj[1] {
				ys = []int{4, 5, 7}
			}
			zx, zy := int64(5), int64(-4)
			if typ != tensor.Int8 {
				zx, zy = 0, 0
			}
			x, y := random(r, typ, optest.Affine(zx, 0.001), xs...), random(r, typ, optest.Affine(zy, 0.5), ys...)
			got := run(t, node("BATCH_MATMUL", graph.Attrs{"adj_x": adj[0], "adj_y": adj[1]}, typ, optest.Affine(1, 3)), x, y)
			for i := range 4 * 2 * 3 * 5 {
				n, m, b := i%5, i/5%3, i/15
				var acc int64
				var sum float64
				for k := range 7 {
					p, q := b/4*21+m*7+k, b%4*35+k*5+n
					if adj[0] {
						p = b/4*21 + k*3 + m
					}
					if adj[1] {
						q = b%4*35 + n*7 + k
					}
					if typ == tensor.Float32 {
						sum += float64(tensor.Of[float32](x)[p]) * float64(tensor.Of[float32](y)[q])
					} else {
						acc += (at(x, p) - zx) * (at(y, q) - zy)
					}
				}
				if typ == tensor.Float32 {
					if g := float64(tensor.Of[float32](got)[i]); !optest.Within(g, sum, 1e-5, 0) {
						t.Fatalf("element %d: got %v, want %v", i, g, sum)
					}
					continue
				}
				s := x.Quant.Scale[0] * y.Quant.Scale[0]
				if g, want := at(got, i), scaleBack(acc, float64(s)/3, got, typ == tensor.Int16); g != want {
					t.Fatalf("%v %v element %d: got %d, want %d", typ, adj, i, g, want)
				}
			}
		}
	}
}

// TestRefuses checks that broken models cause errors and not panics.
func TestRefuses(t *testing.T) {
	t.Parallel()
	f := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }
	for _, c := range []struct {
		name string
		op   string
		in   []*tensor.Tensor
	}{
		{"no filter", "CONV_2D", []*tensor.Tensor{f(1, 4, 4, 3)}},
		{"rank", "CONV_2D", []*tensor.Tensor{f(4, 4, 3), f(1, 1, 1, 3)}},
		{"channels", "CONV_2D", []*tensor.Tensor{f(1, 4, 4, 3), f(1, 1, 1, 2)}},
		{"bias", "CONV_2D", []*tensor.Tensor{f(1, 4, 4, 3), f(2, 1, 1, 3), f(3)}},
		{"empty filter", "DEPTHWISE_CONV_2D", []*tensor.Tensor{f(1, 4, 4, 3), f(1, 0, 1, 3)}},
		{"inner dimension", "BATCH_MATMUL", []*tensor.Tensor{f(2, 3), f(4, 3)}},
		{"rows", "FULLY_CONNECTED", []*tensor.Tensor{f(1, 5), f(2, 3)}},
		{"broadcast", "ADD", []*tensor.Tensor{f(2), f(3)}},
		{"axis", "SUM", []*tensor.Tensor{f(2), ints32(1)}},
		{"size", "RESIZE_BILINEAR", []*tensor.Tensor{f(1, 2, 2, 1), ints32(0, 1)}},
		{"state", "SVDF", []*tensor.Tensor{f(1, 2), f(2, 2), f(2, 3), nil, f(1, 5)}},
		{"weights", "UNIDIRECTIONAL_SEQUENCE_LSTM", []*tensor.Tensor{f(1, 2, 3)}},
		{"no scale", "QUANTIZE", []*tensor.Tensor{f(2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if out, err := runErr(node(c.op, graph.Attrs{}, tensor.Invalid, nil), c.in...); err == nil {
				t.Errorf("no error, output %v", out[0].Shape)
			}
		})
	}
}

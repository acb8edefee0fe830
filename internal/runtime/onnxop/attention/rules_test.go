package attention

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func i64(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

func bools(shape []int, v ...uint8) *tensor.Tensor { return tensor.From(tensor.Bool, shape, v) }

func zeros(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }

func run(t *testing.T, op string, attrs graph.Attrs, outputs int, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), optest.Node{Op: op, Version: 26, Attrs: attrs, Outputs: outputs}, in...)
	if err != nil {
		t.Fatalf("%s %v: %v", op, attrs, err)
	}
	return out
}

func refuse(t *testing.T, want, op string, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: 26, Attrs: attrs, Outputs: 2}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v: %v, want %q", op, attrs, err, want)
	}
}

// near allows some roundings of float32: sums have few terms.
func near(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	if why := optest.Differ(got, want, 1e-6, 1e-6); why != "" {
		t.Errorf("%s: %s", what, why)
	}
}

// TestWhichKeys uses queries of zeros, so that all visible keys have equal weight: the mean of
// the values 1, 2, 4, 8 shows which they were.
func TestWhichKeys(t *testing.T) {
	t.Parallel()
	value := f32([]int{1, 1, 4, 1}, 1, 2, 4, 8)
	half := f32([]int{1, 1, 2, 1}, 4, 8)
	past := f32([]int{1, 1, 2, 1}, 1, 2)
	inf := float32(math.Inf(-1))
	const all = 15. / 4
	for _, tt := range []struct {
		name  string
		rows  int
		attrs graph.Attrs
		more  []*tensor.Tensor // mask, past key, past value, lengths
		want  []float64
	}{
		{"all", 2, nil, nil, []float64{all, all}},
		{"causal", 4, graph.Attrs{"is_causal": int64(1)}, nil, []float64{1, 1.5, 7. / 3, all}},
		{"one before and after", 4, graph.Attrs{"left_window_size": int64(1), "right_window_size": int64(1)}, nil, []float64{1.5, 7. / 3, 14. / 3, 6}},
		{"itself", 4, graph.Attrs{"left_window_size": int64(0), "right_window_size": int64(0)}, nil, []float64{1, 2, 4, 8}},
		{"none after", 3, graph.Attrs{"right_window_size": int64(0)}, nil, []float64{1, 1.5, 7. / 3}},
		{"none before", 3, graph.Attrs{"left_window_size": int64(0)}, nil, []float64{all, 14. / 3, 6}},
		{"causal with one before", 3, graph.Attrs{"is_causal": int64(1), "left_window_size": int64(1)}, nil, []float64{1, 1.5, 3}},
		{"mask of truths", 1, nil, []*tensor.Tensor{bools([]int{4}, 1, 0, 0, 1)}, []float64{4.5}},
		{"mask by row", 2, nil, []*tensor.Tensor{bools([]int{2, 4}, 1, 0, 0, 1, 0, 1, 0, 0)}, []float64{4.5, 2}},
		{"short mask", 1, nil, []*tensor.Tensor{bools([]int{3}, 1, 1, 1)}, []float64{7. / 3}},
		{"mask for all keys", 2, nil, []*tensor.Tensor{bools([]int{2, 1}, 1, 0)}, []float64{all, 0}},
		{"nothing to see", 1, nil, []*tensor.Tensor{bools([]int{4}, 0, 0, 0, 0)}, []float64{0}},
		{"mask of numbers", 1, nil, []*tensor.Tensor{f32([]int{4}, inf, 0, inf, float32(math.Log(3)))}, []float64{(2 + 3*8) / 4.}},
		{"mask of integers", 1, nil, []*tensor.Tensor{tensor.From(tensor.Int32, []int{4}, []int32{0, 0, 0, -1000})}, []float64{7. / 3}},
		{"mask and causal", 2, graph.Attrs{"is_causal": int64(1)}, []*tensor.Tensor{bools([]int{4}, 0, 1, 1, 1)}, []float64{0, 2}},
		{"lengths", 1, nil, []*tensor.Tensor{nil, nil, nil, i64(3)}, []float64{7. / 3}},
		{"lengths, causal", 2, graph.Attrs{"is_causal": int64(1)}, []*tensor.Tensor{nil, nil, nil, i64(3)}, []float64{1.5, 7. / 3}},
		{"past, causal", 2, graph.Attrs{"is_causal": int64(1)}, []*tensor.Tensor{nil, zeros(1, 1, 2, 1), past}, []float64{7. / 3, all}},
		{"past, window", 2, graph.Attrs{"left_window_size": int64(1), "right_window_size": int64(0)}, []*tensor.Tensor{nil, zeros(1, 1, 2, 1), past}, []float64{3, 6}},
	} {
		v := value
		if len(tt.more) > 1 && tt.more[1] != nil {
			v = half
		}
		in := append([]*tensor.Tensor{zeros(1, 1, tt.rows, 1), zeros(v.Shape...), v}, tt.more...)
		near(t, tt.name, run(t, "Attention", tt.attrs, 1, in...)[0], tt.want...)
		// Requesting keys, values and scores changes nothing.
		out := run(t, "Attention", tt.attrs, 4, in...)
		near(t, tt.name+", all outputs", out[0], tt.want...)
		near(t, tt.name+", present values", out[2], 1, 2, 4, 8)
	}
}

// TestScores checks the scores at each stage: one query (1, 2) and keys (3, 4), (1, -1).
func TestScores(t *testing.T) {
	t.Parallel()
	q, k, v := f32([]int{1, 1, 1, 2}, 1, 2), f32([]int{1, 1, 2, 2}, 3, 4, 1, -1), f32([]int{1, 1, 2, 3}, 1, 2, 3, 10, 20, 30)
	s := 1 / math.Sqrt2
	soft := func(a, b float64) (float64, float64) { x := 1 / (1 + math.Exp(b-a)); return x, 1 - x }
	at := func(mode int64, more graph.Attrs) graph.Attrs {
		a := graph.Attrs{"qk_matmul_output_mode": mode}
		for n, x := range more {
			a[n] = x
		}
		return a
	}
	mask := f32([]int{2}, -5, 1)
	p0, p1 := soft(11*s, -s)
	out := run(t, "Attention", at(0, nil), 4, q, k, v)
	near(t, "products", out[3], 11*s, -s)
	near(t, "result", out[0], p0+10*p1, 2*p0+20*p1, 3*p0+30*p1)
	near(t, "present keys", out[1], 3, 4, 1, -1)
	near(t, "scaled", run(t, "Attention", at(0, graph.Attrs{"scale": float32(.5)}), 4, q, k, v)[3], 5.5, -.5)
	capped := graph.Attrs{"scale": float32(.5), "softcap": float32(2)}
	c0, c1 := 2*math.Tanh(2.75), 2*math.Tanh(-.25)
	near(t, "before the cap", run(t, "Attention", at(0, capped), 4, q, k, v, mask)[3], 5.5, -.5)
	near(t, "capped", run(t, "Attention", at(1, capped), 4, q, k, v, mask)[3], c0, c1)
	near(t, "masked", run(t, "Attention", at(2, capped), 4, q, k, v, mask)[3], c0-5, c1+1)
	p0, p1 = soft(c0-5, c1+1)
	near(t, "weights", run(t, "Attention", at(3, capped), 4, q, k, v, mask)[3], p0, p1)
	double := func(x *tensor.Tensor) *tensor.Tensor {
		y := tensor.New(tensor.Float64, x.Shape...)
		tensor.Fill(y, func(i int) float64 { return tensor.At(x, i) })
		return y
	}
	out = run(t, "Attention", at(3, capped), 4, double(q), double(k), double(v), double(mask))
	near(t, "weights in double precision", out[3], p0, p1)
}

// TestHeads has four query heads for two key heads: pairs share one. Queries see the key of their
// own sign.
func TestHeads(t *testing.T) {
	t.Parallel()
	// With keys of 100 and -100 all weight goes to one of them.
	q := f32([]int{1, 4, 1, 1}, 1, -1, -1, 1)
	k := f32([]int{1, 2, 2, 1}, 100, -100, -100, 100)
	v := f32([]int{1, 2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	want := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	out := run(t, "Attention", nil, 1, q, k, v)[0]
	near(t, "heads", out, want...)
	if !cmp.Equal(out.Shape, []int{1, 4, 1, 2}) {
		t.Errorf("shape %v", out.Shape)
	}
	// The same with heads packed side by side in each row.
	packed := graph.Attrs{"q_num_heads": int64(4), "kv_num_heads": int64(2)}
	kp := f32([]int{1, 2, 2}, 100, -100, -100, 100)
	vp := f32([]int{1, 2, 4}, 1, 2, 5, 6, 3, 4, 7, 8)
	outs := run(t, "Attention", packed, 4, f32([]int{1, 1, 4}, 1, -1, -1, 1), kp, vp)
	near(t, "packed heads", outs[0], want...)
	if !cmp.Equal(outs[0].Shape, []int{1, 1, 8}) || !cmp.Equal(outs[1].Shape, []int{1, 2, 2, 1}) || !cmp.Equal(outs[2].Shape, []int{1, 2, 2, 2}) || !cmp.Equal(outs[3].Shape, []int{1, 4, 1, 2}) {
		t.Errorf("shapes %v %v %v %v", outs[0].Shape, outs[1].Shape, outs[2].Shape, outs[3].Shape)
	}
	near(t, "keys by heads", outs[1], 100, -100, -100, 100)
	near(t, "values by heads", outs[2], 1, 2, 3, 4, 5, 6, 7, 8)
	// Two batch entries of two rows.
	q2, v2 := zeros(2, 1, 2, 1), f32([]int{2, 1, 2, 1}, 1, 3, 5, 9)
	near(t, "batch", run(t, "Attention", nil, 1, q2, zeros(2, 1, 2, 1), v2)[0], 2, 2, 7, 7)
	by := bools([]int{2, 1, 2, 2}, 1, 0, 0, 1, 1, 1, 1, 0)
	near(t, "mask of the batch", run(t, "Attention", nil, 1, q2, zeros(2, 1, 2, 1), v2, by)[0], 1, 3, 7, 5)
	near(t, "lengths of the batch", run(t, "Attention", nil, 1, q2, zeros(2, 1, 2, 1), v2, nil, nil, nil, i64(1, 2))[0], 1, 1, 7, 7)
}

func TestAttentionRefused(t *testing.T) {
	t.Parallel()
	q, k, v := zeros(1, 2, 1, 4), zeros(1, 2, 3, 4), zeros(1, 2, 3, 5)
	packed := graph.Attrs{"q_num_heads": int64(2), "kv_num_heads": int64(2)}
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{"input 2 is missing", nil, []*tensor.Tensor{q, k}},
		{"query 1x2x1x4, key 1x2x3x3", nil, []*tensor.Tensor{q, zeros(1, 2, 3, 3), v}},
		{"query 1x2x1x4, key 2x2x3x4", nil, []*tensor.Tensor{q, zeros(2, 2, 3, 4), v}},
		{"value 1x2x2x5", nil, []*tensor.Tensor{q, k, zeros(1, 2, 2, 5)}},
		{"value 1x1x3x5", nil, []*tensor.Tensor{q, k, zeros(1, 1, 3, 5)}},
		{"value 2x2x3x5", nil, []*tensor.Tensor{q, k, zeros(2, 2, 3, 5)}},
		{"query 1x2x1x4, key 1x3x4", nil, []*tensor.Tensor{q, zeros(1, 3, 4), v}},
		{"2 query heads for 3 key heads", nil, []*tensor.Tensor{q, zeros(1, 3, 3, 4), zeros(1, 3, 3, 5)}},
		{"3 query heads for 2 key heads", nil, []*tensor.Tensor{zeros(1, 3, 1, 4), k, v}},
		{"with 0 and 0 heads", nil, []*tensor.Tensor{zeros(1, 1, 4), zeros(1, 3, 4), zeros(1, 3, 4)}},
		{"with 2 and 2 heads", packed, []*tensor.Tensor{zeros(1, 1, 3), zeros(1, 3, 4), zeros(1, 3, 4)}},
		{"with 2 and 2 heads", packed, []*tensor.Tensor{zeros(1, 1, 4), zeros(1, 3, 3), zeros(1, 3, 4)}},
		{"with 2 and 2 heads", packed, []*tensor.Tensor{zeros(1, 1, 4), zeros(1, 3, 4), zeros(1, 3, 3)}},
		{"key 1x3x6", packed, []*tensor.Tensor{zeros(1, 1, 4), zeros(1, 3, 6), zeros(1, 3, 4)}},
		{"key 2x3x4", packed, []*tensor.Tensor{zeros(1, 1, 4), zeros(2, 3, 4), zeros(1, 3, 4)}},
		{"value 1x2x4", packed, []*tensor.Tensor{zeros(1, 1, 4), zeros(1, 3, 4), zeros(1, 2, 4)}},
		{"value 2x3x4", packed, []*tensor.Tensor{zeros(1, 1, 4), zeros(1, 3, 4), zeros(2, 3, 4)}},
		{"mask scalar", nil, []*tensor.Tensor{q, k, v, zeros()}},
		{"mask 1x1x1x1x3", nil, []*tensor.Tensor{q, k, v, zeros(1, 1, 1, 1, 3)}},
		{"mask 4 for scores 1x2x1x3", nil, []*tensor.Tensor{q, k, v, zeros(4)}},
		{"mask 2x3 for scores 1x2x1x3", nil, []*tensor.Tensor{q, k, v, zeros(2, 3)}},
		{"mask of float64", nil, []*tensor.Tensor{q, k, v, tensor.New(tensor.Float64, 3)}},
		{"past key 1x2x1x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 1, 4)}},
		{"past key 1x2x1x3 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 1, 3), zeros(1, 2, 1, 5)}},
		{"past key 1x1x1x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 1, 1, 4), zeros(1, 2, 1, 5)}},
		{"past key 2x2x1x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(2, 2, 1, 4), zeros(1, 2, 1, 5)}},
		{"past key 1x2x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 4), zeros(1, 2, 1, 5)}},
		{"past key 1x2x1x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 1, 4), zeros(1, 2, 1, 4)}},
		{"past key 1x2x1x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 1, 4), zeros(1, 2, 2, 5)}},
		{"past key 1x2x1x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 1, 4), zeros(1, 1, 1, 5)}},
		{"past key 1x2x1x4 does not fit", nil, []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 1, 4), zeros(2, 2, 1, 5)}},
		{"nonpad_kv_seqlen 2 for batch 1", nil, []*tensor.Tensor{q, k, v, nil, nil, nil, i64(1, 1)}},
	} {
		refuse(t, tt.want, "Attention", tt.attrs, tt.in...)
	}
}

func TestSoftmaxRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want []float64 }{
		{[]float64{0, 0}, []float64{.5, .5}},
		{[]float64{1000, 1000, math.Inf(-1)}, []float64{.5, .5, 0}},
		{[]float64{0, math.Log(3)}, []float64{.25, .75}},
		{[]float64{math.Inf(-1), math.Inf(-1)}, []float64{0, 0}},
		{nil, nil},
	} {
		d, f := append([]float64{}, tt.in...), make([]float32, len(tt.in))
		for i, v := range tt.in {
			f[i] = float32(v)
		}
		Softmax(d)
		Softmax(f)
		near(t, "double", tensor.From(tensor.Float64, []int{len(d)}, d), tt.want...)
		near(t, "single", tensor.From(tensor.Float32, []int{len(f)}, f), tt.want...)
	}
	s := []float32{0, 0}
	scale := weigh(s, float32(math.Log(2)))
	near(t, "sink", f32([]int{2}, s[0]*scale, s[1]*scale), .25, .25)
	s = []float32{1000, 0}
	scale = weigh(s, 1000)
	near(t, "large scores", f32([]int{2}, s[0]*scale, s[1]*scale), .5, 0)
	// Fewer keys for a batch entry, a sink per head.
	a := Attend[float32]{
		Batch: 1, Heads: 2, KVHeads: 2, Rows: 1, Total: 3, Size: 1, VSize: 1, Scale: 1,
		Span: func(int, int) (int, int) { return 0, 2 }, Outside: float32(math.Inf(-1)), Sink: func(h int) float64 { return []float64{math.Inf(-1), math.Log(2)}[h] },
	}
	y := make([]float32, 2)
	v := []float32{1, 3, 99, 2, 6, 99}
	a.Run(nil, SplitHeads(make([]float32, 2), 1, 2, 1), SplitHeads(make([]float32, 6), 3, 2, 1), SplitHeads(v, 3, 2, 1), SplitHeads(y, 1, 2, 1))
	near(t, "keys and sinks", f32([]int{2}, y...), 2, 2)
}

// TestRotary rotates by quarter turns, cos 0 and sin 1: (a, b) becomes (-b, a).
func TestRotary(t *testing.T) {
	t.Parallel()
	x := f32([]int{1, 1, 2, 4}, 1, 2, 3, 4, 5, 6, 7, 8)
	quarter := func(n int) (cos, sin *tensor.Tensor) { // the second token is not turned
		cos, sin = zeros(1, 2, n), zeros(1, 2, n)
		for i := range n {
			tensor.Of[float32](cos)[n+i], tensor.Of[float32](sin)[i] = 1, 1
		}
		return cos, sin
	}
	cos, sin := quarter(2)
	near(t, "halves", run(t, "RotaryEmbedding", nil, 1, x, cos, sin)[0], -3, -4, 1, 2, 5, 6, 7, 8)
	near(t, "pairs", run(t, "RotaryEmbedding", graph.Attrs{"interleaved": int64(1)}, 1, x, cos, sin)[0], -2, 1, -4, 3, 5, 6, 7, 8)
	c1, s1 := quarter(1)
	near(t, "part", run(t, "RotaryEmbedding", graph.Attrs{"rotary_embedding_dim": int64(2)}, 1, x, c1, s1)[0], -2, 1, 3, 4, 5, 6, 7, 8)
	// Two heads packed in each token.
	near(t, "packed", run(t, "RotaryEmbedding", graph.Attrs{"num_heads": int64(2)}, 1, f32([]int{1, 2, 4}, 1, 2, 3, 4, 5, 6, 7, 8), c1, s1)[0], -2, 1, -4, 3, 5, 6, 7, 8)
	// Positions select rows of the tables: the second is rotated, the first is not.
	table := func(x *tensor.Tensor) *tensor.Tensor { y := *x; y.Shape = x.Shape[1:]; return &y }
	ids := tensor.From(tensor.Int64, []int{1, 2}, []int64{1, 0})
	near(t, "positions", run(t, "RotaryEmbedding", nil, 1, x, table(cos), table(sin), ids)[0], 1, 2, 3, 4, -7, -8, 5, 6)
	half := f32([]int{1, 2, 1}, .6, 1)
	near(t, "any angle", run(t, "RotaryEmbedding", graph.Attrs{"num_heads": int64(1)}, 1, f32([]int{1, 2, 2}, 10, 5, 1, 1), half, f32([]int{1, 2, 1}, .8, 0))[0], 2, 11, 1, 1)
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{"input 1x2x4 with 0 heads", nil, []*tensor.Tensor{zeros(1, 2, 4), cos, sin}},
		{"input 1x2x4 with 3 heads", graph.Attrs{"num_heads": int64(3)}, []*tensor.Tensor{zeros(1, 2, 4), cos, sin}},
		{"input 2x4", nil, []*tensor.Tensor{zeros(2, 4), cos, sin}},
		{"caches 1x2x2 and 1x2x1", nil, []*tensor.Tensor{x, cos, s1}},
		{"caches 1x2x1 and 1x2x1 for 4 rotated", nil, []*tensor.Tensor{x, c1, s1}},
		{"for 3 rotated", graph.Attrs{"rotary_embedding_dim": int64(3)}, []*tensor.Tensor{x, c1, s1}},
		{"for 6 rotated", graph.Attrs{"rotary_embedding_dim": int64(6)}, []*tensor.Tensor{x, zeros(1, 2, 3), zeros(1, 2, 3)}},
		{"for -2 rotated", graph.Attrs{"rotary_embedding_dim": int64(-2)}, []*tensor.Tensor{x, c1, s1}},
		{"caches 1x3x2", nil, []*tensor.Tensor{x, zeros(1, 3, 2), zeros(1, 3, 2)}},
		{"caches 2x2x2", nil, []*tensor.Tensor{x, zeros(2, 2, 2), zeros(2, 2, 2)}},
		{"caches 2x2", nil, []*tensor.Tensor{x, table(cos), table(sin)}},
		{"caches 1x2x2", nil, []*tensor.Tensor{x, cos, sin, ids}},
		{"position_ids 3 for 1 x 2 tokens", nil, []*tensor.Tensor{x, table(cos), table(sin), i64(0, 1, 0)}},
		{"float32 tensor where integers are expected", nil, []*tensor.Tensor{x, table(cos), table(sin), f32([]int{1, 2}, 0, 1)}},
		{"position 2 of 2", nil, []*tensor.Tensor{x, table(cos), table(sin), i64(0, 2)}},
		{"position -1 of 2", nil, []*tensor.Tensor{x, table(cos), table(sin), i64(-1, 0)}},
	} {
		refuse(t, tt.want, "RotaryEmbedding", tt.attrs, tt.in...)
	}
}

// TestLinearAttention follows the state of one head of two keys through two tokens: k (1, 2) and
// (1, 0), v 3 and -1, q (1, 1) and (2, 1), scale 1/2.
func TestLinearAttention(t *testing.T) {
	t.Parallel()
	q, k, v := f32([]int{1, 2, 2}, 1, 1, 2, 1), f32([]int{1, 2, 2}, 1, 2, 1, 0), f32([]int{1, 2, 1}, 3, -1)
	past := f32([]int{1, 1, 2, 1}, 2, 4)
	log := float32(math.Log(.5))
	of := func(rule string) graph.Attrs {
		return graph.Attrs{"q_num_heads": int64(1), "kv_num_heads": int64(1), "scale": float32(.5), "update_rule": rule}
	}
	decay, byKey, beta := f32([]int{1, 2, 1}, log, log), f32([]int{1, 2, 2}, log, 0, log, 0), f32([]int{1, 2, 1}, .5, 1)
	for _, tt := range []struct {
		name        string
		rule        string
		more        []*tensor.Tensor
		want, state []float64
	}{
		{"linear", "linear", nil, []float64{4.5, 5}, []float64{2, 6}}, // states (3, 6), (2, 6)
		{"linear with past", "linear", []*tensor.Tensor{past}, []float64{7.5, 9}, []float64{4, 10}},
		// (4, 8), (1, 4)
		{"gated", "gated", []*tensor.Tensor{past, decay}, []float64{6, 3}, []float64{1, 4}},
		// (4, 10), (1, 10)
		{"gated by key", "gated", []*tensor.Tensor{past, byKey}, []float64{7, 6}, []float64{1, 10}},
		// read 10 and -1.5
		{"delta", "delta", []*tensor.Tensor{past, nil, beta}, []float64{-2.25, -2.5}, []float64{-1, -3}},
		// Halved first: (1, 2) holds 5 under the key, half of 3 - 5 is added: (0, 0); then (0, 0)
		// and all of -1.
		{"gated delta", "gated_delta", []*tensor.Tensor{past, decay, beta}, []float64{0, -1}, []float64{-1, 0}},
	} {
		out := run(t, "LinearAttention", of(tt.rule), 2, append([]*tensor.Tensor{q, k, v}, tt.more...)...)
		near(t, tt.name, out[0], tt.want...)
		near(t, tt.name+", state", out[1], tt.state...)
	}
	// Two query heads per key head; two key heads and one beta for both; the scale follows from
	// the size.
	two := graph.Attrs{"q_num_heads": int64(4), "kv_num_heads": int64(2), "update_rule": "delta"}
	out := run(t, "LinearAttention", two, 2, f32([]int{1, 1, 4}, 1, 2, 3, 4), f32([]int{1, 1, 2}, 1, 2), f32([]int{1, 1, 4}, 1, 2, 3, 4), nil, nil, f32([]int{1, 1, 1}, 1))
	near(t, "heads", out[0], 1, 2, 2, 4, 18, 24, 24, 32) // states (1, 2) and (6, 8)
	near(t, "states", out[1], 1, 2, 6, 8)
	four := graph.Attrs{"q_num_heads": int64(1), "kv_num_heads": int64(1), "update_rule": "linear"}
	near(t, "scale", run(t, "LinearAttention", four, 1, f32([]int{1, 1, 4}, 1, 1, 1, 1), f32([]int{1, 1, 4}, 1, 1, 1, 1), f32([]int{1, 1, 1}, 3))[0], 6)
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{`update_rule "x"`, of("x"), []*tensor.Tensor{q, k, v}},
		{"decay and beta do not fit", of("linear"), []*tensor.Tensor{q, k, v, nil, decay}},
		{"decay and beta do not fit", of("gated"), []*tensor.Tensor{q, k, v}},
		{"decay and beta do not fit", of("delta"), []*tensor.Tensor{q, k, v, nil, decay, beta}},
		{"decay 1x2x3", of("gated"), []*tensor.Tensor{q, k, v, nil, zeros(1, 2, 3)}},
		{"decay 1x1x1", of("gated"), []*tensor.Tensor{q, k, v, nil, zeros(1, 1, 1)}},
		{"beta 1x2x2", of("delta"), []*tensor.Tensor{q, k, v, nil, nil, zeros(1, 2, 2)}},
		{"beta 2x2x1", of("delta"), []*tensor.Tensor{q, k, v, nil, nil, zeros(2, 2, 1)}},
		{"past_state 1x1x1x2, want 1x1x2x1", of("linear"), []*tensor.Tensor{q, k, v, zeros(1, 1, 1, 2)}},
		{"with 0 and 0 heads", nil, []*tensor.Tensor{q, k, v}},
		{"key 1x1x2", of("linear"), []*tensor.Tensor{q, zeros(1, 1, 2), v}},
		{"value 1x1x1", of("linear"), []*tensor.Tensor{q, k, zeros(1, 1, 1)}},
		{"key 1x2x3", of("linear"), []*tensor.Tensor{q, zeros(1, 2, 3), v}},
		{"query 2x2", of("linear"), []*tensor.Tensor{zeros(2, 2), k, v}},
		{"with 3 and 2 heads", graph.Attrs{"q_num_heads": int64(3), "kv_num_heads": int64(2)}, []*tensor.Tensor{zeros(1, 2, 6), zeros(1, 2, 4), zeros(1, 2, 2)}},
	} {
		refuse(t, tt.want, "LinearAttention", tt.attrs, tt.in...)
	}
}

func TestCausalConv(t *testing.T) {
	t.Parallel()
	x, w := f32([]int{1, 2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{2, 1, 2}, 10, 1, 100, 1)
	out := run(t, "CausalConvWithState", nil, 2, x, w)
	near(t, "result", out[0], 1, 12, 23, 4, 405, 506)
	near(t, "state", out[1], 3, 6)
	bias, past := f32([]int{2}, 1000, 2000), f32([]int{1, 2, 1}, 7, 8)
	near(t, "bias and past", run(t, "CausalConvWithState", nil, 1, x, w, bias, past)[0], 1071, 1012, 1023, 2804, 2405, 2506)
	silu := func(v float64) float64 { return v / (1 + math.Exp(-v)) }
	for _, name := range []string{"silu", "swish"} {
		near(t, name, run(t, "CausalConvWithState", graph.Attrs{"activation": name}, 1, f32([]int{1, 1, 2}, 1, -1), f32([]int{1, 1, 1}, .5))[0], silu(.5), silu(-.5))
	}
	// A state longer than the input: the last of past (7, 8) stays.
	long := run(t, "CausalConvWithState", nil, 2, f32([]int{1, 1, 1}, 9), f32([]int{1, 1, 3}, 1, 10, 100), nil, f32([]int{1, 1, 2}, 7, 8))
	near(t, "long", long[0], 987)
	near(t, "long state", long[1], 8, 9)
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{"input 2x3 with weights", nil, []*tensor.Tensor{zeros(2, 3), w}},
		{"weights 3x1x2", nil, []*tensor.Tensor{x, zeros(3, 1, 2)}},
		{"weights 2x2x2", nil, []*tensor.Tensor{x, zeros(2, 2, 2)}},
		{"weights 2x1x0", nil, []*tensor.Tensor{x, zeros(2, 1, 0)}},
		{"bias 3 for 2 channels", nil, []*tensor.Tensor{x, w, zeros(3)}},
		{"past_state 1x2x2, want 1x2x1", nil, []*tensor.Tensor{x, w, nil, zeros(1, 2, 2)}},
		{`activation "relu"`, graph.Attrs{"activation": "relu"}, []*tensor.Tensor{x, w}},
	} {
		refuse(t, tt.want, "CausalConvWithState", tt.attrs, tt.in...)
	}
}

func TestTensorScatter(t *testing.T) {
	t.Parallel()
	cache := f32([]int{2, 3, 2}, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9)
	update := f32([]int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	near(t, "from the beginning", run(t, "TensorScatter", nil, 1, cache, update)[0], 1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 9, 9)
	near(t, "from places", run(t, "TensorScatter", nil, 1, cache, update, i64(1, 0))[0], 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9)
	round := graph.Attrs{"mode": "circular"}
	near(t, "around", run(t, "TensorScatter", round, 1, cache, update, i64(2, 7))[0], 3, 4, 0, 0, 1, 2, 9, 9, 5, 6, 7, 8)
	last := graph.Attrs{"axis": int64(-1)}
	near(t, "last axis", run(t, "TensorScatter", last, 1, f32([]int{1, 2, 3}, 0, 0, 0, 9, 9, 9), f32([]int{1, 2, 1}, 1, 2), i64(2))[0], 0, 0, 1, 9, 9, 2)
	words := func(shape []int, v ...string) *tensor.Tensor {
		return &tensor.Tensor{Type: tensor.String, Shape: shape, Data: []byte{}, Strings: v}
	}
	if got := run(t, "TensorScatter", nil, 1, words([]int{1, 2, 1}, "a", "b"), words([]int{1, 1, 1}, "c"), i64(1))[0]; !cmp.Equal(got.Strings, []string{"a", "c"}) {
		t.Errorf("%q", got.Strings)
	}
	same := []float32{0, 0, 9, 9}
	if scatterRows(same, same, []float32{1, 2}, 1, 1, 2, func(int, int) int { return 0 }); !cmp.Equal(same, []float32{1, 2, 9, 9}) {
		t.Errorf("in place: %v", same)
	}
	refuse(t, "write index 2 with 2 updates of 3 places", "TensorScatter", nil, cache, update, i64(0, 2))
	refuse(t, "write index -1", "TensorScatter", round, cache, update, i64(0, -1))
	refuse(t, "write_indices 1 for batch 2", "TensorScatter", nil, cache, update, i64(0))
	refuse(t, "update 2x4x2 of cache 2x3x2 along axis 1", "TensorScatter", nil, cache, zeros(2, 4, 2))
	refuse(t, "update 1x2x2 of cache", "TensorScatter", nil, cache, zeros(1, 2, 2))
	refuse(t, "update 2x2 of cache", "TensorScatter", nil, cache, zeros(2, 2))
	refuse(t, "along axis 0", "TensorScatter", graph.Attrs{"axis": int64(0)}, cache, zeros(1, 3, 2))
	refuse(t, "axis 3 is outside rank 3", "TensorScatter", graph.Attrs{"axis": int64(3)}, cache, update)
	refuse(t, "along axis 1", "TensorScatter", nil, cache, tensor.New(tensor.Float64, 2, 2, 2))
	refuse(t, "TensorScatter of int4", "TensorScatter", nil, tensor.New(tensor.Int4, 1, 2, 2), tensor.New(tensor.Int4, 1, 1, 2))
}

// body is a nested graph of a test.
type body func(x *tensor.Tensor) ([]*tensor.Tensor, error)

func (b body) Run(in []*tensor.Tensor) ([]*tensor.Tensor, error) { return b(in[0]) }

// TestFlexAttention modifies scores and weights by nested graphs.
func TestFlexAttention(t *testing.T) {
	t.Parallel()
	var seen []tensor.Type
	scaleBy := func(f float64) body {
		return func(x *tensor.Tensor) ([]*tensor.Tensor, error) {
			seen = append(seen, x.Type)
			y := tensor.New(x.Type, x.Shape...)
			tensor.Fill(y, func(i int) float64 { return f * tensor.At(x, i) })
			return []*tensor.Tensor{y}, nil
		}
	}
	wrong := errors.New("wrong")
	env := &optest.Env{Bodies: map[int]op.Body{
		1: scaleBy(0), 2: scaleBy(3),
		3: body(func(*tensor.Tensor) ([]*tensor.Tensor, error) { return nil, wrong }),
		4: body(func(*tensor.Tensor) ([]*tensor.Tensor, error) { return nil, nil }),
		5: body(func(*tensor.Tensor) ([]*tensor.Tensor, error) { return []*tensor.Tensor{zeros(1)}, nil }),
		6: body(func(x *tensor.Tensor) ([]*tensor.Tensor, error) {
			return []*tensor.Tensor{tensor.New(tensor.String, x.Shape...)}, nil
		}),
	}}
	q, k, v := f32([]int{1, 2, 1, 2}, 1, 2, 0, 0), f32([]int{1, 1, 2, 2}, 3, 4, 1, -1), f32([]int{1, 1, 2, 1}, 1, 5)
	flex := func(attrs graph.Attrs) (*tensor.Tensor, error) {
		out, err := optest.RunEnv(env, Defs(), optest.Node{Domain: "ai.onnx.preview", Op: "FlexAttention", Version: 1, Attrs: attrs}, q, k, v)
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}
	p := 1 / (1 + math.Exp(-12/math.Sqrt2)) // of the first head; the second weighs both the same
	for _, tt := range []struct {
		name  string
		attrs graph.Attrs
		want  []float64
		seen  []tensor.Type
	}{
		{"plain", nil, []float64{p + 5*(1-p), 3}, nil},
		{"scale", graph.Attrs{"scale": float32(0)}, []float64{3, 3}, nil},
		{"scores", graph.Attrs{"score_mod": graph.GraphRef(1)}, []float64{3, 3}, []tensor.Type{tensor.Float32}},
		{"weights", graph.Attrs{"scale": float32(0), "prob_mod": graph.GraphRef(2)}, []float64{9, 9}, []tensor.Type{tensor.Float32}},
		{"in another type", graph.Attrs{"score_mod": graph.GraphRef(1), "prob_mod": graph.GraphRef(2), "softmax_precision": int64(11)}, []float64{9, 9}, []tensor.Type{tensor.Float64, tensor.Float64}},
		{"in half precision", graph.Attrs{"score_mod": graph.GraphRef(1), "softmax_precision": int64(10)}, []float64{3, 3}, []tensor.Type{tensor.Float16}},
	} {
		seen = nil
		out, err := flex(tt.attrs)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		near(t, tt.name, out, tt.want...)
		if !cmp.Equal(out.Shape, []int{1, 2, 1, 1}) || !cmp.Equal(seen, tt.seen) {
			t.Errorf("%s: shape %v, graphs saw %v", tt.name, out.Shape, seen)
		}
	}
	for want, attrs := range map[string]graph.Attrs{
		"score_mod: wrong": {"score_mod": graph.GraphRef(3)},
		"prob_mod: wrong":  {"prob_mod": graph.GraphRef(3)},
		"score_mod must return one tensor of shape 1x2":  {"score_mod": graph.GraphRef(4)},
		"prob_mod must return one tensor of shape 1x2x1": {"prob_mod": graph.GraphRef(5)},
		"score_mod that returns string":                  {"score_mod": graph.GraphRef(6)},
		"no body 9":                                      {"score_mod": graph.GraphRef(9)},
		"softmax_precision 7":                            {"softmax_precision": int64(7)},
	} {
		if _, err := flex(attrs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	n := optest.Node{Domain: "ai.onnx.preview", Op: "FlexAttention", Version: 1, Attrs: graph.Attrs{"q_num_heads": int64(1), "kv_num_heads": int64(1)}}
	if _, err := optest.RunEnv(env, Defs(), n, zeros(1, 1, 2), zeros(1, 1, 2), zeros(1, 1, 2)); err == nil || !strings.Contains(err.Error(), "want rank 4") {
		t.Errorf("rank 3: %v", err)
	}
}

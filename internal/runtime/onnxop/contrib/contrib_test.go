package contrib

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestFusedAttentions checks that the three attention operators agree: Attention with its
// projection computed before, MultiHeadAttention, and the standard's Attention.
func TestFusedAttentions(t *testing.T) {
	t.Parallel()
	r := source(21)
	const batch, rows, in, heads, size = 2, 4, 6, 3, 4
	const hidden = heads * size
	x, w, b := random(r, tensor.Float32, batch, rows, in), random(r, tensor.Float32, in, 3*hidden), random(r, tensor.Float32, 3*hidden)
	all := run(t, optest.Node{Op: "Gemm", Version: 13}, &tensor.Tensor{Type: x.Type, Shape: []int{batch * rows, in}, Data: x.Data}, w, b)[0]
	part := func(i int) *tensor.Tensor {
		y := tensor.New(tensor.Float32, batch, rows, hidden)
		for n := range batch * rows {
			copy(tensor.Of[float32](y)[n*hidden:][:hidden], tensor.Of[float32](all)[n*3*hidden+i*hidden:])
		}
		return y
	}
	n := int64(heads)
	// by the definition, so that the operators are not compared with one of them
	var project [3][]float64
	for i := range project {
		for row := range batch * rows {
			for j := range hidden {
				s := tensor.At(b, i*hidden+j)
				for k := range in {
					s += tensor.At(x, row*in+k) * tensor.At(w, k*3*hidden+i*hidden+j)
				}
				project[i] = append(project[i], s)
			}
		}
	}
	want := make([]float64, batch*rows*hidden)
	for at := range batch * heads {
		first := at/heads*rows*hidden + at%heads*size
		var one [3][][]float64
		for i := range one {
			for row := range rows {
				one[i] = append(one[i], project[i][first+row*hidden:][:size])
			}
		}
		for row, o := range naiveAttention(one[0], one[1], one[2], 1/math.Sqrt(size), func(i, j int) bool { return j <= i }) {
			copy(want[first+row*hidden:], o)
		}
	}
	near(t, "standard", run(t, optest.Node{Op: "Attention", Version: 23, Attrs: graph.Attrs{"q_num_heads": n, "kv_num_heads": n, "is_causal": true}}, part(0), part(1), part(2))[0], want, 1e-5)
	ms := func(op string, in ...*tensor.Tensor) *tensor.Tensor {
		return run(t, optest.Node{Domain: graph.Microsoft, Op: op, Version: 1, Attrs: graph.Attrs{"num_heads": n, "unidirectional": int64(1)}}, in...)[0]
	}
	near(t, "Attention", ms("Attention", x, w, b), want, 1e-5)
	near(t, "MultiHeadAttention", ms("MultiHeadAttention", part(0), part(1), part(2)), want, 1e-5)
	packed := tensor.New(tensor.Float32, batch, rows, heads, 3, size)
	pairs := tensor.New(tensor.Float32, batch, rows, heads, 2, size)
	for i := range 3 {
		p := tensor.Of[float32](part(i))
		for k := range batch * rows * heads {
			copy(tensor.Of[float32](packed)[(k*3+i)*size:][:size], p[k*size:])
			if i > 0 {
				copy(tensor.Of[float32](pairs)[(k*2+i-1)*size:][:size], p[k*size:])
			}
		}
	}
	near(t, "packed", ms("MultiHeadAttention", packed), want, 1e-5)
	near(t, "packed keys and values", ms("MultiHeadAttention", part(0), pairs), want, 1e-5)
}

// normalised is layer normalisation of rows of n; without a mean and a beta it is the RMS
// normalisation.
func normalised(x []float64, n int, eps float64, gamma, beta *tensor.Tensor) []float64 {
	out := make([]float64, len(x))
	for at := 0; at < len(x); at += n {
		var mean, square float64
		for _, v := range x[at:][:n] {
			mean += v / float64(n)
		}
		if beta == nil {
			mean = 0
		}
		for _, v := range x[at:][:n] {
			square += (v - mean) * (v - mean) / float64(n)
		}
		for i, v := range x[at:][:n] {
			out[at+i] = (v - mean) / math.Sqrt(square+eps) * tensor.At(gamma, i)
			if beta != nil {
				out[at+i] += tensor.At(beta, i)
			}
		}
	}
	return out
}

// TestSkipNormalization compares with the sum, normalised by the definition.
func TestSkipNormalization(t *testing.T) {
	t.Parallel()
	for _, kind := range []tensor.Type{tensor.Float32, tensor.Float64} {
		r := source(23)
		x, skip := random(r, kind, 2, 3, 8), random(r, kind, 3, 8)
		gamma, beta, bias := random(r, kind, 8), random(r, kind, 8), random(r, kind, 8)
		sum := x.Clone()
		for i := range sum.Len() {
			tensor.Put(sum, i, tensor.At(x, i)+tensor.At(skip, i%24)+tensor.At(bias, i%8))
		}
		eps := graph.Attrs{"epsilon": float32(1e-3)}
		out := run(t, optest.Node{Domain: graph.Microsoft, Op: "SkipLayerNormalization", Version: 1, Attrs: eps, Outputs: 4}, x, skip, gamma, beta, bias)
		near(t, "normalised", out[0], normalised(numbersOf(sum), 8, 1e-3, gamma, beta), 1e-5)
		near(t, "sum", out[3], numbersOf(sum), 1e-6)
		simple := run(t, optest.Node{Domain: graph.Microsoft, Op: "SkipSimplifiedLayerNormalization", Version: 1, Attrs: eps}, x, skip, gamma, bias)[0]
		near(t, "simplified", simple, normalised(numbersOf(sum), 8, 1e-3, gamma, nil), 1e-5)
	}
}

func one(v float32) *tensor.Tensor { return tensor.From(tensor.Float32, nil, []float32{v}) }

// TestQuantized compares integer layers with the real arithmetic that they represent. Scales are
// powers of two, so that it is exact.
func TestQuantized(t *testing.T) {
	t.Parallel()
	for _, kind := range elem.Bytes {
		r := source(25)
		lo, hi := 0.0, 255.0
		if kind == tensor.Int8 {
			lo, hi = -128, 127
		}
		zero := func() *tensor.Tensor { return random(r, kind) }
		quantize := func(v, scale float64, z *tensor.Tensor) float64 {
			return min(max(math.RoundToEven(v/scale)+tensor.At(z, 0), lo), hi)
		}
		ms := func(op string, attrs graph.Attrs, in ...*tensor.Tensor) *tensor.Tensor {
			return run(t, optest.Node{Domain: graph.Microsoft, Op: op, Version: 1, Attrs: attrs}, in...)[0]
		}
		x, xz, yz := random(r, kind, 1, 2, 4, 4), zero(), zero()
		var pooled, global, joined []float64
		for c := range 2 {
			total := 0.0
			for i := range 4 {
				s := 0.0
				for k := range 4 {
					s += tensor.At(x, c*16+(i/2*2+k/2)*4+i%2*2+k%2) - tensor.At(xz, 0)
				}
				total += s
				pooled = append(pooled, quantize(s/4*0.5, 0.25, yz))
			}
			global = append(global, quantize(total/16*0.5, 0.25, yz))
		}
		near(t, "pool", ms("QLinearAveragePool", graph.Attrs{"kernel_shape": ints(2, 2), "strides": ints(2, 2)}, x, one(0.5), xz, one(0.25), yz), pooled, 0)
		near(t, "global pool", ms("QLinearGlobalAveragePool", nil, x, one(0.5), xz, one(0.25), yz), global, 0)
		a, b := random(r, kind, 2, 2), random(r, kind, 2, 3)
		az, bz := zero(), zero()
		for i := range 2 {
			for j := range 2 {
				joined = append(joined, quantize((tensor.At(a, i*2+j)-tensor.At(az, 0))*0.5, 0.25, yz))
			}
			for j := range 3 {
				joined = append(joined, quantize((tensor.At(b, i*3+j)-tensor.At(bz, 0))*2, 0.25, yz))
			}
		}
		near(t, "concat", ms("QLinearConcat", graph.Attrs{"axis": int64(1)}, one(0.25), yz, a, one(0.5), az, b, one(2), bz), joined, 0)
		bias := random(r, tensor.Int32, 3)
		var product []float64
		for i := range 2 {
			for j := range 3 {
				s := tensor.At(bias, j)
				for k := range 2 {
					s += (tensor.At(a, i*2+k) - tensor.At(az, 0)) * (tensor.At(b, k*3+j) - tensor.At(bz, 0))
				}
				product = append(product, quantize(s*0.25, 32, yz))
			}
		}
		near(t, "gemm", ms("QGemm", nil, a, one(0.5), az, b, one(0.5), bz, bias, one(32), yz), product, 0)
	}
}

func TestEmbedding(t *testing.T) {
	t.Parallel()
	r := source(27)
	ids := tensor.From(tensor.Int32, []int{1, 3}, []int32{2, 0, 1})
	segments := tensor.From(tensor.Int32, []int{1, 3}, []int32{0, 1, 1})
	mask := tensor.From(tensor.Int32, []int{1, 3}, []int32{1, 1, 0})
	word, pos, seg := random(r, tensor.Float32, 3, 4), random(r, tensor.Float32, 5, 4), random(r, tensor.Float32, 2, 4)
	gamma, beta := random(r, tensor.Float32, 4), random(r, tensor.Float32, 4)
	sum := tensor.New(tensor.Float32, 1, 3, 4)
	for i := range 12 {
		tensor.Put(sum, i, tensor.At(word, int(tensor.At(ids, i/4))*4+i%4)+tensor.At(pos, i)+tensor.At(seg, int(tensor.At(segments, i/4))*4+i%4))
	}
	out := run(t, optest.Node{Domain: graph.Microsoft, Op: "EmbedLayerNormalization", Version: 1, Outputs: 3}, ids, segments, word, pos, seg, gamma, beta, mask)
	near(t, "normalised", out[0], normalised(numbersOf(sum), 4, 1e-12, gamma, beta), 1e-5)
	near(t, "mask index", out[1], []float64{2}, 0)
	near(t, "sum", out[2], numbersOf(sum), 1e-6)
	ids.Data[0] = 9
	if _, err := optest.Run(defs, optest.Node{Domain: graph.Microsoft, Op: "EmbedLayerNormalization", Version: 1, Outputs: 3}, ids, segments, word, pos, seg, gamma, beta); err == nil {
		t.Error("no error for an id outside the table")
	}
}

package contrib

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/recurrent"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// naiveCell computes one step of a recurrent cell by the standard's equations, for one batch
// entry: x, h and c in, new h and c out. dot(g, j, v, m) is row j of gate g of a matrix times a
// vector.
type naiveCell func(x, h, c []float64, w, r func(g, j int, v []float64) float64, b func(half, g, j int) float64) (nh, nc []float64)

func naiveLSTM(x, h, c []float64, w, r func(int, int, []float64) float64, b func(int, int, int) float64) (nh, nc []float64) {
	for j := range h {
		gate := func(g int) float64 { return w(g, j, x) + r(g, j, h) + b(0, g, j) + b(1, g, j) }
		s := recurrent.Sigmoid(gate(2))*c[j] + recurrent.Sigmoid(gate(0))*math.Tanh(gate(3))
		nc, nh = append(nc, s), append(nh, recurrent.Sigmoid(gate(1))*math.Tanh(s))
	}
	return nh, nc
}

func naiveGRU(linear bool) naiveCell {
	return func(x, h, c []float64, w, r func(int, int, []float64) float64, b func(int, int, int) float64) (nh, nc []float64) {
		reset := make([]float64, len(h))
		masked := make([]float64, len(h))
		for j := range h {
			reset[j] = recurrent.Sigmoid(w(1, j, x) + r(1, j, h) + b(0, 1, j) + b(1, 1, j))
			masked[j] = reset[j] * h[j]
		}
		for j := range h {
			z := recurrent.Sigmoid(w(0, j, x) + r(0, j, h) + b(0, 0, j) + b(1, 0, j))
			s := w(2, j, x) + b(0, 2, j)
			if linear {
				s += reset[j] * (r(2, j, h) + b(1, 2, j))
			} else {
				s += r(2, j, masked) + b(1, 2, j)
			}
			nh = append(nh, (1-z)*math.Tanh(s)+z*h[j])
		}
		return nh, c
	}
}

func naiveRNN(x, h, c []float64, w, r func(int, int, []float64) float64, b func(int, int, int) float64) (nh, nc []float64) {
	for j := range h {
		nh = append(nh, math.Tanh(w(0, j, x)+r(0, j, h)+b(0, 0, j)+b(1, 0, j)))
	}
	return nh, c
}

func TestRecurrent(t *testing.T) {
	t.Parallel()
	cells := []struct {
		op     string
		gates  int
		linear bool
		cell   naiveCell
	}{{"LSTM", 4, false, naiveLSTM}, {"GRU", 3, false, naiveGRU(false)}, {"GRU", 3, true, naiveGRU(true)}, {"RNN", 1, false, naiveRNN}}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "cell")
		cell := cells[k]
		kind := rapid.SampledFrom([]tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16}).Draw(t, "type")
		direction := rapid.SampledFrom([]string{"forward", "reverse", "bidirectional"}).Draw(t, "direction")
		seq, batch := rapid.IntRange(1, 4).Draw(t, "seq"), rapid.IntRange(1, 4).Draw(t, "batch")
		in, hid, batchFirst := rapid.IntRange(1, 5).Draw(t, "in"), rapid.IntRange(1, 5).Draw(t, "hidden"), rapid.Bool().Draw(t, "layout")
		dirs := 1
		if direction == "bidirectional" {
			dirs = 2
		}
		rnd := source(rapid.Uint64().Draw(t, "seed"))
		swap := func(a, b, c int) []int {
			if batchFirst {
				return []int{b, a, c}
			}
			return []int{a, b, c}
		}
		x := random(rnd, kind, swap(seq, batch, in)...)
		w, r := random(rnd, kind, dirs, cell.gates*hid, in), random(rnd, kind, dirs, cell.gates*hid, hid)
		b, h0 := random(rnd, kind, dirs, 2*cell.gates*hid), random(rnd, kind, swap(dirs, batch, hid)...)
		lens := tensor.New(tensor.Int32, batch)
		for i := range batch {
			tensor.Of[int32](lens)[i] = int32(rnd.IntN(seq + 1))
		}
		layout := int64(0)
		if batchFirst {
			layout = 1
		}
		out, err := optest.Run(defs, optest.Node{
			Op: cell.op, Version: 22, Outputs: 2, Const: []bool{false, true, rnd.IntN(2) == 0},
			Attrs: graph.Attrs{"direction": direction, "layout": layout, "linear_before_reset": cell.linear, "hidden_size": int64(hid)},
		}, x, w, r, b, lens, h0)
		if err != nil {
			t.Fatal(err)
		}
		y, yh := make([]float64, out[0].Len()), make([]float64, out[1].Len())
		for d := range dirs {
			for n := range batch {
				state := func(j int) int {
					if batchFirst {
						return (n*dirs+d)*hid + j
					}
					return (d*batch+n)*hid + j
				}
				h, c := make([]float64, hid), make([]float64, hid)
				for j := range h {
					h[j] = tensor.At(h0, state(j))
				}
				length := int(tensor.Of[int32](lens)[n])
				for s := range length {
					tm := s
					if direction == "reverse" || d == 1 {
						tm = length - 1 - s
					}
					row, at := tm*batch+n, ((tm*dirs+d)*batch+n)*hid
					if batchFirst {
						row, at = n*seq+tm, ((n*seq+tm)*dirs+d)*hid
					}
					xs := make([]float64, in)
					for j := range xs {
						xs[j] = tensor.At(x, row*in+j)
					}
					times := func(m *tensor.Tensor) func(int, int, []float64) float64 {
						return func(g, j int, v []float64) float64 {
							s := 0.0
							for q, e := range v {
								s += e * tensor.At(m, ((d*cell.gates+g)*hid+j)*len(v)+q)
							}
							return s
						}
					}
					h, c = cell.cell(xs, h, c, times(w), times(r), func(half, g, j int) float64 {
						return tensor.At(b, ((d*2+half)*cell.gates+g)*hid+j)
					})
					copy(y[at:], h)
				}
				for j := range h {
					yh[state(j)] = h[j]
				}
			}
		}
		compare(t, out[0], y, tolerance(kind))
		compare(t, out[1], yh, tolerance(kind))
	})
}

// naiveAttention is softmax(q·kᵀ·scale)·v for one head; masked keys are skipped.
func naiveAttention(q, k, v [][]float64, scale float64, sees func(i, j int) bool) [][]float64 {
	out := make([][]float64, len(q))
	for i := range q {
		out[i] = make([]float64, len(v[0]))
		sum := 0.0
		for j := range k {
			if !sees(i, j) {
				continue
			}
			s := 0.0
			for d := range q[i] {
				s += q[i][d] * k[j][d]
			}
			e := math.Exp(s * scale)
			sum += e
			for d := range v[j] {
				out[i][d] += e * v[j][d]
			}
		}
		for d := range out[i] {
			if sum > 0 {
				out[i][d] /= sum
			}
		}
	}
	return out
}

func rowsOf(x *tensor.Tensor, at, stride, rows, size int) [][]float64 {
	out := make([][]float64, rows)
	for i := range out {
		for d := range size {
			out[i] = append(out[i], tensor.At(x, at+i*stride+d))
		}
	}
	return out
}

func TestAttention(t *testing.T) {
	t.Parallel()
	for _, kind := range elem.Floats {
		r := source(7)
		const batch, heads, kvHeads, rows, keys, size = 2, 4, 2, 3, 5, 4
		q, k, v := random(r, kind, batch, rows, heads*size), random(r, kind, batch, keys, kvHeads*size), random(r, kind, batch, keys, kvHeads*size)
		y := run(t, optest.Node{Op: "Attention", Version: 23, Attrs: graph.Attrs{"q_num_heads": int64(heads), "kv_num_heads": int64(kvHeads), "is_causal": true}}, q, k, v)[0]
		want := make([]float64, batch*rows*heads*size)
		for b := range batch {
			for h := range heads {
				kv := h / (heads / kvHeads) * size
				o := naiveAttention(rowsOf(q, b*rows*heads*size+h*size, heads*size, rows, size),
					rowsOf(k, b*keys*kvHeads*size+kv, kvHeads*size, keys, size), rowsOf(v, b*keys*kvHeads*size+kv, kvHeads*size, keys, size),
					1/math.Sqrt(size), func(i, j int) bool { return j <= i })
				for i := range o {
					copy(want[((b*rows+i)*heads+h)*size:], o[i])
				}
			}
		}
		near(t, kind.String(), y, want, tolerance(kind))
	}
}

// TestGroupQueryDecode feeds tokens one by one through the cache and all at once: the results are
// the same.
func TestGroupQueryDecode(t *testing.T) {
	t.Parallel()
	r := source(9)
	const heads, kvHeads, rows, size = 4, 2, 5, 8
	q, k, v := random(r, tensor.Float32, 1, rows, heads*size), random(r, tensor.Float32, 1, rows, kvHeads*size), random(r, tensor.Float32, 1, rows, kvHeads*size)
	cos, sin := random(r, tensor.Float32, 8, size/2), random(r, tensor.Float32, 8, size/2)
	num := func(n int) *tensor.Tensor { return tensor.From(tensor.Int32, []int{1}, []int32{int32(n)}) }
	node := optest.Node{
		Domain: graph.Microsoft, Op: "GroupQueryAttention", Version: 1, Outputs: 3,
		Attrs: graph.Attrs{"num_heads": int64(heads), "kv_num_heads": int64(kvHeads), "do_rotary": int64(1), "local_window_size": int64(3)},
	}
	all := run(t, node, q, k, v, nil, nil, num(rows-1), num(rows), cos, sin)
	part := func(x *tensor.Tensor, i int) *tensor.Tensor {
		n := x.Shape[2]
		return tensor.From(tensor.Float32, []int{1, 1, n}, tensor.Of[float32](x)[i*n:][:n])
	}
	// The definition: halves of a head are rotated by the angles of their position, a token sees
	// itself and the two before it.
	turned := func(x *tensor.Tensor, heads, h int) (out [][]float64) {
		for i := range rows {
			v := make([]float64, size)
			for d := range size / 2 {
				a, b := tensor.At(x, (i*heads+h)*size+d), tensor.At(x, (i*heads+h)*size+size/2+d)
				c, s := tensor.At(cos, i*size/2+d), tensor.At(sin, i*size/2+d)
				v[d], v[size/2+d] = a*c-b*s, b*c+a*s
			}
			out = append(out, v)
		}
		return out
	}
	want := make([]float64, rows*heads*size)
	for h := range heads {
		kv := h / (heads / kvHeads)
		o := naiveAttention(turned(q, heads, h), turned(k, kvHeads, kv), rowsOf(v, kv*size, kvHeads*size, rows, size), 1/math.Sqrt(size),
			func(i, j int) bool { return j <= i && i-j < 3 })
		for i := range o {
			copy(want[(i*heads+h)*size:], o[i])
		}
	}
	near(t, "all at once", all[0], want, 1e-5)
	pastK, pastV := tensor.New(tensor.Float32, 1, kvHeads, 0, size), tensor.New(tensor.Float32, 1, kvHeads, 0, size)
	for i := range rows {
		one := run(t, node, part(q, i), part(k, i), part(v, i), pastK, pastV, num(i), num(i+1), cos, sin)
		near(t, "token", one[0], want[i*heads*size:][:heads*size], 1e-5)
		pastK, pastV = one[1], one[2]
	}
	near(t, "keys", pastK, numbersOf(all[1]), 1e-6)
}

// TestGroupQueryScores: the optional output holds the scores of the keys that a row sees, with cap
// and bias before the softmax or the weights after it, and 0 for other keys.
func TestGroupQueryScores(t *testing.T) {
	t.Parallel()
	r := source(31)
	const heads, kvHeads, rows, size, held, past = 4, 2, 2, 8, 9, 3
	const total, softcap, window = past + rows, 0.7, 3
	q, k, v := random(r, tensor.Float32, 1, rows, heads*size), random(r, tensor.Float32, 1, rows, kvHeads*size), random(r, tensor.Float32, 1, rows, kvHeads*size)
	pk, pv, bias := random(r, tensor.Float32, 1, kvHeads, held, size), random(r, tensor.Float32, 1, kvHeads, held, size), random(r, tensor.Float32, 1, 1, rows, total)
	num := func(n int) *tensor.Tensor { return tensor.From(tensor.Int32, []int{1}, []int32{int32(n)}) }
	for mode := 1; mode <= 2; mode++ {
		node := groups(heads, kvHeads, 0)
		node.Outputs = 4
		node.Attrs["qk_output"], node.Attrs["softcap"], node.Attrs["local_window_size"] = int64(mode), float32(softcap), int64(window)
		out := run(t, node, q, k, v, pk, pv, num(total-1), num(total), nil, nil, nil, bias)
		want := make([]float64, heads*rows*total)
		for h := range heads {
			for i := range rows {
				var sum float64
				row := want[(h*rows+i)*total:][:total]
				for j := max(0, past+i+1-window); j <= past+i; j++ {
					var s float64
					for d := range size {
						key := tensor.At(pk, (h/2*held+j)*size+d)
						if j >= past {
							key = tensor.At(k, ((j-past)*kvHeads+h/2)*size+d)
						}
						s += tensor.At(q, (i*heads+h)*size+d) * key
					}
					row[j] = softcap*math.Tanh(s/math.Sqrt(size)/softcap) + tensor.At(bias, i*total+j)
					sum += math.Exp(row[j])
				}
				for j := range row {
					if mode == 2 && row[j] != 0 {
						row[j] = math.Exp(row[j]) / sum
					}
				}
			}
		}
		if want := []int{1, heads, rows, total}; !slices.Equal(out[3].Shape, want) || out[1].Shape[2] != held {
			t.Errorf("scores %v and cache %v, want %v and %d keys", out[3].Shape, out[1].Shape, want, held)
		}
		near(t, "scores", out[3], want, 1e-5)
	}
}

// TestMultiHeadScores: the optional output holds the scores with mask and bias.
func TestMultiHeadScores(t *testing.T) {
	t.Parallel()
	r := source(32)
	const heads, rows, keys, size = 2, 2, 3, 4
	q, k, v := random(r, tensor.Float32, 1, rows, heads*size), random(r, tensor.Float32, 1, keys, heads*size), random(r, tensor.Float32, 1, keys, heads*size)
	bias, mask := random(r, tensor.Float32, 1, heads, rows, keys), tensor.From(tensor.Int32, []int{1, keys}, []int32{1, 0, 1})
	node := optest.Node{Domain: graph.Microsoft, Op: "MultiHeadAttention", Version: 1, Outputs: 4, Attrs: graph.Attrs{"num_heads": int64(heads), "mask_filter_value": float32(-50)}}
	y := run(t, node, q, k, v, nil, mask, bias)[3]
	want := make([]float64, heads*rows*keys)
	for n := range want {
		h, i, j := n/(rows*keys), n/keys%rows, n%keys
		for d := range size {
			want[n] += tensor.At(q, (i*heads+h)*size+d) * tensor.At(k, (j*heads+h)*size+d) / 2
		}
		if want[n] += tensor.At(bias, n); j == 1 {
			want[n] -= 50
		}
	}
	near(t, "scores", y, want, 1e-5)
}

// TestAttentionRefuses: attributes and inputs that would be ignored are errors.
func TestAttentionRefuses(t *testing.T) {
	t.Parallel()
	r := source(33)
	x := func(shape ...int) *tensor.Tensor { return random(r, tensor.Float32, shape...) }
	num := func(n int) *tensor.Tensor { return tensor.From(tensor.Int32, []int{1}, []int32{int32(n)}) }
	group := []*tensor.Tensor{x(1, 1, 8), x(1, 1, 8), x(1, 1, 8), nil, nil, num(0), num(1)}
	for _, tt := range []struct {
		op      string
		outputs int
		attrs   graph.Attrs
		in      []*tensor.Tensor
		want    string
	}{
		{"GroupQueryAttention", 4, nil, group, "qk_output is 0"},
		{"GroupQueryAttention", 4, graph.Attrs{"qk_output": int64(3)}, group, "qk_output 3"},
		{"GroupQueryAttention", 1, graph.Attrs{"causal": int64(0)}, group, "causal 0"},
		{"GroupQueryAttention", 1, graph.Attrs{"sliding_window_cache": int64(1)}, group, "sliding_window_cache 1"},
		{"GroupQueryAttention", 1, graph.Attrs{"kv_cache_bit_width": int64(8)}, group, "kv_cache_bit_width 8"},
		{"GroupQueryAttention", 1, graph.Attrs{"v_quant_type": "PER_TENSOR"}, group, "v_quant_type"},
		{"GroupQueryAttention", 1, nil, slices.Concat(group, make([]*tensor.Tensor, 7), []*tensor.Tensor{x(4)}), "input 14"},
		{"Attention", 1, graph.Attrs{"past_present_share_buffer": int64(1)}, []*tensor.Tensor{x(1, 2, 4), x(4, 12)}, "past_present_share_buffer"},
		{"Attention", 1, nil, []*tensor.Tensor{x(1, 2, 4), x(4, 12), nil, nil, nil, nil, num(0)}, "input 6"},
		{"QAttention", 1, graph.Attrs{"past_present_share_buffer": int64(1)}, []*tensor.Tensor{x(1, 2, 4), x(4, 12), x(12), x(), x()}, "past_present_share_buffer"},
		{"MultiHeadAttention", 1, nil, []*tensor.Tensor{x(1, 2, 4), x(1, 2, 4), x(1, 2, 4), nil, nil, nil, nil, nil, num(0)}, "input 8"},
	} {
		attrs := graph.Attrs{"num_heads": int64(2), "kv_num_heads": int64(2)}
		maps.Copy(attrs, tt.attrs)
		node := optest.Node{Domain: graph.Microsoft, Op: tt.op, Version: 1, Outputs: tt.outputs, Attrs: attrs}
		if _, err := optest.Run(allDefs(), node, tt.in...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: error %v, want %q", tt.op, tt.attrs, err, tt.want)
		}
	}
}

func numbersOf(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	for i := range out {
		out[i] = tensor.At(x, i)
	}
	return out
}

func TestNormalizations(t *testing.T) {
	t.Parallel()
	for _, kind := range elem.Floats {
		r := source(11)
		x, gamma, beta := random(r, kind, 2, 4, 3), random(r, kind, 4), random(r, kind, 4)
		// All of them normalise groups of elements and scale each channel.
		check := func(op string, version int, attrs graph.Attrs, in []*tensor.Tensor, group func(i int) int, channel func(i int) int) {
			y := run(t, optest.Node{Op: op, Version: version, Attrs: attrs}, in...)[0]
			want := make([]float64, x.Len())
			for i := range want {
				var n, mean, sq float64
				for j := range want {
					if group(i) == group(j) {
						n++
						mean += tensor.At(x, j)
					}
				}
				mean /= n
				for j := range want {
					if group(i) == group(j) {
						sq += (tensor.At(x, j) - mean) * (tensor.At(x, j) - mean)
					}
				}
				want[i] = (tensor.At(x, i)-mean)/math.Sqrt(sq/n+1e-5)*tensor.At(in[1], channel(i)) + tensor.At(in[2], channel(i))
			}
			near(t, op+" "+kind.String(), y, want, 2*tolerance(kind))
		}
		ch := func(i int) int { return i / 3 % 4 }
		check("InstanceNormalization", 22, nil, []*tensor.Tensor{x, gamma, beta}, func(i int) int { return i / 3 }, ch)
		check("GroupNormalization", 21, graph.Attrs{"num_groups": int64(2)}, []*tensor.Tensor{x, gamma, beta}, func(i int) int { return i / 6 }, ch)
		two, other := random(r, kind, 2), random(r, kind, 2)
		check("GroupNormalization", 18, graph.Attrs{"num_groups": int64(2)}, []*tensor.Tensor{x, two, other}, func(i int) int { return i / 6 }, func(i int) int { return i / 6 % 2 })
		g3, b3 := random(r, kind, 3), random(r, kind, 3)
		check("LayerNormalization", 17, nil, []*tensor.Tensor{x, g3, b3}, func(i int) int { return i / 3 }, func(i int) int { return i % 3 })
	}
}

// TestResizeLinear checks that a linear image stays linear and that a constant one stays
// constant, in all modes that exclude the border.
func TestResizeLinear(t *testing.T) {
	t.Parallel()
	ramp := tensor.New(tensor.Float32, 1, 1, 1, 8)
	for i := range 8 {
		tensor.Of[float32](ramp)[i] = float32(3*i) + 1
	}
	scales := tensor.From(tensor.Float32, []int{4}, []float32{1, 1, 1, 2})
	y := run(t, optest.Node{Op: "Resize", Version: 19, Attrs: graph.Attrs{"mode": "linear"}, Const: []bool{false, false, true}}, ramp, nil, scales)[0]
	for i := 1; i < 15; i++ {
		if want := 3*((float64(i)+0.5)/2-0.5) + 1; !optest.Within(tensor.At(y, i), want, 1e-5, 0) {
			t.Errorf("element %d is %v, want %v", i, tensor.At(y, i), want)
		}
	}
	flat := tensor.New(tensor.Float32, 1, 1, 5, 8)
	for i := range flat.Len() {
		tensor.Of[float32](flat)[i] = 2
	}
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		for _, antialias := range []bool{false, mode != "nearest"} {
			sizes := tensor.From(tensor.Int64, []int{2}, []int64{3, 13})
			y := run(t, optest.Node{Op: "Resize", Version: 19, Attrs: graph.Attrs{"mode": mode, "antialias": antialias, "axes": ints(2, 3), "exclude_outside": int64(1)}}, flat, nil, nil, sizes)[0]
			near(t, mode, y, slices.Repeat([]float64{2}, 3*13), 1e-5)
		}
	}
}

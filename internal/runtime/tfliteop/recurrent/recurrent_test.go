package recurrent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

const (
	f32 = tensor.Float32
	i8  = tensor.Int8
	i16 = tensor.Int16
	i32 = tensor.Int32
)

type vector = []float64

// times multiplies a matrix with rows rows by a vector.
func times(w, x vector, rows int) vector {
	y := make(vector, rows)
	for i := range y {
		for k, v := range x {
			y[i] += w[i*len(x)+k] * v
		}
	}
	return y
}

func plus(a, b vector) vector {
	if a == nil {
		return b
	}
	out := slices.Clone(a)
	for i, v := range b {
		out[i] += v
	}
	return out
}

func each(f func(float64) float64, v vector) vector {
	out := make(vector, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

func sigma(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func within(limit float64) func(float64) float64 {
	return func(x float64) float64 {
		if limit <= 0 {
			return x
		}
		return min(max(x, -limit), limit)
	}
}

// cell is the definition of an LSTM: gates input, forget, cell and output; nil means absent.
type cell struct {
	in, rec, aux, peep, bias, norm [4]vector
	project, projectBias           vector
	cellClip, projClip             float64
	act                            func(float64) float64
	n, outputs                     int
}

func (l *cell) gate(g int, x, aux, h, c vector) vector {
	v := plus(times(l.in[g], x, l.n), times(l.rec[g], h, l.n))
	if aux != nil {
		v = plus(v, times(l.aux[g], aux, l.n))
	}
	for k := range l.peep[g] {
		v[k] += l.peep[g][k] * c[k]
	}
	if l.norm[g] == nil {
		return plus(v, l.bias[g])
	}
	mean, square := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		square += (x - mean) * (x - mean) / float64(len(v))
	}
	for k := range v {
		v[k] = (v[k]-mean)/math.Sqrt(square)*l.norm[g][k] + l.bias[g][k]
	}
	return v
}

// step gives the next output and cell.
func (l *cell) step(x, aux, h, c vector) (vector, vector) {
	f := each(sigma, l.gate(1, x, aux, h, c))
	i := each(func(v float64) float64 { return 1 - v }, f)
	if l.in[0] != nil {
		i = each(sigma, l.gate(0, x, aux, h, c))
	}
	g := each(l.act, l.gate(2, x, aux, h, c))
	next := make(vector, l.n)
	for k := range next {
		next[k] = within(l.cellClip)(f[k]*c[k] + i[k]*g[k])
	}
	o := each(sigma, l.gate(3, x, aux, h, next))
	out := make(vector, l.n)
	for k := range out {
		out[k] = o[k] * l.act(next[k])
	}
	if l.project != nil {
		out = each(within(l.projClip), plus(times(l.project, out, l.outputs), l.projectBias))
	}
	return out, next
}

func draw(r *rand.Rand, n int) vector {
	v := make(vector, n)
	for i := range v {
		v[i] = float64(float32(r.Float64()*2 - 1))
	}
	return v
}

func of(v vector, shape ...int) *tensor.Tensor {
	if v == nil {
		return nil
	}
	return optest.Of(f32, nil, shape, v...)
}

type options struct{ coupled, peep, norm, project, projectBias, clip bool }

// newCell draws a cell and gives its tensors in the order of TFLite's inputs 1 to 17 and
// 20 to 23.
func newCell(r *rand.Rand, in, n, outputs, aux int, o options) (*cell, []*tensor.Tensor, []*tensor.Tensor) {
	l := &cell{n: n, outputs: outputs, act: math.Tanh}
	if o.clip {
		l.cellClip, l.projClip = 0.3, 0.2
	}
	for g := range 4 {
		if g == 0 && o.coupled {
			continue
		}
		l.in[g], l.rec[g], l.bias[g] = draw(r, n*in), draw(r, n*outputs), draw(r, n)
		if aux > 0 {
			l.aux[g] = draw(r, n*aux)
		}
		if o.peep && g != 2 {
			l.peep[g] = draw(r, n)
		}
		if o.norm {
			l.norm[g] = draw(r, n)
		}
	}
	if o.project {
		if l.project = draw(r, outputs*n); o.projectBias {
			l.projectBias = draw(r, outputs)
		}
	}
	var ts, norms []*tensor.Tensor
	for g := range 4 {
		ts = append(ts, of(l.in[g], n, in))
	}
	for g := range 4 {
		ts = append(ts, of(l.rec[g], n, outputs))
	}
	ts = append(ts, of(l.peep[0], n), of(l.peep[1], n), of(l.peep[3], n))
	for g := range 4 {
		ts = append(ts, of(l.bias[g], n))
		norms = append(norms, of(l.norm[g], n))
	}
	return l, append(ts, of(l.project, outputs, n), of(l.projectBias, outputs)), norms
}

// sequence lays steps out: [time, batch, width] or [batch, time, width].
type layout struct {
	steps, batch int
	timeMajor    bool
}

func (s layout) row(v vector, t, b, width int) vector {
	r := b*s.steps + t
	if s.timeMajor {
		r = t*s.batch + b
	}
	return v[r*width:][:width]
}

func (s layout) shape(width int) []int {
	if s.timeMajor {
		return []int{s.steps, s.batch, width}
	}
	return []int{s.batch, s.steps, width}
}

// TestLSTM compares every option of the float LSTM, each alone and all together, with the
// definition, from a non-zero state.
func TestLSTM(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, o := range []options{{}, {coupled: true}, {peep: true}, {norm: true}, {project: true}, {project: true, projectBias: true}, {clip: true}, {project: true, clip: true}, {true, true, true, true, true, true}} {
		for i := range 4 {
			s := layout{1 + 2*i, 1 + i%3, i%2 == 0}
			in, n, outputs := 3, 5, 5
			if o.project {
				outputs = 2
			}
			l, weights, norms := newCell(r, in, n, outputs, 0, o)
			x, h, c := draw(r, s.steps*s.batch*in), draw(r, s.batch*outputs), draw(r, s.batch*n)
			want := make(vector, s.steps*s.batch*outputs)
			for b := range s.batch {
				hb, cb := h[b*outputs:][:outputs], c[b*n:][:n]
				for t := range s.steps {
					hb, cb = l.step(s.row(x, t, b, in), nil, hb, cb)
					copy(s.row(want, t, b, outputs), hb)
				}
			}
			hidden, memory := of(h, s.batch, outputs), of(c, s.batch, n)
			args := append(append([]*tensor.Tensor{of(x, s.shape(in)...)}, weights...), hidden, memory)
			attrs := graph.Attrs{"fused_activation_function": "TANH", "time_major": s.timeMajor, "cell_clip": float32(l.cellClip), "proj_clip": float32(l.projClip)}
			if o.norm {
				args = append(args, norms...)
			}
			for _, constant := range []bool{true, false} {
				node := optest.Lite("UNIDIRECTIONAL_SEQUENCE_LSTM", attrs, f32, nil)
				node.Const = slices.Repeat([]bool{constant}, 24)
				out, err := optest.Run(Defs(), node, args...)
				if err != nil {
					t.Fatalf("%+v: %v", o, err)
				}
				optest.Near(t, fmt.Sprintf("%+v", o), out[0], want, 1e-5, 0)
			}
			optest.Near(t, "a state that is not a variable", hidden, h, 0, 0)
			optest.Near(t, "a cell that is not a variable", memory, c, 0, 0)
		}
	}
}

// TestBidirectional runs both directions, with outputs concatenated or separate, and an auxiliary
// input that has its own weights or replaces the backward half's input.
func TestBidirectional(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	const in, n, width = 3, 4, 2
	for _, aux := range []string{"none", "weights", "crossed"} {
		for _, merge := range []bool{true, false} {
			for _, major := range []bool{true, false} {
				s := layout{3, 2, major}
				x, a := draw(r, s.steps*s.batch*in), draw(r, s.steps*s.batch*width)
				var halves [2]vector
				lstm, rnn := make([]*tensor.Tensor, 48), make([]*tensor.Tensor, 12)
				lstm[0], rnn[0] = of(x, s.shape(in)...), of(x, s.shape(in)...)
				if aux != "none" {
					lstm[39], rnn[9] = of(a, s.shape(width)...), of(a, s.shape(width)...)
				}
				var plain [2]vector
				for d := range 2 {
					from, extra, wide := x, vector(nil), in
					auxWidth := 0
					switch {
					case aux == "weights":
						extra, auxWidth = a, width
					case aux == "crossed" && d == 1:
						from, wide = a, width
					}
					l, weights, _ := newCell(r, wide, n, n, auxWidth, options{peep: true})
					copy(lstm[1+17*d:], weights)
					for g := range l.aux {
						lstm[40+4*d+g] = of(l.aux[g], n, width)
					}
					h, c := draw(r, s.batch*n), draw(r, s.batch*n)
					lstm[35+2*d], lstm[36+2*d] = of(h, s.batch, n), of(c, s.batch, n)
					// The plain layer takes the weights of one gate.
					copy(rnn[1+4*d:], []*tensor.Tensor{of(l.in[2], n, wide), of(l.rec[2], n, n), of(l.bias[2], n), of(h, s.batch, n)})
					rnn[10+d] = of(l.aux[2], n, width)
					halves[d], plain[d] = make(vector, s.steps*s.batch*n), make(vector, s.steps*s.batch*n)
					for b := range s.batch {
						hb, cb, pb := h[b*n:][:n], c[b*n:][:n], h[b*n:][:n]
						for k := range s.steps {
							t := k
							if d == 1 {
								t = s.steps - 1 - k
							}
							var e vector
							if extra != nil {
								e = s.row(extra, t, b, width)
							}
							hb, cb = l.step(s.row(from, t, b, wide), e, hb, cb)
							copy(s.row(halves[d], t, b, n), hb)
							next := plus(plus(times(l.in[2], s.row(from, t, b, wide), n), times(l.rec[2], pb, n)), l.bias[2])
							if e != nil {
								next = plus(next, times(l.aux[2], e, n))
							}
							pb = each(math.Tanh, next)
							copy(s.row(plain[d], t, b, n), pb)
						}
					}
				}
				attrs := graph.Attrs{"fused_activation_function": "TANH", "time_major": major, "merge_outputs": merge}
				for name, c := range map[string]struct {
					in   []*tensor.Tensor
					want [2]vector
				}{"BIDIRECTIONAL_SEQUENCE_LSTM": {lstm, halves}, "BIDIRECTIONAL_SEQUENCE_RNN": {rnn, plain}} {
					node := optest.Lite(name, attrs, f32, nil)
					if node.Const = slices.Repeat([]bool{true}, 48); !merge {
						node.Outputs = 2
					}
					out, err := optest.Run(Defs(), node, c.in...)
					if err != nil {
						t.Fatalf("%s, aux %s: %v", name, aux, err)
					}
					what := fmt.Sprintf("%s, aux %s, time major %v", name, aux, major)
					if !merge {
						optest.Near(t, what+", forwards", out[0], c.want[0], 1e-5, 0)
						optest.Near(t, what+", backwards", out[1], c.want[1], 1e-5, 0)
						continue
					}
					var joined vector
					for r := range s.steps * s.batch {
						joined = append(append(joined, c.want[0][r*n:][:n]...), c.want[1][r*n:][:n]...)
					}
					optest.Near(t, what, out[0], joined, 1e-5, 0)
				}
			}
		}
	}
}

// TestRNN: a plain layer: state = act(W·x + R·state + bias), with every activation.
func TestRNN(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	const in, n = 3, 4
	for name, act := range map[string]func(float64) float64{
		"NONE": func(x float64) float64 { return x }, "TANH": math.Tanh,
		"RELU": func(x float64) float64 { return max(x, 0) }, "RELU6": func(x float64) float64 { return min(max(x, 0), 6) }, "RELU_N1_TO_1": within(1),
		"SIGN_BIT": func(x float64) float64 {
			if x < 0 {
				return 1
			}
			return 0
		},
	} {
		for _, rank := range []int{2, 3} {
			s := layout{3, 2, rank == 3}
			if rank == 2 {
				s.steps = 1
			}
			x, w, rec, bias, h := draw(r, s.steps*s.batch*in), each(func(v float64) float64 { return 4 * v }, draw(r, n*in)), draw(r, n*n), draw(r, n), draw(r, s.batch*n)
			want := make(vector, s.steps*s.batch*n)
			for b := range s.batch {
				hb := h[b*n:][:n]
				for t := range s.steps {
					hb = each(act, plus(plus(times(w, s.row(x, t, b, in), n), times(rec, hb, n)), bias))
					copy(s.row(want, t, b, n), hb)
				}
			}
			op, shape := "UNIDIRECTIONAL_SEQUENCE_RNN", s.shape(in)
			if rank == 2 {
				op, shape = "RNN", []int{s.batch, in}
			}
			out, err := optest.Run(Defs(), optest.Lite(op, graph.Attrs{"fused_activation_function": name, "time_major": s.timeMajor}, f32, nil), of(x, shape...), of(w, n, in), of(rec, n, n), of(bias, n), of(h, s.batch, n))
			if err != nil {
				t.Fatal(err)
			}
			optest.Near(t, op+" "+name, out[0], want, 1e-4, 0)
		}
	}
}

// TestBasicLSTM: the first form of the operator has all gates in one matrix, in the order input,
// new, forget, output, and returns its state.
func TestBasicLSTM(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	const batch, in, n = 2, 3, 4
	x, h, w, bias, c := draw(r, batch*in), draw(r, batch*n), draw(r, 4*n*(in+n)), draw(r, 4*n), draw(r, batch*n)
	var outs, states, joined, gates vector
	for b := range batch {
		row := append(slices.Clone(x[b*in:][:in]), h[b*n:][:n]...)
		g := plus(times(w, row, 4*n), bias)
		joined, gates = append(joined, row...), append(gates, g...)
		for k := range n {
			s := sigma(g[k])*math.Tanh(g[n+k]) + sigma(g[2*n+k])*c[b*n+k]
			states, outs = append(states, s), append(outs, sigma(g[3*n+k])*math.Tanh(s))
		}
	}
	node := optest.Lite("LSTM", graph.Attrs{"kernel_type": "BASIC"}, f32, nil)
	node.Outputs = 4
	args := []*tensor.Tensor{of(x, batch, in), of(h, batch, n), of(w, 4*n, in+n), of(bias, 4*n), of(c, batch, n)}
	out, err := optest.Run(Defs(), node, args...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []vector{outs, states, joined, gates} {
		optest.Near(t, fmt.Sprint("output ", i), out[i], want, 1e-5, 0)
	}
	for i := range args {
		bad := slices.Clone(args)
		bad[i] = nil
		optest.Refused(t, "absent", Defs(), node, fmt.Sprintf("input %d is missing", i), bad...)
	}
	bad := slices.Clone(args)
	bad[2] = of(draw(r, 4*n*(in+n+1)), 4*n, in+n+1)
	optest.Refused(t, "weights", Defs(), node, "weights 16x8 do not fit 3 inputs and 4 cells", bad...)
	bad[2] = args[2]
	bad[3] = of(bias[1:], 4*n-1)
	optest.Refused(t, "bias", Defs(), node, "do not fit", bad...)
}

// TestSVDF runs a filter of rank two over a memory of the last features.
func TestSVDF(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	const batch, in, filters, memory, rank = 2, 3, 4, 3, 2
	whole := func(n, most int) vector {
		v := make(vector, n)
		for i := range v {
			v[i] = float64(r.IntN(2*most+1) - most)
		}
		return v
	}
	for _, c := range []struct {
		x, state, time tensor.Type
		zx, zs, zo     float64
	}{{f32, f32, f32, 0, 0, 0}, {i8, i16, i16, 3, 0, 5}, {i8, i8, i8, -128, 2, -7}, {i8, i16, i16, 127, 0, 127}} {
		x, w, time, bias, state := whole(batch*in, 5), whole(filters*in, 3), whole(filters*memory, 4), whole(filters/rank, 20), whole(batch*filters*memory, 6)
		if c.x != f32 {
			for i := range x {
				x[i] = min(max(x[i]+c.zx, -128), 127)
			}
		}
		var want vector
		for b := range batch {
			for u := range filters / rank {
				v := bias[u]
				for f := u * rank; f < (u+1)*rank; f++ {
					past := append(slices.Clone(state[(b*filters+f)*memory+1:][:memory-1]), 0)
					for k := range in {
						past[memory-1] += w[f*in+k] * (x[b*in+k] - c.zx)
					}
					past[memory-1] += c.zs
					if c.state == i8 {
						past[memory-1] = min(max(past[memory-1], -128), 127)
					}
					for m, p := range past {
						v += time[f*memory+m] * (p - c.zs)
					}
				}
				if c.x == f32 {
					want = append(want, max(v, 0))
				} else {
					want = append(want, min(max(v+c.zo, -128), 127))
				}
			}
		}
		q := func(z float64, s float32) *tensor.Quant {
			if c.x == f32 {
				return nil
			}
			return optest.Affine(int64(z), s)
		}
		bt, wt := i32, i8
		if c.x == f32 {
			bt, wt = f32, f32
		}
		memoryTensor := optest.Of(c.state, q(c.zs, 1), []int{batch, filters * memory}, state...)
		node := optest.Lite("SVDF", graph.Attrs{"rank": int64(rank), "fused_activation_function": "RELU"}, c.x, q(c.zo, 1))
		in := []*tensor.Tensor{optest.Of(c.x, q(c.zx, 1), []int{batch, in}, x...), optest.Of(wt, q(0, 1), []int{filters, in}, w...), optest.Of(c.time, q(0, 1), []int{filters, memory}, time...), optest.Of(bt, nil, []int{filters / rank}, bias...), memoryTensor}
		optest.Exactly(t, c.x.String()+" with "+c.state.String(), Defs(), node, []int{batch, filters / rank}, want, in...)
		optest.Near(t, "a state that is not a variable", memoryTensor, state, 0, 0)
	}
	one := func(shape ...int) *tensor.Tensor { return optest.Of(f32, nil, shape) }
	good := []*tensor.Tensor{one(1, 3), one(4, 3), one(4, 2), one(2), one(1, 8)}
	for what, c := range map[string]struct {
		at   int
		x    *tensor.Tensor
		text string
	}{
		"data":    {0, one(3), "input 0 has rank 1"},
		"feature": {1, one(4, 2), "weights 4x2 and 4x2"},
		"time":    {2, one(3, 2), "weights 4x3 and 3x2"},
		"memory":  {2, one(4, 0), "weights 4x3 and 4x0"},
		"bias":    {3, one(3), "3 biases for 2 units"},
		"state":   {4, one(1, 7), "state 1x7"},
		"none":    {4, nil, "input 4 (the state) is missing"},
		"types":   {4, optest.Of(i8, nil, []int{1, 8}), "float32 input with int8 state"},
	} {
		bad := slices.Clone(good)
		bad[c.at] = c.x
		optest.Refused(t, what, Defs(), optest.Lite("SVDF", graph.Attrs{"rank": int64(2)}, f32, nil), c.text, bad...)
	}
	for _, rank := range []int64{0, 3} {
		optest.Refused(t, "rank", Defs(), optest.Lite("SVDF", graph.Attrs{"rank": rank}, f32, nil), fmt.Sprintf("4 filters of rank %d", rank), good...)
	}
}

// TestIntegerLSTM: the integer LSTM is close to the definition on the dequantised numbers.
func TestIntegerLSTM(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	const in, n, steps, batch = 4, 6, 5, 2
	for _, typ := range []tensor.Type{i8, i16} {
		for _, o := range []options{{}, {clip: true}, {coupled: true}, {peep: true}, {project: true, projectBias: true}} {
			if typ == i16 && (o.coupled || o.peep || o.project) {
				continue // the full runtime's, 8 bits only
			}
			outputs := n
			if o.project {
				outputs = 3
			}
			l := &cell{n: n, outputs: outputs, act: math.Tanh}
			var args [20]*tensor.Tensor
			bits := 127.0
			if typ == i16 {
				bits = 32767
			}
			sx, sh, sw := 1/(bits+1), 1/(bits+1), 1./64
			zx, zh := 0.0, 0.0
			if typ == i8 {
				zx, zh = 7, -5
			}
			quantised := func(typ tensor.Type, n int, scale, zero float64, shape ...int) (vector, *tensor.Tensor) {
				q, real := make(vector, n), make(vector, n)
				for i := range q {
					q[i] = float64(r.IntN(201) - 100)
					if typ == i16 {
						q[i] = float64(r.IntN(40001) - 20000)
					}
					real[i] = scale * (q[i] - zero)
				}
				return real, optest.Of(typ, optest.Affine(int64(zero), float32(scale)), shape, q...)
			}
			var x, h, c vector
			x, args[0] = quantised(typ, steps*batch*in, sx, zx, batch, steps, in)
			for g := range 4 {
				if g == 0 && o.coupled {
					continue
				}
				l.in[g], args[1+g] = quantised(i8, n*in, sw, 0, n, in)
				l.rec[g], args[5+g] = quantised(i8, n*outputs, sw, 0, n, outputs)
				l.bias[g] = make(vector, n)
				b := make(vector, n)
				for k := range b {
					b[k] = float64(r.IntN(100))
					l.bias[g][k] = b[k] * sx * sw
				}
				args[12+g] = optest.Of(i32, nil, []int{n}, b...)
				if p := map[int]int{0: 9, 1: 10, 3: 11}[g]; o.peep && p > 0 {
					l.peep[g], args[p] = quantised(i16, n, 1./32768, 0, n)
				}
			}
			attrs := graph.Attrs{"fused_activation_function": "TANH"}
			extra := []*tensor.Tensor(nil)
			if o.project {
				l.project, args[16] = quantised(i8, outputs*n, sw, 0, outputs, n)
				l.projectBias = make(vector, outputs)
				args[17] = optest.Of(i32, nil, []int{outputs}) // no bias
				for len(extra) < 5 {
					extra = append(extra, optest.Of(i8, optest.Affine(0, 1./128), []int{1}))
				}
			}
			h, args[18] = quantised(typ, batch*outputs, sh, zh, batch, outputs)
			c, args[19] = quantised(i16, batch*n, 1./4096, 0, batch, n)
			if o.clip {
				l.cellClip = 0.25
				attrs["cell_clip"] = float32(0.25)
			}
			want := make(vector, steps*batch*outputs)
			s := layout{steps, batch, false}
			for b := range batch {
				hb, cb := h[b*outputs:][:outputs], c[b*n:][:n]
				for t := range steps {
					hb, cb = l.step(s.row(x, t, b, in), nil, hb, cb)
					copy(s.row(want, t, b, outputs), each(func(v float64) float64 { return min(max(v/sh+zh, -bits-1), bits) }, hb))
				}
			}
			all := append(args[:], nil, nil, nil, nil)
			if extra != nil {
				id := int64(0)
				for _, a := range all {
					if a != nil {
						id++
					}
				}
				attrs["intermediates"] = []int64{id, id + 1, id + 2, id + 3, id + 4}
				all = append(all, extra...)
			}
			node := optest.Lite("UNIDIRECTIONAL_SEQUENCE_LSTM", attrs, typ, optest.Affine(int64(zh), float32(sh)))
			node.Const = slices.Repeat([]bool{true}, len(all))
			out, err := optest.Run(Defs(), node, all...)
			if err != nil {
				t.Fatalf("%v %+v: %v", typ, o, err)
			}
			// Tables of 16 bits, gates of 12 bits behind the point; a step of 8 bits through the
			// recurrence.
			tol := 3.0
			switch {
			case typ == i16:
				tol = 40
			case o.project:
				tol = 7 // half a step of each of six cells times weights of up to 1.6
			}
			optest.Near(t, fmt.Sprintf("%v %+v", typ, o), out[0], want, tol, 0)
		}
	}
}

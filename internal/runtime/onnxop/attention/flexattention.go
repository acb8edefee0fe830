package attention

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// FlexAttention: Q, K, V of rank 4, with nested graphs that may change scores and probabilities.

func newFlex(c *op.Call) (*attention, error) {
	t, err := newAttention(&op.Call{Node: c.Node, In: c.In[:min(len(c.In), 3)]})
	if err != nil {
		return nil, err
	}
	if t.packed {
		return nil, fmt.Errorf("query %s, want rank 4", tensor.FormatShape(c.In[0].Shape))
	}
	c.SetOut(0, c.In[0].Type, []int{t.batch, t.heads, t.rows, t.vsize})
	return t, nil
}

// softmaxTypes maps ONNX's type numbers to the types that softmax_precision allows.
var softmaxTypes = map[int]tensor.Type{1: tensor.Float32, 10: tensor.Float16, 11: tensor.Float64, 16: tensor.BFloat16}

func prepareFlexAttention[T tensor.Real](c *op.Call) (op.Run, error) {
	t := op.Must(newFlex(c))
	kind := tensor.Float32
	if c.In[0].Type == tensor.Float64 {
		kind = tensor.Float64
	}
	if p := c.Node.Attrs.Int("softmax_precision", 0); p != 0 {
		var ok bool
		if kind, ok = softmaxTypes[p]; !ok {
			return nil, fmt.Errorf("softmax_precision %d", p)
		}
	}
	total := t.total()
	scores := op.ScratchOf[T](c, t.batch*t.heads*t.rows*total)
	shape := []int{t.batch, t.heads, t.rows, total}
	a := Attend[T]{Size: t.size, Scale: t.scale}
	group := t.heads / t.kvHeads
	return func(c *op.Call) error {
		q := SplitHeads(tensor.Of[T](c.In[0]), t.rows, t.heads, t.size)
		k := SplitHeads(tensor.Of[T](c.In[1]), t.fresh, t.kvHeads, t.size)
		v := SplitHeads(tensor.Of[T](c.In[2]), t.fresh, t.kvHeads, t.vsize)
		y := SplitHeads(tensor.Of[T](c.Out[0]), t.rows, t.heads, t.vsize)
		rows := func(f func(b, h, i int, s []T)) {
			c.Pool.For(t.batch*t.heads*t.rows, max(1, 1<<12/max(total*t.size, 1)), func(lo, hi int) {
				for n := lo; n < hi; n++ {
					f(n/t.rows/t.heads, n/t.rows%t.heads, n%t.rows, scores[n*total:][:total])
				}
			})
		}
		rows(func(b, h, i int, s []T) {
			for j := range s {
				s[j] = matmul.Inner(q.At(b, h, i, t.size), k.At(b, h/group, j, t.size)) * T(a.Scale)
			}
		})
		if err := modify(c, "score_mod", kind, shape, scores); err != nil {
			return err
		}
		rows(func(_, _, _ int, s []T) { Softmax(s) })
		if err := modify(c, "prob_mod", kind, shape, scores); err != nil {
			return err
		}
		rows(func(b, h, i int, s []T) {
			out := y.At(b, h, i, t.vsize)
			clear(out)
			for j, w := range s {
				for d, e := range v.At(b, h/group, j, t.vsize) {
					out[d] += w * e
				}
			}
		})
		return nil
	}, nil
}

// modify passes values through a nested graph, in the type that it expects.
func modify[T tensor.Real](c *op.Call, attr string, kind tensor.Type, shape []int, v []T) error {
	g, ok := c.Node.Attrs.Graph(attr)
	if !ok {
		return nil
	}
	body, err := c.Env.Body(g)
	if err != nil {
		return err
	}
	x := tensor.New(kind, slices.Clone(shape)...)
	tensor.Fill(x, func(i int) float64 { return float64(v[i]) })
	out, err := body.Run([]*tensor.Tensor{x})
	if err != nil {
		return fmt.Errorf("%s: %w", attr, err)
	}
	if len(out) != 1 || out[0] == nil || !slices.Equal(out[0].Shape, shape) {
		return fmt.Errorf("%s must return one tensor of shape %s", attr, tensor.FormatShape(shape))
	}
	if !out[0].Type.IsNumber() {
		return op.Unsupported("%s that returns %v", attr, out[0].Type)
	}
	tensor.Read(v, out[0], 0)
	return nil
}

// LinearAttention: a recurrent state of size×vsize per head, updated token by token.

type linearAttention struct {
	batch, rows, heads, kvHeads, size, vsize int
	gated, delta                             bool
	decay                                    int // values a head: 1 or size
	beta                                     int // heads of beta: kvHeads or 1
	scale                                    float64
}

func newLinearAttention(c *op.Call) (*linearAttention, error) {
	q, k, v, a := c.In[0].Shape, c.In[1].Shape, c.In[2].Shape, c.Node.Attrs
	t := &linearAttention{heads: a.Int("q_num_heads", 0), kvHeads: a.Int("kv_num_heads", 0)}
	bad := fmt.Errorf("query %s, key %s, value %s with %d and %d heads", tensor.FormatShape(q), tensor.FormatShape(k), tensor.FormatShape(v), t.heads, t.kvHeads)
	if len(q) != 3 || len(k) != 3 || len(v) != 3 || t.heads < 1 || t.kvHeads < 1 || t.heads%t.kvHeads != 0 ||
		!slices.Equal(q[:2], k[:2]) || !slices.Equal(q[:2], v[:2]) || q[2]%t.heads != 0 || v[2]%t.kvHeads != 0 || k[2] != q[2]/t.heads*t.kvHeads {
		return nil, bad
	}
	t.batch, t.rows, t.size, t.vsize = q[0], q[1], q[2]/t.heads, v[2]/t.kvHeads
	switch rule := a.Str("update_rule", "gated_delta"); rule {
	case "linear":
	case "gated":
		t.gated = true
	case "delta":
		t.delta = true
	case "gated_delta":
		t.gated, t.delta = true, true
	default:
		return nil, fmt.Errorf("update_rule %q", rule)
	}
	if t.gated != c.Has(4) || t.delta != c.Has(5) {
		return nil, fmt.Errorf("decay and beta do not fit update_rule %q", a.Str("update_rule", "gated_delta"))
	}
	if t.gated {
		d := c.In[4].Shape
		if len(d) != 3 || !slices.Equal(d[:2], q[:2]) || d[2] != t.kvHeads && d[2] != t.kvHeads*t.size {
			return nil, fmt.Errorf("decay %s", tensor.FormatShape(d))
		}
		t.decay = d[2] / t.kvHeads
	}
	if t.delta {
		b := c.In[5].Shape
		if len(b) != 3 || !slices.Equal(b[:2], q[:2]) || b[2] != t.kvHeads && b[2] != 1 {
			return nil, fmt.Errorf("beta %s", tensor.FormatShape(b))
		}
		t.beta = b[2]
	}
	if p := c.Input(3); p != nil && !slices.Equal(p.Shape, t.state()) {
		return nil, fmt.Errorf("past_state %s, want %s", tensor.FormatShape(p.Shape), tensor.FormatShape(t.state()))
	}
	if t.scale = float64(a.Float("scale", 0)); t.scale == 0 {
		t.scale = 1 / math.Sqrt(float64(t.size))
	}
	kind := c.In[0].Type
	c.SetOut(0, kind, []int{t.batch, t.rows, t.heads * t.vsize})
	if c.Has(3) {
		kind = c.In[3].Type
	}
	c.SetOut(1, kind, t.state())
	return t, nil
}

func (t *linearAttention) state() []int { return []int{t.batch, t.kvHeads, t.size, t.vsize} }

// InferLinearAttention sets the shapes of the result and of the state.
var InferLinearAttention = op.Infer(newLinearAttention)

// PrepareLinearAttention makes attention with a recurrent state.
func PrepareLinearAttention(c *op.Call) (op.Run, error) {
	t := op.Must(newLinearAttention(c))
	state := op.ScratchOf[float32](c, tensor.Elements(t.state()))
	reads := op.ScratchOf[float32](c, t.batch*t.kvHeads*t.vsize)
	heads := func(c *op.Call, lo, hi int) {
		for i := lo; i < hi; i++ {
			t.run(c, i/t.kvHeads, i%t.kvHeads, state[i*t.size*t.vsize:][:t.size*t.vsize], reads[i*t.vsize:][:t.vsize])
		}
	}
	return func(c *op.Call) error {
		clear(state)
		if past := elem.Elements[float32](c, 3); past != nil {
			copy(state, past)
		}
		workers.Do(c.Pool, t.batch*t.kvHeads, 1, c, heads)
		if c.Wants(1) {
			copy(tensor.Of[float32](c.Out[1]), state)
		}
		return nil
	}, nil
}

// run processes the tokens of one head; read is scratch memory for the values that the state
// holds under a key.
func (t *linearAttention) run(c *op.Call, b, h int, state, read []float32) {
	q, k, v := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.In[2])
	decay, beta, y := elem.Elements[float32](c, 4), elem.Elements[float32](c, 5), tensor.Of[float32](c.Out[0])
	group := t.heads / t.kvHeads
	for r := range t.rows {
		row := b*t.rows + r
		key, val := k[(row*t.kvHeads+h)*t.size:][:t.size], v[(row*t.kvHeads+h)*t.vsize:][:t.vsize]
		if t.gated {
			for d := range t.size {
				g := float32(math.Exp(float64(decay[(row*t.kvHeads+h)*t.decay+d%t.decay])))
				for e, line := 0, state[d*t.vsize:][:t.vsize]; e < len(line); e++ {
					line[e] *= g
				}
			}
		}
		rate := float32(1)
		clear(read)
		if t.delta {
			rate = beta[row*t.beta+h%t.beta]
			for d, kd := range key {
				for e, s := range state[d*t.vsize:][:t.vsize] {
					read[e] += kd * s
				}
			}
		}
		for d, kd := range key {
			for e, line := 0, state[d*t.vsize:][:t.vsize]; e < len(line); e++ {
				line[e] += rate * kd * (val[e] - read[e])
			}
		}
		for g := range group {
			query := q[(row*t.heads+h*group+g)*t.size:][:t.size]
			out := y[(row*t.heads+h*group+g)*t.vsize:][:t.vsize]
			clear(out)
			for d, qd := range query {
				for e, s := range state[d*t.vsize:][:t.vsize] {
					out[e] += qd * float32(t.scale) * s
				}
			}
		}
	}
}

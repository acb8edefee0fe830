package attention

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Rotary rotates pairs of elements by position-dependent angles.
type Rotary struct {
	Size        int // elements of a head
	Dim         int // of them turned, even
	Interleaved bool
}

// Turn rotates one head. cos and sin hold Dim/2 values; dst may be src.
func Turn[T tensor.Real](r *Rotary, dst, src, cos, sin []T) {
	n := r.Dim / 2
	cos, sin = cos[:n], sin[:n]
	if r.Interleaved {
		for i, c := range cos {
			x, y := src[2*i], src[2*i+1]
			dst[2*i], dst[2*i+1] = c*x-sin[i]*y, sin[i]*x+c*y
		}
	} else {
		from, above, to, end := src[:n], src[n:][:n], dst[:n], dst[n:][:n]
		for i, c := range cos {
			x, y := from[i], above[i]
			to[i], end[i] = c*x-sin[i]*y, sin[i]*x+c*y
		}
	}
	copy(dst[r.Dim:r.Size], src[r.Dim:r.Size])
}

// RotaryEmbedding is the geometry of ONNX's RotaryEmbedding: x is [B,H,S,D] or [B,S,H*D].
type RotaryEmbedding struct {
	Rotary
	Packed             bool
	Batch, Heads, Rows int
}

func newRotary(c *op.Call) (*RotaryEmbedding, error) {
	x, a := c.In[0].Shape, c.Node.Attrs
	r := &RotaryEmbedding{}
	r.Interleaved = a.Bool("interleaved", false)
	switch len(x) {
	case 3:
		r.Packed, r.Batch, r.Rows, r.Heads = true, x[0], x[1], a.Int("num_heads", 0)
		if r.Heads < 1 || x[2]%r.Heads != 0 {
			return nil, fmt.Errorf("input %s with %d heads", tensor.FormatShape(x), r.Heads)
		}
		r.Size = x[2] / r.Heads
	case 4:
		r.Batch, r.Heads, r.Rows, r.Size = x[0], x[1], x[2], x[3]
	default:
		return nil, fmt.Errorf("input %s", tensor.FormatShape(x))
	}
	if r.Dim = a.Int("rotary_embedding_dim", 0); r.Dim == 0 {
		r.Dim = r.Size
	}
	cos, sin := c.In[1].Shape, c.In[2].Shape
	want := 3
	if c.Has(3) {
		want = 2
		if c.In[3].Len() != r.Batch*r.Rows {
			return nil, fmt.Errorf("position_ids %s for %d x %d tokens", tensor.FormatShape(c.In[3].Shape), r.Batch, r.Rows)
		}
	}
	if r.Dim < 0 || r.Dim > r.Size || r.Dim%2 != 0 || !slices.Equal(cos, sin) || len(cos) != want || cos[want-1] != r.Dim/2 ||
		want == 3 && (cos[0] != r.Batch || cos[1] != r.Rows) {
		return nil, fmt.Errorf("caches %s and %s for %d rotated elements", tensor.FormatShape(cos), tensor.FormatShape(sin), r.Dim)
	}
	return r, elem.Same(c)
}

func prepareRotary[T tensor.Real](c *op.Call) (op.Run, error) {
	r := op.Must(newRotary(c))
	var ids []int64
	if c.Has(3) {
		ids = op.ScratchOf[int64](c, r.Batch*r.Rows)
	}
	n := r.Dim / 2
	turn := func(c *op.Call, lo, hi int) {
		cos, sin := tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2])
		from, to := ViewOf(tensor.Of[T](c.In[0]), r.Packed, r.Rows, r.Heads, r.Size), ViewOf(tensor.Of[T](c.Out[0]), r.Packed, r.Rows, r.Heads, r.Size)
		for i := lo; i < hi; i++ {
			p := i
			if ids != nil {
				p = int(ids[i])
			}
			for h := range r.Heads {
				Turn(&r.Rotary, to.At(i/r.Rows, h, i%r.Rows, r.Size), from.At(i/r.Rows, h, i%r.Rows, r.Size), cos[p*n:][:n], sin[p*n:][:n])
			}
		}
	}
	return func(c *op.Call) error {
		if ids != nil {
			if err := op.ReadInts(ids, c.In[3]); err != nil {
				return err
			}
			for _, p := range ids {
				if p < 0 || p >= int64(c.In[1].Shape[0]) {
					return fmt.Errorf("position %d of %d", p, c.In[1].Shape[0])
				}
			}
		}
		workers.Do(c.Pool, r.Batch*r.Rows, max(1, 1<<12/max(r.Heads*r.Size, 1)), c, turn)
		return nil
	}, nil
}

// TensorScatter writes updates into a copy of a cache along a sequence axis.

func inferTensorScatter(c *op.Call) error {
	x, u := c.In[0].Shape, c.In[1].Shape
	axis, err := op.Axis(c.Node.Attrs.Int("axis", -2), len(x))
	if err != nil {
		return err
	}
	want := slices.Clone(x)
	if len(u) == len(x) {
		want[axis] = u[axis]
	}
	if axis == 0 || !slices.Equal(u, want) || u[axis] > x[axis] || c.In[0].Type != c.In[1].Type {
		return fmt.Errorf("update %s of cache %s along axis %d", tensor.FormatShape(u), tensor.FormatShape(x), axis)
	}
	if w := c.Input(2); w != nil && w.Len() != x[0] {
		return fmt.Errorf("write_indices %s for batch %d", tensor.FormatShape(w.Shape), x[0])
	}
	if b := c.In[0].Type.Bits(); b < 8 && c.In[0].Type != tensor.String {
		return op.Unsupported("TensorScatter of %v", c.In[0].Type)
	}
	return c.Result(c.In[0].Type, slices.Clone(x))
}

func prepareTensorScatter(c *op.Call) (op.Run, error) {
	x, u := c.In[0].Shape, c.In[1].Shape
	axis := op.Must(op.Axis(c.Node.Attrs.Int("axis", -2), len(x)))
	circular := c.Node.Attrs.Str("mode", "linear") == "circular"
	outer, inner, n, m := tensor.Elements(x[:axis]), tensor.Elements(x[axis+1:]), x[axis], u[axis]
	perBatch := outer / max(x[0], 1)
	return func(c *op.Call) error {
		start := make([]int, x[0])
		if c.Has(2) {
			var err error
			if start, err = op.Ints(c.In[2]); err != nil {
				return err
			}
		}
		for _, s := range start {
			if s < 0 || !circular && s+m > n {
				return fmt.Errorf("write index %d with %d updates of %d places", s, m, n)
			}
		}
		place := func(o, r int) int { return (o*n + (start[o/perBatch]+r)%n) * inner }
		if c.In[0].Type == tensor.String {
			scatterRows(c.Out[0].Strings, c.In[0].Strings, c.In[1].Strings, outer, m, inner, place)
			return nil
		}
		w := c.In[0].Type.Bits() / 8
		scatterRows(c.Out[0].Data, c.In[0].Data, c.In[1].Data, outer, m, inner*w, func(o, r int) int { return place(o, r) * w })
		return nil
	}, nil
}

func scatterRows[E any](dst, cache, update []E, outer, m, inner int, place func(o, r int) int) {
	if !op.SameMemory(dst, cache) {
		copy(dst, cache)
	}
	for o := range outer {
		for r := range m {
			copy(dst[place(o, r):][:inner], update[(o*m+r)*inner:][:inner])
		}
	}
}

// CausalConvWithState: a depthwise convolution over the past and the input. Inputs: x [B,C,L],
// weight [C,1,K], bias [C], past [B,C,K-1].

// InferCausalConv sets the shapes of the result and of the state.
func InferCausalConv(c *op.Call) error {
	x, w := c.In[0].Shape, c.In[1].Shape
	if len(x) != 3 || len(w) != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1 {
		return fmt.Errorf("input %s with weights %s", tensor.FormatShape(x), tensor.FormatShape(w))
	}
	if b := c.Input(2); b != nil && b.Len() != x[1] {
		return fmt.Errorf("bias %s for %d channels", tensor.FormatShape(b.Shape), x[1])
	}
	state := []int{x[0], x[1], w[2] - 1}
	if p := c.Input(3); p != nil && !slices.Equal(p.Shape, state) {
		return fmt.Errorf("past_state %s, want %s", tensor.FormatShape(p.Shape), tensor.FormatShape(state))
	}
	if a := c.Node.Attrs.Str("activation", "none"); !slices.Contains([]string{"none", "silu", "swish"}, a) {
		return fmt.Errorf("activation %q", a)
	}
	c.SetOut(0, c.In[0].Type, slices.Clone(x))
	c.SetOut(1, c.In[0].Type, state)
	return nil
}

// PrepareCausalConv makes a causal convolution.
func PrepareCausalConv[T tensor.Real](c *op.Call) (op.Run, error) {
	batch, ch, n := c.In[0].Shape[0], c.In[0].Shape[1], c.In[0].Shape[2]
	k := c.In[1].Shape[2]
	silu := c.Node.Attrs.Str("activation", "none") != "none"
	line := op.ScratchOf[T](c, batch*ch*(n+k-1))
	return op.Parallel(batch*ch, max(1, 1<<12/max(n*k, 1)), func(c *op.Call, lo, hi int) {
		x, w, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		bias, past, state := elem.Elements[T](c, 2), elem.Elements[T](c, 3), []T(nil)
		if c.Wants(1) {
			state = tensor.Of[T](c.Out[1])
		}
		for i := lo; i < hi; i++ {
			l := line[i*(n+k-1):][:n+k-1]
			clear(l[:k-1])
			if past != nil {
				copy(l, past[i*(k-1):][:k-1])
			}
			copy(l[k-1:], x[i*n:][:n])
			taps, out := w[i%ch*k:][:k], y[i*n:][:n]
			for t := range out {
				var s T
				if bias != nil {
					s = bias[i%ch]
				}
				for j, v := range taps {
					s += v * l[t+j]
				}
				if silu {
					s = T(float64(s) / (1 + math.Exp(-float64(s))))
				}
				out[t] = s
			}
			if state != nil {
				copy(state[i*(k-1):][:k-1], l[n:])
			}
		}
	}), nil
}

package recurrent

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// rnn is one direction of a plain recurrent layer.
type rnn struct {
	in, rec, aux        *projection
	bias, hidden, units int
	act                 func(float32) float32
	sum                 []float32
	batch               int
	kept                *state[float32]
	now                 []float32 // the state during a run
}

// newRNN takes the input numbers of weights, recurrent weights, bias, state and auxiliary weights
// (-1: none).
func newRNN(c *op.Call, weight, recurrent, bias, hidden, aux, batch, in int) (*rnn, error) {
	asym := c.Node.Attrs.Bool("asymmetric_quantize_inputs", false)
	r := &rnn{bias: bias, hidden: hidden, batch: batch}
	var err error
	if r.act, err = nonlinear(c.Node.Attrs.Str("fused_activation_function", "NONE")); err != nil {
		return nil, err
	}
	if r.in, err = newProjection(c, weight, asym); err != nil {
		return nil, err
	}
	if r.rec, err = newProjection(c, recurrent, asym); err != nil {
		return nil, err
	}
	if aux >= 0 {
		if r.aux, err = newProjection(c, aux, asym); err != nil {
			return nil, err
		}
	}
	if r.in == nil || r.rec == nil || !c.Has(bias) || !c.Has(hidden) {
		return nil, c.Errorf("weights, bias or state are missing")
	}
	r.units = r.in.n
	if r.in.k != in || r.rec.n != r.units || r.rec.k != r.units || c.In[bias].Len() != r.units || c.In[hidden].Len() != batch*r.units || r.aux != nil && r.aux.n != r.units {
		return nil, c.Errorf("weights do not fit %d inputs and %d units", in, r.units)
	}
	if c.In[hidden].Type != tensor.Float32 || c.In[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%v input with %v state", c.In[0].Type, c.In[hidden].Type)
	}
	r.sum = make([]float32, batch*r.units)
	r.kept = newState[float32](c, hidden)
	return r, nil
}

func (r *rnn) step(c *op.Call, x, aux []float32) error {
	bias, err := layer.Floats(c.In[r.bias])
	if err != nil {
		return err
	}
	for b := range r.batch {
		copy(r.sum[b*r.units:], bias)
	}
	hidden := r.now
	if err := r.in.add(c, r.sum, x, r.batch); err != nil {
		return err
	}
	if aux != nil {
		if err := r.aux.add(c, r.sum, aux, r.batch); err != nil {
			return err
		}
	}
	if err := r.rec.add(c, r.sum, hidden, r.batch); err != nil {
		return err
	}
	for i, v := range r.sum {
		hidden[i] = r.act(v)
	}
	return nil
}

func inferRNN(c *op.Call) error {
	s, err := shapeSequence(c, c.Node.Attrs.Bool("time_major", false))
	if err != nil {
		return err
	}
	if err := layer.NeedRank(c, 1, 2); err != nil {
		return err
	}
	c.SetOut(0, layer.OutType(c, c.In[0].Type), s.shape(c.In[0].Shape, c.In[1].Shape[0]))
	return nil
}

func prepareRNN(c *op.Call) (op.Run, error) {
	s, err := shapeSequence(c, c.Node.Attrs.Bool("time_major", false))
	if err != nil {
		return nil, err
	}
	r, err := newRNN(c, 1, 2, 3, 4, -1, s.batch, s.in)
	if err != nil {
		return nil, err
	}
	row := make([]float32, s.batch*s.in)
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		r.now = r.kept.begin(c)
		for t := range s.steps {
			if err := r.step(c, s.gather(row, x, t, s.in), nil); err != nil {
				return err
			}
			s.scatter(y, r.now, t, r.units, r.units, 0)
		}
		return nil
	}, nil
}

// Bidirectional layers have a forward and a backward half, with outputs concatenated in one
// tensor or in two, and possibly an auxiliary input.

// inferBoth takes the input numbers whose sizes determine the width of each half.
func inferBoth(c *op.Call, fw, bw, axis int) error {
	s, err := shapeSequence(c, c.Node.Attrs.Bool("time_major", true))
	if err != nil {
		return err
	}
	if err := layer.NeedRank(c, fw, 2); err != nil {
		return err
	}
	if err := layer.NeedRank(c, bw, 2); err != nil {
		return err
	}
	nf, nb := c.In[fw].Shape[axis], c.In[bw].Shape[axis]
	if c.Node.Attrs.Bool("merge_outputs", false) {
		c.SetOut(0, layer.OutType(c, c.In[0].Type), s.shape(c.In[0].Shape, nf+nb))
		return nil
	}
	c.SetOut(0, c.In[0].Type, s.shape(c.In[0].Shape, nf))
	c.SetOut(1, c.In[0].Type, s.shape(c.In[0].Shape, nb))
	return nil
}

// half runs one direction: it computes a step and returns its result.
type half struct {
	units int
	load  func(c *op.Call) error
	step  func(c *op.Call, x, aux []float32) ([]float32, error)
}

// wantsBoth fails unless both separate outputs are present.
func wantsBoth(c *op.Call) error {
	if !c.Node.Attrs.Bool("merge_outputs", false) && !c.Wants(1) {
		return c.Errorf("output 1 (the backward half) is missing")
	}
	return nil
}

// runBoth walks forwards and backwards over the sequence.
func runBoth(s sequence, fw, bw half, auxInput int, merge, crossed bool, auxWidth int) op.Run {
	row, auxRow := make([]float32, s.batch*s.in), make([]float32, s.batch*auxWidth)
	return func(c *op.Call) error {
		x := tensor.Of[float32](c.In[0])
		var aux []float32
		if auxWidth > 0 {
			aux = tensor.Of[float32](c.In[auxInput])
		}
		for d, h := range []half{fw, bw} {
			if err := h.load(c); err != nil {
				return err
			}
			out, stride, at := c.Out[0], h.units, 0
			if merge {
				stride, at = fw.units+bw.units, d*fw.units
			} else if d == 1 {
				out = c.Out[1]
			}
			for t := range s.steps {
				if d == 1 {
					t = s.steps - 1 - t
				}
				in := s.gather(row, x, t, s.in)
				var a []float32
				if aux != nil {
					a = s.gather(auxRow, aux, t, auxWidth)
					// Without auxiliary weights the backward half reads the auxiliary input
					// instead of the input.
					if crossed && d == 1 {
						in, a = a, nil
					} else if crossed {
						a = nil
					}
				}
				r, err := h.step(c, in, a)
				if err != nil {
					return err
				}
				s.scatter(tensor.Of[float32](out), r, t, h.units, stride, at)
			}
		}
		return nil
	}
}

// auxiliary returns the width of an auxiliary input, and whether it replaces the backward half's
// input.
func auxiliary(c *op.Call, s sequence, input, fw, bw int) (width int, crossed bool, err error) {
	t := c.Input(input)
	if t == nil || t.Len() == 0 {
		return 0, false, nil
	}
	if t.Type != tensor.Float32 || t.Rank() != c.In[0].Rank() || t.Len() != s.steps*s.batch*t.Shape[t.Rank()-1] {
		return 0, false, c.Errorf("auxiliary input %s", tensor.FormatShape(t.Shape))
	}
	width = t.Shape[t.Rank()-1]
	crossed = !c.Has(fw) && !c.Has(bw)
	for _, i := range []int{fw, bw} {
		if w := c.Input(i); !crossed && (w == nil || w.Rank() != 2 || w.Shape[1] != width) {
			return 0, false, c.Errorf("weights %d do not fit the auxiliary input", i)
		}
	}
	return width, crossed, nil
}

func prepareBothRNN(c *op.Call) (op.Run, error) {
	if err := wantsBoth(c); err != nil {
		return nil, err
	}
	s, err := shapeSequence(c, c.Node.Attrs.Bool("time_major", true))
	if err != nil {
		return nil, err
	}
	width, crossed, err := auxiliary(c, s, 9, 10, 11)
	if err != nil {
		return nil, err
	}
	var h [2]half
	for d := range h {
		in, aux := s.in, -1
		if crossed && d == 1 {
			in = width
		}
		if width > 0 && !crossed {
			aux = 10 + d
		}
		r, err := newRNN(c, 1+4*d, 2+4*d, 3+4*d, 4+4*d, aux, s.batch, in)
		if err != nil {
			return nil, err
		}
		h[d] = half{r.units, func(c *op.Call) error { r.now = r.kept.begin(c); return nil }, func(c *op.Call, x, a []float32) ([]float32, error) {
			return r.now, r.step(c, x, a)
		}}
	}
	return runBoth(s, h[0], h[1], 9, c.Node.Attrs.Bool("merge_outputs", false), crossed, width), nil
}

func prepareBothLSTM(c *op.Call) (op.Run, error) {
	if err := wantsBoth(c); err != nil {
		return nil, err
	}
	s, err := shapeSequence(c, c.Node.Attrs.Bool("time_major", true))
	if err != nil {
		return nil, err
	}
	if c.In[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%v input", c.In[0].Type)
	}
	width, crossed, err := auxiliary(c, s, 39, 43, 47)
	if err != nil {
		return nil, err
	}
	var h [2]half
	for d := range h {
		at := lstmInputs{
			input: 1 + 17*d, recurrent: 5 + 17*d, peephole: 9 + 17*d, bias: 12 + 17*d, project: 16 + 17*d, projectBias: 17 + 17*d,
			hidden: 35 + 2*d, cell: 36 + 2*d, norm: -1, aux: -1,
		}
		in := s.in
		if crossed && d == 1 {
			in = width
		}
		if width > 0 && !crossed {
			at.aux = 40 + 4*d
		}
		l, err := newLSTM(c, at, s.batch)
		if err != nil {
			return nil, err
		}
		if l.in[outputGate].k != in {
			return nil, c.Errorf("weights take %d inputs, input has %d", l.in[outputGate].k, in)
		}
		out := make([]float32, s.batch*l.outputs)
		h[d] = half{l.outputs, l.load, func(c *op.Call, x, a []float32) ([]float32, error) {
			return out, l.step(c, x, a, out)
		}}
	}
	return runBoth(s, h[0], h[1], 39, c.Node.Attrs.Bool("merge_outputs", false), crossed, width), nil
}

package recurrent

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// rnn is one direction of a plain recurrent layer.
type rnn struct {
	in, rec, aux       *projection
	bias, units, batch int // bias is the number of the input
	act                func(float32) float32
	sum                []float32
	kept               *state[float32]
	now                []float32 // the state during a run
}

// rnnInputs holds the input numbers of a layer's tensors; -1 marks an absent aux.
type rnnInputs struct{ weight, recurrent, bias, hidden, aux int }

func newRNN(c *op.Call, at rnnInputs, batch, in int) (*rnn, error) {
	act, err := nonlinear(c.Node.Attrs.Str("fused_activation_function", "NONE"))
	if err != nil {
		return nil, err
	}
	w := newWeights(c)
	r := &rnn{bias: at.bias, batch: batch, act: act, in: w.read(at.weight), rec: w.read(at.recurrent), aux: w.read(at.aux)}
	if w.err != nil {
		return nil, w.err
	}
	bias, hidden := c.Input(at.bias), c.Input(at.hidden)
	if r.in == nil || r.rec == nil || bias == nil || hidden == nil {
		return nil, c.Errorf("weights, bias or state are missing")
	}
	r.units = r.in.n
	if r.in.k != in || r.rec.n != r.units || r.rec.k != r.units || bias.Len() != r.units || hidden.Len() != batch*r.units || r.aux != nil && r.aux.n != r.units {
		return nil, c.Errorf("weights do not fit %d inputs and %d units", in, r.units)
	}
	if hidden.Type != tensor.Float32 || c.In[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%v input with %v state", c.In[0].Type, hidden.Type)
	}
	r.sum = make([]float32, batch*r.units)
	r.kept = newState[float32](c, at.hidden)
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
	if err := addAll(c, r.sum, r.batch, term{r.in, x}, term{r.aux, aux}, term{r.rec, r.now}); err != nil {
		return err
	}
	for i, v := range r.sum {
		r.now[i] = r.act(v)
	}
	return nil
}

// Bidirectional layers have a forward and a backward half, with outputs concatenated in one
// tensor or in two, and possibly an auxiliary input.

// half returns the layer as a direction of a sequence.
func (r *rnn) half() half {
	load := func(c *op.Call) error { r.now = r.kept.begin(c); return nil }
	return half{r.units, load, func(c *op.Call, x, aux []float32) ([]float32, error) { return r.now, r.step(c, x, aux) }}
}

func shapeRNN(c *op.Call) (sequence, error) { return shapeSequence(c, false, 1, 0) }

func prepareRNN(c *op.Call, s sequence) (op.Run, error) {
	r, err := newRNN(c, rnnInputs{1, 2, 3, 4, -1}, s.batch, s.in)
	if err != nil {
		return nil, err
	}
	return s.run(auxiliary{}, r.half()), nil
}

// rnnHalf returns direction d of BIDIRECTIONAL_SEQUENCE_RNN, with in inputs.
func rnnHalf(c *op.Call, s sequence, d, in int, aux bool) (half, error) {
	at := rnnInputs{1 + 4*d, 2 + 4*d, 3 + 4*d, 4 + 4*d, -1}
	if aux {
		at.aux = 10 + d
	}
	r, err := newRNN(c, at, s.batch, in)
	if err != nil {
		return half{}, err
	}
	return r.half(), nil
}

// lstmHalf returns direction d of BIDIRECTIONAL_SEQUENCE_LSTM, with in inputs.
func lstmHalf(c *op.Call, s sequence, d, in int, aux bool) (half, error) {
	if c.In[0].Type != tensor.Float32 {
		return half{}, op.Unsupported("%v input", c.In[0].Type)
	}
	at := lstmInputs{
		input: 1 + 17*d, recurrent: 5 + 17*d, peephole: 9 + 17*d, bias: 12 + 17*d, project: 16 + 17*d, projectBias: 17 + 17*d,
		hidden: 35 + 2*d, cell: 36 + 2*d, norm: -1, aux: -1,
	}
	if aux {
		at.aux = 40 + 4*d
	}
	l, err := newLSTM(c, at, s.batch, in)
	if err != nil {
		return half{}, err
	}
	return l.half(), nil
}

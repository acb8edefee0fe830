package recurrent

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Gates in the order of TFLite's inputs.
const (
	inputGate = iota
	forgetGate
	cellGate
	outputGate
)

// lstmInputs holds the input numbers of a cell's tensors; -1 marks absent ones. For four gates it
// holds the first.
type lstmInputs struct {
	input, recurrent, peephole, bias int
	project, projectBias             int
	hidden, cell, norm, aux          int
}

// sequenceLSTM is the layout of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM.
var sequenceLSTM = lstmInputs{input: 1, recurrent: 5, peephole: 9, bias: 12, project: 16, projectBias: 17, hidden: 18, cell: 19, norm: 20, aux: -1}

// lstm is one direction of a float LSTM.
type lstm struct {
	at                     lstmInputs
	cells, outputs         int
	in, rec, aux           [4]*projection
	project                *projection
	act                    func(float32) float32
	cellClip, projClip     float32
	gates                  [4][]float32
	batch                  int
	peephole, bias, norm   [4][]float32
	projectBias            []float32
	hiddenState, cellState *state[float32]
	hidden, cell           []float32 // during a run
	coupled                bool      // no input gate: it is one minus the forget gate
}

func newLSTM(c *op.Call, at lstmInputs, batch, in int) (l *lstm, err error) {
	a := c.Node.Attrs
	l = &lstm{at: at, batch: batch, cellClip: a.Float("cell_clip", 0), projClip: a.Float("proj_clip", 0)}
	if l.act, err = nonlinear(a.Str("fused_activation_function", "NONE")); err != nil {
		return nil, err
	}
	w := newWeights(c)
	for g := range 4 {
		l.in[g], l.rec[g] = w.read(at.input+g), w.read(at.recurrent+g)
		if at.aux >= 0 {
			l.aux[g] = w.read(at.aux + g)
		}
	}
	if l.project = w.read(at.project); w.err != nil {
		return nil, w.err
	}
	l.coupled = l.in[inputGate] == nil
	if err := l.check(c); err != nil {
		return nil, err
	}
	if k := l.in[outputGate].k; k != in {
		return nil, c.Errorf("weights take %d inputs, input has %d", k, in)
	}
	l.hiddenState, l.cellState = newState[float32](c, at.hidden), newState[float32](c, at.cell)
	for g := range l.gates {
		l.gates[g] = make([]float32, batch*l.cells)
	}
	return l, nil
}

// check compares all shapes, so that no run indexes beyond a slice.
func (l *lstm) check(c *op.Call) error {
	ref := l.in[outputGate]
	if ref == nil || l.rec[outputGate] == nil {
		return c.Errorf("weights of the output gate are missing")
	}
	l.cells, l.outputs = ref.n, l.rec[outputGate].k
	for g := range 4 {
		if g == inputGate && l.coupled {
			continue
		}
		if l.in[g] == nil || l.rec[g] == nil || l.in[g].n != l.cells || l.in[g].k != ref.k || l.rec[g].n != l.cells || l.rec[g].k != l.outputs {
			return c.Errorf("weights of gate %d do not fit %d cells", g, l.cells)
		}
		if x := l.aux[g]; x != nil && x.n != l.cells {
			return c.Errorf("auxiliary weights of gate %d do not fit %d cells", g, l.cells)
		}
		if b := c.Input(l.at.bias + g); b == nil || b.Len() != l.cells {
			return c.Errorf("bias of gate %d does not fit %d cells", g, l.cells)
		}
	}
	if l.project == nil && l.outputs != l.cells || l.project != nil && (l.project.k != l.cells || l.project.n != l.outputs) {
		return c.Errorf("projection does not fit %d cells and %d outputs", l.cells, l.outputs)
	}
	h, s := c.Input(l.at.hidden), c.Input(l.at.cell)
	if h == nil || s == nil || h.Len() != l.batch*l.outputs || s.Len() != l.batch*l.cells {
		return c.Errorf("state does not fit batch %d, %d outputs and %d cells", l.batch, l.outputs, l.cells)
	}
	if h.Type != tensor.Float32 || s.Type != tensor.Float32 {
		return op.Unsupported("state of types %v and %v", h.Type, s.Type)
	}
	return nil
}

// load reads the small vectors at the start of a run.
func (l *lstm) load(c *op.Call) (err error) {
	read := func(dst *[]float32, i, n int) {
		if t := c.Input(i); i >= 0 && t != nil && t.Len() > 0 && err == nil {
			if *dst, err = layer.Floats(t); err == nil && len(*dst) != n {
				err = c.Errorf("input %d has %d elements, %d were expected", i, len(*dst), n)
			}
		}
	}
	for g := range 4 {
		if g == inputGate && l.coupled {
			continue
		}
		read(&l.bias[g], l.at.bias+g, l.cells)
		if l.at.norm >= 0 {
			read(&l.norm[g], l.at.norm+g, l.cells)
		}
	}
	if l.at.peephole >= 0 {
		for i, g := range []int{inputGate, forgetGate, outputGate} {
			read(&l.peephole[g], l.at.peephole+i, l.cells)
		}
	}
	read(&l.projectBias, l.at.projectBias, l.outputs)
	l.hidden, l.cell = l.hiddenState.begin(c), l.cellState.begin(c)
	return err
}

// gate computes one gate before its activation.
func (l *lstm) gate(c *op.Call, g int, x, aux, hidden, cell []float32) error {
	v := l.gates[g]
	for b := range l.batch {
		if l.norm[g] != nil {
			clear(v[b*l.cells:][:l.cells])
		} else {
			copy(v[b*l.cells:], l.bias[g])
		}
	}
	if err := addAll(c, v, l.batch, term{l.in[g], x}, term{l.aux[g], aux}, term{l.rec[g], hidden}); err != nil {
		return err
	}
	if p := l.peephole[g]; p != nil {
		for i := range v {
			v[i] += cell[i] * p[i%l.cells]
		}
	}
	if n := l.norm[g]; n != nil {
		for b := range l.batch {
			normalise(v[b*l.cells:][:l.cells], n, l.bias[g])
		}
	}
	return nil
}

// normalise is layer normalisation with the reference's epsilon.
func normalise(v, gain, bias []float32) {
	var sum, square float64
	for _, x := range v {
		sum += float64(x)
		square += float64(x) * float64(x)
	}
	n := float64(len(v))
	mean := sum / n
	variance := square/n - mean*mean
	inv := 1 / math.Sqrt(1e-8)
	if variance > 0 {
		inv = 1 / math.Sqrt(variance)
	}
	for i, x := range v {
		v[i] = float32((float64(x)-mean)*inv)*gain[i] + bias[i]
	}
}

// step computes one time step and updates the state.
func (l *lstm) step(c *op.Call, x, aux, out []float32) error {
	hidden, cell := l.hidden, l.cell
	for _, g := range []int{inputGate, forgetGate, cellGate} {
		if g == inputGate && l.coupled {
			continue
		}
		if err := l.gate(c, g, x, aux, hidden, cell); err != nil {
			return err
		}
	}
	i, f, g := l.gates[inputGate], l.gates[forgetGate], l.gates[cellGate]
	libm.SigmoidTo(f, f)
	if l.coupled {
		for k, v := range f {
			i[k] = 1 - v
		}
	} else {
		libm.SigmoidTo(i, i)
	}
	for k := range cell {
		v := f[k]*cell[k] + i[k]*l.act(g[k])
		if l.cellClip > 0 {
			v = min(max(v, -l.cellClip), l.cellClip)
		}
		cell[k] = v
	}
	if err := l.gate(c, outputGate, x, aux, hidden, cell); err != nil {
		return err
	}
	o := l.gates[outputGate]
	for k, v := range o {
		o[k] = libm.Sigmoid(v) * l.act(cell[k])
	}
	if l.project == nil {
		copy(hidden, o)
		copy(out, o)
		return nil
	}
	for b := range l.batch {
		row := hidden[b*l.outputs:][:l.outputs]
		clear(row)
		copy(row, l.projectBias)
	}
	if err := l.project.add(c, hidden, o, l.batch); err != nil {
		return err
	}
	if l.projClip > 0 {
		for k, v := range hidden {
			hidden[k] = min(max(v, -l.projClip), l.projClip)
		}
	}
	copy(out, hidden)
	return nil
}

// half returns the cell as a direction of a sequence.
func (l *lstm) half() half {
	out := make([]float32, l.batch*l.outputs)
	return half{l.outputs, l.load, func(c *op.Call, x, aux []float32) ([]float32, error) {
		return out, l.step(c, x, aux, out)
	}}
}

// shapeLSTM reads the sequence of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM. The basic kernel has one
// step.
func shapeLSTM(c *op.Call) (sequence, error) {
	if c.Node.Attrs.Str("kernel_type", "FULL") == "BASIC" {
		return shapeBasicLSTM(c)
	}
	return shapeSequence(c, false, sequenceLSTM.recurrent+outputGate, 1)
}

func inferLSTM(c *op.Call, s sequence) {
	if !s.basic {
		inferSequence(c, s)
		return
	}
	for i, n := range []int{s.units, s.units, s.in + s.units, 4 * s.units} {
		c.SetOut(i, c.In[0].Type, []int{s.batch, n})
	}
}

func prepareLSTM(c *op.Call, s sequence) (op.Run, error) {
	if s.basic {
		return prepareBasicLSTM(c, s)
	}
	switch c.In[0].Type {
	case tensor.Float32:
		l, err := newLSTM(c, sequenceLSTM, s.batch, s.in)
		if err != nil {
			return nil, err
		}
		return s.run(auxiliary{}, l.half()), nil
	case tensor.Int8:
		return lstmQuant[int8](c, s)
	case tensor.Int16:
		return lstmQuant[int16](c, s)
	}
	return nil, op.Unsupported("%v input", c.In[0].Type)
}

// shapeBasicLSTM checks the basic kernel: data, previous output, weights, bias, previous state give
// output, state and two buffers that other kernels use.
func shapeBasicLSTM(c *op.Call) (s sequence, err error) {
	if err := c.NeedInputs(5); err != nil {
		return s, err
	}
	for _, i := range []int{0, 1, 2, 4} {
		if err := layer.NeedRank(c, i, 2); err != nil {
			return s, err
		}
	}
	b, in, n := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[1]
	w := c.In[2].Shape
	if w[0] != 4*n || w[1] != in+n || c.In[3].Len() != 4*n || c.In[1].Shape[0] != b || c.In[4].Len() != b*n {
		return s, c.Errorf("weights %s do not fit %d inputs and %d cells", tensor.FormatShape(w), in, n)
	}
	return sequence{steps: 1, batch: b, in: in, units: n, basic: true}, nil
}

func prepareBasicLSTM(c *op.Call, s sequence) (op.Run, error) {
	for i := range 5 {
		if c.In[i].Type != tensor.Float32 {
			return nil, op.Unsupported("basic LSTM on %v", c.In[i].Type)
		}
	}
	b, in, n := s.batch, s.in, s.units
	joined, gates := make([]float32, b*(in+n)), make([]float32, b*4*n)
	return func(c *op.Call) error {
		x, h := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1])
		state := tensor.Of[float32](c.In[4])
		for r := range b {
			copy(joined[r*(in+n):], x[r*in:(r+1)*in])
			copy(joined[r*(in+n)+in:], h[r*n:(r+1)*n])
		}
		gemm.Multiply(c.Pool, gemm.Params{M: b, N: 4 * n, K: in + n, TransB: true, BiasN: tensor.Of[float32](c.In[3]), Exact: true}, joined, tensor.Of[float32](c.In[2]), gates)
		out, next := make([]float32, b*n), make([]float32, b*n)
		for r := range b {
			g := gates[r*4*n:][:4*n]
			for k := range n {
				// Gates are in the order input, new, forget, output.
				v := libm.Sigmoid(g[k])*libm.Tanh(g[n+k]) + libm.Sigmoid(g[2*n+k])*state[r*n+k]
				next[r*n+k] = v
				out[r*n+k] = libm.Sigmoid(g[3*n+k]) * libm.Tanh(v)
			}
		}
		for i, v := range [][]float32{out, next, joined, gates} {
			if c.Wants(i) {
				copy(tensor.Of[float32](c.Out[i]), v)
			}
		}
		return nil
	}, nil
}

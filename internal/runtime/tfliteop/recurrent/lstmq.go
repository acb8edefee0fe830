package recurrent

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// The integer LSTM is that of TFLite Micro, except for cells that only the full runtime supports
// (see lstmFull): every gate is the saturating sum of two products, each scaled to Q3.12; the
// cell is 16 bits with a power-of-two scale.

// gateProduct is x·Wᵀ of integers with its conversion to Q3.12.
type gateProduct struct {
	input int // number of the weights
	n, k  int
	w     []int16
	fold  []int64 // bias less the input offset, one a row
	mult  fixed.Multiplier
	wide  bool

	// sums are the dot products of an input row, with SIMD; nil where scaledSum computes them
	sums []int32
	own  *stacked // nil where others are multiplied with it
}

// begin computes the products of x, if SIMD kernels do.
func begin[T int8 | int16](pool *workers.Pool, p *gateProduct, x []T) {
	if bytes, ok := any(x).([]int8); ok && p.own != nil {
		p.own.run(pool, bytes)
		p.own.row(0)
	}
}

// stacked multiplies rows by the weights of several gates at once.
type stacked struct {
	gates  []*gateProduct
	n, k   int // of all gates
	packed *gemm.PackedInt8
	table  []gemm.ByteTable // of zero point 0: that of the input is in fold
	sums   []int32
}

// stack combines gates with the same number of inputs, for at most rows rows; nil if no SIMD
// kernel computes them.
func stack(c *op.Call, rows int, gates ...*gateProduct) *stacked {
	s := &stacked{gates: gates, k: gates[0].k}
	for _, p := range gates {
		s.n += p.n
	}
	if s.packed = gemm.NewPackedInt8(s.n, s.k); gates[0].wide || !s.packed.UsesSIMD() {
		return nil
	}
	c.Keep(s.n * s.k)
	w := make([]int32, 0, s.n*s.k)
	for _, p := range gates {
		for _, v := range p.w {
			w = append(w, int32(v))
		}
	}
	s.packed.Fill(w, s.k, 1)
	s.sums, s.table = op.ScratchOf[int32](c, rows*s.n), make([]gemm.ByteTable, 1)
	s.table[0].Fill(true, 0)
	return s
}

// run computes the products of rows x.
func (s *stacked) run(pool *workers.Pool, x []int8) {
	if m := len(x) / max(1, s.k); m > 0 {
		gemm.MultiplyInt8(pool, m, quantise.Bits(x), s.table, s.packed, s.sums[:m*s.n])
	}
}

// row passes the products of a row to the gates.
func (s *stacked) row(r int) {
	sums := s.sums[r*s.n:][:s.n]
	for _, p := range s.gates {
		p.sums, sums = sums[:p.n], sums[p.n:]
	}
}

const gateScale = 1.0 / 4096

// newGate prepares the products of gate g with the input, plus input bias, and with the state h, at
// the scale to; bias -1 means none.
func newGate(c *op.Call, g, bias int, h *tensor.Tensor, to float64) (in, rec *gateProduct, err error) {
	if in, err = newGateProduct(c, sequenceLSTM.input+g, bias, c.In[0], to); err == nil {
		rec, err = newGateProduct(c, sequenceLSTM.recurrent+g, -1, h, to)
	}
	return in, rec, err
}

// newGateProduct prepares x·Wᵀ + bias at the scale to; bias -1 means none.
func newGateProduct(c *op.Call, weight, bias int, x *tensor.Tensor, to float64) (*gateProduct, error) {
	w := c.Input(weight)
	if w == nil || w.Rank() != 2 {
		return nil, op.Unsupported("integer LSTM without weights %d", weight)
	}
	if w.Type != tensor.Int8 || !c.Const(weight) {
		return nil, op.Unsupported("weights %d of type %v", weight, w.Type)
	}
	scales, zeros, err := layer.ScalesOf(x, w)
	if err != nil {
		return nil, err
	}
	p := &gateProduct{input: weight, n: w.Shape[0], k: w.Shape[1], wide: x.Type == tensor.Int16}
	p.mult = fixed.FromReal(float64(scales[0]*scales[1]) / to)
	if p.w, err = layer.Weights(w); err != nil {
		return nil, err
	}
	p.fold = make([]int64, p.n)
	if b := c.Input(bias); b != nil {
		if b.Len() != p.n || !c.Const(bias) {
			return nil, c.Errorf("bias %d has %d elements, %d were expected", bias, b.Len(), p.n)
		}
		if b.Type != tensor.Int32 && b.Type != tensor.Int64 {
			return nil, op.Unsupported("bias of type %v", b.Type)
		}
		tensor.Read(p.fold, b, 0)
	}
	for o := range p.fold {
		var s int64
		for _, v := range p.w[o*p.k:][:p.k] {
			s += int64(v)
		}
		p.fold[o] -= s * int64(zeros[0])
	}
	return p, nil
}

// apply computes row o of the product for one input row, saturated to 16 bits.
func apply[T int8 | int16](p *gateProduct, x []T, o int) int32 {
	return int32(fixed.Saturate16(scaledSum(p, x, o)))
}

func scaledSum[T int8 | int16](p *gateProduct, x []T, o int) int32 {
	acc := p.fold[o]
	if p.sums != nil {
		return p.mult.Apply(int32(acc) + p.sums[o])
	}
	w := p.w[o*p.k:][:p.k]
	x = x[:len(w)]
	if p.wide {
		for i, v := range w {
			acc += int64(v) * int64(x[i])
		}
		return p.mult.Apply64(acc)
	}
	var a, b int32
	i := 0
	for ; i+1 < len(w); i += 2 {
		a += int32(w[i]) * int32(x[i])
		b += int32(w[i+1]) * int32(x[i+1])
	}
	if i < len(w) {
		a += int32(w[i]) * int32(x[i])
	}
	return p.mult.Apply(int32(acc) + a + b)
}

// lstmInt holds an integer LSTM.
type lstmInt struct {
	integerCell
	in, rec [4]*gateProduct
	// in and rec, of all rows and of one; nil where no SIMD kernel computes them
	all, step          *stacked
	forget, input, out fixed.Multiplier
	cells              int
	zeroHidden         int32
}

func newLSTMInt(c *op.Call, s sequence) (*lstmInt, error) {
	l := &lstmInt{}
	at := sequenceLSTM
	h, cell := c.Input(at.hidden), c.Input(at.cell)
	if h == nil || cell == nil || cell.Type != tensor.Int16 || h.Type != c.In[0].Type || c.Out[0].Type != h.Type {
		return nil, op.Unsupported("integer LSTM whose state is not of the input's type and int16")
	}
	var err error
	for g := range 4 {
		if l.in[g], l.rec[g], err = newGate(c, g, at.bias+g, h, gateScale); err != nil {
			return nil, err
		}
	}
	l.cells = l.in[0].n
	for g := range 4 {
		if l.in[g].n != l.cells || l.in[g].k != s.in || l.rec[g].n != l.cells || l.rec[g].k != l.cells {
			return nil, c.Errorf("weights of gate %d do not fit %d inputs and %d cells", g, s.in, l.cells)
		}
	}
	l.all, l.step = stack(c, s.steps*s.batch, l.in[:]...), stack(c, 1, l.rec[:]...)
	if h.Len() != s.batch*l.cells || cell.Len() != s.batch*l.cells {
		return nil, c.Errorf("state does not fit batch %d and %d cells", s.batch, l.cells)
	}
	if l.integerCell, err = newIntegerCell(c, cell); err != nil {
		return nil, err
	}
	sh, zh, err := layer.ScaleOf(h)
	if err != nil {
		return nil, err
	}
	l.zeroHidden = zh
	const unit = 1.0 / 32768 // scale of gates after their activation
	l.forget = fixed.FromReal(unit * l.scale / l.scale)
	l.input = fixed.FromReal(unit * unit / l.scale)
	l.out = fixed.FromReal(unit * unit / float64(sh))
	return l, nil
}

// tanhScale returns the arguments of [fixed.Tanh16] for a value with 15+power integer bits.
func tanhScale(power int) (multiplier int32, shift int) {
	if shift = 15 + power - 3; shift < 0 {
		return 3, -shift
	}
	return 0, shift
}

// tanh16 is the 16-bit tanh of a value with 15+power integer bits less 12.
func tanh16(x int16, power int) int16 {
	m, shift := tanhScale(power)
	return fixed.Tanh16(x, m, shift)
}

// beyondMicro reports whether a cell has features that TFLite Micro does not support: coupled
// gates, peepholes, a projection or layer normalisation.
func beyondMicro(c *op.Call) bool {
	for _, i := range []int{9, 10, 11, 16, 17, 20, 21, 22, 23} {
		if t := c.Input(i); t != nil && t.Len() > 0 {
			return true
		}
	}
	return !c.Has(sequenceLSTM.input)
}

func lstmQuant[T int8 | int16](c *op.Call, s sequence) (op.Run, error) {
	if c.In[0].Type == tensor.Int8 && beyondMicro(c) {
		return lstmFull(c, s)
	}
	l, err := newLSTMInt(c, s)
	if err != nil {
		return nil, err
	}
	n := l.cells
	lo, hi := layer.Limits(c.In[0].Type)
	c.Recipe = l.recipe(s, lo, hi)
	// Gates of the same step must not see the new output.
	fresh := make([]T, n)
	outputs, memory := newState[T](c, sequenceLSTM.hidden), newState[int16](c, sequenceLSTM.cell)
	var in, h []T // of a step; the closure is allocated once
	var state []int16
	work := func(k0, k1 int) {
		for k := k0; k < k1; k++ {
			fresh[k] = T(min(max(cellStep(l, in, h, state, k), lo), hi))
		}
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		hidden, cell := outputs.begin(c), memory.begin(c)
		bytes, _ := any(x).([]int8)
		states, _ := any(hidden).([]int8)
		if l.all != nil {
			l.all.run(c.Pool, bytes)
		}
		for t := range s.steps {
			for b := range s.batch {
				r := s.row(t, b)
				in, h, state = x[r*s.in:][:s.in], hidden[b*n:][:n], cell[b*n:][:n]
				if l.all != nil {
					l.all.row(r)
					l.step.run(c.Pool, states[b*n:][:n])
					l.step.row(0)
				}
				c.Pool.For(n, max(1, layer.Grain/max(1, 4*(s.in+n))), work)
				copy(h, fresh)
				copy(y[r*n:], fresh)
			}
		}
		return nil
	}, nil
}

// recipe returns the layer's recipe.
func (l *lstmInt) recipe(s sequence, lo, hi int32) recipe.LSTM {
	gates := func(ps [4]*gateProduct) (out [4]recipe.Gate) {
		for i, p := range ps {
			out[i] = recipe.Gate{Weights: p.input, N: p.n, K: p.k, Fold: p.fold, Mul: p.mult}
		}
		return out
	}
	m, shift := tanhScale(l.power)
	return recipe.LSTM{
		Batch: s.batch, Steps: s.steps, In: s.in, Cells: l.cells, TimeMajor: s.timeMajor,
		Inputs: gates(l.in), Recurrent: gates(l.rec), Forget: l.forget, Input: l.input, Output: l.out,
		Clip: l.clip, TanhMul: m, TanhShift: shift, ZeroHidden: l.zeroHidden, Lo: lo, Hi: hi,
		Hidden: sequenceLSTM.hidden, Cell: sequenceLSTM.cell, Wide: l.in[0].wide,
	}
}

// cellStep updates cell k and returns its output.
func cellStep[T int8 | int16](l *lstmInt, x, h []T, state []int16, k int) int32 {
	gate := func(g int) int16 {
		return fixed.Saturate16(apply(l.in[g], x, k) + apply(l.rec[g], h, k))
	}
	f := fixed.Logistic16(gate(forgetGate), 0, 0)
	i := fixed.Logistic16(gate(inputGate), 0, 0)
	g := fixed.Tanh16(gate(cellGate), 0, 0)
	o := fixed.Logistic16(gate(outputGate), 0, 0)
	kept := fixed.Saturate16(l.forget.Apply(int32(f) * int32(state[k])))
	added := fixed.Saturate16(l.input.Apply(int32(i) * int32(g)))
	v := int32(fixed.Saturate16(int32(kept) + int32(added)))
	if l.clip > 0 {
		v = min(max(v, -l.clip), l.clip)
	}
	state[k] = int16(v)
	return l.out.Apply(int32(o)*int32(tanh16(int16(v), l.power))) + l.zeroHidden
}

// integerCell holds what both integer LSTMs read from a node: the cell's scale, its power of two,
// and its limit.
type integerCell struct {
	scale float64
	power int
	clip  int32 // 0 for none
}

func newIntegerCell(c *op.Call, cell *tensor.Tensor) (l integerCell, err error) {
	if a := c.Node.Attrs.Str("fused_activation_function", "TANH"); a != "TANH" {
		return l, op.Unsupported("integer LSTM with activation %s", a)
	}
	s, _, err := layer.ScaleOf(cell)
	if err != nil {
		return l, err
	}
	f, e := math.Frexp(float64(s))
	if f != 0.5 {
		return l, op.Unsupported("cell scale %v that is not a power of two", s)
	}
	return integerCell{float64(s), e - 1, clipOf(c, "cell_clip", s, math.MaxInt16)}, nil
}

// clipOf returns the limit that an attribute sets for values of a scale, 0 for none.
func clipOf(c *op.Call, attr string, scale float32, top float64) int32 {
	if v := c.Node.Attrs.Float(attr, 0); v > 0 {
		return int32(min(float64(v)/float64(scale), top))
	}
	return 0
}

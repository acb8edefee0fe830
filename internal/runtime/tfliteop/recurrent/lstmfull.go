package recurrent

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// fullLSTM is the integer LSTM of the full runtime with 8-bit activations and a 16-bit cell:
// projection, layer normalisation, peepholes and coupled gates. Its scales between the steps are
// those of the model's intermediate tensors. The logistic function and tanh are the tables of the
// Micro kernels, which differ from the full runtime's polynomials by a few units in the last place.
type fullLSTM struct {
	integerCell
	in, rec           [4]*gateProduct
	peephole          [4]*smallVector
	norm              [4]*smallVector
	guard             [4]int32 // variance where the computed one vanishes
	bias              [4][]int32
	project           *gateProduct
	cells, outputs    int
	hidden            fixed.Multiplier
	zeroHidden, zeroH int32 // zero points before and after the projection
	projClip          int32
	coupled           bool
}

// smallVector is an int16 vector with the multiplier of its products.
type smallVector struct {
	v    []int16
	mult fixed.Multiplier
}

func newSmallVector(c *op.Call, i, n int, m func(scale float64) float64) (*smallVector, error) {
	t := c.Input(i)
	if t == nil || t.Len() == 0 {
		return nil, nil
	}
	if t.Type != tensor.Int16 || t.Len() != n {
		return nil, op.Unsupported("input %d of type %v with %d elements", i, t.Type, t.Len())
	}
	s, _, err := layer.ScaleOf(t)
	if err != nil {
		return nil, err
	}
	return &smallVector{tensor.Of[int16](t), fixed.FromReal(m(float64(s)))}, nil
}

// intermediate returns the quantisation of the node's intermediate tensor i.
func intermediate(c *op.Call, i int) *tensor.Tensor {
	ids := c.Node.Attrs.Ints("intermediates")
	if i >= len(ids) || ids[i] < 0 || ids[i] >= len(c.Graph.Values) {
		return nil
	}
	return &tensor.Tensor{Type: tensor.Int16, Quant: c.Graph.Values[ids[i]].Quant}
}

func newFullLSTM(c *op.Call, s sequence) (*fullLSTM, error) {
	at := sequenceLSTM
	h, cell := c.Input(at.hidden), c.Input(at.cell)
	if h == nil || cell == nil || h.Type != tensor.Int8 || cell.Type != tensor.Int16 || c.Out[0].Type != tensor.Int8 {
		return nil, op.Unsupported("integer LSTM whose state is not int8 and int16")
	}
	l := &fullLSTM{coupled: !c.Has(at.input)}
	var err error
	if l.integerCell, err = newIntegerCell(c, cell); err != nil {
		return nil, err
	}
	if err := l.gates(c); err != nil {
		return nil, err
	}
	if err := l.output(c, h); err != nil {
		return nil, err
	}
	if l.in[outputGate].k != s.in || h.Len() != s.batch*l.outputs || cell.Len() != s.batch*l.cells {
		return nil, c.Errorf("state does not fit %d outputs and %d cells", l.outputs, l.cells)
	}
	sh, _, _ := layer.ScaleOf(h)
	l.projClip = clipOf(c, "proj_clip", sh, math.MaxInt8)
	return l, nil
}

func (l *fullLSTM) gates(c *op.Call) error {
	at := sequenceLSTM
	peepholes := map[int]int{inputGate: 0, forgetGate: 1, outputGate: 2}
	for g := range 4 {
		if g == inputGate && l.coupled {
			continue
		}
		to, bias := gateScale, at.bias+g
		normed := c.Has(at.norm+g) && c.In[at.norm+g].Len() > 0
		if normed {
			s, _, err := layer.ScaleOf(intermediate(c, g))
			if err != nil {
				return err
			}
			to, bias = float64(s), -1
		}
		var err error
		if l.in[g], l.rec[g], err = newGate(c, g, bias, c.In[at.hidden], to); err != nil {
			return err
		}
		l.in[g].own, l.rec[g].own = stack(c, 1, l.in[g]), stack(c, 1, l.rec[g])
		if l.cells == 0 {
			l.cells, l.outputs = l.in[g].n, l.rec[g].k
		}
		if l.in[g].n != l.cells || l.rec[g].n != l.cells || l.rec[g].k != l.outputs {
			return c.Errorf("weights of gate %d do not fit %d cells", g, l.cells)
		}
		if p, ok := peepholes[g]; ok {
			if l.peephole[g], err = newSmallVector(c, at.peephole+p, l.cells, func(s float64) float64 { return l.scale * s / to }); err != nil {
				return err
			}
		}
		if !normed {
			continue
		}
		if l.norm[g], err = newSmallVector(c, at.norm+g, l.cells, func(s float64) float64 {
			l.guard[g] = max(1, int32(10000*s))
			return s
		}); err != nil {
			return err
		}
		b := c.Input(at.bias + g)
		if b == nil || b.Type != tensor.Int32 || b.Len() != l.cells {
			return c.Errorf("bias of gate %d does not fit %d cells", g, l.cells)
		}
		l.bias[g] = tensor.Of[int32](b)
	}
	return nil
}

// output prepares the computation of the output from gate and cell.
func (l *fullLSTM) output(c *op.Call, h *tensor.Tensor) error {
	at := sequenceLSTM
	sh, zh, err := layer.ScaleOf(h)
	if err != nil {
		return err
	}
	l.zeroH, l.zeroHidden = zh, zh
	if !c.Has(at.project) {
		if l.outputs != l.cells {
			return c.Errorf("%d outputs of %d cells without a projection", l.outputs, l.cells)
		}
		l.hidden = fixed.FromReal(math.Ldexp(1/float64(sh), -30))
		return nil
	}
	mid := intermediate(c, 4)
	sm, zm, err := layer.ScaleOf(mid)
	if err != nil {
		return err
	}
	// The reference subtracts this zero point where others are added, before the projection and
	// in it. Recorded results confirm it.
	l.zeroHidden = -zm
	mid.Quant = &tensor.Quant{Scale: mid.Quant.Scale[:1], Zero: []int64{int64(-zm)}}
	l.hidden = fixed.FromReal(math.Ldexp(1/float64(sm), -30))
	if l.project, err = newGateProduct(c, at.project, at.projectBias, mid, float64(sh)); err != nil {
		return err
	}
	l.project.own = stack(c, 1, l.project)
	l.project.wide = false // the values before the projection are 8 bits
	if l.project.k != l.cells || l.project.n != l.outputs {
		return c.Errorf("projection does not fit %d cells and %d outputs", l.cells, l.outputs)
	}
	return nil
}

// gate computes gate g for one row into v, before the activation.
func (l *fullLSTM) gate(g int, v []int16, x, h []int8, cell []int16) {
	begin(nil, l.in[g], x)
	begin(nil, l.rec[g], h)
	for k := range v {
		s := int32(fixed.Saturate16(scaledSum(l.in[g], x, k)))
		s = int32(fixed.Saturate16(s + scaledSum(l.rec[g], h, k)))
		if p := l.peephole[g]; p != nil {
			s = int32(fixed.Saturate16(s + p.mult.Apply(int32(p.v[k])*int32(cell[k]))))
		}
		v[k] = int16(s)
	}
	if l.norm[g] != nil {
		l.normalise(g, v)
	}
}

// normalise is layer normalisation in integers: mean and deviation have ten additional bits.
func (l *fullLSTM) normalise(g int, v []int16) {
	var sum, square int64
	for _, x := range v {
		sum += int64(x)
		square += int64(x) * int64(x)
	}
	n := int64(len(v))
	mean := sum * 1024 / n
	variance := int32((square*(1<<20/n) - mean*mean) / (1 << 20))
	if variance < 1 {
		variance = l.guard[g]
	}
	inv := fixed.InvSqrt(variance)
	last := l.norm[g].mult
	last.Shift += 12
	for k, x := range v {
		r := inv.Apply(int32(1024*int64(x) - mean))
		w := int64(r)*int64(l.norm[g].v[k]) + int64(l.bias[g][k])
		if w > 0 {
			w += 512
		} else {
			w -= 512
		}
		v[k] = fixed.Saturate16(last.Apply(int32(w / 1024)))
	}
}

func lstmFull(c *op.Call, s sequence) (op.Run, error) {
	l, err := newFullLSTM(c, s)
	if err != nil {
		return nil, err
	}
	var gates [4][]int16
	for g := range gates {
		gates[g] = make([]int16, l.cells)
	}
	mid := make([]int8, l.cells)
	outputs, memory := newState[int8](c, sequenceLSTM.hidden), newState[int16](c, sequenceLSTM.cell)
	return func(c *op.Call) error {
		x, y := tensor.Of[int8](c.In[0]), tensor.Of[int8](c.Out[0])
		hidden, cell := outputs.begin(c), memory.begin(c)
		for t := range s.steps {
			for b := range s.batch {
				r := s.row(t, b)
				h := hidden[b*l.outputs:][:l.outputs]
				l.row(gates, mid, x[r*s.in:][:s.in], h, cell[b*l.cells:][:l.cells])
				copy(y[r*l.outputs:], h)
			}
		}
		return nil
	}, nil
}

// row computes one step of one batch entry and updates h and cell.
func (l *fullLSTM) row(gates [4][]int16, mid, x, h []int8, cell []int16) {
	for _, g := range []int{inputGate, forgetGate, cellGate} {
		if g != inputGate || !l.coupled {
			l.gate(g, gates[g], x, h, cell)
		}
	}
	for k := range cell {
		f := fixed.Logistic16(gates[forgetGate][k], 0, 0)
		i := math.MaxInt16 - f
		if !l.coupled {
			i = fixed.Logistic16(gates[inputGate][k], 0, 0)
		}
		g := fixed.Tanh16(gates[cellGate][k], 0, 0)
		kept := fixed.RoundShift(int32(f)*int32(cell[k]), 15)
		added := fixed.RoundShift(int32(i)*int32(g), 30+l.power)
		v := int32(fixed.Saturate16(kept + added))
		if l.clip > 0 {
			v = min(max(v, -l.clip), l.clip)
		}
		cell[k] = int16(v)
	}
	o := gates[outputGate]
	l.gate(outputGate, o, x, h, cell)
	for k := range mid {
		v := l.hidden.Apply(int32(fixed.Logistic16(o[k], 0, 0))*int32(tanh16(cell[k], l.power))) + l.zeroHidden
		mid[k] = int8(min(max(v, math.MinInt8), math.MaxInt8))
	}
	if l.project == nil {
		copy(h, mid)
		return
	}
	begin(nil, l.project, mid)
	for k := range h {
		v := min(max(scaledSum(l.project, mid, k)+l.zeroH, math.MinInt8), math.MaxInt8)
		if l.projClip > 0 {
			v = min(max(v, -l.projClip), l.projClip)
		}
		h[k] = int8(v)
	}
}

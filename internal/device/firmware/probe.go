package firmware

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// An operator without a recipe is probed: it is prepared once more with inputs chosen by the
// generator, and run. The results for all byte values are its lookup table; the destinations of
// numbered elements are its permutation. Each finding is verified on random elements.

// probe is an operator whose inputs can be chosen.
type probe struct {
	call op.Call
	run  op.Run
	pool *workers.Pool
}

// newProbe prepares the operator of a task anew, with other shapes for input 0 and output 0 if
// given.
func newProbe(t *plan.Task, shape []int) (*probe, error) {
	p := &probe{pool: workers.New(1, nil)}
	c := t.Call
	p.call = op.Call{Model: c.Model, Graph: c.Graph, Node: c.Node, Activation: c.Activation, Fixed: c.Fixed, Pool: p.pool, Limit: c.Limit}
	for k, x := range c.In {
		if x != nil && !c.Const(k) {
			y := &tensor.Tensor{Type: x.Type, Shape: x.Shape, Quant: x.Quant}
			if k == 0 && shape != nil {
				y.Shape = shape
			}
			y.Alloc()
			x = y
		}
		p.call.In = append(p.call.In, x)
	}
	for k, x := range c.Out {
		if x != nil {
			y := &tensor.Tensor{Type: x.Type, Shape: x.Shape, Quant: x.Quant}
			if k == 0 && shape != nil {
				y.Shape = shape
			}
			y.Alloc()
			x = y
		}
		p.call.Out = append(p.call.Out, x)
	}
	return p, plan.Guard(func() (err error) { p.run, err = t.Def.Prepare(&p.call); return err })
}

// unscaled prepares the operator once more for tensors without scales.
func (p *probe) unscaled(d *op.Def) error {
	strip := func(list []*tensor.Tensor) {
		for k, x := range list {
			if x != nil {
				y := *x
				y.Quant = nil
				list[k] = &y
			}
		}
	}
	strip(p.call.In)
	strip(p.call.Out)
	return plan.Guard(func() (err error) { p.run, err = d.Prepare(&p.call); return err })
}

func (p *probe) close() { p.pool.Close() }

func (p *probe) do() error {
	return plan.Guard(func() error { return p.run(&p.call) })
}

// open lists the inputs that are not constant.
func (p *probe) open() (list []int) {
	for k, x := range p.call.In {
		if x != nil && !p.call.Const(k) {
			list = append(list, k)
		}
	}
	return list
}

// pointwise lists elementwise operators of one input.
var pointwise = map[string]bool{
	"RELU": true, "RELU6": true, "RELU_N1_TO_1": true, "RELU_0_TO_1": true, "LOGISTIC": true, "TANH": true, "LEAKY_RELU": true,
	"HARD_SWISH": true, "ELU": true, "GELU": true, "ABS": true, "NEG": true, "EXP": true, "LOG": true, "SQRT": true, "RSQRT": true,
	"SIN": true, "COS": true, "FLOOR": true, "CEIL": true, "ROUND": true, "SQUARE": true, "SIGN": true, "QUANTIZE": true,
	"DEQUANTIZE": true, "CAST": true, "LOGICAL_NOT": true, "LookUp": true,
}

// table generates a table lookup for an operator on one 8-bit value. It returns false for other
// operators.
func (g *generator) table(st *step) (bool, error) {
	c := &st.task.Call
	if !pointwise[c.Node.Op] || len(c.Out) != 1 || c.In[0] == nil || c.Const(0) || c.In[0].Type.Bits() != 8 || width(c.Out[0].Type) > 4 || c.Out[0].Type.Bits() < 8 {
		return false, nil
	}
	if q := c.In[0].Quant; q != nil && len(q.Scale) > 1 {
		return false, nil
	}
	if q := c.Out[0].Quant; q != nil && len(q.Scale) > 1 {
		return false, nil
	}
	p, err := newProbe(st.task, []int{256})
	if err != nil {
		return true, err
	}
	defer p.close()
	for i := range p.call.In[0].Data {
		p.call.In[0].Data[i] = byte(i)
	}
	if err := p.do(); err != nil {
		return true, err
	}
	w := width(c.Out[0].Type)
	table := p.call.Out[0].Data[:256*w]
	if err := checkTable(st.task, table, w); err != nil {
		return true, err
	}
	d := g.datum("t", st.layer, w, table, "layer "+strconv.Itoa(st.layer)+", "+c.Node.Op+": output for every input")
	if out := g.values[st.task.Node.Outputs[0]]; w == 1 {
		out.inPlace = g.values[st.task.Node.Inputs[0]]
	}
	g.emit(st, "table", "k_table_"+strconv.Itoa(8*w), text("%s", d.name), g.in(st, 0, "uint8_t"), g.out(st, 0, ctype(w)), text("%d", c.In[0].Len()))
	return true, nil
}

// checkTable verifies a table on random elements of the operator's own shape.
func checkTable(t *plan.Task, table []byte, w int) error {
	p, err := newProbe(t, nil)
	if err != nil {
		return err
	}
	defer p.close()
	x := p.call.In[0].Data
	fillRandom(x, p.call.In[0].Type)
	if err := p.do(); err != nil {
		return err
	}
	for i, v := range x {
		if !bytes.Equal(p.call.Out[0].Data[i*w:][:w], table[int(v)*w:][:w]) {
			return errors.New("its outputs are not a function of one input element")
		}
	}
	return nil
}

// fillRandom fills elements with random bits from a fixed seed.
func fillRandom(x []byte, t tensor.Type) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = byte(r.Uint32() >> 13)
		if t == tensor.Bool {
			x[i] &= 1
		}
	}
}

// pieces generates a piecewise linear int16 function of 512 segments, as the engine computes such
// functions by table. It returns false for other operators.
func (g *generator) pieces(st *step) (bool, error) {
	c := &st.task.Call
	if !pointwise[c.Node.Op] || len(c.Out) != 1 || c.In[0] == nil || c.Const(0) || c.In[0].Type != tensor.Int16 || c.Out[0].Type != tensor.Int16 {
		return false, nil
	}
	p, err := newProbe(st.task, []int{1 << 16})
	if err != nil {
		return false, err
	}
	defer p.close()
	x := tensor.Of[int16](p.call.In[0])
	for i := range x {
		x[i] = int16(i - 1<<15)
	}
	if err := p.do(); err != nil {
		return false, err
	}
	table := straight(tensor.Of[int16](p.call.Out[0]))
	if table == nil {
		return false, nil
	}
	d := integers(g, "t", st.layer, 2, table[:], "layer "+strconv.Itoa(st.layer)+", "+c.Node.Op+": output for every 128th input")
	g.emit(st, "curve", "k_pieces_s16", text("(const int16_t *)%s", d.name), g.in(st, 0, "int16_t"), g.out(st, 0, "int16_t"), text("%d", c.In[0].Len()))
	return true, nil
}

// straight returns the 513 knots of an int16 function, nil if it is not piecewise linear. The
// last knot is not a value of the function: it is extrapolated from the slope of the last
// segment.
func straight(y []int16) *fixed.Table16 {
	var t fixed.Table16
	for i := range 512 {
		t[i] = y[i<<7]
	}
	rise := (int(y[len(y)-1]) - int(t[511])) * 128 / 127
	for _, d := range []int{0, 1, -1, 2, -2} {
		end := int(t[511]) + rise + d
		t[512] = int16(end)
		if int(t[512]) == end && follows(&t, y) {
			return &t
		}
	}
	return nil
}

func follows(t *fixed.Table16, y []int16) bool {
	for i := len(y) - 1; i >= 0; i-- {
		if t.At(int16(i-1<<15)) != y[i] {
			return false
		}
	}
	return true
}

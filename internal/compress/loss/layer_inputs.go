package loss

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// sink receives the inputs of a linear operator, group by group.
type sink interface {
	// planes takes n inputs with a row of x per matrix column, rows takes them with a row of x
	// per input. Rows are stride apart.
	planes(group int, x []float32, stride, n int)
	rows(group int, x []float32, stride, n int)
}

// values returns values of a run by id, nil for those that were not computed.
type values func(id int) *tensor.Tensor

// scratch has reusable buffers.
type scratch struct {
	pool               *workers.Pool
	real, turned, open []float32
}

func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	return (*s)[:n]
}

// openAt bounds the elements of inputs that are unfolded at once.
const openAt = 1 << 19

// gather passes the inputs of the operator in a run to a sink. change, if not nil, modifies the
// data first.
func (p *linearOp) gather(v values, to sink, s *scratch, change func([]float32)) error {
	data := v(p.data)
	if data == nil {
		return fmt.Errorf("%s did not run", p.node.Key())
	}
	if p.kind == lookup {
		return p.countIndices(data, to)
	}
	x, err := p.realData(data, v, s)
	if err != nil {
		return err
	}
	if change != nil {
		c := append([]float32(nil), x...)
		change(c)
		x = c
	}
	l := p.layer
	switch p.kind {
	case conv, convLast, deconv, deconvLast:
		return p.convInputs(x, data.Shape, v, to, s)
	case flat:
		if data.Len()%l.Cols != 0 {
			return p.mismatch(data)
		}
		to.rows(0, x, l.Cols, data.Len()/l.Cols)
		return nil
	}
	return p.matmulInputs(x, data, to)
}

func (p *linearOp) mismatch(data *tensor.Tensor) error {
	return fmt.Errorf("%s has data of %s for weights of %d by %d", p.node.Key(), tensor.FormatShape(data.Shape), p.layer.Rows, p.layer.Cols)
}

// realData returns the data as real numbers.
func (p *linearOp) realData(data *tensor.Tensor, v values, s *scratch) ([]float32, error) {
	if data.Type == tensor.Float32 {
		return tensor.Of[float32](data), nil
	}
	if !data.Type.IsNumber() {
		return nil, p.mismatch(data)
	}
	x := grow(&s.real, data.Len())
	tensor.Read(x, data, 0)
	scale, zero := float32(1), float32(0)
	q := data.Quant
	if p.scale < 0 && p.zero < 0 && q != nil && len(q.Scale) == 1 {
		scale, zero = q.Scale[0], float32(q.Zero[0])
	}
	for _, c := range []struct {
		id  int
		dst *float32
	}{{p.scale, &scale}, {p.zero, &zero}} {
		if c.id < 0 {
			continue
		}
		t := v(c.id)
		if t == nil || t.Len() != 1 {
			return nil, fmt.Errorf("%s has several scales or zero points of its data", p.node.Key())
		}
		*c.dst = float32(tensor.At(t, 0))
	}
	if scale != 1 || zero != 0 {
		for i, e := range x {
			x[i] = scale * (e - zero)
		}
	}
	return x, nil
}

// convInputs unfolds the data of a convolution (im2col).
func (p *linearOp) convInputs(x []float32, shape []int, v values, to sink, s *scratch) error {
	var target []int
	if p.kind == deconvLast {
		if t := v(p.node.Inputs[0]); t != nil {
			sizes := make([]int64, t.Len())
			tensor.Read(sizes, t, 0)
			for _, d := range sizes {
				target = append(target, int(d))
			}
		}
	}
	g, ok := p.geometry(shape, target)
	l := p.layer
	channels := l.Channels * l.Groups
	if !ok || len(x) != shape[0]*channels*g.plane {
		return fmt.Errorf("%s has data of %s for weights of %d channels", p.node.Key(), tensor.FormatShape(shape), channels)
	}
	last := p.kind == convLast || p.kind == deconvLast
	m, sums := to.(*moments)
	first, step := 0, 1
	if sums {
		first, step = m.sampledLines(g, shape[0])
	}
	for n := range shape[0] {
		one := x[n*channels*g.plane:][:channels*g.plane]
		if last && g.same && l.Groups == 1 {
			width := g.width() * step
			if step == 1 {
				width = g.plane
			}
			for at := first * g.width(); at < g.plane; at += width {
				to.rows(0, one[at*channels:], channels, min(width/step, g.plane-at))
			}
			continue
		}
		if sums && l.Channels == 1 && !(g.same && step == 1) && m.addDepthwise(g, one, last, first, step) {
			continue
		}
		if last {
			t := grow(&s.turned, len(one))
			move.Transpose(t, g.plane, one, channels, channels, g.plane)
			one = t
		}
		switch {
		case g.same && step == 1:
			for k := range l.Groups {
				to.planes(k, one[k*l.Channels*g.plane:], g.plane, g.plane)
			}
		case sums && step == 1 && m.addConvolution(g, one, l.Channels):
		default:
			p.unfoldInputs(g, one, to, s, first, step)
		}
	}
	return nil
}

// unfoldInputs passes every step-th row of positions, from first on, some rows at a time.
func (p *linearOp) unfoldInputs(g *geometry, one []float32, to sink, s *scratch, first, step int) {
	l := p.layer
	most := max(1, openAt/max(1, l.Cols*g.width()))
	for k := range l.Groups {
		for lo := first; lo < g.lines(); lo += most * step {
			n := min(most, (g.lines()-lo+step-1)/step)
			w := n * g.width()
			open := grow(&s.open, l.Cols*w)
			s.pool.For(l.Channels, max(1, 1<<14/(g.taps*w)), func(from, end int) {
				var lines move.LineCopier
				for c := from; c < end; c++ {
					g.unfold(&lines, open[c*g.taps*w:], w, one[(k*l.Channels+c)*g.plane:][:g.plane], lo, n, step)
				}
			})
			to.planes(k, open, w, w)
		}
	}
}

// matmulInputs passes the data of a matrix multiplication. Weights with several matrices are
// groups, for which the data's leading dimensions match or are repeated.
func (p *linearOp) matmulInputs(x []float32, data *tensor.Tensor, to sink) error {
	l, shape := p.layer, data.Shape
	if len(shape) == 1 {
		shape = []int{1, shape[0]}
		if p.kind == columns {
			shape = []int{data.Shape[0], 1}
		}
	}
	k := len(shape) - 2
	if k < 0 {
		return p.mismatch(data)
	}
	a, b := shape[k], shape[k+1]
	turned := p.transposed != "" && p.node.Attrs.Bool(p.transposed, false)
	byRow := p.kind == rows != turned
	in, n := a, b
	if byRow {
		in, n = b, a
	}
	batch := tensor.Elements(shape[:k])
	if in != l.Cols || len(x) != batch*a*b || l.Groups > 1 && batch%l.Groups != 0 && batch != 1 {
		return p.mismatch(data)
	}
	hand := func(group int, one []float32, times int) {
		if byRow {
			to.rows(group, one, b, n*times)
		} else {
			to.planes(group, one, b, n)
		}
	}
	if byRow && l.Groups == 1 {
		hand(0, x, batch)
		return nil
	}
	for i := range max(batch, l.Groups) {
		hand(i%l.Groups, x[i%batch*a*b:], 1)
	}
	return nil
}

// countIndices counts the rows that a lookup reads.
func (p *linearOp) countIndices(data *tensor.Tensor, to sink) error {
	m, ok := to.(*moments)
	if !ok || !data.Type.IsInteger() {
		return p.mismatch(data)
	}
	ids := make([]int64, data.Len())
	tensor.Read(ids, data, 0)
	for _, i := range ids {
		if i < 0 {
			i += int64(m.cols)
		}
		if i < 0 || i >= int64(m.cols) {
			return fmt.Errorf("%s fetches row %d of %d", p.node.Key(), i, m.cols)
		}
		m.slot[i]++
		m.total[i]++
	}
	m.n += len(ids)
	return nil
}

package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// padDefs lists the operators that add or remove borders.
func padDefs() []op.Def {
	pad := op.Def{Name: "Pad", Infer: inferPad, Prepare: preparePad}
	return slices.Concat(
		op.Versions(pad, 1, 2, 11, 13, 18, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "CenterCropPad", Infer: inferCenter, Prepare: prepareCenter}, 18),
	)
}

// borders reads what is added before and after each axis.
func borders(c *op.Call) (before, after []int, err error) {
	if err := c.NeedInputs(1); err != nil {
		return nil, nil, err
	}
	r := c.In[0].Rank()
	var pads, axes []int
	switch {
	case c.Node.Version < 2:
		pads = c.Node.Attrs.Ints("paddings")
	case c.Node.Version < 11:
		pads = c.Node.Attrs.Ints("pads")
	default:
		if err := c.NeedInputs(2); err != nil {
			return nil, nil, err
		}
		if pads, err = op.Ints(c.In[1]); err != nil {
			return nil, nil, err
		}
		if c.Has(3) {
			if axes, err = op.Ints(c.In[3]); err != nil {
				return nil, nil, err
			}
		}
	}
	if !c.Has(3) {
		for i := range r {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		return nil, nil, fmt.Errorf("%d pads for %d axes", len(pads), len(axes))
	}
	before, after = make([]int, r), make([]int, r)
	for i, a := range axes {
		if a, err = op.Axis(a, r); err != nil {
			return nil, nil, err
		}
		before[a], after[a] = pads[i], pads[len(axes)+i]
		if max(before[a], after[a]) > tensor.MaxBytes || min(before[a], after[a]) < -tensor.MaxBytes {
			return nil, nil, fmt.Errorf("pads %v are too large", pads)
		}
	}
	return before, after, nil
}

func inferPad(c *op.Call) error {
	before, after, err := borders(c)
	if err != nil {
		return err
	}
	mode := c.Node.Attrs.Str("mode", "constant")
	out := make([]int, len(before))
	for i, d := range c.In[0].Shape {
		out[i] = d + before[i] + after[i]
		kept := d + min(before[i], 0) + min(after[i], 0)
		if out[i] < 0 || kept < 0 {
			return fmt.Errorf("pads %d and %d leave nothing of dimension %d", before[i], after[i], d)
		}
		switch mode {
		case "constant":
		case "edge", "reflect", "wrap":
			if kept == 0 && out[i] > 0 {
				return fmt.Errorf("mode %s has nothing to repeat in dimension %d", mode, i)
			}
		default:
			return fmt.Errorf("mode is %q", mode)
		}
	}
	if c.Node.Version >= 11 && c.Has(2) {
		if v := c.In[2]; v.Len() != 1 || v.Type != c.In[0].Type {
			return fmt.Errorf("constant value is %v with %d elements", v.Type, v.Len())
		}
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

// sources gives, for every position of a padded dimension, the position of the
// input that it is taken from, -1 for the constant.
func sources(at []int, n, before, after int, mode string) []int {
	lo, hi := max(0, -before), n-max(0, -after)
	kept := hi - lo
	at = at[:0]
	for o := range n + before + after {
		i := o - max(before, 0) // relative to the kept part
		if i < 0 || i >= kept {
			switch mode {
			case "edge":
				i = min(max(i, 0), kept-1)
			case "wrap":
				i = ((i % kept) + kept) % kept
			case "reflect":
				if kept == 1 {
					i = 0
					break
				}
				period := 2 * (kept - 1)
				i = ((i % period) + period) % period
				if i >= kept {
					i = period - i
				}
			default:
				at = append(at, -1)
				continue
			}
		}
		at = append(at, lo+i)
	}
	return at
}

// padder holds the maps of one Pad node from run to run.
type padder struct {
	mode        string
	once, ready bool // the maps follow from shapes and constants, and are made
	maps        [][]int
	last        int // last dimension with a border
	value       *tensor.Tensor
}

func preparePad(c *op.Call) (op.Run, error) {
	p := &padder{mode: c.Node.Attrs.Str("mode", "constant"), once: parameters(c), maps: make([][]int, c.In[0].Rank())}
	p.value = tensor.New(c.In[0].Type)
	if move.Packed(p.value) {
		p.value = tensor.New(tensor.Uint8)
	}
	if v := float64(c.Node.Attrs.Float("value", 0)); v != 0 && c.In[0].Type.IsNumber() {
		tensor.Fill(p.value, func(int) float64 { return v })
	}
	return move.Unpacked(p.run), nil
}

// set makes the maps. Trailing dimensions without borders travel as one run.
func (p *padder) set(c *op.Call) error {
	before, after, err := borders(c)
	if err != nil {
		return err
	}
	p.last = len(before) - 1
	for p.last > 0 && before[p.last] == 0 && after[p.last] == 0 {
		p.last--
	}
	for i := range p.last + 1 {
		p.maps[i] = sources(p.maps[i], c.In[0].Shape[i], before[i], after[i], p.mode)
	}
	return nil
}

func (p *padder) run(c *op.Call) error {
	x, y := c.In[0], c.Out[0]
	if y.Rank() == 0 || y.Len() == 0 {
		move.All(c.Pool, y, x)
		return nil
	}
	if !p.ready {
		if err := p.set(c); err != nil {
			return err
		}
		p.ready = p.once
	}
	last, value := p.last, p.value
	if c.Node.Version >= 11 && c.Has(2) {
		value = c.In[2]
	}
	inner := tensor.Elements(x.Shape[last+1:])
	switch y.Type.Bits() {
	case 0:
		padRows(c.Pool, p, y.Strings, x.Strings, value.Strings[0], x.Shape, last, inner)
	case 8:
		padRows(c.Pool, p, tensor.Of[uint8](y), tensor.Of[uint8](x), tensor.Of[uint8](value)[0], x.Shape, last, inner)
	case 16:
		padRows(c.Pool, p, tensor.Of[uint16](y), tensor.Of[uint16](x), tensor.Of[uint16](value)[0], x.Shape, last, inner)
	case 32:
		padRows(c.Pool, p, tensor.Of[uint32](y), tensor.Of[uint32](x), tensor.Of[uint32](value)[0], x.Shape, last, inner)
	case 64:
		padRows(c.Pool, p, tensor.Of[uint64](y), tensor.Of[uint64](x), tensor.Of[uint64](value)[0], x.Shape, last, inner)
	default:
		padRows(c.Pool, p, tensor.Of[complex128](y), tensor.Of[complex128](x), tensor.Of[complex128](value)[0], x.Shape, last, inner)
	}
	return nil
}

// padRows fills the output row by row along the last padded dimension.
func padRows[T any](pool *workers.Pool, p *padder, y, x []T, value T, in []int, last, inner int) {
	row := p.maps[last]
	rows, width := 1, len(row)*inner
	for _, m := range p.maps[:last] {
		rows *= len(m)
	}
	pool.For(rows, max(1, 1<<14/max(width, 1)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			dst := y[r*width : (r+1)*width]
			base, rest, stride := 0, r, in[last]
			for i := last - 1; i >= 0; i-- {
				m := p.maps[i]
				s := m[rest%len(m)]
				rest /= len(m)
				if s < 0 {
					base = -1
					break
				}
				base += s * stride
				stride *= in[i]
			}
			if base < 0 {
				move.Fill(dst, value)
				continue
			}
			padRow(dst, x[base*inner:(base+in[last])*inner], value, row, inner)
		}
	})
}

// padRow fills one row; consecutive sources are copied as one.
func padRow[T any](dst, src []T, value T, row []int, inner int) {
	for o := 0; o < len(row); {
		s, n := row[o], 1
		if s < 0 {
			for o+n < len(row) && row[o+n] < 0 {
				n++
			}
			move.Fill(dst[o*inner:(o+n)*inner], value)
		} else {
			for o+n < len(row) && row[o+n] == s+n {
				n++
			}
			copy(dst[o*inner:(o+n)*inner], src[s*inner:])
		}
		o += n
	}
}

// center returns the offsets of the common window in input and output.
func center(in, out []int) (common, from, to []int) {
	common, from, to = make([]int, len(in)), make([]int, len(in)), make([]int, len(in))
	for i := range in {
		common[i] = min(in[i], out[i])
		from[i], to[i] = (in[i]-common[i])/2, (out[i]-common[i])/2
	}
	return common, from, to
}

func inferCenter(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	want, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	out := slices.Clone(c.In[0].Shape)
	axes := c.Node.Attrs.Ints("axes")
	if !c.Node.Attrs.Has("axes") {
		for i := range out {
			axes = append(axes, i)
		}
	}
	if len(axes) != len(want) {
		return fmt.Errorf("%d sizes for %d axes", len(want), len(axes))
	}
	for i, a := range axes {
		a, err := op.Axis(a, len(out))
		if err != nil {
			return err
		}
		out[a] = want[i]
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

func prepareCenter(c *op.Call) (op.Run, error) {
	p := new(move.Plan)
	return move.Unpacked(func(c *op.Call) error {
		x, y := c.In[0], c.Out[0]
		common, from, to := center(x.Shape, y.Shape)
		if !slices.Equal(common, y.Shape) {
			clear(y.Data)
			clear(y.Strings)
		}
		ss, ds := tensor.Strides(x.Shape), tensor.Strides(y.Shape)
		so, do := 0, 0
		for i := range common {
			so += from[i] * ss[i]
			do += to[i] * ds[i]
		}
		p.Set(common, ds, ss, do, so)
		p.Run(c.Pool, y, x)
		return nil
	}), nil
}

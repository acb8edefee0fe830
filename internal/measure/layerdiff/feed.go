package layerdiff

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Exact reports whether inputs made for a model are better than those for another one: integers
// with a scale stand for real numbers exactly, real numbers have no exact quantised form.
func Exact(m, other *graph.Model) bool {
	count := func(m *graph.Model) (n int) {
		v := newView(m)
		for _, id := range v.g.Inputs {
			if v.g.Values[id].Type.IsInteger() && v.quant(id) != nil {
				n++
			}
		}
		return n
	}
	return count(m) > count(other)
}

// Feed converts the inputs of a model for another one: by name, or in order if no name is in both.
// Types, quantisation, and channels first or last are adapted. The error says which input does not
// fit.
func Feed(ins []*tensor.Tensor, from, to *graph.Model) ([]*tensor.Tensor, error) {
	v, w := newView(from), newView(to)
	partner := matchNames(w.names(w.g.Inputs), v.names(v.g.Inputs))
	out := make([]*tensor.Tensor, len(w.g.Inputs))
	for i, id := range w.g.Inputs {
		x := w.g.Values[id]
		k := partner[i]
		if k < 0 {
			return nil, fmt.Errorf("input %q has no partner: the inputs of the other model are %q", x.Name, v.names(v.g.Inputs))
		}
		a := v.value(v.g.Inputs[k], ins[k])
		typ := x.Type
		if typ == tensor.Invalid {
			typ = a.t.Type
		}
		t := a.into(typ, w.quant(id))
		if t == nil {
			return nil, fmt.Errorf("input %q takes %v, which %v of the other model cannot be converted to", x.Name, typ, a.t.Type)
		}
		y, ok := shaped(t, x, from.Format != to.Format)
		if !ok {
			return nil, fmt.Errorf("input %q takes %s, and the other model %s: set the shapes with --shape or --batch, or compare models of one shape", x.Name, tensor.FormatShape(x.Shape), tensor.FormatShape(t.Shape))
		}
		y.Quant = x.Quant
		out[i] = y
	}
	return out, nil
}

// shaped returns a tensor in the layout that an input declares. Open dimensions take any size. In
// a model of another format, channels may be last instead of first, even where both fit: then the
// dimension of images that is the smallest tells.
func shaped(t *tensor.Tensor, x *graph.Value, cross bool) (*tensor.Tensor, bool) {
	c := *t
	if !x.HasShape {
		return &c, true
	}
	want := x.Shape
	fits := func(shape []int) bool {
		return slices.EqualFunc(want, shape, func(w, d int) bool { return w == d || w < 0 })
	}
	if fits(t.Shape) {
		return &c, true
	}
	if r := len(want); r == len(t.Shape) && r >= 3 {
		for _, last := range []bool{true, false} {
			o := make(order, r)
			shape := make([]int, r)
			for i := range o {
				o[i] = axis(i, r, last)
				shape[i] = t.Shape[o[i]]
			}
			if fits(shape) {
				return permute(t, o), true
			}
		}
	}
	// Placeholders of TFLite and dimensions of 1 may be other sizes.
	if slices.Equal(sized(want), sized(t.Shape)) {
		c.Shape = slices.Clone(want)
		return &c, true
	}
	if x.Placeholder != nil && len(t.Shape) == len(want) && !cross {
		return &c, true
	}
	return nil, false
}

// axis is the axis of a tensor with channels last, or else first, that becomes axis i of one that
// has them first, or last.
func axis(i, rank int, last bool) int {
	switch {
	case i == 0:
		return 0
	case last && i == 1:
		return rank - 1
	case last:
		return i - 1
	case i == rank-1:
		return 1
	}
	return i + 1
}

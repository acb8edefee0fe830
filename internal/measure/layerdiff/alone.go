package layerdiff

import (
	"context"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/divergence"
)

// dominates is how many times larger than the error of the inputs that of the outputs has to be to
// count as the row's own where its layers could not be run alone.
const dominates = 10

// unseen is from which factor in power on a row's own error that its output does not show is one of
// the pairing, in pairs that are not certain.
const unseen = 100

// addOwn finds the error that a row adds.
func (c *comparison) addOwn(ctx context.Context, r *row, got [2]map[int]*tensor.Tensor) error {
	if _, ok := divergence.Noise(r.Output); !ok {
		return nil
	}
	if r.Output.State == profile.Equal && r.inNoise == 0 && r.inKnown {
		r.Own, r.OwnFrom = r.Output, divergence.Computed // the same inputs, the same outputs
		return nil
	}
	d, cause := c.alone(ctx, r, got)
	if err := ctx.Err(); err != nil {
		return err
	}
	if d != nil {
		own, _ := divergence.Noise(d)
		if all, _ := divergence.Noise(r.Output); r.Certain || own <= unseen*all {
			r.Own, r.OwnFrom = d, divergence.Computed
			return nil
		}
		cause = &profile.Cause{Code: profile.ByInput, Text: "own error: far above that of the output, so that an input is probably paired with another value"}
	}
	r.Cause = cause
	if n, ok := divergence.Noise(r.Output); ok && r.inKnown && n >= dominates*r.inNoise {
		r.Own, r.OwnFrom = r.Output, divergence.Accumulated
	}
	return nil
}

// alone runs the layers of the reference side on the inputs of the other side, and compares their
// outputs with those of the other side. The cause says why that is not possible.
func (c *comparison) alone(ctx context.Context, r *row, got [2]map[int]*tensor.Tensor) (*profile.Difference, *profile.Cause) {
	no := func(code profile.CauseCode, text string) (*profile.Difference, *profile.Cause) {
		return nil, &profile.Cause{Code: code, Text: "own error: " + text}
	}
	if r.alone == nil {
		return no(profile.ByInput, "the layers cannot be run alone: they have state, run other graphs, or read values that the other side does not have")
	}
	v := c.views[c.ref]
	part, ids := weights.Part(v.m, r.alone)
	part.Main().Outputs = nil
	for i := range r.outs {
		part.Main().Outputs = append(part.Main().Outputs, r.outs[i].ids[c.ref])
	}
	ins := make([]*tensor.Tensor, len(ids))
	held := 0
	for i, id := range ids {
		if k, ok := v.inputs[id]; ok {
			ins[i] = c.sides[c.ref].Inputs[k]
		} else if p, ok := r.from[id]; ok {
			ins[i] = c.given(id, p, got)
		}
		if ins[i] == nil {
			return no(profile.ByInput, fmt.Sprintf("the input %q was not compared, or its type or shape differs", v.g.Values[id].Name))
		}
		held += len(ins[i].Data)
	}
	o := c.o.Engine
	o.Held = held
	outs, err := runAlone(ctx, part, ins, o)
	if err != nil {
		return no(profile.ByError, err.Error())
	}
	var worst *profile.Difference
	for i, t := range outs {
		out := &r.outs[i]
		x := got[1-c.ref][out.ids[1-c.ref]]
		if t == nil || x == nil {
			return no(profile.ByInput, "an operator does not run alone")
		}
		pair := [2]*value{}
		pair[c.ref] = v.value(out.ids[c.ref], t)
		pair[1-c.ref] = c.views[1-c.ref].value(out.ids[1-c.ref], x)
		d, _ := c.difference(pair[0], pair[1])
		if d.State == profile.NotComparable {
			return nil, d.Cause
		}
		judgeOwn(d)
		n, _ := divergence.Noise(d)
		if w, ok := divergence.Noise(worst); !ok || n > w {
			worst = d
		}
	}
	return worst, nil
}

// judgeOwn judges integers of one row: one step is rounding, more are not.
func judgeOwn(d *profile.Difference) {
	if d.Steps == nil || d.Limit == nil || d.State == profile.Equal || d.DType == "float32" {
		return
	}
	d.Limit, d.State = new(1.0), profile.Differs
	if *d.Steps <= 1 {
		d.State = profile.Rounding
	}
}

// given returns what the other side computed for a value of the reference side, in its type, layout
// and shape; nil if that is not possible.
func (c *comparison) given(id int, p place, got [2]map[int]*tensor.Tensor) *tensor.Tensor {
	out := &p.row.outs[p.out]
	t := got[1-c.ref][out.ids[1-c.ref]]
	if t == nil || !out.known {
		return nil
	}
	v := c.views[c.ref]
	x := c.views[1-c.ref].value(out.ids[1-c.ref], t)
	y := x.into(out.typ, v.quant(id))
	if y == nil {
		return nil
	}
	o := out.order
	if c.ref == 1 && o != nil {
		o = o.inverse()
	}
	y = permute(y, o)
	if tensor.Elements(out.shape) != y.Len() {
		return nil
	}
	z := *y
	z.Shape, z.Quant = slices.Clone(out.shape), v.g.Values[id].Quant
	return &z
}

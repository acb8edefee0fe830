package inputs

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputuse"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// drawnBelow is the generator's own bound of integers of 32 bits and more.
const drawnBelow = 100

// rounds bounds how often uses are looked for: shapes that made elements decide may
// tell what others are used for.
const rounds = 3

// suit makes the elements of inputs that the model uses as shapes, lengths, indices
// and the like. Those that come from a file, or for which the options set a fill,
// stay as they are.
func suit(m *graph.Model, ins []*tensor.Tensor, src []Source, o Options) error {
	g := m.Main()
	open := func(k int) bool {
		v := g.Values[g.Inputs[k]]
		_, filled := o.Overrides.Fill[v.Name]
		return src[k].Kind == "random" && !filled && !o.Zeros && !v.Variable && (wide(ins[k].Type) || few(ins[k]))
	}
	some := false
	for k := range ins {
		some = some || open(k)
	}
	for round := 0; some && round < rounds; round++ {
		some = false
		p, err := plan.Make(m, ins, plan.Options{Registry: operators.Registry(), MaxBytes: o.MaxBytes})
		if err != nil {
			return err
		}
		for k, u := range inputuse.Of(p.Shaped()) {
			if u == nil || !open(k) || src[k].Use != nil && src[k].Use.Below == u.Below {
				continue
			}
			if !wide(ins[k].Type) && !size[u.Kind] {
				continue
			}
			if u.Below > 0 {
				if u.Below < drawnBelow { // others are within anyway
					src[k].Use, some = u, true
				}
				continue
			}
			x, err := elements(ins[k], u)
			if err != nil {
				return err
			}
			if x != nil {
				ins[k], src[k].Kind, src[k].Use, some = x, "made", u, true
			}
		}
	}
	return nil
}

// wide reports whether elements of a type stand for numbers of things: narrower
// integers hold samples and pixels.
func wide(t tensor.Type) bool {
	switch t {
	case tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Uint64:
		return true
	}
	return false
}

// few reports whether a floating-point input is a short list: sizes are given in such,
// for a model that casts them.
func few(x *tensor.Tensor) bool {
	n, err := tensor.CheckShape(x.Type, x.Shape)
	return err == nil && (x.Type == tensor.Float32 || x.Type == tensor.Float64) && len(x.Shape) <= 1 && n <= 8
}

// size has the uses for which a floating-point input is made.
var size = map[inputuse.Kind]bool{inputuse.Shape: true, inputuse.Bounds: true, inputuse.Count: true, inputuse.Length: true}

// elements makes a tensor like x with the elements that a use asks for, nil where
// they are not as many.
func elements(x *tensor.Tensor, u *inputuse.Use) (*tensor.Tensor, error) {
	n, err := tensor.CheckShape(x.Type, x.Shape)
	if err != nil {
		return nil, err
	}
	out := tensor.New(x.Type, x.Shape...)
	out.Quant = x.Quant
	switch {
	case u.Fill != nil:
		tensor.Fill(out, func(int) float64 { return float64(*u.Fill) })
	case n <= len(u.Values):
		tensor.Fill(out, func(i int) float64 { return float64(u.Values[i]) })
	default:
		return nil, nil //nolint:nilnil // no such elements
	}
	return out, nil
}

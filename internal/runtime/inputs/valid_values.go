package inputs

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputuse"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// generatorBound is the generator's own bound of integers of 32 bits and more.
const generatorBound = 100

// maxRounds bounds how often uses are determined: shapes that follow from generated elements may
// reveal the use of other inputs.
const maxRounds = 3

// makeValid generates the elements of inputs that the model uses as shapes, lengths, indices and
// the like. Inputs from files, and inputs whose fill the options set, are not changed.
func makeValid(m *graph.Model, ins []*tensor.Tensor, src []Source, o Options) error {
	g := m.Main()
	open := func(k int) bool {
		v := g.Values[g.Inputs[k]]
		_, filled := o.Overrides.Fill[v.Name]
		return src[k].Kind == "random" && !filled && !o.Zeros && !v.Variable && (isWideInt(ins[k].Type) || isShortList(ins[k]))
	}
	some := false
	for k := range ins {
		some = some || open(k)
	}
	for round := 0; some && round < maxRounds; round++ {
		some = false
		p, err := plan.Make(m, ins, plan.Options{Registry: operators.Registry(), MaxBytes: o.MaxBytes, Static: true})
		if err != nil {
			return err
		}
		for k, u := range inputuse.Of(p.Shaped()) {
			if u == nil || !open(k) || src[k].Use != nil && src[k].Use.Below == u.Below {
				continue
			}
			if !isWideInt(ins[k].Type) && !sizeKinds[u.Kind] {
				continue
			}
			if u.Below > 0 {
				if u.Below < generatorBound { // larger bounds always hold
					src[k].Use, some = u, true
				}
				continue
			}
			x, err := elements(ins[k], u, o.MaxBytes)
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

// isWideInt reports whether a type can hold sizes or indices: smaller integers hold samples and
// pixels.
func isWideInt(t tensor.Type) bool {
	switch t {
	case tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Uint64:
		return true
	}
	return false
}

// isShortList reports whether a floating-point input is a short list: some models take sizes in
// that form and cast them.
func isShortList(x *tensor.Tensor) bool {
	n, err := tensor.CheckShape(x.Type, x.Shape)
	return err == nil && (x.Type == tensor.Float32 || x.Type == tensor.Float64) && len(x.Shape) <= 1 && n <= 8
}

// sizeKinds lists the uses for which a floating-point input is generated.
var sizeKinds = map[inputuse.Kind]bool{inputuse.Shape: true, inputuse.Bounds: true, inputuse.Count: true, inputuse.Length: true}

// elements makes a tensor like x with the elements that a use requires, nil if their number
// differs.
func elements(x *tensor.Tensor, u *inputuse.Use, limit int) (*tensor.Tensor, error) {
	n, err := tensor.CheckShape(x.Type, x.Shape)
	if err == nil {
		err = afford(x.Type, x.Shape, limit, 0)
	}
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
		return nil, nil //nolint:nilnil // no valid elements
	}
	return out, nil
}

package opmeter

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// Definition is an operator that the engine runs. Operators whose versions differ
// in what they mean have one each.
type Definition struct {
	// Format is "tflite" or "onnx".
	Format string `json:"format"`
	// Domain is the operator's domain: empty for ONNX's default and for TFLite's
	// builtin operators.
	Domain string `json:"domain,omitempty"`
	// Op is the operator as models name it.
	Op string `json:"op"`
	// Since and Until are the first and last version, 0 for no bound.
	Since int `json:"since,omitempty"`
	Until int `json:"until,omitempty"`
	// Types lists the element types that it computes in; empty means any.
	Types []string `json:"types,omitempty"`
}

// Definitions lists the operators that the engine runs, by format and name.
func Definitions() []Definition {
	all := operators.Registry().All()
	out := make([]Definition, len(all))
	for i, d := range all {
		out[i] = definition(d)
	}
	return out
}

func definition(d *op.Def) Definition {
	e := Definition{Format: "onnx", Domain: d.Domain, Op: d.Name, Since: d.Since, Until: d.Until}
	if d.Domain == graph.TFLite || d.Domain == graph.TFLiteCustom {
		e.Format = "tflite"
		if e.Domain == graph.TFLite {
			e.Domain = ""
		}
	}
	for _, t := range d.Types {
		e.Types = append(e.Types, t.String())
	}
	return e
}

package engine

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// Operator is an operator that opmeter's own engine runs. Versions with different semantics have an
// entry each.
type Operator struct {
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

// Operators lists the operators that opmeter's own engine runs, by format and name.
func Operators() []Operator {
	all := operators.Registry().All()
	out := make([]Operator, len(all))
	for i, d := range all {
		out[i] = newOperator(d)
	}
	return out
}

func newOperator(d *op.Def) Operator {
	e := Operator{Format: "onnx", Domain: d.Domain, Op: d.Name, Since: d.Since, Until: d.Until}
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

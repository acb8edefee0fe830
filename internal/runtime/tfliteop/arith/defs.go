// Package arith implements TFLite's arithmetic of two and more tensors, for floats, integers and
// quantised values, with the roundings of the reference kernels.
package arith

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "ADD_N", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64, tensor.Int8}, Infer: inferAddN, Prepare: prepareAddN},
	}
	for k, name := range []string{recipe.PlainAdd: "ADD", recipe.PlainSub: "SUB", recipe.PlainMul: "MUL", recipe.PlainDiv: "DIV", recipe.PlainMax: "MAXIMUM", recipe.PlainMin: "MINIMUM", recipe.PlainSquaredDifference: "SQUARED_DIFFERENCE"} {
		defs = append(defs, op.Def{Name: name, Types: layer.Numbers, Infer: inferBroadcast, Prepare: prepareArith(recipe.PlainKind(k)), Fuses: true})
	}
	return layer.InTFLite(defs)
}

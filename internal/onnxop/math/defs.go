package math

import (
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(arithDefs(), compareDefs(), unaryDefs(), castDefs(), quantDefs(), reduceDefs(), axisDefs(), legacyDefs())
}

func arithDefs() []op.Def {
	own := inferBinary(tensor.Invalid)
	def := func(name string, k arith, types []tensor.Type) op.Def {
		return op.Def{Domain: graph.ONNX, Name: name, Since: 1, Types: types, Infer: own, InPlace: true, Prepare: arithPrepare(k)}
	}
	many := func(name string, since int, types []tensor.Type, k arith, mean bool) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: since, Types: types, Infer: inferMany,
			Prepare: Widen(func(c *op.Call) (op.Run, error) { return prepareMany(c, k, mean) }),
		}
	}
	return []op.Def{
		fuses(def("Add", add, numberTypes)), fuses(def("Sub", sub, numberTypes)), fuses(def("Mul", mul, numberTypes)), def("Div", div, numberTypes),
		{Domain: graph.ONNX, Name: "Mod", Since: 10, Types: numberTypes, Infer: own, InPlace: true, Prepare: Widen(prepareMod)},
		{
			Domain: graph.ONNX, Name: "PRelu", Since: 1, Types: join(floatTypes, signedTypes[2:], unsignedTypes[2:]), Infer: inferPRelu, InPlace: true,
			Prepare: Widen(preparePRelu),
		},
		{Domain: graph.ONNX, Name: "Pow", Since: 1, Types: join(floatTypes, signedTypes[2:]), Infer: own, InPlace: true, Prepare: Widen(preparePow)},
		many("Max", 1, numberTypes, maximum, false), many("Min", 1, numberTypes, minimum, false),
		many("Sum", 1, floatTypes, add, false), many("Mean", 1, floatTypes, add, true),
		{Domain: graph.ONNX, Name: "SwiGLU", Since: 28, Types: floatTypes, Infer: inferSwiGLU, InPlace: true, Prepare: Widen(prepareSwiGLU)},
		{Domain: graph.ONNX, Name: "Where", Since: 9, Infer: inferWhere, Prepare: layout.Widened(prepareWhere)},
	}
}

// fuses marks a definition whose float32 loops clamp their results.
func fuses(d op.Def) op.Def {
	d.Fuses = true
	return d
}

package elementwise

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(arithDefs(), compareDefs(), unaryDefs(), castDefs(), legacyDefs())
}

func arithDefs() []op.Def {
	own := inferBinary(tensor.Invalid)
	def := func(name string, k arith, types []tensor.Type) op.Def {
		return op.Def{Domain: graph.ONNX, Name: name, Since: 1, Types: types, Infer: own, InPlace: true, Prepare: arithPrepare(k)}
	}
	many := func(name string, since int, types []tensor.Type, k arith, mean bool) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: since, Types: types, Infer: inferMany,
			Prepare: elem.Widen(func(c *op.Call) (op.Run, error) { return prepareMany(c, k, mean) }),
		}
	}
	return []op.Def{
		fuses(def("Add", add, elem.Numbers)), fuses(def("Sub", sub, elem.Numbers)), fuses(def("Mul", mul, elem.Numbers)), def("Div", div, elem.Numbers),
		{Domain: graph.ONNX, Name: "Mod", Since: 10, Types: elem.Numbers, Infer: own, InPlace: true, Prepare: elem.Widen(prepareMod)},
		{
			Domain: graph.ONNX, Name: "PRelu", Since: 1, Types: slices.Concat(elem.Floats, elem.Signed[2:], elem.Unsigned[2:]), Infer: op.Needs(2, inferPRelu), InPlace: true,
			Prepare: elem.Widen(preparePRelu),
		},
		{Domain: graph.ONNX, Name: "Pow", Since: 1, Types: slices.Concat(elem.Floats, elem.Signed[2:]), Infer: own, InPlace: true, Prepare: elem.Widen(preparePow)},
		many("Max", 1, elem.Numbers, maximum, false), many("Min", 1, elem.Numbers, minimum, false),
		many("Sum", 1, elem.Floats, add, false), many("Mean", 1, elem.Floats, add, true),
		{Domain: graph.ONNX, Name: "SwiGLU", Since: 28, Types: elem.Floats, Infer: op.Needs(2, inferSwiGLU), InPlace: true, Prepare: elem.Widen(prepareSwiGLU)},
		{Domain: graph.ONNX, Name: "Where", Since: 9, Infer: op.Needs(3, inferWhere), Prepare: layout.WithUnpacked(prepareWhere)},
	}
}

// fuses marks a definition whose float32 loops clamp their results.
func fuses(d op.Def) op.Def {
	d.Fuses = true
	return d
}

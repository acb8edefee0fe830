package stablehlo

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// flexDefs are TensorFlow operators that converters leave in a file as custom
// operators, where one of the element-wise kernels of this package means the
// same.
func flexDefs() []op.Def {
	var l []op.Def
	add := func(name string, needs int, infer func(c *op.Call) error, prepare layout.Prepare) {
		l = append(l, op.Def{Domain: graph.TFLiteCustom, Name: "Flex" + name, Infer: layout.Needs(needs, infer), Prepare: prepare})
	}
	for _, n := range [][2]string{
		{"Add", "ADD"},
		{"AddV2", "ADD"},
		{"Sub", "SUBTRACT"},
		{"Mul", "MULTIPLY"},
		{"Div", "DIVIDE"},
		{"RealDiv", "DIVIDE"},
		{"Maximum", "MAXIMUM"},
		{"Minimum", "MINIMUM"},
		{"Pow", "POWER"},
		{"LogicalAnd", "AND"},
		{"LogicalOr", "OR"},
	} {
		add(n[0], 2, inferSameBinary, prepareBinary(binaries[n[1]]))
	}
	for _, n := range [][2]string{
		{"Abs", "ABS"},
		{"Ceil", "CEIL"},
		{"Floor", "FLOOR"},
		{"Cos", "COSINE"},
		{"Exp", "EXPONENTIAL"},
		{"Log", "LOG"},
		{"Tanh", "TANH"},
		{"Neg", "NEGATE"},
		{"Sigmoid", "LOGISTIC"},
		{"Rsqrt", "RSQRT"},
	} {
		add(n[0], 1, layout.SameAsInput, prepareUnary(unaries[n[1]]))
	}
	for name, f := range map[string]func(v float64) float64{
		"Sin": math.Sin, "Sqrt": math.Sqrt, "Erf": math.Erf, "Log1p": math.Log1p, "Expm1": math.Expm1,
		"Softplus": func(v float64) float64 { return max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))) },
		"Softsign": func(v float64) float64 { return v / (1 + math.Abs(v)) },
	} {
		add(name, 1, layout.SameAsInput, prepareUnary(f))
	}
	return l
}

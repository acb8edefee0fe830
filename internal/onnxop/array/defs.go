package array

import (
	"slices"

	"github.com/opmeter/opmeter/internal/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(shapeDefs(), makeDefs(), moveDefs(), cutDefs(), padDefs(), imageDefs())
}

// versions repeats a definition for each operator-set version in which ONNX
// changed the operator without changing what this implementation does.
func versions(d op.Def, since ...int) []op.Def {
	out := make([]op.Def, len(since))
	for i, s := range since {
		d.Since = s
		out[i] = d
	}
	return out
}

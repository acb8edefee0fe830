package array

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(shapeDefs(), makeDefs(), moveDefs(), cutDefs(), padDefs(), imageDefs())
}

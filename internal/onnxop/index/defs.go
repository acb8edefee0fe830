package index

import (
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(gatherDefs(), scatterDefs(), selectDefs(), topKDefs(), uniqueDefs())
}

// indexType refuses index tensors that are not integers.
func indexType(x *tensor.Tensor) error {
	if !x.Type.IsInteger() || x.Type.Bits() < 8 {
		return op.Unsupported("indices of type %v", x.Type)
	}
	return nil
}

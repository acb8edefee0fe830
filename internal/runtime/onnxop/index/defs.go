package index

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(gatherDefs(), scatterDefs(), selectDefs(), topKDefs(), uniqueDefs())
}

// indexType rejects index tensors that are not integers.
func indexType(x *tensor.Tensor) error {
	if !x.Type.IsInteger() || x.Type.Bits() < 8 {
		return op.Unsupported("indices of type %v", x.Type)
	}
	return nil
}

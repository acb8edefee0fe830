package index

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(gatherDefs(), scatterDefs(), selectDefs(), topKDefs(), uniqueDefs())
}

// positions reads indices into buf and resolves negative ones against n.
func positions(buf []int, x *tensor.Tensor, n int) ([]int, error) {
	buf = buf[:0]
	switch x.Type {
	case tensor.Int64:
		return resolve(buf, tensor.Of[int64](x), n)
	case tensor.Int32:
		return resolve(buf, tensor.Of[int32](x), n)
	}
	v, err := op.Ints(x)
	if err != nil {
		return nil, err
	}
	return resolve(buf, v, n)
}

func resolve[T int | int32 | int64](buf []int, v []T, n int) ([]int, error) {
	buf = slices.Grow(buf, len(v))
	for _, i := range v {
		k := int(i)
		if k < 0 {
			k += n
		}
		if k < 0 || k >= n {
			return nil, fmt.Errorf("index %d is outside %d elements", i, n)
		}
		buf = append(buf, k)
	}
	return buf, nil
}

// indexType refuses index tensors that are not integers.
func indexType(x *tensor.Tensor) error {
	if !x.Type.IsInteger() || x.Type.Bits() < 8 {
		return op.Unsupported("indices of type %v", x.Type)
	}
	return nil
}

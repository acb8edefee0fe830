package array

import (
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

type foldKind int

const (
	foldAdd foldKind = iota
	foldMul
	foldMax
	foldMin
)

// folder combines rows of one element type into others.
type folder interface {
	// rows combines n elements of src into dst.
	rows(dst, src *tensor.Tensor, do, so, n int)
	// neutral is the element that combining starts from.
	neutral() *tensor.Tensor
}

// folderFor returns the folder of a type.
func folderFor(t tensor.Type, k foldKind) (folder, error) {
	switch t {
	case tensor.Float32:
		return fold[float32]{t, k, -math.MaxFloat32, math.MaxFloat32}, nil
	case tensor.Float64:
		return fold[float64]{t, k, -math.MaxFloat64, math.MaxFloat64}, nil
	case tensor.Int8:
		return fold[int8]{t, k, math.MinInt8, math.MaxInt8}, nil
	case tensor.Int16:
		return fold[int16]{t, k, math.MinInt16, math.MaxInt16}, nil
	case tensor.Int32:
		return fold[int32]{t, k, math.MinInt32, math.MaxInt32}, nil
	case tensor.Int64:
		return fold[int64]{t, k, math.MinInt64, math.MaxInt64}, nil
	case tensor.Uint8, tensor.Bool:
		return fold[uint8]{t, k, 0, math.MaxUint8}, nil
	case tensor.Uint32:
		return fold[uint32]{t, k, 0, math.MaxUint32}, nil
	case tensor.Uint64:
		return fold[uint64]{t, k, 0, math.MaxUint64}, nil
	}
	return nil, op.Unsupported("elements of type %v", t)
}

type fold[T tensor.Number] struct {
	t       tensor.Type
	kind    foldKind
	low, up T
}

func (f fold[T]) neutral() *tensor.Tensor {
	v := map[foldKind]T{foldAdd: 0, foldMul: 1, foldMax: f.low, foldMin: f.up}[f.kind]
	return tensor.From(f.t, nil, []T{v})
}

func (f fold[T]) rows(dst, src *tensor.Tensor, do, so, n int) {
	d, s := tensor.Of[T](dst)[do:do+n], tensor.Of[T](src)[so:so+n]
	switch {
	case f.t == tensor.Bool:
		for i, v := range s {
			d[i] = max(d[i], v)
		}
	case f.kind == foldAdd:
		for i, v := range s {
			d[i] += v
		}
	case f.kind == foldMul:
		for i, v := range s {
			d[i] *= v
		}
	case f.kind == foldMax:
		for i, v := range s {
			d[i] = max(d[i], v)
		}
	default:
		for i, v := range s {
			d[i] = min(d[i], v)
		}
	}
}

package layout

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Update applies blocks of u to the blocks of y with the indices at, in order. Negative indices
// are skipped.
type Update func(y, u *tensor.Tensor, at []int, block int)

// Updater returns the update for an element type and a reduction: "none", "add", "mul", "max" or
// "min". For booleans, "add" is "or" and "mul" is "and".
func Updater(t tensor.Type, reduction string) (Update, error) {
	switch reduction {
	case "none", "":
		return func(y, u *tensor.Tensor, at []int, block int) { move.Put(Of(y), Of(u), at, block) }, nil
	case "add", "mul", "max", "min":
	default:
		return nil, fmt.Errorf("reduction is %q", reduction)
	}
	if f := tensor.PickNumber(t, numericUpdate[float32], numericUpdate[float64], numericUpdate[int8], numericUpdate[int16], numericUpdate[int32], numericUpdate[int64],
		numericUpdate[uint8], numericUpdate[uint16], numericUpdate[uint32], numericUpdate[uint64]); f != nil {
		return f(reduction), nil
	}
	switch t {
	case tensor.Float16:
		return reduce(halfCombiner(reduction, tensor.F16ToF32, tensor.F32ToF16)), nil
	case tensor.BFloat16:
		return reduce(halfCombiner(reduction, tensor.BF16ToF32, tensor.F32ToBF16)), nil
	case tensor.Bool:
		if reduction == "add" || reduction == "max" {
			return numericUpdate[uint8]("max"), nil
		}
		return numericUpdate[uint8]("min"), nil
	}
	return nil, op.Unsupported("reduction %s of %v", reduction, t)
}

func numericUpdate[T tensor.Number](reduction string) Update {
	blocks := reduce(combiner[T](reduction))
	return func(y, u *tensor.Tensor, at []int, block int) {
		if block == 1 {
			reduceSingles(reduction, tensor.Of[T](y), tensor.Of[T](u), at)
			return
		}
		blocks(y, u, at, block)
	}
}

// reduceSingles is reduce for blocks of one element.
func reduceSingles[T tensor.Number](reduction string, dst, src []T, at []int) {
	src = src[:len(at)]
	switch reduction {
	case "add":
		for i, a := range at {
			if a >= 0 {
				dst[a] += src[i]
			}
		}
	case "mul":
		for i, a := range at {
			if a >= 0 {
				dst[a] *= src[i]
			}
		}
	case "max":
		for i, a := range at {
			if a >= 0 {
				dst[a] = max(dst[a], src[i])
			}
		}
	default:
		for i, a := range at {
			if a >= 0 {
				dst[a] = min(dst[a], src[i])
			}
		}
	}
}

// reduce applies f to the blocks; f combines one slice into another.
func reduce[T tensor.Number](f func(dst, src []T)) Update {
	return func(y, u *tensor.Tensor, at []int, block int) {
		d, s := tensor.Of[T](y), tensor.Of[T](u)
		for i, a := range at {
			if a >= 0 {
				f(d[a*block:(a+1)*block], s[i*block:(i+1)*block])
			}
		}
	}
}

func combiner[T tensor.Number](reduction string) func(dst, src []T) {
	switch reduction {
	case "add":
		return func(dst, src []T) {
			for i, v := range src {
				dst[i] += v
			}
		}
	case "mul":
		return func(dst, src []T) {
			for i, v := range src {
				dst[i] *= v
			}
		}
	case "max":
		return func(dst, src []T) {
			for i, v := range src {
				dst[i] = max(dst[i], v)
			}
		}
	}
	return func(dst, src []T) {
		for i, v := range src {
			dst[i] = min(dst[i], v)
		}
	}
}

// halfCombiner computes in float32 and rounds every result.
func halfCombiner(reduction string, wide func(uint16) float32, narrow func(float32) uint16) func(dst, src []uint16) {
	f := combiner[float32](reduction)
	return func(dst, src []uint16) {
		a, b := make([]float32, 1), make([]float32, 1)
		for i, v := range src {
			a[0], b[0] = wide(dst[i]), wide(v)
			f(a, b)
			dst[i] = narrow(a[0])
		}
	}
}

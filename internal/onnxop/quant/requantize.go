package quant

import (
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Requantize writes round((sums+bias)*scale)+zero, saturated to the type of y
// (int8 or uint8), from position at on. Ties go to even, as QuantizeLinear does.
func Requantize(y *tensor.Tensor, at int, sums []int32, bias int32, scale float32, zero int32) {
	if y.Type == tensor.Int8 {
		requantizeTo(tensor.Of[int8](y)[at:], sums, bias, scale, zero, -128, 127)
		return
	}
	requantizeTo(tensor.Of[uint8](y)[at:], sums, bias, scale, zero, 0, 255)
}

func requantizeTo[T int8 | uint8](y []T, sums []int32, bias int32, scale float32, zero int32, lo, hi float64) {
	y = y[:len(sums)]
	z := float64(zero)
	if e := simd.ElementKernels(); e != nil && !math.IsNaN(float64(scale)) && !math.IsInf(float64(scale), 0) {
		n := e.Rescale(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(y))), len(y)), sums, scale, float32(lo-z), float32(hi-z), zero, bias)
		y, sums = y[n:], sums[n:]
	}
	for i, s := range sums {
		v := math.RoundToEven(float64(float32(s+bias)*scale)) + z
		y[i] = T(int32(min(max(v, lo), hi)))
	}
}

// QuantizeReal rounds real values to the type of y with scale and zero point.
func QuantizeReal(y *tensor.Tensor, at int, v []float32, scale float32, zero int32) {
	if y.Type == tensor.Int8 {
		o := tensor.Of[int8](y)[at:]
		for i, f := range v {
			o[i] = int8(int32(min(max(math.RoundToEven(float64(f/scale))+float64(zero), -128), 127)))
		}
		return
	}
	o := tensor.Of[uint8](y)[at:]
	for i, f := range v {
		o[i] = uint8(int32(min(max(math.RoundToEven(float64(f/scale))+float64(zero), 0), 255)))
	}
}

// ScalarScale reads a scalar scale and zero point.
func ScalarScale(c *op.Call, i int) (float32, int32) {
	return float32(tensor.At(c.In[i], 0)), First(Zeros(c.Input(i + 1)))
}

// IsByte reports whether a tensor holds 8-bit codes.
func IsByte(x *tensor.Tensor) bool {
	return x != nil && (x.Type == tensor.Uint8 || x.Type == tensor.Int8)
}

// Zeros reads a zero-point tensor: nil when absent, one value or one a channel.
func Zeros(x *tensor.Tensor) []int32 {
	if x == nil {
		return nil
	}
	out := make([]int32, x.Len())
	tensor.Read(out, x, 0)
	return out
}

// Lift widens integers to int32, less a zero point.
func Lift(dst []int32, x *tensor.Tensor, zero int32) {
	tensor.Read(dst, x, 0)
	if zero != 0 {
		for i := range dst {
			dst[i] -= zero
		}
	}
}

// First is the first element of a zero-point list, 0 when there is none.
func First(z []int32) int32 {
	if len(z) == 0 {
		return 0
	}
	return z[0]
}

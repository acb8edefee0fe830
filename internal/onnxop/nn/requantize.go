package nn

import (
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// requantize writes round((sums+bias)*scale)+zero, saturated to the type of y
// (int8 or uint8), from position at on. Ties go to even, as QuantizeLinear does.
func requantize(y *tensor.Tensor, at int, sums []int32, bias int32, scale float32, zero int32) {
	if y.Type == tensor.Int8 {
		requantizeTo(tensor.Of[int8](y)[at:], sums, bias, scale, zero, -128, 127)
		return
	}
	requantizeTo(tensor.Of[uint8](y)[at:], sums, bias, scale, zero, 0, 255)
}

func requantizeTo[T int8 | uint8](y []T, sums []int32, bias int32, scale float32, zero int32, lo, hi float64) {
	y = y[:len(sums)]
	z := float64(zero)
	for i, s := range sums {
		v := math.RoundToEven(float64(float32(s+bias)*scale)) + z
		y[i] = T(int32(min(max(v, lo), hi)))
	}
}

// quantizeReal rounds real values to the type of y with scale and zero point.
func quantizeReal(y *tensor.Tensor, at int, v []float32, scale float32, zero int32) {
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

// dequantizer checks a tensor with scalar scale and zero point.
func scalarScale(c *op.Call, i int) (float32, int32) {
	return float32(tensor.At(c.In[i], 0)), first(zeros(c.Input(i + 1)))
}

package quantise

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// FloatScale dequantises the integer sums of channels, as the hybrid layers of TFLite do: sum
// times the channel scale and the input scale, plus the bias, clamped.
type FloatScale struct {
	Weights []float32 // one per channel
	Bias    []float32 // one per channel, nil for none
	Act     activation.Clamp
	// multiply the scales with each other first; else multiply the sum by the channel scale, then
	// by the other
	Together bool
}

// Rows writes rows of n channels from channel ch, step apart; the sums are line apart. If scales
// is not nil each row has its own input scale. y may share memory with sums.
func (f *FloatScale) Rows(y []float32, step int, sums []int32, line, rows, n, ch int, scales []float32, scale float32) {
	w, bias := f.Weights[ch:][:n], f.Bias
	if bias != nil {
		bias = bias[ch:][:n]
	}
	e := simd.ElementKernels()
	done := e != nil && e.ScaleRows(y, step, sums, line, rows, w, bias, scales, scale, f.Together)
	if done && f.Act.On && step == n {
		element.Bound(y[:rows*n], f.Act.Min, f.Act.Max)
		return
	}
	for r := range rows {
		row := y[r*step:][:n]
		if !done {
			if scales != nil {
				scale = scales[r]
			}
			f.row(row, sums[r*line:][:n], w, bias, scale)
		}
		if f.Act.On {
			element.Bound(row, f.Act.Min, f.Act.Max)
		}
	}
}

// row is the fallback for instruction sets without a kernel.
func (f *FloatScale) row(y []float32, sums []int32, w, bias []float32, scale float32) {
	element.Int32ToFloat32(y, sums)
	e := simd.ElementKernels()
	switch {
	case f.Together:
		for i, v := range w {
			y[i] *= float32(scale * v)
		}
	case e != nil:
		e.Mul(y, y, w)
		e.MulScalar(y, y, scale)
	default:
		for i, v := range w {
			y[i] = float32(y[i]*v) * scale
		}
	}
	switch {
	case bias == nil:
	case e != nil:
		e.Add(y, y, bias)
	default:
		for i, v := range bias {
			y[i] += v
		}
	}
}

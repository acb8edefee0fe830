package elem

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Clamp applies a fused activation in place.
func Clamp[T tensor.Real](act activation.Clamp, y []T) {
	if !act.On {
		return
	}
	if f, ok := any(y).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Clamp(f, f, act.Min, act.Max)
			return
		}
	}
	lo, hi := T(act.Min), T(act.Max)
	for i, v := range y {
		y[i] = min(max(v, lo), hi)
	}
}

// Scale writes x·s + t, rounded twice.
func Scale[T tensor.Real](dst, x []T, s, t T) {
	if f, ok := any(x).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Scale(any(dst).([]float32), f, float32(s), float32(t))
			return
		}
	}
	for i, v := range x {
		dst[i] = v*s + t
	}
}

package elem

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Clamp applies a fused activation in place.
func Clamp[T tensor.Real](act activation.Clamp, y []T) {
	if !act.On {
		return
	}
	lo, hi := T(act.Min), T(act.Max)
	for i, v := range y {
		y[i] = min(max(v, lo), hi)
	}
}

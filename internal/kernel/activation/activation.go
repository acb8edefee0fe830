// Package activation defines the fused activation of an operator's result. Both the plan and the
// kernels use it.
package activation

// Clamp bounds an operator's result.
type Clamp struct {
	On       bool
	Min, Max float32 // ±Inf where unbounded
}

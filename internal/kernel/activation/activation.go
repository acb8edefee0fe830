// Package activation says what is done to a result before it is stored. Operators
// take it from the plan and hand it to kernels, so that both know it.
package activation

// Clamp bounds an operator's result.
type Clamp struct {
	On       bool
	Min, Max float32 // ±Inf where unbounded
}

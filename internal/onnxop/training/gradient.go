package training

import "github.com/opmeter/opmeter/internal/op"

// inferGradient refuses: the operator differentiates other nodes of its graph,
// which an engine that only runs nodes has no derivatives for.
func inferGradient(*op.Call) error {
	return op.Unsupported("Gradient needs derivatives of other operators")
}

func prepareGradient(c *op.Call) (op.Run, error) { return nil, inferGradient(c) }

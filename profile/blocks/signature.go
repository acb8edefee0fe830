package blocks

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// signatures numbers layers so that equal ones have equal numbers: class of the operator, shapes of
// the first operand, of the first result and of the weights. known says for each whether the shapes
// are known. Types and options do not count: blocks with weights of other types, or with a window
// of attention of another length, are the same blocks.
func signatures(body profile.Layers) (signs []int, known []bool) {
	signs, known = make([]int, len(body)), make([]bool, len(body))
	at := map[string]int{}
	for i, l := range body {
		parts := []string{align.Class(l.Op)}
		var weights []string
		first := true
		for k := range l.Inputs {
			t := &l.Inputs[k]
			switch {
			case t.Absent:
			case t.Constant:
				if len(t.Shape) > 0 {
					weights = append(weights, profile.ShapeText(t.Shape))
				}
			case first:
				first = false
				parts = append(parts, profile.ShapeText(t.Shape))
			}
		}
		slices.Sort(weights)
		out := "unknown"
		if len(l.Outputs) > 0 && l.Outputs[0].Shape != nil {
			known[i], out = true, profile.ShapeText(l.Outputs[0].Shape)
		}
		parts = append(parts, out)
		key := strings.Join(append(parts, weights...), "|")
		n, ok := at[key]
		if !ok {
			n = len(at)
			at[key] = n
		}
		signs[i] = n
	}
	return signs, known
}

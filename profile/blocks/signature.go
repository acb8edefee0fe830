package blocks

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// signatures numbers layers so that equal ones have equal numbers: class of the operator, shapes of
// the first computed operand, of the first result, and of operands that differ from the first, such
// as weights. A second operand of equal shape is a residual, which the norm of a first block may
// lack. Types and options do not count: blocks with weights of other types, or with a window of
// attention of another length, are the same blocks. known says for each whether the shapes are
// known.
func signatures(body profile.Layers) (signs []int, known []bool) {
	signs, known = make([]int, len(body)), make([]bool, len(body))
	at := map[string]int{}
	for i, l := range body {
		data := slices.IndexFunc(l.Inputs, func(t profile.Tensor) bool { return !t.Constant && !t.Absent })
		read := ""
		if data >= 0 {
			read = profile.ShapeText(l.Inputs[data].Shape)
		}
		parts := []string{align.Class(l.Op), read}
		var others []string
		for k := range l.Inputs {
			if t := &l.Inputs[k]; k != data && !t.Absent && len(t.Shape) > 0 {
				if s := profile.ShapeText(t.Shape); s != read {
					others = append(others, s)
				}
			}
		}
		slices.Sort(others)
		out := "unknown"
		if len(l.Outputs) > 0 && l.Outputs[0].Shape != nil {
			known[i], out = true, profile.ShapeText(l.Outputs[0].Shape)
		}
		parts = append(parts, out)
		key := strings.Join(append(parts, others...), "|")
		n, ok := at[key]
		if !ok {
			n = len(at)
			at[key] = n
		}
		signs[i] = n
	}
	return signs, known
}

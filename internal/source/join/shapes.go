package join

import (
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// Shapes finds shapes of the model's inputs in a record: the shapes of operators that read an
// input. It returns inputs for which the record differs from the described model, or confirms an
// assumed dimension.
func Shapes(model *profile.Profile, rows []profile.Layer, ms []Match) map[string][]int {
	out := map[string][]int{}
	for i := range rows {
		if len(ms[i].Layers) != 1 || ms[i].How[0] == profile.ByOrder {
			continue
		}
		known := slices.DeleteFunc(slices.Clone(model.Layers[ms[i].Layers[0]].Inputs), func(t profile.Tensor) bool { return t.Absent })
		seen := rows[i].Inputs
		if len(known) != len(seen) {
			continue
		}
		for k := range known {
			at := slices.IndexFunc(model.Model.Inputs, func(t profile.Tensor) bool { return t.Name == known[k].Name })
			if at < 0 || seen[k].DType != known[k].DType || len(seen[k].Shape) != len(known[k].Shape) || out[known[k].Name] != nil {
				continue
			}
			in := &model.Model.Inputs[at]
			if shape, ok := ints(seen[k].Shape); ok && (len(in.Assumed) > 0 || !slices.Equal(seen[k].Shape, in.Shape)) {
				out[known[k].Name] = shape
			}
		}
	}
	return out
}

func ints(shape []int64) ([]int, bool) {
	out := make([]int, len(shape))
	for i, d := range shape {
		if d < 0 || d > 1<<31-1 {
			return nil, false
		}
		out[i] = int(d)
	}
	return out, true
}

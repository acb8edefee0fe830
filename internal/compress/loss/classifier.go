package loss

import (
	"context"
	"math"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/study"
)

// maxClassified is the number of samples whose outputs are inspected.
const maxClassified = 32

// IsClassifier reports whether a model's outputs on data look like class scores: a single row of at
// least two per sample. Its values are probabilities, or logits whose softmax averages above one
// half for the top class, which is not always the same. Other outputs rarely have both
// properties: softmax of small values is nearly uniform, and large values have the same maximum.
func IsClassifier(ctx context.Context, m *graph.Model, data *samples.Set, threads int) (bool, error) {
	j := &Job{Model: m, Data: pickSamples(data, maxClassified, !stateful(m)), Threads: threads, Settings: study.LossSettings{Method: study.EndToEnd, Metric: KL}}
	c, _, err := j.runUnchanged(ctx)
	if err != nil {
		return false, err
	}
	c.inspectOutputs()
	front, sum, n := map[float64]bool{}, 0.0, 0.0
	for _, outs := range c.outs {
		numbers := 0
		for _, t := range outs {
			if t != nil && t.Type.IsNumber() {
				numbers++
			}
		}
		row := rowLength(outs[0])
		if numbers != 1 || row < 2 || outs[0].Len() != row*j.Data.Batch {
			return false, nil
		}
		v := toReal(outs[0])
		for i := 0; i+row <= len(v); i += row {
			k := c.class(v[i : i+row])
			front[k] = true
			sum, n = sum+math.Exp(c.logProbabilities(v[i : i+row])[int(k)]), n+1
		}
	}
	return c.probabilities || len(front) > 1 && sum > n/2, nil
}

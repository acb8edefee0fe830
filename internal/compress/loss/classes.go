package loss

import (
	"context"
	"math"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/study"
)

// looked is how many samples outputs are looked at of.
const looked = 32

// Classes reports whether a model's output is scores of classes, as far as its outputs on data tell: a single row of at least two for each sample,
// which are probabilities, or whose softmax has more than one half for one of them, which is not always the same. Rows of other
// figures seldom are that: softmax makes nearly equal shares of small ones, and of large ones has the same in front.
func Classes(ctx context.Context, m *graph.Model, data *samples.Set, threads int) (bool, error) {
	j := &Job{Model: m, Data: some(data, looked, !stateful(m)), Threads: threads, Settings: study.LossSettings{Method: study.EndToEnd, Metric: KL}}
	c, _, err := j.unchanged(ctx)
	if err != nil {
		return false, err
	}
	c.look()
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
		v := reals(outs[0])
		for i := 0; i+row <= len(v); i += row {
			k := c.class(v[i : i+row])
			front[k] = true
			sum, n = sum+math.Exp(c.logs(v[i : i+row])[int(k)]), n+1
		}
	}
	return c.shares || len(front) > 1 && sum > n/2, nil
}

package vision

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// inferSuppress has boxes, scores, the largest number of results, thresholds for overlap and score
// and, in version 5, the width of soft suppression: n inputs.
func inferSuppress(n int) func(c *op.Call) error {
	return func(c *op.Call) error {
		if err := c.NeedInputs(n); err != nil {
			return err
		}
		b, s := c.In[0], c.In[1]
		if b.Type != tensor.Float32 || s.Type != tensor.Float32 || b.Rank() != 2 || b.Shape[1] != 4 || s.Rank() != 1 || s.Shape[0] != b.Shape[0] {
			return fmt.Errorf("boxes %v %s with scores %v %s", b.Type, tensor.FormatShape(b.Shape), s.Type, tensor.FormatShape(s.Shape))
		}
		for _, x := range c.In[3:n] {
			if x.Type != tensor.Float32 || x.Len() != 1 {
				return fmt.Errorf("threshold %v %s", x.Type, tensor.FormatShape(x.Shape))
			}
		}
		most, err := op.Ints(c.In[2])
		if err != nil {
			return err
		}
		if len(most) != 1 || most[0] < 0 {
			return fmt.Errorf("largest number of boxes %v", most)
		}
		c.SetOut(0, tensor.Int32, most)
		if n == 6 {
			c.SetOut(1, tensor.Float32, []int{most[0]})
		}
		c.SetOut(n-4, tensor.Int32, []int{})
		return nil
	}
}

// candidate is a box that may still be chosen.
type candidate struct {
	box   int
	score float32
	seen  int // chosen boxes that it was compared with
}

func runSuppress(c *op.Call) error {
	b, scores := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1])
	number := func(i int) float32 { return tensor.Single[float32](c.In[i]) }
	count := 1 // number of the output that holds the number of chosen boxes
	var decay float32
	if c.Node.Op == "NON_MAX_SUPPRESSION_V5" {
		count = 2
		if sigma := number(5); sigma > 0 {
			decay = -0.5 / sigma
		}
	}
	boxes := make([]box, len(scores))
	for i := range boxes {
		p := b[4*i:][:4]
		boxes[i] = box{min(p[0], p[2]), min(p[1], p[3]), max(p[0], p[2]), max(p[1], p[3])}
	}
	chosen, values := choose(boxes, scores, c.Out[0].Shape[0], number(3), number(4), decay)
	at := tensor.Of[int32](c.Out[0])
	clear(at)
	for i, k := range chosen {
		at[i] = int32(k)
	}
	if count == 2 && c.Wants(1) {
		y := tensor.Of[float32](c.Out[1])
		clear(y[copy(y, values):])
	}
	if c.Wants(count) {
		tensor.Of[int32](c.Out[count])[0] = int32(len(chosen))
	}
	return nil
}

// choose takes the best candidate again and again. A candidate that overlaps a
// chosen box too much is dropped; with decay its score is lowered by every
// overlap and it has to queue again.
func choose(boxes []box, scores []float32, most int, limit, least, decay float32) (chosen []int, values []float32) {
	var queue []candidate
	for i, s := range scores {
		if s > least {
			queue = append(queue, candidate{i, s, 0})
		}
	}
	// The best candidate comes last.
	order := func(a, b candidate) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(b.box, a.box)) }
	slices.SortFunc(queue, order)
	for len(chosen) < most && len(queue) > 0 {
		top := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		before, dropped := top.score, false
		for j := len(chosen) - 1; j >= top.seen; j-- {
			o := overlap(boxes[top.box], boxes[chosen[j]])
			if o >= limit {
				dropped = true
				break
			}
			if decay != 0 {
				top.score *= float32(math.Exp(float64(decay * o * o)))
			}
			if top.score <= least {
				break
			}
		}
		top.seen = len(chosen)
		switch {
		case dropped:
		case top.score == before:
			chosen, values = append(chosen, top.box), append(values, top.score)
		case top.score > least:
			i, _ := slices.BinarySearchFunc(queue, top, order)
			queue = slices.Insert(queue, i, top)
		}
	}
	return chosen, values
}

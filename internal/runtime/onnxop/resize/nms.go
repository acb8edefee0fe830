package resize

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel/order"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// inferNMS checks boxes [N,B,4] and scores [N,C,B]; the number of remaining boxes is known only
// after the run.
func inferNMS(c *op.Call) error {
	b, s := c.In[0].Shape, c.In[1].Shape
	if len(b) != 3 || len(s) != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2] {
		return fmt.Errorf("boxes %s with scores %s", tensor.FormatShape(b), tensor.FormatShape(s))
	}
	if c.In[0].Type != tensor.Float32 || c.In[1].Type != tensor.Float32 {
		return op.Unsupported("boxes of %v with scores of %v", c.In[0].Type, c.In[1].Type)
	}
	return op.ErrDynamic
}

// box is a rectangle given by its corners.
type box struct{ y0, x0, y1, x1, area float32 }

func readBox(v []float32, center bool) (b box) {
	if center { // x, y, width, height
		b = box{y0: v[1] - v[3]/2, x0: v[0] - v[2]/2, y1: v[1] + v[3]/2, x1: v[0] + v[2]/2}
	} else {
		b = box{y0: min(v[0], v[2]), x0: min(v[1], v[3]), y1: max(v[0], v[2]), x1: max(v[1], v[3])}
	}
	b.area = (b.y1 - b.y0) * (b.x1 - b.x0)
	return b
}

// overlap returns the intersection over union.
func (a *box) overlap(b *box) float32 {
	h, w := min(a.y1, b.y1)-max(a.y0, b.y0), min(a.x1, b.x1)-max(a.x0, b.x0)
	if h <= 0 || w <= 0 || a.area <= 0 || b.area <= 0 {
		return 0
	}
	return h * w / (a.area + b.area - h*w)
}

// meets reports whether one of boxes overlaps a by more than iou.
func (a *box) meets(boxes []box, iou float32) bool {
	for i := range boxes {
		if a.overlap(&boxes[i]) > iou {
			return true
		}
	}
	return false
}

func runNMS(c *op.Call) error {
	boxes, scores := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1])
	n, classes, count := c.In[1].Shape[0], c.In[1].Shape[1], c.In[1].Shape[2]
	limit := 0
	if c.Has(2) && c.In[2].Len() > 0 {
		// exporters write the largest integer for no limit
		limit = int(min(tensor.At(c.In[2], 0), float64(count)))
	}
	var iou float32
	if c.Has(3) && c.In[3].Len() > 0 {
		iou = float32(tensor.At(c.In[3], 0))
	}
	if iou < 0 || iou > 1 {
		return fmt.Errorf("iou_threshold %v", iou)
	}
	hasFloor := c.Has(4) && c.In[4].Len() > 0
	var floor float32
	if hasFloor {
		floor = float32(tensor.At(c.In[4], 0))
	}
	center := c.Node.Attrs.Bool("center_point_box", false)
	var picked []int64
	places := make([]int, 0, count)
	var kept []box
	for i := range n * classes {
		if limit <= 0 {
			break
		}
		score := scores[i*count:][:count]
		places, kept = places[:0], kept[:0]
		for k, s := range score {
			if !hasFloor || s > floor {
				places = append(places, k)
			}
		}
		order.SortDescending(places, score)
		for _, k := range places {
			if len(kept) >= limit {
				break
			}
			b := readBox(boxes[(i/classes*count+k)*4:][:4], center)
			if !b.meets(kept, iou) {
				kept = append(kept, b)
				picked = append(picked, int64(i/classes), int64(i%classes), int64(k))
			}
		}
	}
	y, err := c.Make(0, tensor.Int64, []int{len(picked) / 3, 3})
	if err != nil {
		return err
	}
	copy(tensor.Of[int64](y), picked)
	return nil
}

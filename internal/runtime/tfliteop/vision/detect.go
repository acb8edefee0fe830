package vision

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// inferSuppress reads boxes, scores, the largest number of results, thresholds for overlap and
// score and, in version 5, the width of soft suppression: n inputs.
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

// choose selects the best candidates one by one. A candidate that overlaps a chosen box too much is
// dropped. With decay each overlap lowers its score, and the candidate returns to the queue.
func choose(boxes []box, scores []float32, most int, limit, least, decay float32) (chosen []int, values []float32) {
	var queue []candidate
	for i, s := range scores {
		if s > least {
			queue = append(queue, candidate{i, s, 0})
		}
	}
	// The best candidate is the last.
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

// detection holds the options of the post-processing of SSD models.
type detection struct {
	most, classesPerBox, perClass, classes int
	regular                                bool
	least, limit                           float32
	scale                                  [4]float32 // y, x, h, w

	// Workspace of a run, which must not allocate.
	best                    []float32
	order, kept, classOrder []int
	gone                    []bool
	list                    []found
}

// detectionOf reads the options. Inputs are encoded boxes, class scores and anchors.
func detectionOf(c *op.Call) (*detection, error) {
	if err := c.NeedInputs(3); err != nil {
		return nil, err
	}
	o, err := layer.Options(c)
	if err != nil {
		return nil, err
	}
	d := &detection{
		most:          int(o.GetInt("max_detections", 0)),
		classesPerBox: int(o.GetInt("max_classes_per_detection", 0)),
		perClass:      int(o.GetInt("detections_per_class", 100)),
		classes:       int(o.GetInt("num_classes", 0)),
		regular:       o.GetBool("use_regular_nms", false),
		least:         float32(o.GetFloat("nms_score_threshold", 0)),
		limit:         float32(o.GetFloat("nms_iou_threshold", 0)),
	}
	for i, k := range []string{"y_scale", "x_scale", "h_scale", "w_scale"} {
		d.scale[i] = float32(o.GetFloat(k, 1))
	}
	if d.most < 1 || d.classesPerBox < 1 || d.classes < 1 || d.perClass < 1 || d.most > 1<<20 || d.classesPerBox > 1<<10 {
		return nil, fmt.Errorf("%d detections of %d classes, %d classes a box", d.most, d.classes, d.classesPerBox)
	}
	if slices.Contains(d.scale[:], 0) {
		return nil, fmt.Errorf("a scale is zero")
	}
	b, s, a := c.In[0].Shape, c.In[1].Shape, c.In[2].Shape
	if len(b) != 3 || len(s) != 3 || len(a) != 2 || b[0] != 1 || s[0] != 1 || b[1] != s[1] || b[1] != a[0] || b[2] < 4 || a[1] != 4 || s[2] < d.classes {
		return nil, fmt.Errorf("boxes %s, scores %s, anchors %s", tensor.FormatShape(b), tensor.FormatShape(s), tensor.FormatShape(a))
	}
	return d, nil
}

func inferDetect(c *op.Call, d *detection) {
	n := d.most * d.classesPerBox
	for i, shape := range [][]int{{1, n, 4}, {1, n}, {1, n}, {1}} {
		c.SetOut(i, tensor.Float32, shape)
	}
}

// found is a detection: a box, its class and score.
type found struct {
	box, class int
	score      float32
}

func prepareDetect(c *op.Call, d *detection) (op.Run, error) {
	if len(c.Out) != 4 || slices.Contains(c.Out, nil) {
		return nil, fmt.Errorf("%d outputs where four are expected", len(c.Out))
	}
	view, err := views(c.In[:3])
	if err != nil {
		return nil, err
	}
	n, columns, width := c.In[1].Shape[1], c.In[1].Shape[2], c.In[0].Shape[2]
	boxes := make([]box, n)
	return func(c *op.Call) error {
		d.decode(boxes, view[0](c.In[0]), view[2](c.In[2]), width)
		scores := view[1](c.In[1])
		list := d.byBox
		if d.regular {
			list = d.byClass
		}
		d.write(c, boxes, list(boxes, scores, columns))
		return nil
	}, nil
}

// decode turns offsets from anchors (centre and size) into corners.
func (d *detection) decode(boxes []box, code, anchors []float32, width int) {
	for i := range boxes {
		var e, a [4]float64 // the reference computes in float64 and rounds centre and half sizes
		for k := range e {
			e[k], a[k] = float64(code[i*width+k])/float64(d.scale[k]), float64(anchors[i*4+k])
		}
		y, x := float32(e[0]*a[2]+a[0]), float32(e[1]*a[3]+a[1])
		h, w := float32(0.5*math.Exp(e[2])*a[2]), float32(0.5*math.Exp(e[3])*a[3])
		boxes[i] = box{y - h, x - w, y + h, x + w}
	}
}

// keep suppresses boxes by one list of scores and returns at most `most` of them, best first.
func (d *detection) keep(boxes []box, score func(i int) float32, most int) []int {
	order := d.order[:0]
	for i := range boxes {
		if score(i) >= d.least {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score(b), score(a)) })
	d.order, d.gone = order, slices.Grow(d.gone[:0], len(order))
	gone, kept := d.gone[:len(order)], d.kept[:0]
	clear(gone)
	for i, k := range order {
		if len(kept) >= most {
			break
		}
		if gone[i] {
			continue
		}
		kept = append(kept, k)
		for j := i + 1; j < len(order); j++ {
			if !gone[j] && overlap(boxes[k], boxes[order[j]]) > d.limit {
				gone[j] = true
			}
		}
	}
	d.kept = kept
	return kept
}

// byBox suppresses boxes by their best class only, which is fast.
func (d *detection) byBox(boxes []box, scores []float32, columns int) []found {
	first := columns - d.classes // a background class may come before the others
	per := min(d.classesPerBox, d.classes)
	d.best = slices.Grow(d.best[:0], len(boxes))[:len(boxes)]
	best := d.best
	for i := range best {
		best[i] = slices.Max(scores[i*columns+first:][:d.classes])
	}
	list := d.list[:0]
	d.classOrder = slices.Grow(d.classOrder[:0], d.classes)
	for _, b := range d.keep(boxes, func(i int) float32 { return best[i] }, d.most) {
		row := scores[b*columns+first:][:d.classes]
		order := d.classOrder[:d.classes]
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
		for _, k := range order[:per] {
			list = append(list, found{b, k, row[k]})
		}
	}
	d.list = list
	return list
}

// byClass suppresses boxes within each class and returns the best of all classes.
func (d *detection) byClass(boxes []box, scores []float32, columns int) []found {
	first := columns - d.classes
	list := d.list[:0]
	for k := range d.classes {
		score := func(i int) float32 { return scores[i*columns+first+k] }
		for _, b := range d.keep(boxes, score, d.perClass) {
			list = append(list, found{b, k, score(b)})
		}
		slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(b.score, a.score) })
		list = list[:min(len(list), d.most)]
	}
	d.list = list
	return list
}

func (d *detection) write(c *op.Call, boxes []box, list []found) {
	var y [4][]float32
	for i := range y {
		y[i] = tensor.Of[float32](c.Out[i])
		clear(y[i])
	}
	for i, f := range list {
		b := boxes[f.box]
		copy(y[0][4*i:], []float32{b.y0, b.x0, b.y1, b.x1})
		y[1][i], y[2][i] = float32(f.class), f.score
	}
	n := len(list)
	if !d.regular {
		n /= min(d.classesPerBox, d.classes)
	}
	y[3][0] = float32(n)
}

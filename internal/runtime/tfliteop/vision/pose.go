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

const keypoints = 17

// bones joins keypoints (0 nose, 1-2 eyes, 3-4 ears, 5-6 shoulders, 7-8 elbows, 9-10 wrists, 11-12
// hips, 13-14 knees, 15-16 ankles; left before right), in the order of the model's displacement
// maps.
var bones = [16][2]int{
	{0, 1},
	{1, 3},
	{0, 2},
	{2, 4},
	{0, 5},
	{5, 7},
	{7, 9},
	{5, 11},
	{11, 13},
	{13, 15},
	{0, 6},
	{6, 8},
	{8, 10},
	{6, 12},
	{12, 14},
	{14, 16},
}

// poseOptions are the decoder's options.
type poseOptions struct {
	most           int
	least          float32 // of a keypoint's score, after the sigmoid
	stride, radius float32 // pixels
}

// poseOptionsOf reads the options. Inputs are heat maps, offsets to the exact position,
// displacements between keypoints and, for body parts, offsets from anywhere to the keypoints.
func poseOptionsOf(c *op.Call) (p poseOptions, err error) {
	if err := c.NeedInputs(3); err != nil {
		return p, err
	}
	o, err := layer.Options(c)
	if err != nil {
		return p, err
	}
	p = poseOptions{int(o.GetInt("max_detections", 0)), float32(o.GetFloat("score_threshold", 0)), float32(o.GetInt("stride", 0)), float32(o.GetFloat("nms_radius", 0))}
	if p.most < 1 || p.most > 1<<16 || p.stride < 1 {
		return p, fmt.Errorf("%d poses with a stride of %v", p.most, p.stride)
	}
	h := c.In[0].Shape
	for i, depth := range []int{keypoints, 2 * keypoints, 4 * len(bones), 2 * keypoints} {
		x := c.Input(i)
		if x == nil {
			break
		}
		if x.Rank() != 4 || x.Shape[0] != 1 || x.Shape[3] != depth || x.Shape[1] != h[1] || x.Shape[2] != h[2] {
			return p, op.Unsupported("map %d of shape %s", i, tensor.FormatShape(x.Shape))
		}
	}
	return p, nil
}

func inferPose(c *op.Call, p poseOptions) {
	h := c.In[0].Shape
	for i, shape := range [][]int{{1, p.most, keypoints, 2}, {1, p.most, keypoints}, {1, p.most}, {1}, {p.most, h[1], h[2]}} {
		c.SetOut(i, tensor.Float32, shape)
	}
}

// pose is one person; coordinates are in cells of the maps.
type pose struct {
	y, x, score [keypoints]float32
	total       float32
}

// decoder holds the maps of one run.
type decoder struct {
	poseOptions
	h, w                    int
	heat, short, mid, broad []float32
}

func preparePose(c *op.Call, p poseOptions) (op.Run, error) {
	if len(c.Out) > 5 || len(c.Out) == 5 && !c.Has(3) {
		return nil, op.Unsupported("%d outputs from %d maps", len(c.Out), len(c.In))
	}
	view, err := views(c.In)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		d := decoder{poseOptions: p, h: c.In[0].Shape[1], w: c.In[0].Shape[2]}
		d.heat, d.short, d.mid = view[0](c.In[0]), view[1](c.In[1]), view[2](c.In[2])
		if c.Has(3) {
			d.broad = view[3](c.In[3])
		}
		d.write(c, d.poses())
		return nil
	}, nil
}

func sigmoid(v float32) float32 { return float32(1 / (1 + math.Exp(-float64(v)))) }

// cell returns the map cell nearest to a position.
func (d *decoder) cell(y, x float32) int {
	r := min(max(int(math.Round(float64(y))), 0), d.h-1)
	c := min(max(int(math.Round(float64(x))), 0), d.w-1)
	return r*d.w + c
}

// refine moves a position by the offset that its cell predicts for a keypoint.
func (d *decoder) refine(k, cell int, y, x float32) (float32, float32) {
	o := d.short[cell*2*keypoints:][:2*keypoints]
	return y + o[k]/d.stride, x + o[keypoints+k]/d.stride
}

// root is a cell that may start a pose.
type root struct {
	cell, k int
	score   float32
}

// roots lists the keypoint cells above the threshold that no neighbour exceeds, best first.
func (d *decoder) roots() []root {
	var list []root
	for cell := range d.h * d.w {
		r, c := cell/d.w, cell%d.w
		for k := range keypoints {
			v := d.heat[cell*keypoints+k]
			s := sigmoid(v)
			if s < d.least {
				continue
			}
			top := true
			for y := max(r-1, 0); y <= min(r+1, d.h-1) && top; y++ {
				for x := max(c-1, 0); x <= min(c+1, d.w-1); x++ {
					top = top && d.heat[(y*d.w+x)*keypoints+k] <= v
				}
			}
			if top {
				list = append(list, root{cell, k, s})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b root) int { return cmp.Compare(b.score, a.score) })
	return list
}

// poses decodes a pose from each root that is not near the same keypoint of an earlier pose.
func (d *decoder) poses() []pose {
	radius := d.radius / d.stride
	near := func(p *pose, k int, y, x float32) bool {
		dy, dx := p.y[k]-y, p.x[k]-x
		return dy*dy+dx*dx <= radius*radius
	}
	var list []pose
	for _, r := range d.roots() {
		if len(list) == d.most {
			break
		}
		y, x := d.refine(r.k, r.cell, float32(r.cell/d.w), float32(r.cell%d.w))
		if slices.ContainsFunc(list, func(p pose) bool { return near(&p, r.k, y, x) }) {
			continue
		}
		p := d.follow(r, y, x)
		// Keypoints near those of an earlier pose do not count.
		for k := range keypoints {
			if !slices.ContainsFunc(list, func(q pose) bool { return near(&q, k, p.y[k], p.x[k]) }) {
				p.total += p.score[k] / keypoints
			}
		}
		if p.total >= d.least {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b pose) int { return cmp.Compare(b.total, a.total) })
	return list
}

// follow decodes a pose from one keypoint along the bones. Keypoints with the highest score are
// expanded first.
func (d *decoder) follow(r root, y, x float32) (p pose) {
	var done [keypoints]bool
	p.y[r.k], p.x[r.k], p.score[r.k] = y, x, r.score
	queue := []int{r.k}
	for len(queue) > 0 {
		best := 0
		for i, k := range queue {
			if p.score[k] > p.score[queue[best]] {
				best = i
			}
		}
		k := queue[best]
		queue = slices.Delete(queue, best, best+1)
		done[k] = true
		for e, bone := range bones {
			for side, from := range bone {
				to := bone[1-side]
				if from != k || done[to] || slices.Contains(queue, to) {
					continue
				}
				// Forward displacements precede backward ones; each has all y before all x.
				m := d.mid[d.cell(p.y[k], p.x[k])*4*len(bones)+side*2*len(bones):]
				ty, tx := p.y[k]+m[e]/d.stride, p.x[k]+m[len(bones)+e]/d.stride
				cell := d.cell(ty, tx)
				p.y[to], p.x[to] = d.refine(to, cell, float32(cell/d.w), float32(cell%d.w))
				p.score[to] = sigmoid(d.heat[d.cell(p.y[to], p.x[to])*keypoints+to])
				queue = append(queue, to)
			}
		}
	}
	return p
}

func (d *decoder) write(c *op.Call, list []pose) {
	var y [5][]float32
	for i, o := range c.Out {
		if o != nil {
			y[i] = tensor.Of[float32](o)
			clear(y[i])
		}
	}
	for i, p := range list {
		for k := range keypoints {
			if y[0] != nil {
				y[0][(i*keypoints+k)*2], y[0][(i*keypoints+k)*2+1] = p.y[k]*d.stride, p.x[k]*d.stride
			}
			if y[1] != nil {
				y[1][i*keypoints+k] = p.score[k]
			}
		}
		if y[2] != nil {
			y[2][i] = p.total
		}
	}
	if y[3] != nil {
		y[3][0] = float32(len(list))
	}
	if y[4] != nil && len(list) > 0 {
		d.masks(y[4], list)
	}
}

// masks assigns every cell to the pose whose keypoints are nearest to the targets of the cell's
// long offsets.
func (d *decoder) masks(y []float32, list []pose) {
	for cell := range d.h * d.w {
		o := d.broad[cell*2*keypoints:][:2*keypoints]
		best, near := 0, math.Inf(1)
		for i := range list {
			sum := 0.0
			for k := range keypoints {
				dy := float32(cell/d.w) + o[k]/d.stride - list[i].y[k]
				dx := float32(cell%d.w) + o[keypoints+k]/d.stride - list[i].x[k]
				sum += math.Hypot(float64(dy), float64(dx))
			}
			if sum < near {
				best, near = i, sum
			}
		}
		y[best*d.h*d.w+cell] = 1
	}
}

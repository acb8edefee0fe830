package resize

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// inferRoiAlign: x [N,C,H,W], rois [R,4], batch_indices [R].
func inferRoiAlign(c *op.Call) error {
	x, r, b, a := c.In[0].Shape, c.In[1].Shape, c.In[2].Shape, c.Node.Attrs
	if len(x) != 4 || len(r) != 2 || r[1] != 4 || len(b) != 1 || b[0] != r[0] {
		return fmt.Errorf("input %s, rois %s, batch_indices %s", tensor.FormatShape(x), tensor.FormatShape(r), tensor.FormatShape(b))
	}
	h, w := a.Int("output_height", 1), a.Int("output_width", 1)
	if h < 1 || w < 1 {
		return fmt.Errorf("output of %dx%d", h, w)
	}
	// Real models sample 0 (adaptive) to 4 times; the work grows with the square.
	if s := a.Int("sampling_ratio", 0); s < 0 || s > 1024 {
		return fmt.Errorf("sampling_ratio %d", s)
	}
	return c.Result(c.In[0].Type, []int{r[0], x[1], h, w})
}

// roiAlign holds RoiAlign's options.
type roiAlign struct {
	h, w, ph, pw, ratio int
	scale, offset       float64
	maximum             bool
}

func newRoiAlign(c *op.Call) *roiAlign {
	a, x := c.Node.Attrs, c.In[0].Shape
	v := &roiAlign{
		h: x[2], w: x[3], ph: a.Int("output_height", 1), pw: a.Int("output_width", 1), ratio: a.Int("sampling_ratio", 0),
		scale: float64(a.Float("spatial_scale", 1)), maximum: a.Str("mode", "avg") == "max",
	}
	if c.Node.Version >= 16 && a.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel" {
		v.offset = 0.5
	}
	return v
}

// batch reads the image index of each region, of n images.
func (*roiAlign) batch(c *op.Call, n int) ([]int, error) {
	batch, err := op.Ints(c.In[2])
	if err != nil {
		return nil, err
	}
	for _, b := range batch {
		if b < 0 || b >= n {
			return nil, fmt.Errorf("batch index %d of %d", b, n)
		}
	}
	return batch, nil
}

// roiGrid is the grid of the results of a region: the first one's corner, their heights and
// widths, and the number of samples of each.
type roiGrid struct {
	y, x, bh, bw float64
	gh, gw       int
}

// grid divides the region between two corners into results.
func (v *roiAlign) grid(x0, y0, x1, y1 float64) roiGrid {
	g := roiGrid{y: y0*v.scale - v.offset, x: x0*v.scale - v.offset, gh: v.ratio, gw: v.ratio}
	rw, rh := x1*v.scale-v.offset-g.x, y1*v.scale-v.offset-g.y
	if v.offset == 0 {
		rw, rh = max(rw, 1), max(rh, 1)
	}
	g.bh, g.bw = rh/float64(v.ph), rw/float64(v.pw)
	if v.ratio <= 0 {
		// A malicious region must not require more samples than there are useful pixels.
		g.gh, g.gw = int(min(math.Ceil(g.bh), float64(4*v.h+4))), int(min(math.Ceil(g.bw), float64(4*v.w+4)))
	}
	return g
}

// prepareRoiAlign finds the samples of each result once for all channels.
func prepareRoiAlign[T tensor.Real](c *op.Call) (op.Run, error) {
	v, n, ch := newRoiAlign(c), c.In[0].Shape[0], c.In[0].Shape[1]
	return func(c *op.Call) error {
		x, rois, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		batch, err := v.batch(c, n)
		if err != nil {
			return err
		}
		size, results := v.h*v.w, v.ph*v.pw
		c.Pool.For(len(batch), 1, func(lo, hi int) {
			acc := make([]float64, ch)
			for i := lo; i < hi; i++ {
				align(v, x[batch[i]*ch*size:][:ch*size], rois[i*4:][:4], y[i*ch*results:][:ch*results], acc)
			}
		})
		return nil
	}, nil
}

// roiSample is a position between four pixels, with their weights.
type roiSample struct {
	at     [4]int
	weight [4]float64
}

// align pools one region of all channels of an image; acc has one sum or maximum per channel.
func align[T tensor.Real](v *roiAlign, image, roi, y []T, acc []float64) {
	g := v.grid(float64(roi[0]), float64(roi[1]), float64(roi[2]), float64(roi[3]))
	size, results := v.h*v.w, v.ph*v.pw
	var workspace [64]roiSample
	for i := range results {
		start := 0.0
		if v.maximum {
			start = math.Inf(-1)
		}
		element.Fill(acc, start)
		some := workspace[:0]
		add := func() {
			for k := range acc {
				acc[k] = moreSamples(v.maximum, acc[k], some, image[k*size:][:size])
			}
			some = workspace[:0]
		}
		outside := v.samples(&g, i, func(s roiSample) {
			if some = append(some, s); len(some) == len(workspace) {
				add()
			}
		})
		add()
		for k, a := range acc {
			switch {
			case !v.maximum:
				a /= float64(max(g.gh*g.gw, 1))
			case g.gh*g.gw <= 0:
				a = 0
			case outside:
				a = max(a, 0)
			}
			y[k*results+i] = T(a)
		}
	}
}

// samples calls f for the samples of result i, and reports whether some are outside the image.
func (v *roiAlign) samples(g *roiGrid, i int, f func(s roiSample)) (outside bool) {
	py, px := g.y+float64(i/v.pw)*g.bh, g.x+float64(i%v.pw)*g.bw
	for iy := range g.gh {
		for ix := range g.gw {
			if s, ok := v.sample(py+(float64(iy)+0.5)*g.bh/float64(g.gh), px+(float64(ix)+0.5)*g.bw/float64(g.gw)); ok {
				f(s)
			} else {
				outside = true
			}
		}
	}
	return outside
}

// moreSamples adds some samples of a plane to acc: the largest of their weighted parts, or their
// sums.
func moreSamples[T tensor.Real](largest bool, acc float64, some []roiSample, plane []T) float64 {
	for i := range some {
		s := &some[i]
		a, b := s.weight[0]*float64(plane[s.at[0]]), s.weight[1]*float64(plane[s.at[1]])
		c, d := s.weight[2]*float64(plane[s.at[2]]), s.weight[3]*float64(plane[s.at[3]])
		if largest {
			acc = max(acc, a, b, c, d)
		} else {
			acc += a + b + c + d
		}
	}
	return acc
}

// sample finds the four pixels around a position; ok is false outside.
func (v *roiAlign) sample(y, x float64) (s roiSample, ok bool) {
	y0, y1, fy, high := between(y, v.h)
	x0, x1, fx, wide := between(x, v.w)
	return roiSample{
		[4]int{y0*v.w + x0, y0*v.w + x1, y1*v.w + x0, y1*v.w + x1},
		[4]float64{(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx},
	}, high && wide
}

// inferMaxRoiPool: x [N,C,H,W], rois [R,5] with the batch index first.
func inferMaxRoiPool(c *op.Call) error {
	x, r, p := c.In[0].Shape, c.In[1].Shape, c.Node.Attrs.Ints("pooled_shape")
	if len(x) != 4 || len(r) != 2 || r[1] != 5 || len(p) != 2 || p[0] < 1 || p[1] < 1 {
		return fmt.Errorf("input %s, rois %s, pooled_shape %v", tensor.FormatShape(x), tensor.FormatShape(r), p)
	}
	return c.Result(c.In[0].Type, []int{r[0], x[1], p[0], p[1]})
}

func prepareMaxRoiPool[T tensor.Real](c *op.Call) (op.Run, error) {
	x, p := c.In[0].Shape, c.Node.Attrs.Ints("pooled_shape")
	n, ch, h, w := x[0], x[1], x[2], x[3]
	scale := float64(c.Node.Attrs.Float("spatial_scale", 1))
	return func(c *op.Call) error {
		x, rois, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		for i := 0; i < len(rois); i += 5 {
			if b := rois[i]; !(b >= 0 && b < T(n)) {
				return fmt.Errorf("batch index %v of %d", b, n)
			}
		}
		c.Pool.For(len(rois)/5*ch, 1, func(lo, hi int) {
			rows, cols := make([][2]int, p[0]), make([][2]int, p[1])
			for i := lo; i < hi; i++ {
				roi := rois[i/ch*5:][:5]
				if i == lo || i%ch == 0 { // another region
					at := func(k int) float64 { return math.Round(float64(roi[k]) * scale) }
					bins(rows, max(at(4)-at(2)+1, 1)/float64(p[0]), at(2), h)
					bins(cols, max(at(3)-at(1)+1, 1)/float64(p[1]), at(1), w)
				}
				plane, out := x[(int(roi[0])*ch+i%ch)*h*w:][:h*w], y[i*p[0]*p[1]:][:p[0]*p[1]]
				for py, r := range rows {
					for px, q := range cols {
						out[py*p[1]+px] = largestOf(plane, w, r, q)
					}
				}
			}
		})
		return nil
	}, nil
}

// largestOf returns the largest pixel of some rows and columns of a plane of width w, zero if
// they are empty. NaNs are skipped, except for the first pixel.
func largestOf[T tensor.Real](plane []T, w int, rows, cols [2]int) (m T) {
	if rows[0] >= rows[1] || cols[0] >= cols[1] {
		return 0
	}
	m = plane[rows[0]*w+cols[0]]
	for r := rows[0]; r < rows[1]; r++ {
		for _, v := range plane[r*w+cols[0] : r*w+cols[1]] {
			if v > m {
				m = v
			}
		}
	}
	return m
}

// bins computes the ranges of pixels that results of some size cover, after a shift, within n.
func bins(to [][2]int, size, shift float64, n int) {
	for i := range to {
		to[i][0], to[i][1] = bin(float64(i)*size, float64(i+1)*size, shift, n)
	}
}

// bin returns the range of pixels that [from, to) covers after a shift, within n.
func bin(from, to, shift float64, n int) (int, int) {
	limit := func(v float64) int { return int(min(max(v+shift, 0), float64(n))) }
	return limit(math.Floor(from)), limit(math.Ceil(to))
}

// prepareRoiAlign32 computes means or maxima over samples of all channels at once: images are
// transposed to channels-last. Samples form a grid, so that the weight of a pixel is the product
// of the weights of its line and its column.
func prepareRoiAlign32(c *op.Call) (op.Run, error) {
	v := newRoiAlign(c)
	if v.maximum && !vectors.HasMax() {
		return prepareRoiAlign[float32](c)
	}
	x := c.In[0].Shape
	n, ch, size := x[0], x[1], x[2]*x[3]
	turned := op.ScratchOf[float32](c, n*size*ch)
	workers := make([]roiWorker, c.Pool.Threads())
	workspaces := op.ScratchOf[float32](c, len(workers)*v.ph*v.pw*ch)
	for i := range workers {
		workers[i].workspace = workspaces[i*v.ph*v.pw*ch:][:v.ph*v.pw*ch]
	}
	var rois, y []float32
	var batch []int
	body := func(worker, lo, hi int) {
		for r := lo; r < hi; r++ {
			w := &workers[worker]
			w.align(v, turned[batch[r]*size*ch:][:size*ch], rois[r*4:][:4], ch)
			move.Transpose(y[r*len(w.workspace):], v.ph*v.pw, w.workspace, ch, ch, v.ph*v.pw)
		}
	}
	var in []float32
	turn := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			move.Transpose(turned[i*size*ch:], ch, in[i*size*ch:], size, size, ch)
		}
	}
	return func(c *op.Call) (err error) {
		if batch, err = v.batch(c, n); err != nil {
			return err
		}
		rois, y = tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0])
		if len(y) == 0 || size == 0 {
			clear(y)
			return nil
		}
		in = tensor.Of[float32](c.In[0])
		c.Pool.For(n, 1, turn)
		c.Pool.ForWorker(len(batch), 1, body)
		return nil
	}, nil
}

// roiWorker is the scratch memory of a worker.
type roiWorker struct {
	workspace  []float32 // of the results of a region, the channels side by side
	rows, cols []roiLine
	from       []int
	weights    []float32
	sum        vectors.Sum
	most       vectors.Max
}

// roiLine is a line or column of pixels, and its weight in a result.
type roiLine struct {
	at     int
	weight float64
}

// align writes the means or maxima of a region of a channels-last image.
func (w *roiWorker) align(v *roiAlign, image, roi []float32, ch int) {
	g := v.grid(float64(roi[0]), float64(roi[1]), float64(roi[2]), float64(roi[3]))
	for i := range v.ph * v.pw {
		if v.maximum {
			w.largest(v, &g, i, image, w.workspace[i*ch:][:ch])
			continue
		}
		w.rows = lines(w.rows[:0], g.y+float64(i/v.pw)*g.bh, g.bh, g.gh, v.h)
		w.cols = lines(w.cols[:0], g.x+float64(i%v.pw)*g.bw, g.bw, g.gw, v.w)
		w.from, w.weights = w.from[:0], w.weights[:0]
		for _, r := range w.rows {
			for _, q := range w.cols {
				w.from, w.weights = append(w.from, (r.at*v.w+q.at)*ch), append(w.weights, float32(r.weight*q.weight))
			}
		}
		w.sum.Of(w.workspace[i*ch:][:ch], image, w.from, w.weights)
	}
}

// largest writes the largest weighted parts of pixels of the samples of result i, for each
// channel.
func (w *roiWorker) largest(v *roiAlign, g *roiGrid, i int, image, dst []float32) {
	ch := len(dst)
	w.most.Start(ch)
	outside := v.samples(g, i, func(s roiSample) {
		for k, at := range s.at {
			w.most.Add(image[at*ch:], float32(s.weight[k]))
		}
	})
	if !w.most.Done(dst) {
		clear(dst)
		return
	}
	if outside {
		for k, a := range dst {
			dst[k] = max(a, 0)
		}
	}
}

// lines appends the lines, with weights, of n samples in a range of an axis with size pixels.
func lines(to []roiLine, from, span float64, n, size int) []roiLine {
	add := func(at int, weight float64) {
		for k := len(to) - 1; k >= max(0, len(to)-2); k-- {
			if to[k].at == at {
				to[k].weight += weight
				return
			}
		}
		to = append(to, roiLine{at, weight})
	}
	for i := range n {
		lo, hi, f, ok := between(from+(float64(i)+0.5)*span/float64(n), size)
		if !ok {
			continue
		}
		add(lo, (1-f)/float64(n))
		if f != 0 {
			add(hi, f/float64(n))
		}
	}
	return to
}

// between returns the pixels around a position, and the distance from the first; ok is false
// outside.
func between(p float64, n int) (lo, hi int, f float64, ok bool) {
	if !(p >= -1 && p <= float64(n)) {
		return 0, 0, 0, false
	}
	p = math.Max(p, 0)
	lo = int(p)
	if lo >= n-1 {
		return n - 1, n - 1, 0, true
	}
	return lo, lo + 1, p - float64(lo), true
}

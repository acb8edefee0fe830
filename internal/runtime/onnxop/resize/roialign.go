package resize

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

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
func (w *roiWorker) align(v *roiAlign, picture, roi []float32, ch int) {
	g := v.grid(float64(roi[0]), float64(roi[1]), float64(roi[2]), float64(roi[3]))
	for i := range v.ph * v.pw {
		if v.maximum {
			w.largest(v, &g, i, picture, w.workspace[i*ch:][:ch])
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
		w.sum.Of(w.workspace[i*ch:][:ch], picture, w.from, w.weights)
	}
}

// largest writes the largest weighted parts of pixels of the samples of result i, for each
// channel.
func (w *roiWorker) largest(v *roiAlign, g *roiGrid, i int, picture, dst []float32) {
	ch := len(dst)
	w.most.Start(ch)
	outside := v.samples(g, i, func(s roiSample) {
		for k, at := range s.at {
			w.most.Add(picture[at*ch:], float32(s.weight[k]))
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

package loss

import (
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// axis is a spatial axis: output o reads at tap t the input o*stride + t*dil - pad, or for a
// transposed convolution (o + pad - t*dil)/stride if that is an integer.
type axis struct {
	in, out, window  int
	stride, dil, pad int
	transposed       bool
}

// at returns the input of an output at a tap, -1 for padding.
func (a *axis) at(o, t int) int {
	i := o*a.stride + t*a.dil - a.pad
	if a.transposed {
		i = o + a.pad - t*a.dil
		if i < 0 || i%a.stride != 0 {
			return -1
		}
		i /= a.stride
	}
	if i < 0 || i >= a.in {
		return -1
	}
	return i
}

// seen returns the range of outputs that read an input at a tap, for a convolution that is not
// transposed.
func (a *axis) seen(t int) (lo, hi int) {
	first := a.pad - t*a.dil
	if first > 0 {
		lo = (first + a.stride - 1) / a.stride
	}
	if last := a.in - 1 + first; last >= 0 {
		hi = last/a.stride + 1
	}
	lo = min(lo, a.out)
	return lo, max(min(hi, a.out), lo)
}

// geometry is a convolution with inputs of a given shape.
type geometry struct {
	axes    []axis // always three; leading ones have size 1
	plane   int    // elements of an input channel
	outputs int    // output positions
	// same says that positions and inputs coincide: a 1×1 window without stride and padding.
	same bool
	taps int
}

// geometry computes the axes for data of a shape; false for invalid attributes or shapes.
func (p *linearOp) geometry(shape []int, target []int) (*geometry, bool) {
	n := len(p.window)
	if len(shape) != n+2 || n > 3 {
		return nil, false
	}
	in := shape[2:]
	if p.kind == convLast || p.kind == deconvLast {
		in = shape[1 : len(shape)-1]
	}
	g := &geometry{plane: tensor.Elements(in), same: true, taps: p.layer.Taps, outputs: 1}
	for range 3 - n {
		g.axes = append(g.axes, axis{in: 1, out: 1, window: 1, stride: 1, dil: 1})
	}
	lite := p.node.Domain == "tflite"
	for i := range n {
		a := axis{in: in[i], window: p.window[i]}
		if lite {
			a.lite(p, i, n, target)
		} else {
			a.onnx(p, i, n)
		}
		if a.out < 1 || a.stride < 1 || a.dil < 1 {
			return nil, false
		}
		g.same = g.same && a.window == 1 && a.stride == 1 && a.pad == 0 && a.in == a.out
		g.outputs *= a.out
		g.axes = append(g.axes, a)
	}
	return g, true
}

func entry(list []int, i, none int) int {
	if i < len(list) {
		return list[i]
	}
	return none
}

// onnx reads stride, dilation and padding of axis i of n from the attributes.
func (a *axis) onnx(p *linearOp, i, n int) {
	at := p.node.Attrs
	a.stride, a.dil = entry(at.Ints("strides"), i, 1), entry(at.Ints("dilations"), i, 1)
	if a.stride < 1 || a.dil < 1 {
		return
	}
	begin, end := entry(at.Ints("pads"), i, 0), entry(at.Ints("pads"), n+i, 0)
	reach := a.dil*(a.window-1) + 1
	auto := at.Str("auto_pad", "NOTSET")
	same := auto == "SAME_UPPER" || auto == "SAME_LOWER"
	split := func(total int) (int, int) {
		total = max(total, 0)
		if auto == "SAME_LOWER" {
			return total - total/2, total / 2
		}
		return total / 2, total - total/2
	}
	if auto == "VALID" {
		begin, end = 0, 0
	}
	if p.kind == deconv || p.kind == deconvLast {
		a.transposed = true
		full := a.stride*(a.in-1) + entry(at.Ints("output_padding"), i, 0) + reach
		size := at.Ints("output_shape")
		switch {
		case size != nil:
			a.out = entry(size, len(size)-n+i, 0)
			begin, end = split(full - a.out)
			if auto == "NOTSET" || auto == "VALID" { // the larger half at the beginning
				begin, end = end, begin
			}
		case same:
			a.out = a.in * a.stride
			begin, end = split(full - a.out)
		}
		a.pad = begin
		a.out = full - begin - end
		return
	}
	if same {
		begin, end = split(((a.in+a.stride-1)/a.stride-1)*a.stride + reach - a.in)
	}
	a.pad = begin
	if room := a.in + begin + end - reach; room >= 0 {
		a.out = room/a.stride + 1
	}
}

// lite does the same for TFLite; target is the output shape of a transposed convolution.
func (a *axis) lite(p *linearOp, i, n int, target []int) {
	name := []string{"d", "h", "w"}[3-n+i]
	at := p.node.Attrs
	a.stride, a.dil = max(at.Int("stride_"+name, 1), 1), max(at.Int("dilation_"+name+"_factor", 1), 1)
	reach := a.dil*(a.window-1) + 1
	same := at.Str("padding", "SAME") == "SAME"
	if p.kind == deconvLast {
		a.transposed = true
		a.out = entry(target, 1+i, 0)
		if same {
			a.pad = max((a.in-1)*a.stride+reach-a.out, 0) / 2
		}
		return
	}
	if same {
		a.out = (a.in + a.stride - 1) / a.stride
		a.pad = max((a.out-1)*a.stride+reach-a.in, 0) / 2
		return
	}
	if a.in >= reach {
		a.out = (a.in-reach)/a.stride + 1
	}
}

// lines is the number of positions of the first two axes, width that of the last one.
func (g *geometry) lines() int { return g.axes[0].out * g.axes[1].out }

func (g *geometry) width() int { return g.axes[2].out }

// unfold writes the inputs of n rows of positions of a channel (every step-th from lo on) for
// each tap: a row of dst per tap, rows stride apart.
func (g *geometry) unfold(lines *move.LineCopier, dst []float32, stride int, plane []float32, lo, n, step int) {
	d, h, w := &g.axes[0], &g.axes[1], &g.axes[2]
	even := d.out == 1 && d.window == 1 && d.in == 1 && !h.transposed && !w.transposed
	t := 0
	for td := range d.window {
		for th := range h.window {
			for tw := range w.window {
				row := dst[t*stride:]
				t++
				if even {
					g.evenly(lines, row, plane, th, tw, lo, n, step)
					continue
				}
				for i := range n {
					line, out := lo+i*step, row[i*w.out:][:w.out]
					id, ih := d.at(line/h.out, td), h.at(line%h.out, th)
					if id < 0 || ih < 0 {
						clear(out)
						continue
					}
					w.line(out, plane[(id*h.in+ih)*w.in:][:w.in], tw)
				}
			}
		}
	}
}

// evenly unfolds a tap of two axes, for which the rows it reads are equally spaced.
func (g *geometry) evenly(lines *move.LineCopier, row, plane []float32, th, tw, lo, n, step int) {
	h, w := &g.axes[1], &g.axes[2]
	y, by := lo*h.stride+th*h.dil-h.pad, step*h.stride
	first, end := 0, n // rows inside the plane
	for first < n && y+first*by < 0 {
		first++
	}
	for end > first && y+(end-1)*by >= h.in {
		end--
	}
	from, to := w.seen(tw)
	if first == end || from == to {
		clear(row[:n*w.out])
		return
	}
	clear(row[:first*w.out])
	clear(row[end*w.out : n*w.out])
	for i := first; i < end && to-from < w.out; i++ {
		clear(row[i*w.out:][:from])
		clear(row[i*w.out+to : (i+1)*w.out])
	}
	at := (y+first*by)*w.in + from*w.stride + tw*w.dil - w.pad
	if w.out == 1 { // rows have one value
		lines.Copy(row[first:], 0, plane[at:], 0, by*w.in, end-first, 1)
		return
	}
	lines.Copy(row[first*w.out+from:], w.out, plane[at:], by*w.in, w.stride, to-from, end-first)
}

// line writes the inputs of a row of outputs at a tap.
func (a *axis) line(out, in []float32, t int) {
	if a.transposed {
		for o := range out {
			out[o] = 0
			if i := a.at(o, t); i >= 0 {
				out[o] = in[i]
			}
		}
		return
	}
	lo, hi := a.seen(t)
	if lo == hi { // only padding
		clear(out)
		return
	}
	clear(out[:lo])
	clear(out[hi:])
	from := lo*a.stride + t*a.dil - a.pad
	if a.stride == 1 {
		copy(out[lo:hi], in[from:])
		return
	}
	for o := lo; o < hi; o++ {
		out[o] = in[from]
		from += a.stride
	}
}

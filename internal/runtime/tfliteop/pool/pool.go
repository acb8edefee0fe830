package pool

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/pooling"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// pool is a pooling window over [N,H,W,C].
type pool struct {
	n, h, w, c             int
	oh, ow, kh, kw, sh, sw int
	padT, padL             int
}

func shapePool(c *op.Call) (pool, error) {
	var p pool
	if err := layer.NeedRank(c, 0, 4); err != nil {
		return p, err
	}
	x, a := c.In[0].Shape, c.Node.Attrs
	p = pool{n: x[0], h: x[1], w: x[2], c: x[3], kh: a.Int("filter_height", 1), kw: a.Int("filter_width", 1)}
	var err error
	if p.sh, p.sw, err = layer.Strides(c); err != nil {
		return p, err
	}
	if p.kh < 1 || p.kw < 1 {
		return p, c.Errorf("window of %dx%d", p.kw, p.kh)
	}
	v, h := layer.Slide(p.h, p.kh, p.sh, 1, layer.IsSame(c)), layer.Slide(p.w, p.kw, p.sw, 1, layer.IsSame(c))
	p.oh, p.padT, p.ow, p.padL = v.Out, v.Pad, h.Out, h.Pad
	return p, nil
}

func inferPool(c *op.Call) error {
	p, err := shapePool(c)
	if err != nil {
		return err
	}
	c.SetOut(0, layer.OutType(c, c.In[0].Type), []int{p.n, p.oh, p.ow, p.c})
	return nil
}

// each makes a function that calls f for every output position with the offset of its window's
// first element, the window's size inside the image, and the offset of the result.
func (p pool) each(f func(in, rows, cols, out int)) func(w *workers.Pool) {
	work := func(lo, hi int) {
		for r := lo; r < hi; r++ {
			n, oy := r/p.oh, r%p.oh
			y0 := oy*p.sh - p.padT
			y1 := min(y0+p.kh, p.h)
			y0 = max(y0, 0)
			for ox := range p.ow {
				x0 := ox*p.sw - p.padL
				x1 := min(x0+p.kw, p.w)
				x0 = max(x0, 0)
				f(((n*p.h+y0)*p.w+x0)*p.c, max(y1-y0, 0), max(x1-x0, 0), (r*p.ow+ox)*p.c)
			}
		}
	}
	return func(w *workers.Pool) { w.For(p.n*p.oh, 1+(1<<13)/max(1, p.ow*p.c*p.kh*p.kw), work) }
}

// sizes lists the number of values of each window of an image.
func (p pool) sizes() []float32 {
	n := make([]float32, 0, p.oh*p.ow)
	for oy := range p.oh {
		y := oy*p.sh - p.padT
		rows := max(min(y+p.kh, p.h)-max(y, 0), 0)
		for ox := range p.ow {
			x := ox*p.sw - p.padL
			n = append(n, float32(max(rows*max(min(x+p.kw, p.w)-max(x, 0), 0), 1)))
		}
	}
	return n
}

// kindOfPool selects the reduction of a window.
type kindOfPool uint8

const (
	averagePool kindOfPool = iota
	maxPool
	l2Pool
)

func preparePool(kind kindOfPool) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		p, err := shapePool(c)
		if err != nil {
			return nil, err
		}
		x := c.In[0].Type
		if c.Out[0].Type != x {
			return nil, op.Unsupported("%v input with %v output", x, c.Out[0].Type)
		}
		switch {
		case x == tensor.Float32:
			return p.float(c, kind)
		case kind == l2Pool:
		case x == tensor.Int8:
			return intPool[int8](c, p, kind)
		case x == tensor.Uint8:
			return intPool[uint8](c, p, kind)
		case x == tensor.Int16:
			return intPool[int16](c, p, kind)
		}
		return nil, op.Unsupported("%v input", x)
	}
}

func (p pool) window() conv.Shape {
	return conv.Shape{
		N: p.n, C: p.c, H: p.h, W: p.w, OH: p.oh, OW: p.ow, KH: p.kh, KW: p.kw, StrideH: p.sh, StrideW: p.sw,
		DilH: 1, DilW: 1, PadT: p.padT, PadL: p.padL,
	}
}

func (p pool) float(c *op.Call, kind kindOfPool) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	vec := &pooling.Float32{NHWC: true, Max: kind == maxPool, Clamp: act, Shape: p.window()}
	if kind != l2Pool && vec.Prepare() {
		c.Kernel = vec.Name()
		if kind == maxPool {
			return func(c *op.Call) error {
				vec.Run(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]))
				return nil
			}, nil
		}
		counts := p.sizes()
		return func(c *op.Call) error {
			y := tensor.Of[float32](c.Out[0])
			vec.Run(c.Pool, tensor.Of[float32](c.In[0]), y)
			vec.Divide(c.Pool, y, counts)
			if act.On {
				for i, v := range y {
					y[i] = min(max(v, act.Min), act.Max)
				}
			}
			return nil
		}, nil
	}
	var x, y []float32 // of the run, whose loop is made once
	run := p.each(func(in, rows, cols, out int) {
		acc := y[out : out+p.c]
		start := float32(0)
		if kind == maxPool {
			start = float32(math.Inf(-1))
		}
		for i := range acc {
			acc[i] = start
		}
		for r := range rows {
			for q := range cols {
				src := x[in+(r*p.w+q)*p.c:][:len(acc)]
				switch kind {
				case maxPool:
					for i, v := range src {
						if v > acc[i] {
							acc[i] = v
						}
					}
				case l2Pool:
					for i, v := range src {
						acc[i] += v * v
					}
				default:
					for i, v := range src {
						acc[i] += v
					}
				}
			}
		}
		n := float32(max(rows*cols, 1))
		switch kind {
		case averagePool:
			for i := range acc {
				acc[i] /= n
			}
		case l2Pool:
			for i, v := range acc {
				acc[i] = float32(math.Sqrt(float64(v / n)))
			}
		}
		if act.On {
			for i, v := range acc {
				acc[i] = min(max(v, act.Min), act.Max)
			}
		}
	})
	return func(c *op.Call) error {
		x, y = tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		run(c.Pool)
		return nil
	}, nil
}

func intPool[T int8 | uint8 | int16](c *op.Call, p pool, kind kindOfPool) (op.Run, error) {
	lo, hi, err := layer.ClampOf(c.Node.Attrs.Str("fused_activation_function", "NONE"), c.Out[0])
	if err != nil {
		return nil, err
	}
	c.Recipe = recipe.Pool{
		N: p.n, H: p.h, W: p.w, C: p.c, OH: p.oh, OW: p.ow, KH: p.kh, KW: p.kw, StrideH: p.sh, StrideW: p.sw,
		PadT: p.padT, PadL: p.padL, Max: kind == maxPool, Lo: lo, Hi: hi,
	}
	bytes := &pooling.Int8{Shape: p.window(), Max: kind == maxPool, Signed: c.In[0].Type == tensor.Int8, Lo: lo, Hi: hi}
	if bytes.Words = c.In[0].Type == tensor.Int16; bytes.Prepare() {
		c.Kernel = bytes.Name()
		return func(c *op.Call) error {
			bytes.Run(c.Pool, c.In[0].Data, c.Out[0].Data)
			return nil
		}, nil
	}
	var x, y []T // of the run, whose loop is made once
	run := p.each(func(in, rows, cols, out int) {
		dst := y[out : out+p.c]
		n := int32(max(rows*cols, 1))
		for i := range dst {
			s := int32(0)
			if kind == maxPool {
				s = math.MinInt32
			}
			for r := range rows {
				at := in + r*p.w*p.c + i
				for range cols {
					v := int32(x[at])
					if kind == maxPool {
						s = max(s, v)
					} else {
						s += v
					}
					at += p.c
				}
			}
			if kind == averagePool {
				if s > 0 {
					s = (s + n/2) / n
				} else {
					s = (s - n/2) / n
				}
			}
			dst[i] = T(min(max(s, lo), hi))
		}
	})
	return func(c *op.Call) error {
		x, y = tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		run(c.Pool)
		return nil
	}, nil
}

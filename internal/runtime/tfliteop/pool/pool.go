// Package pool implements TFLite's pooling and image resizing.
package pool

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/pooling"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	pool := func(name string, types []tensor.Type, kind kindOfPool) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: types, Fuses: true}, shapePool, inferPool, preparePool(kind))
	}
	return layer.InTFLite([]op.Def{
		pool("AVERAGE_POOL_2D", layer.ConvTypes, averagePool),
		pool("MAX_POOL_2D", layer.ConvTypes, maxPool),
		pool("L2_POOL_2D", layer.FloatOnly, l2Pool),
		layer.Shaped(op.Def{Name: "RESIZE_BILINEAR", Types: layer.ConvTypes}, shapeResize, inferResize, prepareBilinear),
		layer.Shaped(op.Def{Name: "RESIZE_NEAREST_NEIGHBOR"}, shapeResize, inferResize, prepareNearest),
	})
}

// pool is the geometry of a pooling over [N,H,W,C].
type pool struct{ conv.Shape }

func shapePool(c *op.Call) (p pool, err error) {
	if err := layer.NeedRank(c, 0, 4); err != nil {
		return p, err
	}
	x, a := c.In[0].Shape, c.Node.Attrs
	p = pool{conv.Shape{N: x[0], H: x[1], W: x[2], C: x[3], KH: a.Int("filter_height", 1), KW: a.Int("filter_width", 1), DilH: 1, DilW: 1}}
	if p.StrideH, p.StrideW, err = layer.Strides(c); err != nil {
		return p, err
	}
	if p.KH < 1 || p.KW < 1 {
		return p, c.Errorf("window of %dx%d", p.KW, p.KH)
	}
	v, h := layer.Slide(p.H, p.KH, p.StrideH, 1, layer.IsSame(c)), layer.Slide(p.W, p.KW, p.StrideW, 1, layer.IsSame(c))
	p.OH, p.PadT, p.OW, p.PadL = v.Out, v.Pad, h.Out, h.Pad
	return p, nil
}

func inferPool(c *op.Call, p pool) {
	c.SetOut(0, layer.OutType(c, c.In[0].Type), []int{p.N, p.OH, p.OW, p.C})
}

// each returns a run that calls f for every output position with the offset of the first element
// that its window covers, the number of rows and columns inside the image, and the offset of the
// result.
func each[T tensor.Number](p pool, f func(y, x []T, in, rows, cols, out int)) op.Run {
	return layer.Ranges(p.N*p.OH, 1+(1<<13)/max(1, p.OW*p.C*p.KH*p.KW), func(y, x []T, lo, hi int) {
		for r := lo; r < hi; r++ {
			n, oy := r/p.OH, r%p.OH
			y0 := oy*p.StrideH - p.PadT
			y1 := min(y0+p.KH, p.H)
			y0 = max(y0, 0)
			for ox := range p.OW {
				x0 := ox*p.StrideW - p.PadL
				x1 := min(x0+p.KW, p.W)
				x0 = max(x0, 0)
				f(y, x, ((n*p.H+y0)*p.W+x0)*p.C, max(y1-y0, 0), max(x1-x0, 0), (r*p.OW+ox)*p.C)
			}
		}
	})
}

// sizes lists the number of values of each window of an image.
func (p pool) sizes() []float32 {
	n := make([]float32, 0, p.OH*p.OW)
	for oy := range p.OH {
		y := oy*p.StrideH - p.PadT
		rows := max(min(y+p.KH, p.H)-max(y, 0), 0)
		for ox := range p.OW {
			x := ox*p.StrideW - p.PadL
			n = append(n, float32(max(rows*max(min(x+p.KW, p.W)-max(x, 0), 0), 1)))
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

func preparePool(kind kindOfPool) func(c *op.Call, p pool) (op.Run, error) {
	return func(c *op.Call, p pool) (op.Run, error) {
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

func (p pool) float(c *op.Call, kind kindOfPool) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	vec := &pooling.Float32{NHWC: true, Max: kind == maxPool, Clamp: act, Shape: p.Shape}
	if kind != l2Pool && vec.Prepare() {
		c.Kernel = vec.Name()
		if kind == maxPool {
			return layer.Direct(vec.Run), nil
		}
		counts := p.sizes()
		return layer.Direct(func(pool *workers.Pool, x, y []float32) {
			vec.Run(pool, x, y)
			vec.Divide(pool, y, counts)
			clampTo(y, act)
		}), nil
	}
	start := float32(0)
	if kind == maxPool {
		start = float32(math.Inf(-1))
	}
	return each(p, func(y, x []float32, in, rows, cols, out int) {
		acc := y[out : out+p.C]
		for i := range acc {
			acc[i] = start
		}
		for r := range rows {
			for q := range cols {
				src := x[in+(r*p.W+q)*p.C:][:len(acc)]
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
		clampTo(acc, act)
	}), nil
}

func intPool[T int8 | uint8 | int16](c *op.Call, p pool, kind kindOfPool) (op.Run, error) {
	lo, hi, err := layer.ClampOf(c)
	if err != nil {
		return nil, err
	}
	c.Recipe = recipe.Pool{Shape: p.Shape, Max: kind == maxPool, Lo: lo, Hi: hi}
	bytes := &pooling.Int8{Shape: p.Shape, Max: kind == maxPool, Signed: c.In[0].Type == tensor.Int8, Lo: lo, Hi: hi}
	if bytes.Words = c.In[0].Type == tensor.Int16; bytes.Prepare() {
		c.Kernel = bytes.Name()
		return func(c *op.Call) error {
			bytes.Run(c.Pool, c.In[0].Data, c.Out[0].Data)
			return nil
		}, nil
	}
	return each(p, func(y, x []T, in, rows, cols, out int) {
		dst := y[out : out+p.C]
		n := int32(max(rows*cols, 1))
		for i := range dst {
			s := int32(0)
			if kind == maxPool {
				s = math.MinInt32
			}
			for r := range rows {
				at := in + r*p.W*p.C + i
				for range cols {
					v := int32(x[at])
					if kind == maxPool {
						s = max(s, v)
					} else {
						s += v
					}
					at += p.C
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
	}), nil
}

// clampTo clamps y to the range of a fused activation.
func clampTo(y []float32, act activation.Clamp) {
	if act.On {
		for i, v := range y {
			y[i] = min(max(v, act.Min), act.Max)
		}
	}
}

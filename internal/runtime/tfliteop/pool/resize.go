package pool

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// resize is a change of height and width of [N,H,W,C].
type resize struct {
	n, h, w, c, oh, ow int
	corners, centres   bool
}

func shapeResize(c *op.Call) (resize, error) {
	var r resize
	if err := layer.NeedRank(c, 0, 4); err != nil {
		return r, err
	}
	if !c.Has(1) {
		return r, c.Errorf("input 1 (the size) is missing")
	}
	size, err := op.Ints(c.In[1])
	if err != nil {
		return r, err
	}
	if len(size) != 2 || size[0] < 1 || size[1] < 1 {
		return r, c.Errorf("size %v", size)
	}
	x, a := c.In[0].Shape, c.Node.Attrs
	r = resize{x[0], x[1], x[2], x[3], size[0], size[1], a.Bool("align_corners", false), a.Bool("half_pixel_centers", false)}
	if r.h < 1 || r.w < 1 {
		return r, c.Errorf("input %s is empty", tensor.FormatShape(x))
	}
	return r, nil
}

func inferResize(c *op.Call, r resize) {
	c.SetOut(0, layer.OutType(c, c.In[0].Type), []int{r.n, r.oh, r.ow, r.c})
}

// scale returns the distance of output positions in the input.
func (r resize) scale(in, out int) float32 {
	if r.corners && out > 1 {
		return float32(in-1) / float32(out-1)
	}
	return float32(in) / float32(out)
}

// nearest returns the source index of each output index.
func (r resize) nearest(in, out int) []int {
	scale := r.scale(in, out)
	var offset float32
	if r.centres {
		offset = 0.5
	}
	at := make([]int, out)
	for i := range at {
		v := (float32(i) + offset) * scale
		if r.corners {
			v = float32(math.Round(float64(v)))
		}
		at[i] = max(0, min(int(math.Floor(float64(v))), in-1))
	}
	return at
}

func prepareNearest(c *op.Call, r resize) (op.Run, error) {
	bits := c.In[0].Type.Bits()
	if bits < 8 || c.In[0].Type != c.Out[0].Type {
		return nil, op.Unsupported("%v input with %v output", c.In[0].Type, c.Out[0].Type)
	}
	ys, xs := r.nearest(r.h, r.oh), r.nearest(r.w, r.ow)
	size := r.c * bits / 8 // bytes of a pixel
	var src, dst []byte    // set by each run; the closure is allocated once
	work := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := src[(i/r.oh*r.h+ys[i%r.oh])*r.w*size:]
			out := dst[i*r.ow*size:]
			for j, x := range xs {
				copy(out[j*size:(j+1)*size], row[x*size:])
			}
		}
	}
	return func(c *op.Call) error {
		src, dst = c.In[0].Data, c.Out[0].Data
		c.Pool.For(r.n*r.oh, max(1, layer.Grain/max(1, r.ow*size)), work)
		return nil
	}, nil
}

// tap is a pair of neighbours and the weight of the second.
type tap struct {
	lo, hi int
	f      float32
}

func (r resize) taps(in, out int) []tap {
	scale := r.scale(in, out)
	t := make([]tap, out)
	for i := range t {
		v := float32(i) * scale
		if r.centres {
			v = (float32(i)+0.5)*scale - 0.5
		}
		lo := max(int(math.Floor(float64(v))), 0)
		t[i] = tap{min(lo, in-1), max(0, min(int(math.Ceil(float64(v))), in-1)), v - float32(lo)}
	}
	return t
}

func prepareBilinear(c *op.Call, r resize) (op.Run, error) {
	if c.In[0].Type != c.Out[0].Type {
		return nil, op.Unsupported("%v input with %v output", c.In[0].Type, c.Out[0].Type)
	}
	switch t := c.In[0].Type; t {
	case tensor.Int8:
		return fixedBilinear[int8](c, r), nil
	case tensor.Int16:
		return fixedBilinear[int16](c, r), nil
	case tensor.Float32:
		if f := simd.ResizeKernels(); f != nil {
			return floatLines(c, r, f), nil
		}
		return bilinear[float32](r, 0), nil
	case tensor.Uint8:
		// The reference computes the oldest quantised type in floats, then rounds.
		return bilinear[uint8](r, 0.5), nil
	default:
		return nil, op.Unsupported("%v input", t)
	}
}

// bilinear interpolates in float32; half is the offset that rounds to integers.
func bilinear[T float32 | uint8](r resize, half float32) op.Run {
	ys, xs := r.taps(r.h, r.oh), r.taps(r.w, r.ow)
	return layer.Ranges(r.n*r.oh, max(1, layer.Grain/max(1, 4*r.ow*r.c)), func(y, x []T, lo, hi int) {
		for i := lo; i < hi; i++ {
			v := ys[i%r.oh]
			base := i / r.oh * r.h
			top, bottom := x[(base+v.lo)*r.w*r.c:][:r.w*r.c], x[(base+v.hi)*r.w*r.c:][:r.w*r.c]
			for j, u := range xs {
				out := y[(i*r.ow+j)*r.c:][:r.c]
				a, b := top[u.lo*r.c:][:r.c], top[u.hi*r.c:][:r.c]
				d, e := bottom[u.lo*r.c:][:r.c], bottom[u.hi*r.c:][:r.c]
				// Products and sums in the order of the reference kernel.
				top, bottom, left, right := 1-v.f, v.f, 1-u.f, u.f
				for k := range out {
					out[k] = T(float32(a[k])*top*left + float32(d[k])*bottom*left + float32(b[k])*top*right + float32(e[k])*bottom*right + half)
				}
			}
		}
	})
}

// fixedTaps are taps with 10-bit weights.
func (r resize) fixedTaps(in, out int) []recipe.Tap {
	scale := (1024*in + out/2) / out
	if r.corners && out > 1 {
		scale = (1024*(in-1) + (out-1)/2) / (out - 1)
	}
	t := make([]recipe.Tap, out)
	for i := range t {
		v := i * scale
		if r.centres {
			v += scale/2 - 512
		}
		lo := max(v/1024, 0)
		t[i] = recipe.Tap{Lo: min(lo, in-1), Hi: max(0, min((v+1023)/1024, in-1)), F: v - 1024*lo}
	}
	return t
}

func fixedBilinear[T int8 | int16](c *op.Call, r resize) op.Run {
	ys, xs := r.fixedTaps(r.h, r.oh), r.fixedTaps(r.w, r.ow)
	c.Recipe = recipe.Bilinear{N: r.n, H: r.h, W: r.w, C: r.c, Rows: ys, Cols: xs}
	if f := simd.ResizeKernels(); f != nil && c.In[0].Type == tensor.Int8 {
		return byteLines(c, r, f, ys, xs)
	}
	return layer.Ranges(r.n*r.oh, max(1, layer.Grain/max(1, 8*r.ow*r.c)), func(y, x []T, lo, hi int) {
		for i := lo; i < hi; i++ {
			v := ys[i%r.oh]
			base := i / r.oh * r.h
			top, bottom := x[(base+v.Lo)*r.w*r.c:][:r.w*r.c], x[(base+v.Hi)*r.w*r.c:][:r.w*r.c]
			for j, u := range xs {
				out := y[(i*r.ow+j)*r.c:][:r.c]
				p, q, vf, uf := u.Lo*r.c, u.Hi*r.c, int64(v.F), int64(u.F)
				for k := range out {
					s := (1024-vf)*((1024-uf)*int64(top[p+k])+uf*int64(top[q+k])) +
						vf*((1024-uf)*int64(bottom[p+k])+uf*int64(bottom[q+k]))
					if s > 0 {
						s += 1 << 19
					} else {
						s -= 1 << 19
					}
					out[k] = T(s / (1 << 20))
				}
			}
		}
	})
}

// floatLines interpolates line by line: it first interpolates between the two neighbouring input
// lines.
func floatLines(c *op.Call, r resize, f *simd.Resizes) op.Run {
	ys, xs, mul := r.taps(r.h, r.oh), r.taps(r.w, r.ow), element.Mul[float32]().VectorScalar
	taps := make([]simd.Tap, len(xs))
	for i, u := range xs {
		taps[i] = simd.Tap{Lo: int32(4 * u.lo * r.c), Hi: int32(4 * u.hi * r.c), Left: math.Float32bits(1 - u.f), Right: math.Float32bits(u.f)}
	}
	line := r.w * r.c
	pitch := line + simd.Slack
	workspace := op.ScratchOf[float32](c, 2*pitch*c.Pool.Threads())
	return layer.RangesWorker(r.n*r.oh, max(1, layer.Grain/max(1, r.ow*r.c)), func(y, x []float32, worker, lo, hi int) {
		top, bottom := workspace[2*worker*pitch:][:pitch], workspace[(2*worker+1)*pitch:][:pitch]
		for i := lo; i < hi; i++ {
			v, base := ys[i%r.oh], i/r.oh*r.h
			mul(top[:line], x[(base+v.lo)*line:][:line], 1-v.f)
			mul(bottom[:line], x[(base+v.hi)*line:][:line], v.f)
			f.AcrossFloats(y[i*r.ow*r.c:][:r.ow*r.c], top, bottom, taps, r.c)
		}
	})
}

// byteLines is floatLines for integers: a line is combined from both neighbours first. With
// weights of up to 1.5·2^10 nothing overflows 32 bits.
func byteLines(c *op.Call, r resize, f *simd.Resizes, ys, xs []recipe.Tap) op.Run {
	taps := make([]simd.Tap, len(xs))
	for i, u := range xs {
		taps[i] = simd.Tap{Lo: int32(4 * u.Lo * r.c), Hi: int32(4 * u.Hi * r.c), Left: uint32(1024 - u.F), Right: uint32(u.F)}
	}
	line := r.w * r.c
	pitch := line + simd.Slack
	workspace := op.ScratchOf[int32](c, pitch*c.Pool.Threads())
	return layer.RangesWorker(r.n*r.oh, max(1, layer.Grain/max(1, r.ow*r.c)), func(y, x []int8, worker, lo, hi int) {
		both := workspace[worker*pitch:][:pitch]
		for i := lo; i < hi; i++ {
			v, base := ys[i%r.oh], i/r.oh*r.h
			f.MixBytes(both[:line], x[(base+v.Lo)*line:][:line], x[(base+v.Hi)*line:][:line], int32(1024-v.F), int32(v.F))
			f.AcrossBytes(y[i*r.ow*r.c:][:r.ow*r.c], both, taps, r.c)
		}
	})
}

package pool

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// floatLines interpolates line by line: it first interpolates between the two neighbouring input
// lines.
func floatLines(c *op.Call, r resize, f *simd.Resizes) op.Run {
	ys, xs, mul := r.taps(r.h, r.oh), r.taps(r.w, r.ow), element.Mul[float32]().VectorScalar
	taps := make([]simd.Tap, len(xs))
	for i, u := range xs {
		taps[i] = simd.Tap{Lo: int32(4 * u.lo * r.c), Hi: int32(4 * u.hi * r.c), Left: math.Float32bits(1 - u.f), Right: math.Float32bits(u.f)}
	}
	line := r.w * r.c
	workspace := op.ScratchOf[float32](c, 2*line*c.Pool.Threads())
	var x, y []float32 // of the run, whose loop is made once
	work := func(worker, lo, hi int) {
		top, bottom := workspace[2*worker*line:][:line], workspace[(2*worker+1)*line:][:line]
		for i := lo; i < hi; i++ {
			v, base := ys[i%r.oh], i/r.oh*r.h
			mul(top, x[(base+v.lo)*line:][:line], 1-v.f)
			mul(bottom, x[(base+v.hi)*line:][:line], v.f)
			f.AcrossFloats(y[i*r.ow*r.c:], top, bottom, taps, r.c)
		}
	}
	return func(c *op.Call) error {
		x, y = tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		c.Pool.ForWorker(r.n*r.oh, max(1, layer.Grain/max(1, r.ow*r.c)), work)
		return nil
	}
}

// byteLines is floatLines for integers: a line is combined from both neighbours first. With
// weights of up to 1.5·2^10 nothing overflows 32 bits.
func byteLines(c *op.Call, r resize, f *simd.Resizes, ys, xs []fixedTap) op.Run {
	taps := make([]simd.Tap, len(xs))
	for i, u := range xs {
		taps[i] = simd.Tap{Lo: int32(4 * int(u.lo) * r.c), Hi: int32(4 * int(u.hi) * r.c), Left: uint32(1024 - u.f), Right: uint32(u.f)}
	}
	line := r.w * r.c
	workspace := op.ScratchOf[int32](c, line*c.Pool.Threads())
	var x, y []int8 // of the run, whose loop is made once
	work := func(worker, lo, hi int) {
		both := workspace[worker*line:][:line]
		for i := lo; i < hi; i++ {
			v, base := ys[i%r.oh], i/r.oh*r.h
			f.MixBytes(both, x[(base+int(v.lo))*line:][:line], x[(base+int(v.hi))*line:][:line], int32(1024-v.f), int32(v.f))
			f.AcrossBytes(y[i*r.ow*r.c:], both, taps, r.c)
		}
	}
	return func(c *op.Call) error {
		x, y = tensor.Of[int8](c.In[0]), tensor.Of[int8](c.Out[0])
		c.Pool.ForWorker(r.n*r.oh, max(1, layer.Grain/max(1, r.ow*r.c)), work)
		return nil
	}
}

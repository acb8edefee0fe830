package pooling

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Float32 is two-dimensional pooling of float32 with SIMD kernels, over planes or positions.
type Float32 struct {
	Shape conv.Shape // Groups and OC as for a depthwise convolution
	NHWC  bool
	Max   bool // maximum instead of sum
	// NaN makes Max return NaN if the window contains one; otherwise NaN is ignored.
	NaN    bool
	Clamp  activation.Clamp // for Max
	planes *conv.NCHWPlan
	f      *simd.Windows
}

// Prepare reports whether SIMD kernels support the windows.
func (w *Float32) Prepare() bool {
	s := &w.Shape
	s.Groups, s.OC = s.C, s.C
	w.f = simd.WindowKernels()
	if w.f == nil || s.Outputs() == 0 || s.H*s.W == 0 || s.KH > conv.MaxTaps || s.KW > conv.MaxTaps/s.KH {
		return false
	}
	seenH, seenW := float64(s.OH)*float64(s.StrideH)+float64(s.KH)*float64(s.DilH), float64(s.OW)*float64(s.StrideW)+float64(s.KW)*float64(s.DilW)
	if w.NHWC {
		return float64(s.KH)*float64(s.DilH)*seenW*float64(s.C) <= conv.MaxFramed && s.PadT >= 0 && s.PadL >= 0
	}
	if seenH*seenW > conv.MaxFramed {
		return false
	}
	w.planes = s.PlanNCHW(1)
	return w.planes != nil && w.planes.Size <= conv.MaxFramed
}

// Name returns the kernel name.
func (w *Float32) Name() string { return "windows/" + w.f.Floats.String() }

// Divide turns sums into averages. counts holds the number of values of each window of a plane,
// or of several consecutive planes.
func (w *Float32) Divide(p *workers.Pool, y, counts []float32) {
	s := &w.Shape
	if w.NHWC {
		workers.Do(p, s.N*len(counts), max(1, 1<<14/s.C), divideArgs{y, counts, s.C}, func(a divideArgs, lo, hi int) {
			for i := lo; i < hi; i++ {
				v := a.y[i*a.c:][:a.c]
				element.DivAllTo(v, v, a.counts[i%len(a.counts)])
			}
		})
		return
	}
	workers.Do(p, len(y)/len(counts), max(1, 1<<14/len(counts)), divideArgs{y, counts, s.C}, func(a divideArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			v := a.y[i*len(a.counts):][:len(a.counts)]
			element.DivTo(v, v, a.counts)
		}
	})
}

// divideArgs holds the arguments of a work item of Divide.
type divideArgs struct {
	y, counts []float32
	c         int
}

// Run pools x into y.
func (w *Float32) Run(p *workers.Pool, x, y []float32) {
	edge := float32(0)
	if w.Max {
		edge = float32(math.Inf(-1))
	}
	if w.NHWC {
		w.Shape.FloatLines(p, x, 1, edge, conv.WindowWalker{Pool: w, Y: y})
		return
	}
	w.Shape.FloatPlanes(p, w.f, w.planes, x, 1, edge, conv.WindowWalker{Pool: w, Y: y})
}

// Walk computes n values at each of places.
func (w *Float32) Walk(t *simd.Window, places, n int) {
	if !w.Max {
		t.SetClamp(false, 0, 0)
		w.f.Sum(t, places, n)
		return
	}
	lo, hi := float32(math.Inf(-1)), float32(math.Inf(1))
	if w.Clamp.On {
		lo, hi = w.Clamp.Min, w.Clamp.Max
	}
	t.SetClamp(true, lo, hi)
	if w.NaN {
		w.f.Greatest(t, places, n)
	} else {
		w.f.Largest(t, places, n)
	}
}

// Package signal implements ONNX's Fourier transforms, window functions and the mel filter bank.
// It computes in float64, except for a float32 inverse transform.
package signal

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

var floats = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat([]op.Def{
		{Name: "DFT", Since: 17, Types: floats, Infer: op.Needs(1, inferDFT), Prepare: prepareDFT},
		{Name: "DFT", Since: 20, Types: floats, Infer: op.Needs(1, inferDFT), Prepare: prepareDFT},
		{Name: "STFT", Since: 17, Types: floats, Infer: op.Needs(2, inferSTFT), Prepare: prepareSTFT},
	}, windowDefs())
}

// transform is the geometry of a DFT node.
type transform struct {
	axis, n            int
	inverse, oneSided  bool
	bins               int // outputs along the axis
	complexIn, realOut bool
}

// maxLength bounds a transform: a single number of the model determines the size of its tables.
const maxLength = 1 << 27

func transformOf(c *op.Call) (*transform, error) {
	a, x := c.Node.Attrs, c.In[0]
	r := x.Rank()
	if r < 2 || x.Shape[r-1] != 1 && x.Shape[r-1] != 2 {
		return nil, fmt.Errorf("input is %s: the last dimension holds real or complex numbers", tensor.FormatShape(x.Shape))
	}
	if !slices.Contains(floats, x.Type) {
		return nil, op.Unsupported("DFT of %v", x.Type)
	}
	t := &transform{inverse: a.Bool("inverse", false), oneSided: a.Bool("onesided", false), complexIn: x.Shape[r-1] == 2}
	axis := a.Int("axis", 1)
	if c.Node.Version >= 20 {
		axis = -2
		if c.Has(2) {
			var err error
			if axis, err = layout.Scalar(c.In[2]); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if t.axis, err = op.Axis(axis, r); err != nil {
		return nil, err
	}
	if t.axis == r-1 {
		return nil, errors.New("axis is the one of real and imaginary parts")
	}
	t.n = x.Shape[t.axis]
	t.realOut = t.inverse && t.oneSided
	if t.realOut {
		t.n = 2 * (t.n - 1)
	}
	if c.Has(1) {
		if t.n, err = layout.Scalar(c.In[1]); err != nil {
			return nil, err
		}
	}
	if t.n < 1 || t.n > maxLength {
		return nil, fmt.Errorf("length of the transform is %d", t.n)
	}
	t.bins = t.n
	if t.oneSided && !t.inverse {
		if t.complexIn {
			return nil, errors.New("one-sided transform of complex input")
		}
		t.bins = t.n/2 + 1
	}
	return t, nil
}

func inferDFT(c *op.Call) error {
	t, err := transformOf(c)
	if err != nil {
		return err
	}
	out := slices.Clone(c.In[0].Shape)
	out[t.axis], out[len(out)-1] = t.bins, 2
	if t.realOut {
		out[len(out)-1] = 1
	}
	return c.Result(c.In[0].Type, out)
}

func prepareDFT(c *op.Call) (op.Run, error) {
	var f *fft
	var single *fft32
	var t *transform
	fixed := (!c.Has(1) || c.Const(1)) && (!c.Has(2) || c.Const(2))
	return func(c *op.Call) (err error) {
		if t == nil || !fixed {
			if t, err = transformOf(c); err != nil {
				return err
			}
		}
		// The expected values of the standard have the rounding of a float32 transform for the
		// inverse (up to 2e-7 where zero is exact and 1e-7 is allowed), and of a float64
		// transform otherwise.
		if c.In[0].Type == tensor.Float32 && t.inverse && t.complexIn && !t.oneSided {
			if single == nil || single.n != t.n {
				single = newFFT32(t.n, t.inverse)
			}
			if single != nil {
				dft32(c.Pool, t, single, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), c.In[0].Shape)
				return nil
			}
		}
		if f == nil || f.n != t.n {
			f = newFFT(t.n)
		}
		switch c.In[0].Type {
		case tensor.Float32:
			dft(c.Pool, t, f, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), c.In[0].Shape)
		case tensor.Float64:
			dft(c.Pool, t, f, tensor.Of[float64](c.In[0]), tensor.Of[float64](c.Out[0]), c.In[0].Shape)
		default:
			x, err := tensor.All[float64](c.In[0])
			if err != nil {
				return err
			}
			y := make([]float64, c.Out[0].Len())
			dft(c.Pool, t, f, x, y, c.In[0].Shape)
			tensor.Fill(c.Out[0], func(i int) float64 { return y[i] })
		}
		return nil
	}, nil
}

// dft transforms every line along the axis.
func dft[T float32 | float64](pool *workers.Pool, t *transform, f *fft, x, y []T, shape []int) {
	lines := tensor.Elements(shape[:t.axis]) * tensor.Elements(shape[t.axis+1:len(shape)-1])
	workers.Each(pool, lines, max(1, 1<<12/t.n), dftArgs[T]{t, f, x, y, shape})
}

// dftArgs holds the arguments of a work item of [dft].
type dftArgs[T float32 | float64] struct {
	t     *transform
	f     *fft
	x, y  []T
	shape []int
}

// Piece transforms lines lo to hi.
func (q dftArgs[T]) Piece(lo, hi int) {
	t, f, x, y, r := q.t, q.f, q.x, q.y, len(q.shape)
	n, inner := q.shape[t.axis], tensor.Elements(q.shape[t.axis+1:r-1])
	parts, outParts := q.shape[r-1], 2
	if t.realOut {
		outParts = 1
	}
	workspace := f.borrow()
	in, out := workspace.in, workspace.out
	for l := lo; l < hi; l++ {
		o, i := l/inner, l%inner
		clear(in)
		for k := range min(n, t.n) {
			at := ((o*n+k)*inner + i) * parts
			if parts == 2 {
				in[k] = complex(float64(x[at]), float64(x[at+1]))
			} else {
				in[k] = complex(float64(x[at]), 0)
			}
		}
		t.line(f, in, out, workspace.work)
		for k, v := range out[:t.bins] {
			at := ((o*t.bins+k)*inner + i) * outParts
			y[at] = T(real(v))
			if outParts == 2 {
				y[at+1] = T(imag(v))
			}
		}
	}
	f.workspaces.Put(workspace)
}

// line transforms one line. The inverse is the forward transform of the conjugate, conjugated and
// divided by the length.
func (t *transform) line(f *fft, in, out, w []complex128) {
	if !t.inverse {
		f.forward(out, in, w)
		return
	}
	if t.realOut {
		// The missing half of a real signal's spectrum is the conjugate of the other.
		for k := t.n/2 + 1; k < t.n; k++ {
			in[k] = complex(real(in[t.n-k]), -imag(in[t.n-k]))
		}
	}
	for k, v := range in {
		in[k] = complex(real(v), -imag(v))
	}
	f.forward(out, in, w)
	s := 1 / float64(t.n)
	for k, v := range out {
		out[k] = complex(real(v)*s, -imag(v)*s)
	}
}

// frames is the geometry of an STFT node.
type frames struct {
	step, length, count, bins int
	complexIn                 bool
}

func framesOf(c *op.Call) (*frames, error) {
	x := c.In[0]
	if !slices.Contains(floats, x.Type) {
		return nil, op.Unsupported("STFT of %v", x.Type)
	}
	if x.Rank() != 2 && (x.Rank() != 3 || x.Shape[2] != 1 && x.Shape[2] != 2) {
		return nil, fmt.Errorf("signal is %s, not batch x length x 1 or 2", tensor.FormatShape(x.Shape))
	}
	g := &frames{length: x.Shape[1], complexIn: x.Rank() == 3 && x.Shape[2] == 2}
	var err error
	if g.step, err = layout.Scalar(c.In[1]); err != nil {
		return nil, err
	}
	if c.Has(3) {
		if g.length, err = layout.Scalar(c.In[3]); err != nil {
			return nil, err
		}
	}
	if c.Has(2) {
		w := c.In[2]
		if !slices.Contains(floats, w.Type) || w.Rank() != 1 {
			return nil, fmt.Errorf("window is %v %s", w.Type, tensor.FormatShape(w.Shape))
		}
		if c.Has(3) && w.Len() != g.length {
			return nil, fmt.Errorf("window has %d elements for frames of %d", w.Len(), g.length)
		}
		g.length = w.Len()
	}
	if g.step < 1 || g.length < 1 || g.length > x.Shape[1] {
		return nil, fmt.Errorf("frames of %d every %d samples of %d", g.length, g.step, x.Shape[1])
	}
	g.count = (x.Shape[1]-g.length)/g.step + 1
	g.bins = g.length
	if c.Node.Attrs.Bool("onesided", true) {
		if g.complexIn {
			return nil, errors.New("one-sided transform of complex input")
		}
		g.bins = g.length/2 + 1
	}
	return g, nil
}

func inferSTFT(c *op.Call) error {
	g, err := framesOf(c)
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, []int{c.In[0].Shape[0], g.count, g.bins, 2})
}

func prepareSTFT(c *op.Call) (op.Run, error) {
	var f *fft
	var g *frames
	var window []float64
	fixed := c.Const(1) && (!c.Has(2) || c.Const(2)) && (!c.Has(3) || c.Const(3))
	return func(c *op.Call) (err error) {
		if g == nil || !fixed {
			if g, err = framesOf(c); err != nil {
				return err
			}
			if f == nil || f.n != g.length {
				f = newFFT(g.length)
			}
			if window = nil; c.Has(2) {
				if window, err = tensor.All[float64](c.In[2]); err != nil {
					return err
				}
			}
		}
		switch c.In[0].Type {
		case tensor.Float32:
			stft(c.Pool, g, f, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), window, c.In[0].Shape)
		case tensor.Float64:
			stft(c.Pool, g, f, tensor.Of[float64](c.In[0]), tensor.Of[float64](c.Out[0]), window, c.In[0].Shape)
		default:
			x, err := tensor.All[float64](c.In[0])
			if err != nil {
				return err
			}
			y := make([]float64, c.Out[0].Len())
			stft(c.Pool, g, f, x, y, window, c.In[0].Shape)
			tensor.Fill(c.Out[0], func(i int) float64 { return y[i] })
		}
		return nil
	}, nil
}

// stft windows and transforms every frame.
func stft[T float32 | float64](pool *workers.Pool, g *frames, f *fft, x, y []T, window []float64, shape []int) {
	workers.Each(pool, shape[0]*g.count, max(1, 1<<12/g.length), stftArgs[T]{g, f, x, y, window, shape})
}

// stftArgs holds the arguments of a work item of [stft].
type stftArgs[T float32 | float64] struct {
	g      *frames
	f      *fft
	x, y   []T
	window []float64
	shape  []int
}

// Piece transforms frames lo to hi.
func (q stftArgs[T]) Piece(lo, hi int) {
	g := q.g
	parts := 1
	if g.complexIn {
		parts = 2
	}
	workspace := q.f.borrow()
	for l := lo; l < hi; l++ {
		src := q.x[(l/g.count*q.shape[1]+l%g.count*g.step)*parts:]
		for k := range workspace.in {
			v := complex(float64(src[k*parts]), 0)
			if parts == 2 {
				v = complex(real(v), float64(src[2*k+1]))
			}
			if q.window != nil {
				v = complex(real(v)*q.window[k], imag(v)*q.window[k])
			}
			workspace.in[k] = v
		}
		q.f.forward(workspace.out, workspace.in, workspace.work)
		dst := q.y[l*g.bins*2:]
		for k, v := range workspace.out[:g.bins] {
			dst[2*k], dst[2*k+1] = T(real(v)), T(imag(v))
		}
	}
	q.f.workspaces.Put(workspace)
}

func windowDefs() []op.Def {
	window := func(name string, f func(turn float64) float64) op.Def {
		return op.Def{Name: name, Since: 17, Infer: op.Needs(1, inferWindow), Prepare: op.Simple(func(c *op.Call) error {
			n := c.Out[0].Len()
			period := n
			if !c.Node.Attrs.Bool("periodic", true) {
				period = n - 1 // of 1 element: 0, and NaN as the definition gives
			}
			tensor.Fill(c.Out[0], func(i int) float64 {
				return f(2 * math.Pi * float64(i) / float64(period))
			})
			return nil
		})}
	}
	return []op.Def{
		window("HannWindow", func(t float64) float64 { return 0.5 - 0.5*math.Cos(t) }),
		window("HammingWindow", func(t float64) float64 { return 25./46 - 21./46*math.Cos(t) }),
		window("BlackmanWindow", func(t float64) float64 { return 0.42 - 0.5*math.Cos(t) + 0.08*math.Cos(2*t) }),
		{Name: "MelWeightMatrix", Since: 17, Infer: op.Needs(5, inferMel), Prepare: op.Simple(runMel)},
	}
}

func outType(c *op.Call) (tensor.Type, error) {
	t, err := elem.FromCode(c.Node.Attrs.Int("output_datatype", 1))
	if err == nil && !t.IsNumber() {
		err = op.Unsupported("output of type %v", t)
	}
	return t, err
}

func inferWindow(c *op.Call) error {
	t, err := outType(c)
	if err != nil {
		return err
	}
	n, err := layout.Scalar(c.In[0])
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("size is %d", n)
	}
	return c.Result(t, []int{n})
}

func inferMel(c *op.Call) error {
	t, err := outType(c)
	if err != nil {
		return err
	}
	bins, err := layout.Scalar(c.In[0])
	if err != nil {
		return err
	}
	length, err := layout.Scalar(c.In[1])
	if err != nil {
		return err
	}
	if bins < 0 || length < 0 || length > maxLength {
		return fmt.Errorf("%d mel bins of a transform of length %d", bins, length)
	}
	for _, x := range c.In[2:5] {
		if x.Len() != 1 {
			return fmt.Errorf("%d elements where one is expected", x.Len())
		}
	}
	return c.Result(t, []int{length/2 + 1, bins})
}

// runMel computes one triangle per column: it rises from the edge of the previous band to one at
// its own edge and falls to the next. Edges are equally spaced on the mel scale and rounded down
// to spectrogram bins.
func runMel(c *op.Call) error {
	var p [3]float64 // sample rate, lowest and highest frequency
	for i := range p {
		v, err := tensor.All[float64](c.In[2+i])
		if err != nil {
			return err
		}
		p[i] = v[0]
	}
	length, err := layout.Scalar(c.In[1])
	if err != nil {
		return err
	}
	rows, bands := c.Out[0].Shape[0], c.Out[0].Shape[1]
	low, high := mel(p[1]), mel(p[2])
	edge := make([]int, bands+2)
	for i := range edge {
		m := low + float64(i)*(high-low)/float64(bands+2)
		f := 700 * (math.Pow(10, m/2595) - 1)
		v := math.Floor(float64(length+1) * f / p[0])
		if !(v >= 0 && v <= float64(rows)) {
			return fmt.Errorf("frequency %g is outside the spectrogram", f)
		}
		edge[i] = int(v)
	}
	w := make([]float64, rows*bands)
	put := func(row, band int, v float64) {
		if row < rows {
			w[row*bands+band] = v
		}
	}
	for b := range bands {
		lo, mid, hi := edge[b], edge[b+1], edge[b+2]
		for r := lo; r < mid; r++ {
			put(r, b, float64(r-lo)/float64(mid-lo))
		}
		put(mid, b, 1)
		for r := mid + 1; r < hi; r++ {
			put(r, b, float64(hi-r)/float64(hi-mid))
		}
	}
	tensor.Fill(c.Out[0], func(i int) float64 { return w[i] })
	return nil
}

func mel(hertz float64) float64 { return 2595 * math.Log10(1+hertz/700) }

package signal

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func inferPart(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	t := tensor.Float32
	switch c.In[0].Type {
	case tensor.Complex64:
	case tensor.Complex128:
		t = tensor.Float64
	default:
		return op.Unsupported("elements of type %v", c.In[0].Type)
	}
	c.SetOut(0, t, c.In[0].Shape)
	return nil
}

// size is |z|. Squares of float32 numbers are exact, their sum is rounded once and the root once,
// as in the C library. Squares of float64 numbers may overflow.
func size(z complex128) float64 {
	if r := math.Sqrt(real(z)*real(z) + imag(z)*imag(z)); r > 0x1p-500 && r < 0x1p500 || z == 0 {
		return r
	}
	return math.Hypot(real(z), imag(z))
}

func runPart(f func(z complex128) float64) op.Run {
	return func(c *op.Call) error {
		if c.In[0].Type == tensor.Complex128 {
			y := tensor.Of[float64](c.Out[0])
			for i, z := range tensor.Of[complex128](c.In[0]) {
				y[i] = f(z)
			}
			return nil
		}
		y := tensor.Of[float32](c.Out[0])
		for i, z := range tensor.Of[complex64](c.In[0]) {
			y[i] = float32(f(complex128(z)))
		}
		return nil
	}
}

// rfftSize reads the height and width of the transform; the input is truncated or zero-padded to
// it.
func rfftSize(c *op.Call) (h, w int, err error) {
	if err := c.NeedInputs(2); err != nil {
		return 0, 0, err
	}
	if c.In[0].Type != tensor.Float32 || c.In[0].Rank() < 2 {
		return 0, 0, op.Unsupported("images %v %s", c.In[0].Type, tensor.FormatShape(c.In[0].Shape))
	}
	n, err := op.Ints(c.In[1])
	if err != nil {
		return 0, 0, err
	}
	if len(n) != 2 || n[0] < 1 || n[1] < 1 || n[0] > 1<<24 || n[1] > 1<<24 {
		return 0, 0, fmt.Errorf("transform of size %v", n)
	}
	return n[0], n[1], nil
}

func inferRfft2D(c *op.Call) error {
	h, w, err := rfftSize(c)
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	c.SetOut(0, tensor.Complex64, slices.Concat(s[:len(s)-2], []int{h, w/2 + 1}))
	return nil
}

func prepareRfft2D(c *op.Call) (op.Run, error) {
	out := c.Out[0].Shape
	h, w2 := out[len(out)-2], out[len(out)-1]
	_, w, err := 0, 0, error(nil)
	if c.Const(1) {
		_, w, err = rfftSize(c)
	}
	if err != nil {
		return nil, err
	}
	column := newFloatFFT(h, false)
	var row *realFFTRow
	col := make([]complex128, h)
	return func(c *op.Call) error {
		if row == nil || !c.Const(1) {
			if _, w, err = rfftSize(c); err != nil {
				return err
			}
			if row == nil || row.n != w {
				row = newRealFFTRow(w)
			}
		}
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[complex64](c.Out[0])
		s := c.In[0].Shape
		ih, iw := s[len(s)-2], s[len(s)-1]
		for b := range tensor.Elements(s[:len(s)-2]) {
			clear(y[b*h*w2:][:h*w2])
			for r := range min(h, ih) {
				for i, v := range row.run(x[(b*ih+r)*iw:][:min(w, iw)]) {
					y[(b*h+r)*w2+i] = complex64(v)
				}
			}
			if h == 1 {
				continue
			}
			for k := range w2 {
				for r := range col {
					col[r] = complex128(y[(b*h+r)*w2+k])
				}
				for r, v := range column.run(col) {
					y[(b*h+r)*w2+k] = complex64(v)
				}
			}
		}
		return nil
	}, nil
}

// realFFTRow transforms rows of n real numbers. If n is even, it combines two neighbours to
// a complex number of a transform of half the length. Sums and differences of opposite frequencies
// separate the results.
type realFFTRow struct {
	n        int
	fft      *floatFFT
	twiddles []complex128 // for length n; nil if n is odd
	out      []complex128
}

func newRealFFTRow(n int) *realFFTRow {
	f := &realFFTRow{n: n, out: make([]complex128, n/2+1)}
	if n%2 != 0 {
		f.fft = newFloatFFT(n, false)
		return f
	}
	f.fft = newFloatFFT(n/2, false)
	f.twiddles = make([]complex128, n/2+1)
	for i := range f.twiddles {
		f.twiddles[i] = cmplx.Rect(1, -2*math.Pi*float64(i)/float64(n))
	}
	f.twiddles[n/2] = -1 // bit-exact
	return f
}

// run transforms x, at most n numbers, zero-padded at the end. The n/2+1 results are valid until
// the next run.
func (f *realFFTRow) run(x []float32) []complex128 {
	line := f.fft.buffer()
	clear(line)
	if f.twiddles == nil {
		for i, v := range x {
			line[i] = complex(float64(v), 0)
		}
		copy(f.out, f.fft.run(line))
		return f.out
	}
	for i := range len(x) / 2 {
		line[i] = complex(float64(x[2*i]), float64(x[2*i+1]))
	}
	if i := len(x) - 1; i%2 == 0 {
		line[i/2] = complex(float64(x[i]), 0)
	}
	z, half := f.fft.run(line), f.n/2
	for i := range f.out {
		a, b := z[i%half], z[(half-i)%half]
		b = complex(real(b), -imag(b))
		even, odd := a+b, (a-b)*f.twiddles[i]
		f.out[i] = complex((real(even)+imag(odd))/2, (imag(even)-real(odd))/2)
	}
	return f.out
}

// floatFFT is a complex transform of any length; lengths with small factors are fast.
type floatFFT struct {
	n        int
	twiddles []complex128
	factors  []int
	in, out  []complex128
	scratch  []complex128
	quarter  complex128 // a quarter turn in the direction of the transform
}

func newFloatFFT(n int, inverse bool) *floatFFT {
	f := &floatFFT{n: n, twiddles: make([]complex128, n), in: make([]complex128, n), out: make([]complex128, n), scratch: make([]complex128, n), quarter: -1i}
	sign := -2 * math.Pi
	if inverse {
		sign, f.quarter = -sign, 1i
	}
	for i := range f.twiddles {
		f.twiddles[i] = cmplx.Rect(1, sign*float64(i)/float64(n))
	}
	f.factors = factorize(n)
	return f
}

// buffer returns scratch memory of n points that run does not use.
func (f *floatFFT) buffer() []complex128 { return f.in }

// run returns the transform, valid until the next run.
func (f *floatFFT) run(in []complex128) []complex128 {
	stages(f, f.out, in, 1, f.factors)
	return f.out
}

// stages computes the stages of a transform of mixed radices, the last ones first. f combines the m
// points of each of p transforms, whose input is step apart.
func stages[P any](f interface{ combine(x []P, step, p, m int) }, x, in []P, step int, factors []int) {
	p, m := factors[0], factors[1]
	for k := range p {
		if m == 1 {
			x[k] = in[k*step]
		} else {
			stages(f, x[k*m:(k+1)*m], in[k*step:], step*p, factors[2:])
		}
	}
	f.combine(x, step, p, m)
}

func (f *floatFFT) combine(x []complex128, step, p, m int) {
	w := f.twiddles
	switch p {
	case 2:
		for k := range m {
			a, b := x[k], x[k+m]*w[k*step]
			x[k], x[k+m] = a+b, a-b
		}
	case 4:
		for k := range m {
			a, b, c, d := x[k], x[k+m]*w[k*step], x[k+2*m]*w[2*k*step], x[k+3*m]*w[3*k*step]
			ac, amc, bd := a+c, a-c, b+d
			t := (b - d) * f.quarter
			x[k], x[k+m], x[k+2*m], x[k+3*m] = ac+bd, amc+t, ac-bd, amc-t
		}
	default:
		s := f.scratch[:p]
		for u := range m {
			for q := range s {
				s[q] = x[u+q*m]
			}
			for q1 := range p {
				k := u + q1*m
				sum, at := s[0], 0
				for q := 1; q < p; q++ {
					at = (at + step*k) % f.n
					sum += s[q] * w[at]
				}
				x[k] = sum
			}
		}
	}
}

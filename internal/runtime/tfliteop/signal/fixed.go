package signal

import (
	"errors"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// point is a complex number of fixed-point parts.
type point[T int16 | int32] struct{ r, i T }

// fixedFFT is a complex transform in fixed point with mixed radices. Every stage
// divides by its radix before it adds, so that nothing overflows. The rounding of each product and
// quotient is part of the result.
type fixedFFT[T int16 | int32] struct {
	n        int
	inverse  bool
	frac     uint  // fraction bits: 15 or 31
	top      int64 // largest value, which represents 1
	twiddles []point[T]
	factors  []int // radix and remaining length by stage
	scratch  []point[T]
}

func fracBits[T int16 | int32]() uint {
	var z T
	if _, ok := any(z).(int16); ok {
		return 15
	}
	return 31
}

func newFixedFFT[T int16 | int32](n int, inverse bool) *fixedFFT[T] {
	f := &fixedFFT[T]{n: n, inverse: inverse, frac: fracBits[T]()}
	f.top = 1<<f.frac - 1
	f.twiddles = make([]point[T], n)
	for i := range f.twiddles {
		phase := -2 * math.Pi * float64(i) / float64(n)
		if inverse {
			phase = -phase
		}
		f.twiddles[i] = f.unit(phase)
	}
	f.factors = factorize(n)
	f.scratch = make([]point[T], n)
	return f
}

// unit returns the point of the unit circle at an angle.
func (f *fixedFFT[T]) unit(phase float64) point[T] {
	return point[T]{T(math.Floor(0.5 + float64(f.top)*math.Cos(phase))), T(math.Floor(0.5 + float64(f.top)*math.Sin(phase)))}
}

// factorize returns radices and remaining lengths: fours, then twos, then odd numbers.
func factorize(n int) []int {
	var out []int
	p, root := 4, int(math.Sqrt(float64(n)))
	for {
		for n%p != 0 {
			switch p {
			case 4:
				p = 2
			case 2:
				p = 3
			default:
				p += 2
			}
			if p > root {
				p = n
			}
		}
		n /= p
		out = append(out, p, n)
		if n <= 1 {
			return out
		}
	}
}

func (f *fixedFFT[T]) round(x int64) T { return T((x + 1<<(f.frac-1)) >> f.frac) }

func (f *fixedFFT[T]) mul(a, b point[T]) point[T] {
	ar, ai, br, bi := int64(a.r), int64(a.i), int64(b.r), int64(b.i)
	return point[T]{f.round(ar*br - ai*bi), f.round(ar*bi + ai*br)}
}

func (f *fixedFFT[T]) times(a, b T) T { return f.round(int64(a) * int64(b)) }

func (f *fixedFFT[T]) div(a point[T], k int) point[T] {
	q := f.top / int64(k)
	return point[T]{f.round(int64(a.r) * q), f.round(int64(a.i) * q)}
}

func add[T int16 | int32](a, b point[T]) point[T] { return point[T]{a.r + b.r, a.i + b.i} }
func sub[T int16 | int32](a, b point[T]) point[T] { return point[T]{a.r - b.r, a.i - b.i} }

// run transforms in to out, which must not overlap.
func (f *fixedFFT[T]) run(out, in []point[T]) { stages(f, out, in, 1, f.factors) }

func (f *fixedFFT[T]) combine(out []point[T], step, p, m int) {
	switch p {
	case 2:
		f.radix2(out, step, m)
	case 3:
		f.radix3(out, step, m)
	case 4:
		f.radix4(out, step, m)
	case 5:
		f.radix5(out, step, m)
	default:
		f.radixN(out, step, m, p)
	}
}

func (f *fixedFFT[T]) radix2(x []point[T], step, m int) {
	for k := range m {
		a := f.div(x[k], 2)
		t := f.mul(f.div(x[k+m], 2), f.twiddles[k*step])
		x[k], x[k+m] = add(a, t), sub(a, t)
	}
}

func (f *fixedFFT[T]) radix3(x []point[T], step, m int) {
	turn := f.twiddles[step*m].i
	for k := range m {
		a := f.div(x[k], 3)
		b := f.mul(f.div(x[k+m], 3), f.twiddles[k*step])
		c := f.mul(f.div(x[k+2*m], 3), f.twiddles[2*k*step])
		sum, diff := add(b, c), sub(b, c)
		mid := point[T]{a.r - sum.r>>1, a.i - sum.i>>1}
		diff = point[T]{f.times(diff.r, turn), f.times(diff.i, turn)}
		x[k] = add(a, sum)
		x[k+2*m] = point[T]{mid.r + diff.i, mid.i - diff.r}
		x[k+m] = point[T]{mid.r - diff.i, mid.i + diff.r}
	}
}

func (f *fixedFFT[T]) radix4(x []point[T], step, m int) {
	for k := range m {
		a := f.div(x[k], 4)
		b := f.mul(f.div(x[k+m], 4), f.twiddles[k*step])
		c := f.mul(f.div(x[k+2*m], 4), f.twiddles[2*k*step])
		d := f.mul(f.div(x[k+3*m], 4), f.twiddles[3*k*step])
		ac, bd, diff, turn := add(a, c), add(b, d), sub(a, c), sub(b, d)
		if f.inverse {
			turn = point[T]{-turn.r, -turn.i}
		}
		x[k], x[k+2*m] = add(ac, bd), sub(ac, bd)
		x[k+m] = point[T]{diff.r + turn.i, diff.i - turn.r}
		x[k+3*m] = point[T]{diff.r - turn.i, diff.i + turn.r}
	}
}

func (f *fixedFFT[T]) radix5(x []point[T], step, m int) {
	ya, yb := f.twiddles[step*m], f.twiddles[2*step*m]
	for k := range m {
		a := f.div(x[k], 5)
		b := f.mul(f.div(x[k+m], 5), f.twiddles[k*step])
		c := f.mul(f.div(x[k+2*m], 5), f.twiddles[2*k*step])
		d := f.mul(f.div(x[k+3*m], 5), f.twiddles[3*k*step])
		e := f.mul(f.div(x[k+4*m], 5), f.twiddles[4*k*step])
		be, bme, cd, cmd := add(b, e), sub(b, e), add(c, d), sub(c, d)
		x[k] = point[T]{a.r + be.r + cd.r, a.i + be.i + cd.i}
		s := point[T]{a.r + f.times(be.r, ya.r) + f.times(cd.r, yb.r), a.i + f.times(be.i, ya.r) + f.times(cd.i, yb.r)}
		t := point[T]{f.times(bme.i, ya.i) + f.times(cmd.i, yb.i), -f.times(bme.r, ya.i) - f.times(cmd.r, yb.i)}
		x[k+m], x[k+4*m] = sub(s, t), add(s, t)
		s = point[T]{a.r + f.times(be.r, yb.r) + f.times(cd.r, ya.r), a.i + f.times(be.i, yb.r) + f.times(cd.i, ya.r)}
		t = point[T]{-f.times(bme.i, yb.i) + f.times(cmd.i, ya.i), f.times(bme.r, yb.i) - f.times(cmd.r, ya.i)}
		x[k+2*m], x[k+3*m] = add(s, t), sub(s, t)
	}
}

func (f *fixedFFT[T]) radixN(x []point[T], step, m, p int) {
	s := f.scratch[:p]
	for u := range m {
		for q := range s {
			s[q] = f.div(x[u+q*m], p)
		}
		for q1 := range p {
			k := u + q1*m
			sum, at := s[0], 0
			for q := 1; q < p; q++ {
				at = (at + step*k) % f.n
				sum = add(sum, f.mul(s[q], f.twiddles[at]))
			}
			x[k] = sum
		}
	}
}

// realFFT transforms real sequences of even length n through a complex
// transform of half the length.
type realFFT[T int16 | int32] struct {
	half  *fixedFFT[T]
	turns []point[T]
	in    []point[T]
	out   []point[T]
}

var errOddLength = errors.New("length of a real transform must be even and positive")

func newRealFFT[T int16 | int32](n int, inverse bool) (*realFFT[T], error) {
	if n < 2 || n%2 != 0 || n > 1<<24 {
		return nil, errOddLength
	}
	h := n / 2
	f := &realFFT[T]{half: newFixedFFT[T](h, inverse), turns: make([]point[T], h/2), in: make([]point[T], h), out: make([]point[T], h)}
	for i := range f.turns {
		phase := -math.Pi * (float64(i+1)/float64(h) + 0.5)
		if inverse {
			phase = -phase
		}
		f.turns[i] = f.half.unit(phase)
	}
	return f, nil
}

// forward writes the n/2+1 points of the spectrum of the n values of x.
func (f *realFFT[T]) forward(y []point[T], x []T) {
	n := len(f.in)
	for i := range f.in {
		f.in[i] = point[T]{x[2*i], x[2*i+1]}
	}
	f.half.run(f.out, f.in)
	dc := f.half.div(f.out[0], 2)
	y[0], y[n] = point[T]{r: dc.r + dc.i}, point[T]{r: dc.r - dc.i}
	for k := 1; k <= n/2; k++ {
		a := f.half.div(f.out[k], 2)
		b := f.half.div(point[T]{f.out[n-k].r, -f.out[n-k].i}, 2)
		sum, diff := add(a, b), sub(a, b)
		t := f.half.mul(diff, f.turns[k-1])
		y[k] = point[T]{T((int64(sum.r) + int64(t.r)) >> 1), T((int64(sum.i) + int64(t.i)) >> 1)}
		y[n-k] = point[T]{T((int64(sum.r) - int64(t.r)) >> 1), T((int64(t.i) - int64(sum.i)) >> 1)}
	}
}

// backward writes the n values whose spectrum is x.
func (f *realFFT[T]) backward(y []T, x []point[T]) {
	n := len(f.in)
	f.in[0] = f.half.div(point[T]{x[0].r + x[n].r, x[0].r - x[n].r}, 2)
	for k := 1; k <= n/2; k++ {
		a := f.half.div(x[k], 2)
		b := f.half.div(point[T]{x[n-k].r, -x[n-k].i}, 2)
		sum := add(a, b)
		t := f.half.mul(sub(a, b), f.turns[k-1])
		f.in[k] = add(sum, t)
		d := sub(sum, t)
		f.in[n-k] = point[T]{d.r, -d.i}
	}
	f.half.run(f.out, f.in)
	for i, p := range f.out {
		y[2*i], y[2*i+1] = p.r, p.i
	}
}

// transform is a SignalRfft or SignalIrfft with n samples: rows of have numbers become rows of
// width numbers.
type transform struct{ n, have, width int }

func shapeTransform(c *op.Call) (v transform, err error) {
	if err := c.NeedInputs(1); err != nil {
		return v, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return v, err
	}
	v.n = int(o.GetInt("fft_length", 0))
	if v.n < 2 || v.n%2 != 0 || v.n > 1<<24 {
		return v, errOddLength
	}
	switch t := c.In[0].Type; t {
	case tensor.Int16, tensor.Int32, tensor.Float32:
		_, v.have, err = lastAxis(c.In[0])
		return v, err
	default:
		return v, op.Unsupported("elements of type %v", t)
	}
}

func inferTransform(c *op.Call, v transform) {
	c.SetOut(0, c.In[0].Type, withLast(c.In[0].Shape, v.width))
}

// eachRow applies f to rows.
func eachRow[T tensor.Number](v transform, f func(y, x []T)) op.Run {
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for ; len(y) > 0; x, y = x[v.have:], y[v.width:] {
			f(y[:v.width], x[:v.have])
		}
		return nil
	}
}

func shapeRfft(c *op.Call) (transform, error) {
	v, err := shapeTransform(c)
	if v.width = v.n + 2; err == nil && v.have > v.n {
		err = fmt.Errorf("frame of %d for a transform of %d", v.have, v.n)
	}
	return v, err
}

func prepareRfft(c *op.Call, v transform) (op.Run, error) {
	return v.prepare(c, fixedRfft[int16], fixedRfft[int32], func(v transform) op.Run {
		f := newRealFFTRow(v.n)
		return eachRow(v, func(y, x []float32) {
			for i, p := range f.run(x) {
				y[2*i], y[2*i+1] = float32(real(p)), float32(imag(p))
			}
		})
	})
}

// prepare chooses the function for the element type.
func (v transform) prepare(c *op.Call, i16, i32 func(v transform) (op.Run, error), f32 func(v transform) op.Run) (op.Run, error) {
	c.Kernel = "fixed-point fft"
	switch c.In[0].Type {
	case tensor.Int16:
		return i16(v)
	case tensor.Int32:
		return i32(v)
	}
	c.Kernel = "fft"
	return f32(v), nil
}

// fixedRfft pads each frame with zeros at the end.
func fixedRfft[T int16 | int32](v transform) (op.Run, error) {
	f, err := newRealFFT[T](v.n, false)
	if err != nil {
		return nil, err
	}
	padded, points := make([]T, v.n), make([]point[T], v.n/2+1)
	return eachRow(v, func(y, x []T) {
		clear(padded[copy(padded, x):])
		f.forward(points, padded)
		for i, p := range points {
			y[2*i], y[2*i+1] = p.r, p.i
		}
	}), nil
}

func shapeIrfft(c *op.Call) (transform, error) {
	v, err := shapeTransform(c)
	if v.width = v.n; err == nil && v.have != v.n+2 {
		err = fmt.Errorf("spectrum of %d numbers for a transform of %d", v.have, v.n)
	}
	return v, err
}

func prepareIrfft(c *op.Call, v transform) (op.Run, error) {
	return v.prepare(c, fixedIrfft[int16], fixedIrfft[int32], func(v transform) op.Run {
		n := v.n
		f, spectrum := newFloatFFT(n, true), make([]complex128, n)
		return eachRow(v, func(y, x []float32) {
			for i := range n/2 + 1 {
				p := complex(float64(x[2*i]), float64(x[2*i+1]))
				spectrum[i] = p
				if i > 0 && i < n/2 {
					spectrum[n-i] = complex(real(p), -imag(p))
				}
			}
			// The reference's inverse divides by the length.
			for i, p := range f.run(spectrum) {
				y[i] = float32(real(p) / float64(n))
			}
		})
	})
}

func fixedIrfft[T int16 | int32](v transform) (op.Run, error) {
	f, err := newRealFFT[T](v.n, true)
	if err != nil {
		return nil, err
	}
	points := make([]point[T], v.n/2+1)
	return eachRow(v, func(y, x []T) {
		for i := range points {
			points[i] = point[T]{x[2*i], x[2*i+1]}
		}
		f.backward(y, points)
	}), nil
}

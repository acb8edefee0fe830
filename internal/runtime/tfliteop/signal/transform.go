package signal

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

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
	c.Kernel = "fixed-point fft"
	switch c.In[0].Type {
	case tensor.Int16:
		return fixedRfft[int16](v)
	case tensor.Int32:
		return fixedRfft[int32](v)
	}
	c.Kernel = "fft"
	f := newRealFFTRow(v.n)
	return eachRow(v, func(y, x []float32) {
		for i, p := range f.run(x) {
			y[2*i], y[2*i+1] = float32(real(p)), float32(imag(p))
		}
	}), nil
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
	c.Kernel = "fixed-point fft"
	switch c.In[0].Type {
	case tensor.Int16:
		return fixedIrfft[int16](v)
	case tensor.Int32:
		return fixedIrfft[int32](v)
	}
	c.Kernel = "fft"
	n := v.n
	f := newFloatFFT(n, true)
	spectrum := make([]complex128, n)
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
	}), nil
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

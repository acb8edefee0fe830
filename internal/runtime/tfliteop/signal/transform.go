package signal

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func transformDefs() []op.Def {
	return []op.Def{
		micro("SignalRfft", inferRfft, prepareRfft),
		micro("SignalIrfft", inferIrfft, prepareIrfft),
	}
}

// fftLength reads the option of the transforms.
func fftLength(c *op.Call) (int, error) {
	if err := c.NeedInputs(1); err != nil {
		return 0, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return 0, err
	}
	n := int(o.GetInt("fft_length", 0))
	if n < 2 || n%2 != 0 || n > 1<<24 {
		return 0, errOddLength
	}
	switch t := c.In[0].Type; t {
	case tensor.Int16, tensor.Int32, tensor.Float32:
		return n, nil
	default:
		return 0, op.Unsupported("elements of type %v", t)
	}
}

func inferRfft(c *op.Call) error {
	n, err := fftLength(c)
	if err != nil {
		return err
	}
	_, have, err := lastAxis(c.In[0])
	if err != nil {
		return err
	}
	if have > n {
		return fmt.Errorf("frame of %d for a transform of %d", have, n)
	}
	c.SetOut(0, c.In[0].Type, withLast(c.In[0].Shape, n+2))
	return nil
}

func prepareRfft(c *op.Call) (op.Run, error) {
	n, err := fftLength(c)
	if err != nil {
		return nil, err
	}
	c.Kernel = "fixed-point fft"
	switch c.In[0].Type {
	case tensor.Int16:
		return fixedRfft[int16](n)
	case tensor.Int32:
		return fixedRfft[int32](n)
	}
	c.Kernel = "fft"
	f := newRealFFTRow(n)
	return func(c *op.Call) error {
		rows, have, _ := lastAxis(c.In[0])
		in, out := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for r := range rows {
			for i, v := range f.run(in[r*have:][:have]) {
				out[r*(n+2)+2*i], out[r*(n+2)+2*i+1] = float32(real(v)), float32(imag(v))
			}
		}
		return nil
	}, nil
}

// fixedRfft pads each frame with zeros behind.
func fixedRfft[T int16 | int32](n int) (op.Run, error) {
	f, err := newRealFFT[T](n, false)
	if err != nil {
		return nil, err
	}
	x, y := make([]T, n), make([]point[T], n/2+1)
	return func(c *op.Call) error {
		rows, have, _ := lastAxis(c.In[0])
		in, out := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for r := range rows {
			clear(x[copy(x, in[r*have:][:have]):])
			f.forward(y, x)
			for i, p := range y {
				out[r*(n+2)+2*i], out[r*(n+2)+2*i+1] = p.r, p.i
			}
		}
		return nil
	}, nil
}

func inferIrfft(c *op.Call) error {
	n, err := fftLength(c)
	if err != nil {
		return err
	}
	_, have, err := lastAxis(c.In[0])
	if err != nil {
		return err
	}
	if have != n+2 {
		return fmt.Errorf("spectrum of %d numbers for a transform of %d", have, n)
	}
	c.SetOut(0, c.In[0].Type, withLast(c.In[0].Shape, n))
	return nil
}

func prepareIrfft(c *op.Call) (op.Run, error) {
	n, err := fftLength(c)
	if err != nil {
		return nil, err
	}
	c.Kernel = "fixed-point fft"
	switch c.In[0].Type {
	case tensor.Int16:
		return fixedIrfft[int16](n)
	case tensor.Int32:
		return fixedIrfft[int32](n)
	}
	c.Kernel = "fft"
	f := newFloatFFT(n, true)
	x := make([]complex128, n)
	return func(c *op.Call) error {
		rows, have, _ := lastAxis(c.In[0])
		in, out := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for r := range rows {
			row := in[r*have:][:have]
			for i := range n/2 + 1 {
				v := complex(float64(row[2*i]), float64(row[2*i+1]))
				x[i] = v
				if i > 0 && i < n/2 {
					x[n-i] = complex(real(v), -imag(v))
				}
			}
			// The reference's inverse divides by the length.
			for i, v := range f.run(x) {
				out[r*n+i] = float32(real(v) / float64(n))
			}
		}
		return nil
	}, nil
}

func fixedIrfft[T int16 | int32](n int) (op.Run, error) {
	f, err := newRealFFT[T](n, true)
	if err != nil {
		return nil, err
	}
	x := make([]point[T], n/2+1)
	return func(c *op.Call) error {
		rows, have, _ := lastAxis(c.In[0])
		in, out := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for r := range rows {
			row := in[r*have:][:have]
			for i := range x {
				x[i] = point[T]{row[2*i], row[2*i+1]}
			}
			f.backward(out[r*n:][:n], x)
		}
		return nil
	}, nil
}

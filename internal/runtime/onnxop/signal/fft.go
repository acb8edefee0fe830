package signal

import (
	"math"
	"math/bits"
	"sync"
)

// fft is a discrete Fourier transform of one length, of any length. It is not
// safe for concurrent use of one scratch; tables are shared.
type fft struct {
	n       int
	factors []int        // of n, none above maxRadix; nil for Bluestein's method
	roots   []complex128 // exp(-2πik/n)
	// Bluestein's method writes a transform of length n as a convolution, done
	// with transforms of a power of two.
	inner      *fft
	chirp      []complex128 // exp(-πik²/n)
	turn       []complex128 // transform of the conjugate chirp, divided by its length
	workspaces sync.Pool    // of *fftWorkspace
}

// fftWorkspace is what a transform reads, writes and works in.
type fftWorkspace struct{ in, out, work []complex128 }

// borrow takes a workspace from those that were put back.
func (f *fft) borrow() *fftWorkspace {
	if r, ok := f.workspaces.Get().(*fftWorkspace); ok {
		return r
	}
	return &fftWorkspace{make([]complex128, f.n), make([]complex128, f.n), make([]complex128, f.scratch())}
}

// maxRadix is the largest prime factor that is worth a direct sum.
const maxRadix = 31

func newFFT(n int) *fft {
	f := &fft{n: n}
	rest := n
	for _, p := range []int{4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, maxRadix} {
		for rest > 1 && rest%p == 0 {
			f.factors = append(f.factors, p)
			rest /= p
		}
	}
	if rest <= 1 {
		f.roots = make([]complex128, n)
		for k := range f.roots {
			f.roots[k] = unit(k, n)
		}
		return f
	}
	f.factors = nil
	m := 1 << bits.Len(uint(2*n-2))
	f.inner = newFFT(m)
	f.chirp = make([]complex128, n)
	b := make([]complex128, m)
	for k := range n {
		// k² modulo 2n keeps the angle small and exact.
		f.chirp[k] = unit(k*k%(2*n), 2*n)
		c := complex(real(f.chirp[k]), -imag(f.chirp[k])) * complex(1/float64(m), 0)
		b[k] = c
		if k > 0 {
			b[m-k] = c
		}
	}
	f.turn = make([]complex128, m)
	f.inner.forward(f.turn, b, make([]complex128, f.inner.scratch()))
	return f
}

// unit is exp(-2πik/n).
func unit(k, n int) complex128 {
	s, c := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
	return complex(c, s)
}

// scratch is the length of the scratch that forward needs.
func (f *fft) scratch() int {
	if f.inner == nil {
		return maxRadix
	}
	return 2*f.inner.n + f.inner.scratch()
}

// forward writes the transform of src, which may not overlap dst, to dst.
func (f *fft) forward(dst, src, scratch []complex128) {
	if f.inner == nil {
		f.split(dst[:f.n], src, 1, 0, scratch)
		return
	}
	m := f.inner.n
	a, b, rest := scratch[:m], scratch[m:2*m], scratch[2*m:]
	for k, c := range f.chirp {
		a[k] = src[k] * c
	}
	clear(a[f.n:])
	f.inner.forward(b, a, rest)
	for k, t := range f.turn {
		v := b[k] * t
		a[k] = complex(real(v), -imag(v)) // conjugate: an inverse by the forward transform
	}
	f.inner.forward(b, a, rest)
	for k, c := range f.chirp {
		dst[k] = complex(real(b[k]), -imag(b[k])) * c
	}
}

// split transforms len(dst) elements of src that lie step apart, by decimation
// in time along the factors from level on.
func (f *fft) split(dst, src []complex128, step, level int, w []complex128) {
	n := len(dst)
	if n == 1 {
		dst[0] = src[0]
		return
	}
	p := f.factors[level]
	m := n / p
	for q := range p {
		f.split(dst[q*m:(q+1)*m], src[q*step:], step*p, level+1, w)
	}
	switch p {
	case 2:
		for k := range m {
			a, b := dst[k], dst[m+k]*f.roots[k*step]
			dst[k], dst[m+k] = a+b, a-b
		}
	case 4:
		for k := range m {
			a, b := dst[k], dst[m+k]*f.roots[k*step]
			c, d := dst[2*m+k]*f.roots[2*k*step], dst[3*m+k]*f.roots[3*k*step]
			s, t, u := a+c, a-c, b+d
			v := complex(imag(b)-imag(d), real(d)-real(b)) // -i(b-d)
			dst[k], dst[m+k], dst[2*m+k], dst[3*m+k] = s+u, t+v, s-u, t-v
		}
	default:
		for k := range m {
			for q := range p {
				w[q] = dst[q*m+k] * f.roots[q*k*step]
			}
			for r := range p {
				sum := w[0]
				for q := 1; q < p; q++ {
					sum += w[q] * f.roots[q*r%p*(f.n/p)]
				}
				dst[r*m+k] = sum
			}
		}
	}
}

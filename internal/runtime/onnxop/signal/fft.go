package signal

import (
	"math"
	"math/bits"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fft is a discrete Fourier transform of any fixed length. Tables are shared; each concurrent
// transform needs its own scratch memory.
type fft struct {
	n       int
	factors []int        // of n, none above maxRadix; nil for Bluestein's method
	roots   []complex128 // exp(-2πik/n)
	// Bluestein's method computes a transform of length n as a convolution, with transforms of a
	// power of two.
	inner      *fft
	chirp      []complex128 // exp(-πik²/n)
	turn       []complex128 // transform of the conjugate chirp, divided by its length
	workspaces sync.Pool    // of *fftWorkspace
}

// fftWorkspace is the scratch memory of a transform: input, output and intermediate values.
type fftWorkspace struct{ in, out, work []complex128 }

// borrow returns a workspace of the pool, or a new one.
func (f *fft) borrow() *fftWorkspace {
	if r, ok := f.workspaces.Get().(*fftWorkspace); ok {
		return r
	}
	return &fftWorkspace{make([]complex128, f.n), make([]complex128, f.n), make([]complex128, f.scratch())}
}

// maxRadix is the largest prime factor for which a direct sum pays off.
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

// unit returns exp(-2πik/n).
func unit(k, n int) complex128 {
	s, c := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
	return complex(c, s)
}

// scratch returns the length of the scratch memory that forward needs.
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

// split transforms len(dst) elements of src, step apart, by decimation in time along the factors
// from level on.
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

// fft32 transforms float32 numbers in float32, for lengths with the prime factors 2, 3 and 5:
// half the memory traffic of the general transform, at the accuracy of the data. It is
// self-sorting (Stockham), by decimation in frequency. Products are rounded before they are
// added, so that results are the same on processors with fused multiply-add.
type fft32 struct {
	n       int
	sign    float32 // of the exponent: -1 forward, +1 inverse
	factors []int
	// by level: roots for element i >= 1 and leg j >= 1, at (i-1)*(radix-1) + j-1
	turns      [][]c32
	workspaces sync.Pool // of *[]c32, input and scratch memory of a transform
}

// borrow returns a workspace of two lines of the pool, or a new one.
func (f *fft32) borrow() *[]c32 {
	if r, ok := f.workspaces.Get().(*[]c32); ok {
		return r
	}
	r := make([]c32, 2*f.n)
	return &r
}

type c32 struct{ re, im float32 }

func (a c32) add(b c32) c32 { return c32{a.re + b.re, a.im + b.im} }
func (a c32) sub(b c32) c32 { return c32{a.re - b.re, a.im - b.im} }

func (a c32) mul(b c32) c32 {
	return c32{float32(a.re*b.re) - float32(a.im*b.im), float32(a.re*b.im) + float32(a.im*b.re)}
}

// newFFT32 returns nil for lengths that it does not support.
func newFFT32(n int, inverse bool) *fft32 {
	f := &fft32{n: n, sign: -1}
	if inverse {
		f.sign = 1
	}
	rest := n
	take := func(p int) {
		for rest%p == 0 {
			f.factors = append(f.factors, p)
			rest /= p
		}
	}
	take(4)
	if rest%2 == 0 {
		rest /= 2
		f.factors = append([]int{2}, f.factors...)
	}
	take(3)
	take(5)
	if rest != 1 {
		return nil
	}
	done := 1
	for _, p := range f.factors {
		legs := n / (done * p)
		t := make([]c32, 0, max(0, (legs-1)*(p-1)))
		for i := 1; i < legs; i++ {
			for j := 1; j < p; j++ {
				s, c := math.Sincos(2 * math.Pi * float64(j*done*i%n) / float64(n))
				t = append(t, c32{float32(c), f.sign * float32(s)})
			}
		}
		f.turns = append(f.turns, t)
		done *= p
	}
	return f
}

// transform transforms a with b as scratch memory. It returns the one that holds the result, not
// scaled.
func (f *fft32) transform(a, b []c32) []c32 {
	done := 1
	var in, out [5]c32
	for level, p := range f.factors {
		legs := f.n / (done * p)
		turns := f.turns[level]
		for k := range done {
			for i := range legs {
				for j := range p {
					in[j] = a[i+legs*(j+p*k)]
				}
				f.butterfly(p, &in, &out)
				b[i+legs*k] = out[0]
				for j := 1; j < p; j++ {
					v := out[j]
					if i > 0 {
						v = v.mul(turns[(i-1)*(p-1)+j-1])
					}
					b[i+legs*(k+done*j)] = v
				}
			}
		}
		a, b = b, a
		done *= p
	}
	return a
}

// butterfly computes a transform of length p.
func (f *fft32) butterfly(p int, in, out *[5]c32) {
	switch p {
	case 2:
		out[0], out[1] = in[0].add(in[1]), in[0].sub(in[1])
	case 3:
		const half = -0.5
		root := f.sign * 0.86602540378443864676
		t0, t1, t2 := in[0], in[1].add(in[2]), in[1].sub(in[2])
		out[0] = t0.add(t1)
		a := c32{t0.re + float32(half*t1.re), t0.im + float32(half*t1.im)}
		b := c32{-(root * t2.im), root * t2.re}
		out[1], out[2] = a.add(b), a.sub(b)
	case 4:
		t2, t1 := in[0].add(in[2]), in[0].sub(in[2])
		t3, t4 := in[1].add(in[3]), in[1].sub(in[3])
		t4 = c32{-f.sign * t4.im, f.sign * t4.re}
		out[0], out[1], out[2], out[3] = t2.add(t3), t1.add(t4), t2.sub(t3), t1.sub(t4)
	case 5:
		const c1, c2 = 0.3090169943749474241, -0.8090169943749474241
		s1, s2 := f.sign*0.95105651629515357212, f.sign*0.58778525229247312917
		t0 := in[0]
		t1, t4 := in[1].add(in[4]), in[1].sub(in[4])
		t2, t3 := in[2].add(in[3]), in[2].sub(in[3])
		out[0] = t0.add(t1).add(t2)
		pair := func(ar, br, ai, bi float32) (c32, c32) {
			a := c32{t0.re + float32(ar*t1.re) + float32(br*t2.re), t0.im + float32(ar*t1.im) + float32(br*t2.im)}
			b := c32{-(float32(ai*t4.im) + float32(bi*t3.im)), float32(ai*t4.re) + float32(bi*t3.re)}
			return a.add(b), a.sub(b)
		}
		out[1], out[4] = pair(c1, c2, s1, s2)
		out[2], out[3] = pair(c2, c1, s2, -s1)
	}
}

// dft32 transforms every line along the axis, of real or complex input.
func dft32(pool *workers.Pool, t *transform, f *fft32, x, y []float32, shape []int) {
	lines := tensor.Elements(shape[:t.axis]) * tensor.Elements(shape[t.axis+1:len(shape)-1])
	workers.Do(pool, lines, max(1, 1<<13/t.n), dft32Args{t, f, x, y, shape}, dft32Args.lines)
}

// dft32Args holds the arguments of a work item of [dft32].
type dft32Args struct {
	t     *transform
	f     *fft32
	x, y  []float32
	shape []int
}

// lines transforms lines lo to hi.
func (q dft32Args) lines(lo, hi int) {
	t, f, r := q.t, q.f, len(q.shape)
	n, parts := q.shape[t.axis], q.shape[r-1]
	inner := tensor.Elements(q.shape[t.axis+1 : r-1])
	scale := float32(1)
	if t.inverse {
		scale = 1 / float32(t.n)
	}
	workspace := f.borrow()
	buf := *workspace
	for l := lo; l < hi; l++ {
		o, i := l/inner, l%inner
		in := buf[:t.n]
		clear(in)
		for k := range min(n, t.n) {
			at := ((o*n+k)*inner + i) * parts
			in[k].re = q.x[at]
			if parts == 2 {
				in[k].im = q.x[at+1]
			}
		}
		for k, v := range f.transform(in, buf[t.n:]) {
			at := ((o*t.bins+k)*inner + i) * 2
			q.y[at], q.y[at+1] = v.re*scale, v.im*scale
		}
	}
	f.workspaces.Put(workspace)
}

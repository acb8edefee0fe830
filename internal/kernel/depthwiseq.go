package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/op"
)

// DepthwiseQ is a depthwise convolution with int32 weights [KH,KW,OC], less their
// zero point; og is the channel multiplier.
func DepthwiseQ[T int8 | uint8](p *op.Pool, s ConvShape, og int, x, y []T, w []int32, zero int32, q *Requant) {
	q.prepare(s.OC)
	grain := max(1, 1<<13/max(1, s.OW*s.OC*s.KH*s.KW))
	p.For(s.N*s.OH, grain, func(lo, hi int) {
		sc, fs := borrow(2 * s.OC)
		acc, inner := asInt32(fs[:s.OC]), asInt32(fs[s.OC:])
		innerBias(inner, w, zero)
		for r := lo; r < hi; r++ {
			n, oy := r/s.OH, r%s.OH
			in := x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
			y0 := oy*s.StrideH - s.PadT
			ky0, ky1 := taps(y0, s.DilH, s.KH, s.H)
			for ox := range s.OW {
				x0 := ox*s.StrideW - s.PadL
				kx0, kx1 := taps(x0, s.DilW, s.KW, s.W)
				if og == 1 && s.KH == 3 && s.KW == 3 && ky1-ky0 == 3 && kx1-kx0 == 3 {
					nineQ(&s, acc, in, w, inner, y0, x0)
				} else {
					clear(acc)
					for ky := ky0; ky < ky1; ky++ {
						for kx := kx0; kx < kx1; kx++ {
							src := in[((y0+ky*s.DilH)*s.W+x0+kx*s.DilW)*s.C:][:s.C]
							tapQ(acc, src, w[(ky*s.KW+kx)*s.OC:], og, zero)
						}
					}
				}
				requantRow(y[(r*s.OW+ox)*s.OC:][:s.OC], acc, q, 0)
			}
		}
		scratch.Put(sc)
	})
}

// innerBias is what the input zero point adds where all taps lie inside.
func innerBias(b, w []int32, zero int32) {
	clear(b)
	for len(w) >= len(b) && len(b) > 0 {
		for i, v := range w[:len(b)] {
			b[i] -= v * zero
		}
		w = w[len(b):]
	}
}

// tapQ adds the products of one tap.
func tapQ[T int8 | uint8](acc []int32, src []T, w []int32, og int, zero int32) {
	w = w[:len(acc)]
	if og == 1 {
		src = src[:len(acc)]
		for i := range acc {
			acc[i] += (int32(src[i]) - zero) * w[i]
		}
		return
	}
	for i, v := range src {
		d := int32(v) - zero
		for m := range og {
			acc[i*og+m] += d * w[i*og+m]
		}
	}
}

// nineQ is the 3×3 case with all taps inside the image: the zero point is dealt
// with once, in b.
func nineQ[T int8 | uint8](s *ConvShape, acc []int32, in []T, w, b []int32, y0, x0 int) {
	n := len(acc)
	row, col := s.DilH*s.W*s.C, s.DilW*s.C
	in = in[(y0*s.W+x0)*s.C:]
	i0, i1, i2 := in[:n], in[col:][:n], in[2*col:][:n]
	in = in[row:]
	i3, i4, i5 := in[:n], in[col:][:n], in[2*col:][:n]
	in = in[row:]
	i6, i7, i8 := in[:n], in[col:][:n], in[2*col:][:n]
	w0, w1, w2 := w[:n], w[n:][:n], w[2*n:][:n]
	w3, w4, w5 := w[3*n:][:n], w[4*n:][:n], w[5*n:][:n]
	w6, w7, w8 := w[6*n:][:n], w[7*n:][:n], w[8*n:][:n]
	b = b[:n]
	for i := range acc {
		t := b[i] + int32(i0[i])*w0[i] + int32(i1[i])*w1[i] + int32(i2[i])*w2[i]
		u := int32(i3[i])*w3[i] + int32(i4[i])*w4[i] + int32(i5[i])*w5[i]
		v := int32(i6[i])*w6[i] + int32(i7[i])*w7[i] + int32(i8[i])*w8[i]
		acc[i] = t + u + v
	}
}

// asUint8 reads scratch memory as bytes.
func asUint8(f []float64) []uint8 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&f[0])), 8*len(f))
}

func asInt8(b []uint8) []int8 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(&b[0])), len(b))
}

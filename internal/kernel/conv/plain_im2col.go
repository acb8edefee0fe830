package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// span returns the range of outputs along one axis whose input o*stride+off lies in [0, size).
func span(outputs, stride, off, size int) (lo, hi int) {
	if off < 0 {
		lo = (-off + stride - 1) / stride
	}
	hi = min(outputs, (size-off+stride-1)/stride)
	return min(lo, outputs), max(hi, min(lo, outputs))
}

// tapRow returns the input of output positions p0 to p0+np-1 of a plane through one tap, zero
// outside. line is scratch for np values; if the values are contiguous in the plane, a part of it
// is returned.
func tapRow[T any](s *Shape, line, plane []T, ky, kx, p0, np int, zero T) []T {
	offY, offX := ky*s.DilH-s.PadT, kx*s.DilW-s.PadL
	if s.StrideH == 1 && s.StrideW == 1 && offY == 0 && offX == 0 && s.OW == s.W && s.OH <= s.H {
		return plane[p0 : p0+np]
	}
	lo, hi := span(s.OW, s.StrideW, offX, s.W)
	oy, ox := p0/s.OW, p0%s.OW
	for i := 0; i < np; oy, ox = oy+1, 0 {
		dst := line[i:][:min(s.OW-ox, np-i)]
		i += len(dst)
		iy := oy*s.StrideH + offY
		if uint(iy) >= uint(s.H) {
			scratch.Fill(dst, zero)
			continue
		}
		a := min(max(lo-ox, 0), len(dst))
		b := max(min(hi-ox, len(dst)), a)
		scratch.Fill(dst[:a], zero)
		scratch.Fill(dst[b:], zero)
		dst = dst[a:b]
		if len(dst) == 0 {
			continue
		}
		src := plane[iy*s.W:][:s.W]
		ix := (ox+a)*s.StrideW + offX
		if s.StrideW == 1 {
			copy(dst, src[ix:])
			continue
		}
		for j := range dst {
			dst[j] = src[ix]
			ix += s.StrideW
		}
	}
	return line[:np]
}

// patchesNCHW packs np patches from position p0 into panels of four, in the order channel, tap.
// It goes tap by tap, because neighbouring positions are contiguous in x. line is scratch for np
// values.
func (c *Float32) patchesNCHW(dst, line, x []float32, p0, np int) {
	s := &c.s
	at := 0
	for ch := range c.cg {
		plane := x[ch*s.H*s.W:][:s.H*s.W]
		for ky := range s.KH {
			for kx := range s.KW {
				l := tapRow(s, line, plane, ky, kx, p0, np, 0)
				d := dst[at:]
				for len(l) > gemm.ColsPanel {
					*(*[gemm.ColsPanel]float32)(d) = [gemm.ColsPanel]float32(l)
					l, d = l[gemm.ColsPanel:], d[c.k*gemm.ColsPanel:]
				}
				d = d[:gemm.ColsPanel]
				clear(d[copy(d, l):])
				at += gemm.ColsPanel
			}
		}
	}
}

// tapRun returns the n input channels from channel ch of an [H,W,C] image that output position p
// reads through a tap; zeros outside of the image.
func tapRun[T any](s *Shape, x, zeros []T, p, ky, kx, ch, n int) []T {
	iy := p/s.OW*s.StrideH - s.PadT + ky*s.DilH
	ix := p%s.OW*s.StrideW - s.PadL + kx*s.DilW
	if uint(iy) >= uint(s.H) || uint(ix) >= uint(s.W) {
		return zeros
	}
	return x[(iy*s.W+ix)*s.C+ch:][:n]
}

// patchesNHWC packs np patches from position p0 into panels of two, in the order tap, channel.
func (c *Float32) patchesNHWC(dst, x []float32, g, p0, np int) {
	s, cg := &c.s, c.cg
	for i := 0; i < np; i += gemm.RowsPanel {
		d := dst[i*c.k:][:gemm.RowsPanel*c.k]
		for ky := range s.KH {
			for kx := range s.KW {
				a, b := tapRun(s, x, c.zeros, p0+i, ky, kx, g*cg, cg), c.zeros
				if i+1 < np {
					b = tapRun(s, x, c.zeros, p0+i+1, ky, kx, g*cg, cg)
				}
				scratch.Interleave(d, a, b)
				d = d[gemm.RowsPanel*cg:]
			}
		}
	}
}

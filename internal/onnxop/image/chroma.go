package image

import (
	stdimage "image"

	"github.com/opmeter/opmeter/internal/op"
)

// fromYCbCr widens the chroma planes to full size and converts to RGB.
func fromYCbCr(p *picture, m *stdimage.YCbCr) error {
	hx, vx := 1, 1
	switch m.SubsampleRatio {
	case stdimage.YCbCrSubsampleRatio444:
	case stdimage.YCbCrSubsampleRatio422:
		hx = 2
	case stdimage.YCbCrSubsampleRatio440:
		vx = 2
	case stdimage.YCbCrSubsampleRatio420:
		hx, vx = 2, 2
	default:
		return op.Unsupported("JPEG with chroma %v", m.SubsampleRatio)
	}
	cw, ch := (p.w+hx-1)/hx, (p.h+vx-1)/vx
	cb, cr := make([]byte, p.w), make([]byte, p.w)
	for y := range p.h {
		near, far := y/vx, y/vx
		if vx == 2 {
			// The other row that a pixel leans on is above it or below.
			far = min(max(near+2*(y%2)-1, 0), ch-1)
		}
		row := func(dst, plane []byte) {
			chromaRow(dst, plane[near*m.CStride:][:cw], plane[far*m.CStride:][:cw], hx, vx, y)
		}
		row(cb, m.Cb)
		row(cr, m.Cr)
		for x := range p.w {
			o := 3 * (y*p.w + x)
			p.rgb[o], p.rgb[o+1], p.rgb[o+2] = convert(m.Y[y*m.YStride+x], cb[x], cr[x])
		}
	}
	return nil
}

// chromaRow interpolates one row: three quarters of the nearer sample and one of
// the farther in each direction that is halved. Halves are rounded up and down
// in turn, so that nothing drifts.
func chromaRow(dst, near, far []byte, hx, vx, y int) {
	n := len(near)
	at := func(i int) int { return int(near[min(max(i, 0), n-1)]) }
	switch {
	case hx == 1 && vx == 1:
		copy(dst, near)
		return
	case hx == 1:
		for i := range dst {
			dst[i] = byte((3*int(near[i]) + int(far[i]) + 1 + y%2) >> 2)
		}
		return
	case vx == 1:
		for i := range dst {
			k := i / 2
			other := k + 2*(i%2) - 1
			if other < 0 || other >= n {
				dst[i] = near[k]
				continue
			}
			dst[i] = byte((3*at(k) + at(other) + 1 + i%2) >> 2)
		}
		return
	}
	sum := func(i int) int { i = min(max(i, 0), n-1); return 3*int(near[i]) + int(far[i]) }
	for i := range dst {
		k := i / 2
		dst[i] = byte((3*sum(k) + sum(k+2*(i%2)-1) + 8 - i%2) >> 4)
	}
}

// convert turns JFIF colour into RGB in 16-bit fixed point.
func convert(y, cb, cr byte) (r, g, b byte) {
	const half = 1 << 15
	l, u, v := int(y), int(cb)-128, int(cr)-128
	return clamp(l + (91881*v+half)>>16), clamp(l + (-22554*u-46802*v+half)>>16), clamp(l + (116130*u+half)>>16)
}

func clamp(v int) byte { return byte(min(max(v, 0), 255)) }

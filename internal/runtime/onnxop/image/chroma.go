package image

// line upsamples row y of the image from a plane that is smaller by hx and vx.
func (c *component) line(dst []byte, hx, vx, y int) {
	stride := c.wide * 8
	near := y / vx
	row := func(i int) []byte { return c.pix[min(max(i, 0), c.rows-1)*stride:][:c.w] }
	switch {
	case hx == 1 && vx == 1:
		copy(dst, row(y))
	case hx <= 2 && vx <= 2 && (hx == 1 || c.w > 2):
		far := near
		if vx == 2 {
			far += 2*(y%2) - 1 // the other row that a pixel leans on is above or below
		}
		interpolate(dst, row(near), row(far), hx, vx, y)
	default:
		src := row(near)
		for x := range dst {
			dst[x] = src[x/hx]
		}
	}
}

// interpolate makes one row: three quarters of the nearer sample and one of the farther in each
// direction that is subsampled. Ties round up and down alternately, so that there is no bias.
func interpolate(dst, near, far []byte, hx, vx, y int) {
	n := len(near)
	if hx == 1 {
		for i := range dst {
			dst[i] = byte((3*int(near[i]) + int(far[i]) + 1 + y%2) >> 2)
		}
		return
	}
	if vx == 1 {
		for i := range dst {
			k := i / 2
			other := k + 2*(i%2) - 1
			if other < 0 || other >= n {
				dst[i] = near[k]
				continue
			}
			dst[i] = byte((3*int(near[k]) + int(near[other]) + 1 + i%2) >> 2)
		}
		return
	}
	sum := func(i int) int { i = min(max(i, 0), n-1); return 3*int(near[i]) + int(far[i]) }
	for i := range dst {
		k := i / 2
		dst[i] = byte((3*sum(k) + sum(k+2*(i%2)-1) + 8 - i%2) >> 4)
	}
}

// convert converts JFIF colour to RGB in 16-bit fixed point.
func convert(y, cb, cr byte) (r, g, b byte) {
	const half = 1 << 15
	l, u, v := int(y), int(cb)-128, int(cr)-128
	return clamp(l + (91881*v+half)>>16), clamp(l + (-22554*u-46802*v+half)>>16), clamp(l + (116130*u+half)>>16)
}

func clamp(v int) byte { return byte(min(max(v, 0), 255)) }

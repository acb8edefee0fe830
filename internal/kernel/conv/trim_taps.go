package conv

// tapRange is the range of taps that cover input for at least one output. With dilations as large
// as the image, the other taps only multiply zeros.
type tapRange struct {
	kh, kw, y0, y1, x0, x1 int
}

// trimTaps removes the first and last taps of both axes that only cover padding; nil if it keeps
// all.
func (s *Shape) trimTaps() *tapRange {
	if s.Outputs() == 0 || s.KH*s.KW <= 1 {
		return nil
	}
	c := tapRange{kh: s.KH, kw: s.KW}
	c.y0, c.y1 = usedTaps(s.KH, s.DilH, s.StrideH, s.PadT, s.H, s.OH)
	c.x0, c.x1 = usedTaps(s.KW, s.DilW, s.StrideW, s.PadL, s.W, s.OW)
	if c.y1-c.y0 == s.KH && c.x1-c.x0 == s.KW {
		return nil
	}
	s.PadT, s.PadL = s.PadT-c.y0*s.DilH, s.PadL-c.x0*s.DilW
	s.KH, s.KW = c.y1-c.y0, c.x1-c.x0
	return &c
}

// usedTaps returns the taps of an axis from the first to the last one that covers input, at least
// one. The removed ones lie in the padding.
func usedTaps(k, dil, stride, pad, in, out int) (lo, hi int) {
	sees := func(tap int) bool {
		at := tap*dil - pad
		// the first output for which the tap is not before the image
		first := max(0, (-at+stride-1)/stride)
		return first < out && at+first*stride < in
	}
	for lo < k-1 && !sees(lo) && (lo+1)*dil <= pad {
		lo++
	}
	for hi = k; hi > lo+1 && !sees(hi-1); {
		hi--
	}
	return lo, hi
}

// trimmedWeights returns the weights of the remaining taps; w itself if c is nil, which keeps
// all.
func trimmedWeights[T any](c *tapRange, w []T, channels, each int, nhwc bool) []T {
	if c == nil {
		return w
	}
	run, groups := 1, channels*each // contiguous values per tap, and windows
	if nhwc {
		run, groups = each, channels
	}
	h, n := c.y1-c.y0, (c.x1-c.x0)*run
	out := make([]T, groups*h*n)
	for g := range groups {
		for y := range h {
			copy(out[(g*h+y)*n:][:n], w[((g*c.kh+c.y0+y)*c.kw+c.x0)*run:])
		}
	}
	return out
}

package window

// Taps walks the elements that the window at output position at sees in one plane and calls f
// with their flat positions, in row-major order.
func (w *Window) Taps(at []int, f func(pos int)) {
	var b [MaxSpatial][4]int // position, first tap, end tap, tap
	n := len(at)
	for i := range n {
		start, lo, hi := w.Span(i, at[i])
		if lo >= hi {
			return
		}
		b[i] = [4]int{start, lo, hi, lo}
	}
	last := n - 1
	for {
		pos := 0
		for i := range last {
			pos = (pos + b[i][0] + b[i][3]*w.Dilation[i]) * w.In[i+1]
		}
		for k := b[last][1]; k < b[last][2]; k++ {
			f(pos + b[last][0] + k*w.Dilation[last])
		}
		i := last - 1
		for ; i >= 0; i-- {
			if b[i][3]++; b[i][3] < b[i][2] {
				break
			}
			b[i][3] = b[i][1]
		}
		if i < 0 {
			return
		}
	}
}

// Cells counts the window's taps that count_include_pad divides by: those within the input and
// its padding, without those added by ceil_mode.
func (w *Window) Cells(at []int) int {
	n := 1
	for i, o := range at {
		start := o*w.Stride[i] - w.Begin[i]
		workspace := w.In[i] + w.End[i] - start // from the first tap to the end of the padding
		n *= min(w.Kernel[i], (workspace+w.Dilation[i]-1)/w.Dilation[i])
	}
	return max(n, 1)
}

// Way names the method of walking the window: "planes" in two dimensions, "general" in others.
func (w *Window) Way() string {
	if len(w.Out) == 2 {
		return "planes"
	}
	return "general"
}

package mvp

// segment is a run of outputs along one axis with the same part of the filter inside the input.
type segment struct {
	at    int // first output
	n     int // outputs
	t     int // filter positions inside the input
	start int // first of them
}

// segments groups the out outputs of an axis of length in, for a filter with stride and padding
// before the input. The groups are: each output whose window begins before the input, all outputs
// with a complete window, each output whose window ends after it. ok is false if a window has no
// position inside the input.
func segments(in, filter, stride, pad, out int) (list []segment, ok bool) {
	whole := floorDiv(in-filter+pad, stride) // last output with a whole window
	for at := 0; at < out; {
		origin := at*stride - pad
		s := segment{at: at, n: 1, start: max(0, -origin)}
		s.t = min(filter, in-origin) - s.start
		if origin >= 0 && in-origin >= filter {
			s.n = min(whole, out-1) - at + 1
		}
		if s.t <= 0 || s.n <= 0 {
			return nil, false
		}
		list = append(list, s)
		at += s.n
	}
	return list, true
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// pass is one program's share of the rows of a segment. The kernels advance through the input by
// whole filter heights, so overlapping windows are distributed over several passes.
type pass struct {
	offset int // first row within the segment
	rows   int
	extra  int // row increments beyond the filter height between two outputs
	step   int // rows between two outputs of the pass
}

// passes splits the rows of y for the x segment of nx columns.
func passes(y segment, stride, nx int) []pass {
	step, extra := 1, 0
	switch {
	case y.n == 1 || nx == 1 || stride == y.t:
	case stride > y.t:
		extra = stride - y.t
	default:
		step = ceilDiv(y.t, stride)
		if r := y.t % stride; r != 0 {
			extra = stride - r
		}
	}
	list := make([]pass, 0, min(step, y.n))
	for k := range min(step, y.n) {
		p := pass{offset: k, rows: ceilDiv(y.n-k, step), extra: extra, step: step}
		if p.rows == 1 {
			p.extra = 0
		}
		list = append(list, p)
	}
	return list
}

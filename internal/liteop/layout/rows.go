package layout

import "github.com/opmeter/opmeter/internal/workers"

// Rows walks up to three broadcast operands together with a dense result, in
// rows that are as long as possible.
type Rows struct {
	shape  []int
	stride [3][]int
	n      int
}

// NewRows prepares the walk over the result's shape. It fails when an operand
// does not broadcast to it.
func NewRows(out []int, operands ...[]int) (*Rows, error) {
	var full [3][]int
	for k := range full {
		full[k] = make([]int, len(out))
		if k < len(operands) {
			s, err := BroadcastStrides(operands[k], out)
			if err != nil {
				return nil, err
			}
			full[k] = s
		}
	}
	r := &Rows{n: 1}
	// Axes are collected with the last one first.
	for i := len(out) - 1; i >= 0; i-- {
		r.n *= out[i]
		if out[i] == 1 {
			continue
		}
		if m := len(r.shape) - 1; m >= 0 {
			joins := true
			for k := range full {
				joins = joins && full[k][i] == r.stride[k][m]*r.shape[m]
			}
			if joins {
				r.shape[m] *= out[i]
				continue
			}
		}
		r.shape = append(r.shape, out[i])
		for k := range full {
			r.stride[k] = append(r.stride[k], full[k][i])
		}
	}
	return r, nil
}

// Each calls f for every row: its place in the result, the places and steps of
// the operands, and its length. Steps are 1 or 0. f must be safe to call from
// several goroutines.
func (r *Rows) Each(p *workers.Pool, f func(out int, at [3]int, n int, step [3]int)) {
	if r.n == 0 {
		return
	}
	if len(r.shape) == 0 {
		f(0, [3]int{}, 1, [3]int{1, 1, 1})
		return
	}
	inner := r.shape[0]
	var step [3]int
	for k := range step {
		step[k] = r.stride[k][0]
	}
	if len(r.shape) == 1 {
		p.For(inner, grain, func(lo, hi int) {
			f(lo, [3]int{lo * step[0], lo * step[1], lo * step[2]}, hi-lo, step)
		})
		return
	}
	work := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			var at [3]int
			for d, rest := 1, i; d < len(r.shape); d++ {
				x := rest % r.shape[d]
				rest /= r.shape[d]
				for k := range at {
					at[k] += x * r.stride[k][d]
				}
			}
			f(i*inner, at, inner, step)
		}
	}
	p.For(r.n/inner, max(1, grain/inner), work)
}

package weights

import "slices"

// dim is a dimension of a view: its size and the distance of neighbours in elements of
// the constant, or where each lies, for what Slice and Concat leave.
type dim struct {
	size, stride int
	at           []int
}

// offset is where index k lies.
func (d dim) offset(k int) int {
	if d.at != nil {
		return d.at[k]
	}
	return k * d.stride
}

// same reports whether dimensions are the same part of the constant.
func (d dim) same(e dim) bool {
	return d.size == e.size && d.stride == e.stride && slices.Equal(d.at, e.at)
}

// moved is a dimension with all offsets raised.
func (d dim) moved(by int) dim {
	at := make([]int, d.size)
	for k := range at {
		at[k] = d.offset(k) + by
	}
	return dim{size: d.size, at: at}
}

// plain reports whether a view has all elements of the constant at regular distances.
func (v view) plain() bool {
	return !slices.ContainsFunc(v, func(d dim) bool { return d.at != nil })
}

// slice takes indices of an axis.
func (v view) slice(axis int, take []int) view {
	out := slices.Clone(v)
	at := make([]int, len(take))
	for i, k := range take {
		at[i] = v[axis].offset(k)
	}
	out[axis] = dim{size: len(take), at: at}
	return out
}

// concat puts views of one constant behind one another. False where they differ along other axes.
func concat(parts []view, axis int) (view, bool) {
	out := slices.Clone(parts[0])
	var at []int
	for _, p := range parts {
		if len(p) != len(out) || !slices.EqualFunc(p[:axis], out[:axis], dim.same) || !slices.EqualFunc(p[axis+1:], out[axis+1:], dim.same) {
			return nil, false
		}
		for k := range p[axis].size {
			at = append(at, p[axis].offset(k))
		}
	}
	out[axis] = dim{size: len(at), at: at}
	return out, true
}

// view is an order in which the elements of a constant are read.
type view []dim

// whole is the view of a constant as it lies.
func whole(shape []int) view {
	v := make(view, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		v[i] = dim{size: shape[i], stride: n}
		n *= shape[i]
	}
	return v
}

func (v view) count() int {
	n := 1
	for _, d := range v {
		n *= d.size
	}
	return n
}

func (v view) shape() []int {
	s := make([]int, len(v))
	for i, d := range v {
		s[i] = d.size
	}
	return s
}

// transpose reorders the dimensions; nil reverses them.
func (v view) transpose(perm []int) (view, bool) {
	out := make(view, len(v))
	if perm == nil {
		for i := range v {
			out[i] = v[len(v)-1-i]
		}
		return out, true
	}
	if len(perm) != len(v) {
		return nil, false
	}
	seen := make([]bool, len(v))
	for i, p := range perm {
		if p < 0 || p >= len(v) || seen[p] {
			return nil, false
		}
		seen[p] = true
		out[i] = v[p]
	}
	return out, true
}

// reshape splits and joins dimensions. False where that would need a copy, since
// neighbours that are to be joined are not such in the constant.
func (v view) reshape(shape []int) (view, bool) {
	n := 1
	for _, d := range shape {
		if d <= 0 {
			return nil, false
		}
		n *= d
	}
	if n != v.count() {
		return nil, false
	}
	var old view
	base := 0 // of what was sliced to one index
	for _, d := range v {
		if d.size != 1 {
			old = append(old, d)
		} else {
			base += d.offset(0)
		}
	}
	if base > 0 {
		if len(old) == 0 {
			return nil, false
		}
		old[0] = old[0].moved(base)
	}
	out := make(view, len(shape))
	at := 0
	for i := 0; i < len(shape); {
		if shape[i] == 1 {
			out[i] = dim{size: 1, stride: 1}
			i++
			continue
		}
		// The least run of old dimensions and the least of new ones that are as large.
		from, first := at, i
		a, b := old[at].size, shape[i]
		at, i = at+1, i+1
		if a == b {
			out[first] = old[from]
			continue
		}
		for a != b {
			if a < b {
				a *= old[at].size
				at++
			} else {
				b *= shape[i]
				i++
			}
		}
		if !old[from:at].plain() {
			return nil, false
		}
		for k := from; k+1 < at; k++ {
			if old[k].stride != old[k+1].stride*old[k+1].size {
				return nil, false
			}
		}
		stride := old[at-1].stride
		for k := i - 1; k >= first; k-- {
			out[k] = dim{size: shape[k], stride: stride}
			stride *= shape[k]
		}
	}
	return out, true
}

// offsets lists the elements that dimensions reach, the last dimension fastest.
func (v view) offsets() []int {
	out := []int{0}
	for _, d := range v {
		next := make([]int, 0, len(out)*d.size)
		for _, o := range out {
			for k := range d.size {
				next = append(next, o+d.offset(k))
			}
		}
		out = next
	}
	return out
}

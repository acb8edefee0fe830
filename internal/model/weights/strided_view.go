package weights

import "slices"

// dim is a dimension of a view: its size, and the stride in elements of the constant. After Slice
// and Concat it has a list of offsets instead.
type dim struct {
	size, stride int
	offsets      []int
}

// offset returns the element offset of index k.
func (d dim) offset(k int) int {
	if d.offsets != nil {
		return d.offsets[k]
	}
	return k * d.stride
}

// same reports whether two dimensions are the same part of the constant.
func (d dim) same(e dim) bool {
	return d.size == e.size && d.stride == e.stride && slices.Equal(d.offsets, e.offsets)
}

// shifted returns the dimension with all offsets raised.
func (d dim) shifted(by int) dim {
	at := make([]int, d.size)
	for k := range at {
		at[k] = d.offset(k) + by
	}
	return dim{size: d.size, offsets: at}
}

// regular reports whether all dimensions have constant strides.
func (v view) regular() bool {
	return !slices.ContainsFunc(v, func(d dim) bool { return d.offsets != nil })
}

// slice selects indices of an axis.
func (v view) slice(axis int, take []int) view {
	out := slices.Clone(v)
	at := make([]int, len(take))
	for i, k := range take {
		at[i] = v[axis].offset(k)
	}
	out[axis] = dim{size: len(take), offsets: at}
	return out
}

// concat concatenates views of one constant. It is false where they differ along other axes.
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
	out[axis] = dim{size: len(at), offsets: at}
	return out, true
}

// view is a strided view of a constant.
type view []dim

// contiguous is the view of a constant in its stored order.
func contiguous(shape []int) view {
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

// reshape splits and merges dimensions. It is false where that would need a copy, because merged
// dimensions are not adjacent in the constant.
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
	base := 0 // offset of dimensions sliced to one index
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
		old[0] = old[0].shifted(base)
	}
	out := make(view, len(shape))
	at := 0
	for i := 0; i < len(shape); {
		if shape[i] == 1 {
			out[i] = dim{size: 1, stride: 1}
			i++
			continue
		}
		// Find the shortest runs of old and new dimensions with equally many elements.
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
		if !old[from:at].regular() {
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

// offsets lists the element offsets of all indices, last dimension fastest.
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

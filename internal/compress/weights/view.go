package weights

// dim is a dimension of a view: its size and the distance of neighbours in elements of
// the constant.
type dim struct{ size, stride int }

// view is an order in which the elements of a constant are read.
type view []dim

// whole is the view of a constant as it lies.
func whole(shape []int) view {
	v := make(view, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		v[i] = dim{shape[i], n}
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
	for _, d := range v {
		if d.size != 1 {
			old = append(old, d)
		}
	}
	out := make(view, len(shape))
	at := 0
	for i := 0; i < len(shape); {
		if shape[i] == 1 {
			out[i] = dim{1, 1}
			i++
			continue
		}
		// The least run of old dimensions and the least of new ones that are as large.
		from, first := at, i
		a, b := old[at].size, shape[i]
		at, i = at+1, i+1
		for a != b {
			if a < b {
				a *= old[at].size
				at++
			} else {
				b *= shape[i]
				i++
			}
		}
		for k := from; k+1 < at; k++ {
			if old[k].stride != old[k+1].stride*old[k+1].size {
				return nil, false
			}
		}
		stride := old[at-1].stride
		for k := i - 1; k >= first; k-- {
			out[k] = dim{shape[k], stride}
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
				next = append(next, o+k*d.stride)
			}
		}
		out = next
	}
	return out
}

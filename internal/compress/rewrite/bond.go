package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// lane is a slice of a value: index at along an axis. Values below 0 stand for no tensor: they tie lanes
// of one together.
type lane struct{ value, axis, at int }

// bond says which lanes of two values go together: index t of the second value's axis with index i of the
// first one's where t-off is below count, and (t-off)/stride modulo size is i.
type bond struct {
	a, b                     [2]int // value and axis
	off, count, stride, size int
}

// from lists the lanes at the other end of a bond; false where the bond does not touch the lane.
func (b *bond) from(l lane) (out []lane, ok bool) {
	if b.a == [2]int{l.value, l.axis} && l.at < b.size {
		ok = true
		for t := l.at * b.stride; t < b.count; t += b.size * b.stride {
			for k := range b.stride {
				out = append(out, lane{b.b[0], b.b[1], b.off + t + k})
			}
		}
	}
	if b.b == [2]int{l.value, l.axis} && l.at >= b.off && l.at < b.off+b.count {
		ok = true
		out = append(out, lane{b.a[0], b.a[1], (l.at - b.off) / b.stride % b.size})
	}
	return out, ok
}

// bonds finds those of a node.
type bonds struct {
	g     *graph.Graph
	shape func(id int) []int
	n     *graph.Node
	list  []bond
	// heads is the axis of attention's heads where the node splits or joins them: see [heads]; -1 for none.
	heads int
	// tie is the last number of values that are no tensors.
	tie *int
	// blind are axes that may lose lanes without any other's losing some.
	blind map[[2]int]bool
	// free are lanes that go by themselves.
	free map[lane]bool
}

// in and out are operands: -1 where there is none.
func (b *bonds) in(i int) int { return operandAt(b.n.Inputs, i) }

func (b *bonds) out(i int) int { return operandAt(b.n.Outputs, i) }

func operandAt(ids []int, i int) int {
	if i < 0 || i >= len(ids) {
		return -1
	}
	return ids[i]
}

func (b *bonds) rank(id int) int { return len(b.shape(id)) }

func (b *bonds) dim(id, axis int) int {
	if s := b.shape(id); axis >= 0 && axis < len(s) {
		return s[axis]
	}
	return 0
}

// same ties equal indices of two axes.
func (b *bonds) same(x, xa, y, ya int) {
	if x < 0 || y < 0 {
		return
	}
	n := b.dim(x, xa)
	b.join(x, xa, y, ya, 0, n, 1, n)
}

func (b *bonds) join(x, xa, y, ya, off, count, stride, size int) {
	if x == -1 || y == -1 || size <= 0 {
		return
	}
	b.list = append(b.list, bond{[2]int{x, xa}, [2]int{y, ya}, off, count, stride, size})
}

// along ties all axes of two values of one shape but those left out.
func (b *bonds) along(x, y int, but ...int) {
	for a, d := range b.shape(x) {
		if !slices.Contains(but, a) && b.dim(y, a) == d && b.rank(y) == b.rank(x) {
			b.same(x, a, y, a)
		}
	}
}

// spread ties operands to an output to whose shape they are spread.
func (b *bonds) spread(y int, operands ...int) {
	for _, x := range operands {
		if x < 0 {
			continue
		}
		shift := b.rank(y) - b.rank(x)
		for a, d := range b.shape(x) {
			switch {
			case d == b.dim(y, a+shift):
				b.same(x, a, y, a+shift)
			case d == 1: // is repeated
				b.blind[[2]int{x, a}] = true
			}
		}
	}
}

// axis is an attribute that counts axes, from the end where negative.
func (b *bonds) axis(name string, def, rank int) int {
	a := b.n.Attrs.Int(name, def)
	if a < 0 {
		a += rank
	}
	return a
}

// convolution ties x and y of a convolution with the channels at axis ch, weights whose outputs lie along axis o
// and whose inputs of a group lie along axis i, and vectors with an element for each output.
func (b *bonds) convolution(x, w, y, ch, o, i, groups int, vectors ...int) {
	b.same(x, 0, y, 0)
	in, outs := b.dim(w, i), b.dim(w, o)
	b.same(w, o, y, ch)
	for _, v := range vectors {
		b.vector(v, w, o)
	}
	switch {
	case groups <= 1:
		b.same(x, ch, w, i)
	case in == 1: // each group has one input: it goes with all its outputs
		b.join(x, ch, w, o, 0, outs, outs/groups, groups)
	default:
		b.join(w, i, x, ch, 0, in*groups, 1, in)
		*b.tie--
		b.join(*b.tie, 0, w, o, 0, outs, 1, outs/groups)
	}
}

// vector ties the elements of a vector to an axis that is as long; a vector of one element serves all.
func (b *bonds) vector(v, w, axis int) {
	if v >= 0 && b.rank(v) == 1 && b.dim(v, 0) == b.dim(w, axis) {
		b.same(v, 0, w, axis)
	}
}

// product ties the operands of a product of matrices with its output.
func (b *bonds) product(x, w, y int, transX, transW bool) {
	rx, rw, ry := b.rank(x), b.rank(w), b.rank(y)
	if rx < 2 || rw < 2 || ry != max(rx, rw) {
		return
	}
	m, k := rx-2, rx-1
	if transX {
		m, k = k, m
	}
	kw, n := rw-2, rw-1
	if transW {
		kw, n = n, kw
	}
	b.same(x, m, y, ry-2)
	b.same(x, k, w, kw)
	b.same(w, n, y, ry-1)
	for _, o := range []int{x, w} {
		for a := range b.rank(o) - 2 {
			if to := a + ry - b.rank(o); b.dim(o, a) == b.dim(y, to) {
				b.same(o, a, y, to)
			}
		}
	}
}

// reshape ties the axes of a value to those of one with the same elements in other dimensions. Where several
// dimensions become one, or one several, one of them carries the lanes: the widest, of those as wide the first.
func (b *bonds) reshape(x, y int) {
	xs, ys := b.shape(x), b.shape(y)
	if tensor.Elements(xs) != tensor.Elements(ys) || tensor.Elements(xs) == 0 {
		return
	}
	for i, j := 0, 0; i < len(xs) && j < len(ys); {
		fi, fj := i, j
		p, q := xs[i], ys[j]
		i, j = i+1, j+1
		for p != q {
			if p < q && i < len(xs) {
				p *= xs[i]
				i++
			} else if j < len(ys) {
				q *= ys[j]
				j++
			} else {
				return
			}
		}
		// Ones that follow belong to nobody.
		b.regroup(x, fi, i, y, fj, j)
	}
}

// regroup ties a run of axes to another one of as many elements.
func (b *bonds) regroup(x, fi, i, y, fj, j int) {
	wide := func(id, from, to int) (axis, stride, others int) {
		axis = from
		for a := from; a < to; a++ {
			if b.dim(id, a) > b.dim(id, axis) {
				axis = a
			}
		}
		stride = 1
		for a := axis + 1; a < to; a++ {
			stride *= b.dim(id, a)
		}
		for a := from; a < to; a++ {
			if a != axis && b.dim(id, a) > 1 {
				others++
			}
		}
		return axis, stride, others
	}
	xa, xstride, xo := wide(x, fi, i)
	ya, ystride, yo := wide(y, fj, j)
	headed := false
	switch a := b.heads; {
	case xo == 0 && yo > 0 && a >= fj && a < j:
		ya, ystride = a, product(b.shape(y)[a+1:j])
	case yo == 0 && xo > 0 && a >= fi && a < i:
		xa, xstride, headed = a, product(b.shape(x)[a+1:i]), true
	}
	switch {
	case xo == 0 && yo == 0:
		b.same(x, xa, y, ya)
	case xo == 0: // one axis becomes several
		b.join(y, ya, x, xa, 0, b.dim(x, xa), ystride, b.dim(y, ya))
	case yo == 0:
		if !headed {
			xa, xstride = b.carrier(x, fi, i, xa, xstride)
		}
		b.join(x, xa, y, ya, 0, b.dim(y, ya), xstride, b.dim(x, xa))
	}
}

// carrier is the axis of channels where one of several that become one axis holds them by its format:
// the first after the batch in ONNX, the last in TFLite.
func (b *bonds) carrier(x, from, to, axis, stride int) (int, int) {
	want := axis
	switch rank := b.rank(x); {
	case rank < 3:
	case b.n.Domain == graph.TFLite:
		want = rank - 1
	default:
		want = 1
	}
	if want < from || want >= to || b.dim(x, want) < 2 {
		return axis, stride
	}
	stride = 1
	for a := want + 1; a < to; a++ {
		stride *= b.dim(x, a)
	}
	return want, stride
}

// concat ties inputs to the output in which they follow each other along an axis.
func (b *bonds) concat(y, axis int, ids ...int) {
	at := 0
	for _, x := range ids {
		if x < 0 {
			continue
		}
		n := b.dim(x, axis)
		b.join(x, axis, y, axis, at, n, 1, n)
		b.along(x, y, axis)
		at += n
	}
}

// ints are the elements of a constant operand.
func (b *bonds) ints(i int) []int {
	id := b.in(i)
	if id < 0 || !b.g.Values[id].Const.Known() || !b.g.Values[id].Const.Type.IsInteger() {
		return nil
	}
	list, err := tensor.All[int64](b.g.Values[id].Const)
	if err != nil {
		return nil
	}
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}

// reduce ties what is left of a reduction's axes.
func (b *bonds) reduce(x, y int, axes []int, keep bool) {
	gone := make([]bool, b.rank(x))
	for _, a := range axes {
		if a < 0 {
			a += len(gone)
		}
		if a < 0 || a >= len(gone) {
			return
		}
		gone[a] = true
	}
	at := 0
	for a := range gone {
		if !gone[a] {
			b.same(x, a, y, at)
		}
		if keep || !gone[a] {
			at++
		}
	}
}

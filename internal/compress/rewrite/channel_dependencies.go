package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// axisIndex is one index along an axis of a value. Values below 0 are virtual: they are not
// tensors and only tie the indices of others together.
type axisIndex struct{ value, axis, index int }

// dependency says which indices of two axes must be removed together: index t of the second axis
// with index i of the first, where t-off is below count, and (t-off)/stride modulo size is i.
type dependency struct {
	a, b                     [2]int // value and axis
	off, count, stride, size int
}

// linked lists the indices at the other end of a dependency. It is false where the dependency
// does not involve the index.
func (b *dependency) linked(l axisIndex) (out []axisIndex, ok bool) {
	if b.a == [2]int{l.value, l.axis} && l.index < b.size {
		ok = true
		for t := l.index * b.stride; t < b.count; t += b.size * b.stride {
			for k := range b.stride {
				out = append(out, axisIndex{b.b[0], b.b[1], b.off + t + k})
			}
		}
	}
	if b.b == [2]int{l.value, l.axis} && l.index >= b.off && l.index < b.off+b.count {
		ok = true
		out = append(out, axisIndex{b.a[0], b.a[1], (l.index - b.off) / b.stride % b.size})
	}
	return out, ok
}

// dependencyFinder finds the dependencies of a node.
type dependencyFinder struct {
	g     *graph.Graph
	shape func(id int) []int
	n     *graph.Node
	list  []dependency
	// headAxis is the axis of attention heads where the node splits or joins them: see
	// [attentionHeads]; -1 for none.
	headAxis int
	// lastVirtual is the last number used for a virtual value.
	lastVirtual *int
	// broadcast has axes that may lose indices without an effect on other axes.
	broadcast map[[2]int]bool
	// independent has indices that can be removed on their own.
	independent map[axisIndex]bool
}

// in and out return operands, -1 where absent.
func (b *dependencyFinder) in(i int) int { return operandAt(b.n.Inputs, i) }

func (b *dependencyFinder) out(i int) int { return operandAt(b.n.Outputs, i) }

func operandAt(ids []int, i int) int {
	if i < 0 || i >= len(ids) {
		return -1
	}
	return ids[i]
}

func (b *dependencyFinder) rank(id int) int { return len(b.shape(id)) }

func (b *dependencyFinder) dim(id, axis int) int {
	if s := b.shape(id); axis >= 0 && axis < len(s) {
		return s[axis]
	}
	return 0
}

// tieSame ties equal indices of two axes.
func (b *dependencyFinder) tieSame(x, xa, y, ya int) {
	if x < 0 || y < 0 {
		return
	}
	n := b.dim(x, xa)
	b.tie(x, xa, y, ya, 0, n, 1, n)
}

func (b *dependencyFinder) tie(x, xa, y, ya, off, count, stride, size int) {
	if x == -1 || y == -1 || size <= 0 {
		return
	}
	b.list = append(b.list, dependency{[2]int{x, xa}, [2]int{y, ya}, off, count, stride, size})
}

// tieAllAxes ties all axes of two values of the same shape except the given ones.
func (b *dependencyFinder) tieAllAxes(x, y int, but ...int) {
	for a, d := range b.shape(x) {
		if !slices.Contains(but, a) && b.dim(y, a) == d && b.rank(y) == b.rank(x) {
			b.tieSame(x, a, y, a)
		}
	}
}

// tieBroadcast ties operands to an output to whose shape they are broadcast.
func (b *dependencyFinder) tieBroadcast(y int, operands ...int) {
	for _, x := range operands {
		if x < 0 {
			continue
		}
		shift := b.rank(y) - b.rank(x)
		for a, d := range b.shape(x) {
			switch {
			case d == b.dim(y, a+shift):
				b.tieSame(x, a, y, a+shift)
			case d == 1: // broadcast
				b.broadcast[[2]int{x, a}] = true
			}
		}
	}
}

// axis returns an attribute that is an axis, counted from the end where negative.
func (b *dependencyFinder) axis(name string, def, rank int) int {
	a := b.n.Attrs.Int(name, def)
	if a < 0 {
		a += rank
	}
	return a
}

// tieConvolution ties input x and output y of a convolution, whose channel axis is ch. The
// weights have outputs along axis o and inputs of a group along axis i; vectors have an element
// per output.
func (b *dependencyFinder) tieConvolution(x, w, y, ch, o, i, groups int, vectors ...int) {
	b.tieSame(x, 0, y, 0)
	in, outs := b.dim(w, i), b.dim(w, o)
	b.tieSame(w, o, y, ch)
	b.tieVectors(w, o, vectors...)
	switch {
	case groups <= 1:
		b.tieSame(x, ch, w, i)
	case in == 1: // each group has one input, tied to all its outputs
		b.tie(x, ch, w, o, 0, outs, outs/groups, groups)
	default:
		b.tie(w, i, x, ch, 0, in*groups, 1, in)
		*b.lastVirtual--
		b.tie(*b.lastVirtual, 0, w, o, 0, outs, 1, outs/groups)
	}
}

// tieVectors ties the elements of vectors to an axis of the same length. A vector with one
// element applies to all indices.
func (b *dependencyFinder) tieVectors(w, axis int, vectors ...int) {
	for _, v := range vectors {
		if v >= 0 && b.rank(v) == 1 && b.dim(v, 0) == b.dim(w, axis) {
			b.tieSame(v, 0, w, axis)
		}
	}
}

// tieMatMul ties the operands of a matrix multiplication to its output.
func (b *dependencyFinder) tieMatMul(x, w, y int, transX, transW bool) {
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
	b.tieSame(x, m, y, ry-2)
	b.tieSame(x, k, w, kw)
	b.tieSame(w, n, y, ry-1)
	for _, o := range []int{x, w} {
		for a := range b.rank(o) - 2 {
			if to := a + ry - b.rank(o); b.dim(o, a) == b.dim(y, to) {
				b.tieSame(o, a, y, to)
			}
		}
	}
}

// tieReshape ties the axes of a value to those of a reshaped one. Where several axes merge into
// one, or one splits, a single axis carries the indices: the widest, and of equally wide ones the
// first.
func (b *dependencyFinder) tieReshape(x, y int) {
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
		// Trailing axes of size 1 are ignored.
		b.tieAxisRun(x, fi, i, y, fj, j)
	}
}

// tieAxisRun ties a run of axes to another run with as many elements.
func (b *dependencyFinder) tieAxisRun(x, fi, i, y, fj, j int) {
	wide := func(id, from, to int) (axis, stride, others int) {
		axis = from
		for a := from; a < to; a++ {
			if b.dim(id, a) > b.dim(id, axis) {
				axis = a
			}
		}
		for a := from; a < to; a++ {
			if a != axis && b.dim(id, a) > 1 {
				others++
			}
		}
		return axis, tensor.Elements(b.shape(id)[axis+1 : to]), others
	}
	xa, xstride, xo := wide(x, fi, i)
	ya, ystride, yo := wide(y, fj, j)
	headed := false
	switch a := b.headAxis; {
	case xo == 0 && yo > 0 && a >= fj && a < j:
		ya, ystride = a, tensor.Elements(b.shape(y)[a+1:j])
	case yo == 0 && xo > 0 && a >= fi && a < i:
		xa, xstride, headed = a, tensor.Elements(b.shape(x)[a+1:i]), true
	}
	switch {
	case xo == 0 && yo == 0:
		b.tieSame(x, xa, y, ya)
	case xo == 0: // one axis splits into several
		b.tie(y, ya, x, xa, 0, b.dim(x, xa), ystride, b.dim(y, ya))
	case yo == 0:
		if !headed {
			xa, xstride = b.channelAxis(x, fi, i, xa, xstride)
		}
		b.tie(x, xa, y, ya, 0, b.dim(y, ya), xstride, b.dim(x, xa))
	}
}

// channelAxis returns the channel axis of the format if it is among several axes that merge: the
// first after the batch in ONNX, the last in TFLite.
func (b *dependencyFinder) channelAxis(x, from, to, axis, stride int) (int, int) {
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
	return want, tensor.Elements(b.shape(x)[want+1 : to])
}

// tieConcat ties inputs to the output in which they are concatenated along an axis.
func (b *dependencyFinder) tieConcat(y, axis int, ids ...int) {
	at := 0
	for _, x := range ids {
		if x < 0 {
			continue
		}
		n := b.dim(x, axis)
		b.tie(x, axis, y, axis, at, n, 1, n)
		b.tieAllAxes(x, y, axis)
		at += n
	}
}

// ints returns the elements of a constant operand.
func (b *dependencyFinder) ints(i int) []int { return constInts(b.g, b.in(i)) }

// constInts returns the elements of a constant of integers, nil for other values.
func constInts(g *graph.Graph, id int) []int {
	if id < 0 || !g.Values[id].Const.Known() || !g.Values[id].Const.Type.IsInteger() {
		return nil
	}
	list := make([]int64, g.Values[id].Const.Len())
	tensor.Read(list, g.Values[id].Const, 0)
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}

// tieReduce ties the remaining axes of a reduction.
func (b *dependencyFinder) tieReduce(x, y int, axes []int, keep bool) {
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
			b.tieSame(x, a, y, at)
		}
		if keep || !gone[a] {
			at++
		}
	}
}

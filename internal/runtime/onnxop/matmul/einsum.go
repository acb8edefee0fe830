package matmul

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// einsum is a parsed equation: every label is an axis of one loop nest, output labels first,
// summed labels last.
type einsum struct {
	size    []int   // of each label
	kept    int     // number of labels that the output has
	strides [][]int // of each input, by label
	out     []int
	labels  []int // of an equation of two operands of another one: which labels of that
}

// ellipsisBase is the label of the last axis of an ellipsis; earlier axes have lower numbers, so
// that they align to the right.
const ellipsisBase = -1

// labels parses one term. rank is the tensor's, or -1 for the output term, whose ellipsis has
// dots axes.
func labels(term string, rank, dots int) ([]int, error) {
	term = strings.ReplaceAll(term, " ", "")
	var out []int
	named := len(strings.ReplaceAll(term, ".", ""))
	if rank >= 0 {
		dots = rank - named
	}
	seen := false
	for i := 0; i < len(term); i++ {
		ch := term[i]
		switch {
		case strings.HasPrefix(term[i:], "...") && !seen:
			for d := dots - 1; d >= 0; d-- {
				out = append(out, ellipsisBase-d)
			}
			seen = true
			i += 2
		case ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z':
			out = append(out, int(ch))
		default:
			return nil, fmt.Errorf("einsum term %q", term)
		}
	}
	if rank >= 0 && (len(out) != rank || dots < 0) {
		return nil, fmt.Errorf("einsum term %q for rank %d", term, rank)
	}
	return out, nil
}

func newEinsum(c *op.Call) (*einsum, error) {
	eq := c.Node.Attrs.Str("equation", "")
	left, right, explicit := strings.Cut(eq, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(c.In) {
		return nil, fmt.Errorf("einsum equation %q with %d inputs", eq, len(c.In))
	}
	if err := c.NeedInputs(len(terms)); err != nil {
		return nil, err
	}
	size, count := map[int]int{}, map[int]int{}
	in := make([][]int, len(terms))
	dots := 0
	for i, t := range terms {
		var err error
		if in[i], err = labels(t, c.In[i].Rank(), 0); err != nil {
			return nil, err
		}
		n := 0
		for d, l := range in[i] {
			if l < 0 {
				n++
			}
			count[l]++
			have, ok := size[l]
			switch dim := c.In[i].Shape[d]; {
			case !ok || have == 1:
				size[l] = dim
			case dim != have && dim != 1:
				return nil, fmt.Errorf("einsum %q: axis sizes %d and %d", eq, have, dim)
			}
		}
		dots = max(dots, n)
	}
	var out []int
	if explicit {
		var err error
		if out, err = labels(right, -1, dots); err != nil {
			return nil, err
		}
	} else {
		for l, n := range count {
			if n == 1 || l < 0 {
				out = append(out, l)
			}
		}
		slices.Sort(out)
	}
	return layEinsum(c, in, out, size)
}

// layEinsum orders the labels, computes strides and sets the output.
func layEinsum(c *op.Call, in [][]int, out []int, size map[int]int) (*einsum, error) {
	e := &einsum{}
	order := slices.Clone(out)
	for i, l := range out {
		if _, ok := size[l]; !ok || slices.Contains(out[:i], l) {
			return nil, fmt.Errorf("einsum %q: output label", c.Node.Attrs.Str("equation", ""))
		}
		e.out = append(e.out, size[l])
	}
	e.kept = len(out)
	rest := make([]int, 0, len(size))
	for l := range size {
		if !slices.Contains(out, l) {
			rest = append(rest, l)
		}
	}
	slices.Sort(rest)
	order = append(order, rest...)
	for _, l := range order {
		e.size = append(e.size, size[l])
	}
	stride := func(term, shape []int) []int {
		s := make([]int, len(order))
		own := tensor.Strides(shape)
		for d, l := range term {
			if shape[d] != 1 {
				s[slices.Index(order, l)] += own[d] // repeated labels walk the diagonal
			}
		}
		return s
	}
	for i, t := range in {
		e.strides = append(e.strides, stride(t, c.In[i].Shape))
	}
	e.join()
	c.SetOut(0, c.In[0].Type, e.out)
	return e, nil
}

// join merges adjacent summed labels that all inputs traverse as one.
func (e *einsum) join() {
	for d := len(e.size) - 2; d >= e.kept; d-- {
		apart := slices.ContainsFunc(e.strides, func(s []int) bool { return s[d] != e.size[d+1]*s[d+1] })
		if apart {
			continue
		}
		e.size[d] *= e.size[d+1]
		e.size = slices.Delete(e.size, d+1, d+2)
		for i := range e.strides {
			e.strides[i] = slices.Delete(e.strides[i], d, d+1)
		}
	}
}

func prepareEinsum(c *op.Call) (op.Run, error) {
	if f := tensor.PickInteger(c.In[0].Type, prepareEinsumOf[int8], prepareEinsumOf[int16], prepareEinsumOf[int32], prepareEinsumOf[int64], prepareEinsumOf[uint8], prepareEinsumOf[uint16], prepareEinsumOf[uint32], prepareEinsumOf[uint64]); f != nil {
		return f(c)
	}
	return elem.PrepareReal(c, prepareEinsumReal[float32], prepareEinsumReal[float64])
}

// prepareEinsumOf adds up products in the order of the labels.
func prepareEinsumOf[T tensor.Number](c *op.Call) (op.Run, error) {
	e := op.Must(newEinsum(c))
	in := make([][]T, len(c.In))
	return func(c *op.Call) error {
		for i, x := range c.In {
			if x.Type != c.In[0].Type {
				return fmt.Errorf("einsum of %v and %v", c.In[0].Type, x.Type)
			}
			in[i] = tensor.Of[T](x)
		}
		einsumLines(e, c.Pool, in, tensor.Of[T](c.Out[0]))
		clear(in)
		return nil
	}, nil
}

// shortLine is the number of results in a line up to which they are computed one by one.
const shortLine = 4

// longSum is the number of contiguous products from which a sum per result is faster than one per
// line.
const longSum = 8

// flat reports whether all inputs are contiguous along a label, or broadcast.
func (e *einsum) flat(label int) bool {
	for _, s := range e.strides {
		if s[label] > 1 {
			return false
		}
	}
	return true
}

// alongSums reports whether the operands of the innermost sums are contiguous.
func (e *einsum) alongSums() bool {
	last := len(e.size) - 1
	return last >= e.kept && e.size[last] >= longSum && e.flat(last)
}

// einsumLines computes an equation line by line of the result or, if lines are short and sums are
// long, one result after the other.
func einsumLines[T tensor.Number](e *einsum, w *workers.Pool, in [][]T, y []T) {
	sums, last := tensor.Elements(e.size[e.kept:]), e.kept
	line := 1
	if last > 0 {
		last--
		if line = e.size[last]; line <= shortLine && sums > line || e.alongSums() && !e.flat(last) {
			last, line = e.kept, 1
		}
	}
	if len(y) == 0 {
		return
	}
	w.For(len(y)/line, max(1, 1<<12/max(sums*line, 1)), func(lo, hi int) {
		at, base, pos := make([]int, len(e.size)), make([]int, len(in)), make([]int, len(in))
		tensor.Unravel(lo, e.size[:last], at[:last])
		for o := lo; o < hi; o++ {
			for i := range in {
				base[i] = 0
				for d, p := range at[:last] {
					base[i] += p * e.strides[i][d]
				}
			}
			if last == e.kept {
				y[o] = einsumSum(e, in, base, pos, at[e.kept:], sums)
			} else {
				einsumLine(e, in, base, at[e.kept:], y[o*line:][:line], sums)
			}
			tensor.Next(at[:last], e.size[:last])
		}
	})
}

// einsumLine adds up the products of one line of the result; base holds the offsets of the
// operands of its first element.
func einsumLine[T tensor.Number](e *einsum, in [][]T, base, at []int, y []T, sums int) {
	clear(y)
	clear(at)
	last := e.kept - 1
	for range sums {
		from := func(i int) ([]T, int) {
			p := base[i]
			for d, q := range at {
				p += q * e.strides[i][e.kept+d]
			}
			return in[i][p:], e.strides[i][last]
		}
		switch a, sa := from(0); len(in) {
		case 1:
			for j := range y {
				y[j] += a[j*sa]
			}
		case 2:
			b, sb := from(1)
			addProducts(y, a, b, sa, sb)
		default:
			for j := range y {
				v := a[j*sa]
				for i := 1; i < len(in); i++ {
					b, sb := from(i)
					v *= b[j*sb]
				}
				y[j] += v
			}
		}
		tensor.Next(at, e.size[e.kept:])
	}
}

// addProducts adds the products of two lines with strides sa and sb to a third one.
func addProducts[T tensor.Number](y, a, b []T, sa, sb int) {
	if sb == 0 {
		a, b, sa, sb = b, a, sb, sa
	}
	switch {
	case sa == 0 && sb == 1:
		v := a[0]
		for j, x := range b[:len(y)] {
			y[j] += v * x
		}
	case sa == 1 && sb == 1:
		a = a[:len(y)]
		for j, x := range b[:len(y)] {
			y[j] += a[j] * x
		}
	default:
		for j := range y {
			y[j] += a[j*sa] * b[j*sb]
		}
	}
}

// einsumSum adds the products over all summed labels; base is the offset of each input for the
// output element.
func einsumSum[T tensor.Number](e *einsum, in [][]T, base, pos, at []int, sums int) T {
	var total T
	clear(at)
	size := e.size[e.kept:]
	last := len(size) - 1
	run := 1
	if last >= 0 {
		run = size[last]
	}
	for s := 0; s < sums; s += run {
		for i := range in {
			pos[i] = base[i]
			for d := range at {
				pos[i] += at[d] * e.strides[i][e.kept+d]
			}
		}
		if run >= longSum && e.sideBySide() {
			if len(in) == 1 {
				total += sumOf(in[0][pos[0]:][:run])
			} else {
				total += productOf(in[0][pos[0]:][:run], in[1][pos[1]:][:run])
			}
			if last > 0 {
				tensor.Next(at[:last], size[:last])
			}
			continue
		}
		for range run {
			v := T(1)
			for i, x := range in {
				v *= x[pos[i]]
				if last >= 0 {
					pos[i] += e.strides[i][e.kept+last]
				}
			}
			total += v
		}
		if last > 0 {
			tensor.Next(at[:last], size[:last])
		}
	}
	return total
}

// sideBySide reports whether the operands (one or two) of the innermost sums are contiguous.
func (e *einsum) sideBySide() bool {
	last := len(e.size) - 1
	for _, s := range e.strides {
		if s[last] != 1 {
			return false
		}
	}
	return len(e.strides) <= 2
}

// sumOf adds up numbers.
func sumOf[T tensor.Number](v []T) T {
	if f, ok := any(v).([]float32); ok {
		if k := simd.FoldKernels(); k != nil {
			return T(k.Row(simd.FoldSum, f))
		}
	}
	var a, b T
	for ; len(v) >= 2; v = v[2:] {
		a, b = a+v[0], b+v[1]
	}
	if len(v) > 0 {
		a += v[0]
	}
	return a + b
}

// productOf computes a dot product.
func productOf[T tensor.Number](a, b []T) T {
	if f, ok := any(a).([]float32); ok {
		return T(vectors.Dot(f, any(b).([]float32)))
	}
	sum, ok := simd.Dot(simd.FoldKernels(), a, b)
	if !ok {
		for i, v := range b[:len(a)] {
			sum += a[i] * v
		}
	}
	return sum
}

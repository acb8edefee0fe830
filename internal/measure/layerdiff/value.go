package layerdiff

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
)

// value is a value with its quantisation, nil if it is not quantised.
type value struct {
	id int
	t  *tensor.Tensor
	q  *tensor.Quant
}

func (v *view) value(id int, t *tensor.Tensor) *value { return &value{id, t, v.quant(id)} }

// order is how the axes of the second side are read: axis i of the first side is axis order[i] of
// the second. nil keeps them.
type order []int

// String lists the axes, "" for nil.
func (o order) String() string {
	s := make([]string, len(o))
	for i, k := range o {
		s[i] = strconv.Itoa(k)
	}
	return strings.Join(s, ",")
}

// inverse returns the order that undoes o.
func (o order) inverse() order {
	out := make(order, len(o))
	for i, k := range o {
		out[k] = i
	}
	return out[:len(o):len(o)]
}

// difference compares a value of the second side with that of the first.
func (c *comparison) difference(a, b *value) (*profile.Difference, order) {
	refuse := func(code profile.CauseCode, format string, args ...any) (*profile.Difference, order) {
		return &profile.Difference{With: "a", State: profile.NotComparable, Cause: &profile.Cause{Code: code, Text: fmt.Sprintf(format, args...)}}, nil
	}
	x, y, scale, ok := alike(a, b)
	if !ok {
		return refuse(profile.ByType, "%v and %v: a scale is not known", a.t.Type, b.t.Type)
	}
	cross := c.sides[0].Model.Format != c.sides[1].Model.Format
	var best *profile.Difference
	var by order
	found := false
	for _, o := range orders(x.Shape, y.Shape, cross) {
		z := permute(y, o)
		ds := outputdiff.Compare([]outputdiff.Tensor{whole(z, x.Shape, scale)}, []outputdiff.Tensor{whole(x, x.Shape, scale)}, c.withName())
		d := &ds[0]
		if !found || closer(d, best) {
			best, by, found = d, o, true
		}
		if d.State == profile.Equal {
			break
		}
	}
	switch {
	case !found:
		return refuse(profile.ByShape, "%s and %s", tensor.FormatShape(a.t.Shape), tensor.FormatShape(b.t.Shape))
	case cross && reordered(x, y, best):
		return refuse(profile.ByShape, "the same elements in another order")
	}
	if best.Steps == nil && best.MaxAbsolute != nil {
		if s := step(a, b); s > 0 {
			best.Steps = new(*best.MaxAbsolute / s)
		}
	}
	return best, by
}

func (c *comparison) withName() outputdiff.Options {
	o := c.diff
	o.With = "a"
	return o
}

// whole is a tensor in the form that is compared.
func whole(t *tensor.Tensor, shape []int, scale float64) outputdiff.Tensor {
	return outputdiff.Tensor{DType: t.Type.String(), Shape: shape, Data: t.Data, Strings: t.Strings, Scale: scale}
}

// closer reports whether a difference is smaller than another.
func closer(a, b *profile.Difference) bool {
	if b.State == profile.NotComparable || a.State == profile.Equal {
		return true
	}
	return a.SNR != nil && (b.SNR == nil && b.State != profile.Equal || b.SNR != nil && *a.SNR > *b.SNR)
}

// step returns the quantisation step of the side that is quantised, the larger one of two.
func step(a, b *value) float64 {
	s := 0.0
	for _, v := range []*value{a, b} {
		if v.q != nil && len(v.q.Scale) == 1 {
			s = max(s, float64(v.q.Scale[0]))
		}
	}
	return s
}

// alike returns both values in one type: as they are where type and quantisation are the same,
// integers as int64, others as real numbers. scale is the quantisation step of integers.
func alike(a, b *value) (x, y *tensor.Tensor, scale float64, ok bool) {
	s, t := a.t.Type, b.t.Type
	switch {
	case s == t && (a.q == nil || b.q == nil || sameQuant(a.q, b.q)):
		q := a.q
		if q == nil {
			q = b.q
		}
		if q != nil {
			scale = 1 // by channel: differences in steps need no scale
			if len(q.Scale) == 1 {
				scale = float64(q.Scale[0])
			}
		}
		return a.t, b.t, scale, true
	case !s.IsNumber() || !t.IsNumber() || s == tensor.Bool || t == tensor.Bool:
		return nil, nil, 0, false
	case s.IsInteger() && t.IsInteger() && a.q == nil && b.q == nil:
		return integers(a.t), integers(b.t), 0, true
	case s.IsInteger() && a.q == nil || t.IsInteger() && b.q == nil:
		return nil, nil, 0, false
	}
	return a.real(), b.real(), 0, true
}

func sameQuant(a, b *tensor.Quant) bool {
	return slices.Equal(a.Scale, b.Scale) && slices.Equal(a.Zero, b.Zero) && (len(a.Scale) == 1 || a.Axis == b.Axis)
}

// integers returns a tensor as int64.
func integers(t *tensor.Tensor) *tensor.Tensor {
	v := make([]int64, t.Len())
	tensor.Read(v, t, 0)
	return tensor.From(tensor.Int64, t.Shape, v)
}

// real returns the real numbers that the value stands for, as float32.
func (v *value) real() *tensor.Tensor {
	x := make([]float32, v.t.Len())
	tensor.Read(x, v.t, 0)
	if v.q != nil && v.t.Type.IsInteger() {
		eachChannel(v.t.Shape, v.q, func(lo, hi, c int) {
			scale, zero := v.q.Scale[c], float32(v.q.Zero[c])
			for i := lo; i < hi; i++ {
				x[i] = scale * (x[i] - zero)
			}
		})
	}
	return tensor.From(tensor.Float32, v.t.Shape, x)
}

// eachChannel visits ranges of elements that have the same scale.
func eachChannel(shape []int, q *tensor.Quant, visit func(lo, hi, channel int)) {
	n := tensor.Elements(shape)
	if len(q.Scale) == 1 {
		visit(0, n, 0)
		return
	}
	inner := 1
	for i := q.Axis + 1; i < len(shape); i++ {
		inner *= shape[i]
	}
	for lo := 0; lo < n; lo += inner {
		visit(lo, lo+inner, lo/inner%len(q.Scale))
	}
}

// into returns the value in another type and quantisation, nil if that is not possible.
func (v *value) into(t tensor.Type, q *tensor.Quant) *tensor.Tensor {
	same := v.t.Type == t
	switch {
	case same && (v.q == nil && q == nil || v.q != nil && q != nil && sameQuant(v.q, q) || !t.IsNumber() || !t.IsInteger()):
		return v.t
	case !v.t.Type.IsNumber() || !t.IsNumber() || v.t.Type == tensor.Bool || t == tensor.Bool:
		return nil
	case v.t.Type.IsInteger() && t.IsInteger() && v.q == nil && q == nil:
		out := tensor.New(t, v.t.Shape...)
		n := integers(v.t)
		tensor.WriteInt64(out, 0, tensor.Of[int64](n))
		return out
	case v.t.Type.IsInteger() && v.q == nil || t.IsInteger() && q == nil:
		return nil
	}
	x := v.real()
	out := tensor.New(t, v.t.Shape...)
	if !t.IsInteger() {
		tensor.WriteFloat32(out, 0, tensor.Of[float32](x))
		return out
	}
	codes := make([]int64, x.Len())
	f := tensor.Of[float32](x)
	lo, hi := bounds(t)
	eachChannel(v.t.Shape, q, func(from, to, c int) {
		scale, zero := float64(q.Scale[c]), float64(q.Zero[c])
		for i := from; i < to; i++ {
			e := math.RoundToEven(float64(f[i])/scale) + zero
			if e != e {
				e = zero
			}
			codes[i] = int64(min(max(e, lo), hi))
		}
	})
	tensor.WriteInt64(out, 0, codes)
	return out
}

// bounds are the least and the greatest integer of a type.
func bounds(t tensor.Type) (lo, hi float64) {
	bits := min(t.Bits(), 53)
	if t.IsSigned() {
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
	}
	return 0, math.Ldexp(1, bits) - 1
}

// orders lists the orders of axes in which a tensor may have the shape of another, the first axis
// in its place. Models of two formats may have the channels first in one and last in the other,
// even where that shows in no dimension.
func orders(x, y []int, cross bool) (out []order) {
	same := slices.Equal(x, y)
	if same || slices.Equal(sized(x), sized(y)) {
		out = append(out, nil)
	}
	r := len(x)
	if len(y) != r || r < 3 || same && !cross {
		return out
	}
	try := [][]int{make(order, r), make(order, r)} // the second side has channels last, or first
	for i := range r {
		try[0][i], try[1][i] = axis(i, r, true), axis(i, r, false)
	}
	if !same && r <= maxPermuted {
		try = append(try, permutations(r)...)
	}
	for _, o := range try {
		fits := len(out) < mostOrders && !slices.ContainsFunc(out, func(p order) bool { return slices.Equal(p, o) })
		for i, k := range o {
			fits = fits && y[k] == x[i]
		}
		if fits {
			out = append(out, o)
		}
	}
	return out
}

// Limits of the orders that are tried: all of tensors of five axes and fewer, some of each.
const (
	maxPermuted = 5
	mostOrders  = 6
)

// permutations lists the orders of axes with the first in its place, but for that which keeps all.
func permutations(rank int) (out [][]int) {
	var add func(o []int)
	add = func(o []int) {
		if len(o) == rank {
			if !slices.IsSorted(o) {
				out = append(out, slices.Clone(o))
			}
			return
		}
		for k := 1; k < rank; k++ {
			if !slices.Contains(o, k) {
				add(append(o, k))
			}
		}
	}
	add([]int{0})
	return out
}

// sized lists the dimensions that are not 1.
func sized(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(d int) bool { return d == 1 })
}

// permute returns a tensor with its axes in another order.
func permute(t *tensor.Tensor, o order) *tensor.Tensor {
	if o == nil {
		return t
	}
	if t.Type == tensor.String || t.Type.Bits() < 8 {
		t = integers(t)
	}
	size := t.Type.Bits() / 8
	out := tensor.New(t.Type, make([]int, len(o))...)
	strides, stride := make([]int, len(o)), 1
	for i := len(o) - 1; i >= 0; i-- {
		strides[i] = stride
		stride *= t.Shape[i]
	}
	shape, step := make([]int, len(o)), make([]int, len(o))
	for i, k := range o {
		shape[i], step[i] = t.Shape[k], strides[k]*size
	}
	out.Shape = shape
	out.Alloc()
	index, from := make([]int, len(o)), 0
	for at := 0; at+size <= len(out.Data); at += size {
		copy(out.Data[at:at+size], t.Data[from:])
		for i := len(o) - 1; i >= 0; i-- {
			index[i]++
			from += step[i]
			if index[i] < shape[i] {
				break
			}
			from -= step[i] * shape[i]
			index[i] = 0
		}
	}
	return out
}

// Limits from which on two values are the same in another order: where their sorted elements agree
// by so many decibels, and by so many more than the elements themselves.
const (
	sortedSNR  = 20
	sortedGain = 15
	mostSorted = 1 << 22 // elements
)

// reordered reports whether two values differ, but have about the same elements in another order:
// a tensor that was flattened with the channels last.
func reordered(x, y *tensor.Tensor, d *profile.Difference) bool {
	if !x.Type.IsNumber() || x.Len() != y.Len() || x.Len() > mostSorted || d.SNR == nil || *d.SNR > sortedSNR-sortedGain {
		return false
	}
	u, v := make([]float64, x.Len()), make([]float64, y.Len())
	tensor.Read(u, x, 0)
	tensor.Read(v, y, 0)
	slices.Sort(u)
	slices.Sort(v)
	signal, noise := 0.0, 0.0
	for i := range u {
		signal += u[i] * u[i]
		noise += (u[i] - v[i]) * (u[i] - v[i])
	}
	return signal > 0 && 10*math.Log10(signal/noise) >= max(sortedSNR, *d.SNR+sortedGain)
}

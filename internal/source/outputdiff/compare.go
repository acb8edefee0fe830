// Package outputdiff compares the outputs of two engines for the same inputs and decides whether
// rounding explains the differences.
//
// Engines add in another order, fuse multiplication with addition, and use different but equally
// accurate elementary functions: the last digits of their results differ, and none is wrong.
// Floating-point outputs are judged by the signal-to-noise ratio over the whole output, because
// single elements near zero have large relative errors for good reasons. Quantised integer
// outputs are judged by the number of quantisation steps. All other elements are equal or not.
package outputdiff

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// Tensor is an output.
type Tensor struct {
	Name  string
	DType string // as in [profile.Tensor]
	Shape []int
	// Data holds the elements, little-endian; Strings holds the elements of string tensors.
	Data    []byte
	Strings []string
	// Scale is the quantisation step of the output, 0 if it is not quantised.
	Scale float64
}

// Options describes the engines.
type Options struct {
	// With is the engine that the outputs are compared with.
	With string
	// Quantised says that the model computes in integers internally: engines round there, with a
	// difference of a few steps.
	Quantised bool
	// Half says that one of the engines computes in 16-bit floating point, regardless of the
	// output types.
	Half bool
}

// Limits of [profile.Rounding]: minimum signal-to-noise ratio in decibels.
//
// A sum of k products in floating point with the unit roundoff u differs between two orders by
// about u·sqrt(k), and what layers add to that grows with the square root of their number
// (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 2.8). With k of some
// thousands and a hundred layers that is 600 u: in single precision (u = 2^-24) 4e-5, 88 dB. 80
// dB leave room for transforms such as Winograd's, which cost one more digit. Half precision has
// u = 2^-11; sums are mostly held in single precision, so that one rounding per layer counts, 10
// u: 46 dB, and 40 are required. bfloat16 has u = 2^-8: 28 dB, and 22 are required. In a model
// that computes in 8-bit integers, one step is a two-hundredth of the range. After some layers
// the difference is as large as the quantisation noise itself, for which 20 dB are usual.
const (
	singleLimit = 80
	doubleLimit = 200
	halfLimit   = 40
	bfloatLimit = 22

	// QuantisedLimit is that of floating point that was computed from integers.
	QuantisedLimit = 20
)

// Maximum difference in steps of a quantised output that rounding explains: one, because two
// results on either side of a boundary differ by one. For models that compute in integers it is
// two more, which two layers before can add.
const (
	maxSteps          = 1
	maxQuantisedSteps = 3
)

// negligible is the fraction of the root mean square below which an element counts as zero.
const negligible = 1e-3

// Minimum and maximum number of classes of class scores.
const minClasses, maxClasses = 2, 1 << 20

// Compare compares outputs by position with those of another engine, the reference. The result
// has the same order. Outputs that one of the two lacks are not comparable.
func Compare(have, want []Tensor, o Options) []profile.Difference {
	out := make([]profile.Difference, 0, max(len(have), len(want)))
	for i := range max(len(have), len(want)) {
		d := profile.Difference{Output: int64(i), With: o.With}
		switch {
		case i >= len(have):
			d.Name = want[i].Name
			d.State, d.Cause = profile.NotComparable, &profile.Cause{Code: profile.ByData, Text: "this engine does not have this output"}
		case i >= len(want):
			d.Name = have[i].Name
			d.State, d.Cause = profile.NotComparable, &profile.Cause{Code: profile.ByData, Text: "the other engine does not have this output"}
		default:
			compare(&d, &have[i], &want[i], o)
		}
		out = append(out, d)
	}
	return out
}

// compare compares one output.
func compare(d *profile.Difference, a, b *Tensor, o Options) {
	d.Name, d.DType = a.Name, a.DType
	if d.Name == "" {
		d.Name = b.Name
	}
	refuse := func(code profile.CauseCode, format string, args ...any) {
		d.State, d.Cause = profile.NotComparable, &profile.Cause{Code: code, Text: fmt.Sprintf(format, args...)}
	}
	for _, x := range []struct {
		t   *Tensor
		who string
	}{{a, "this engine"}, {b, cmp.Or(o.With, "the other engine")}} {
		if x.t.DType == "" {
			refuse(profile.ByData, "%s did not compute it", x.who)
			return
		}
	}
	if a.DType != b.DType {
		refuse(profile.ByType, "%s here, %s there", a.DType, b.DType)
		return
	}
	if !slices.Equal(a.Shape, b.Shape) {
		refuse(profile.ByShape, "%s here, %s there", tensor.FormatShape(a.Shape), tensor.FormatShape(b.Shape))
		return
	}
	t, ok := tensor.ParseType(a.DType)
	if !ok {
		refuse(profile.ByType, "type %q cannot be compared", a.DType)
		return
	}
	n, err := tensor.CheckShape(t, a.Shape)
	if err != nil {
		refuse(profile.ByShape, "%v", err)
		return
	}
	if t == tensor.String {
		if len(a.Strings) != n || len(b.Strings) != n {
			refuse(profile.ByData, "%d and %d strings for %d elements", len(a.Strings), len(b.Strings), n)
			return
		}
		texts(d, a.Strings, b.Strings)
		return
	}
	if !t.IsNumber() {
		refuse(profile.ByType, "%s is not a numeric type", a.DType)
		return
	}
	size := t.Bytes(n)
	if len(a.Data) < size || len(b.Data) < size {
		refuse(profile.ByData, "%d and %d bytes for %d elements", len(a.Data), len(b.Data), n)
		return
	}
	numbers(d, t, a, b, size, n, o)
}

func texts(d *profile.Difference, a, b []string) {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	d.Elements, d.State = new(int64(len(a))), profile.Equal
	if len(a) > 0 {
		d.Same = new(float64(same) / float64(len(a)))
	}
	if same < len(a) {
		d.State = profile.Differs
	}
}

// sums accumulates over the elements of two outputs.
type sums struct {
	same, finite, odd  int
	most, mostRelative float64
	aa, bb, ab, dd     float64
}

// numbers compares numbers, a block of elements at a time.
func numbers(d *profile.Difference, t tensor.Type, a, b *Tensor, size, n int, o Options) {
	d.Elements = new(int64(n))
	x, y := view(t, n, a.Data[:size]), view(t, n, b.Data[:size])
	equal := bytes.Equal(a.Data[:size], b.Data[:size])
	if n == 0 {
		d.State = profile.Equal
		return
	}
	s := &sums{}
	eachBlock(x, y, func(u, v []float64) { s.squares(u, v) })
	floor := negligible * math.Sqrt(s.bb/float64(max(s.finite, 1)))
	eachBlock(x, y, func(u, v []float64) { s.relative(u, v, floor) })
	d.Same = new(float64(s.same) / float64(n))
	if s.finite > 0 {
		d.MaxAbsolute = finite(s.most)
		d.MaxRelative = finite(s.mostRelative)
		if s.dd > 0 && s.bb > 0 {
			d.SNR = finite(10 * math.Log10(s.bb/s.dd))
		}
		if s.aa > 0 && s.bb > 0 {
			d.Cosine = finite(min(1, max(-1, s.ab/math.Sqrt(s.aa)/math.Sqrt(s.bb))))
		}
	}
	if s.odd > 0 {
		d.NotFinite = new(int64(s.odd))
	}
	// An engine may not tell how its outputs are quantised: the other one knows it of the model.
	quantised := a.Scale > 0 || b.Scale > 0
	if t.IsInteger() && quantised && s.finite > 0 {
		d.Steps = finite(s.most)
	}
	d.Top = topAgreement(x, y, a.Shape, t.IsFloat() || quantised)
	judge(d, t, s, quantised, equal, o)
}

// finite returns a pointer to v, nil if v is NaN or infinite.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// judge applies the limits.
func judge(d *profile.Difference, t tensor.Type, s *sums, quantised, equal bool, o Options) {
	d.State = profile.Differs
	switch {
	case equal:
		d.State = profile.Equal
	case s.odd > 0:
	case t.IsFloat():
		limit := float64(singleLimit)
		switch {
		case o.Quantised:
			limit = QuantisedLimit
		case t == tensor.BFloat16:
			limit = bfloatLimit
		case t == tensor.Float16 || o.Half:
			limit = halfLimit
		case t == tensor.Float64:
			limit = doubleLimit
		case t != tensor.Float32: // eight bits and fewer
			limit = QuantisedLimit
		}
		d.Limit = &limit
		// Only the signs of zeros or the bit patterns of NaNs differ.
		if s.dd == 0 || d.SNR != nil && *d.SNR >= limit {
			d.State = profile.Rounding
		}
	case quantised:
		limit := float64(maxSteps)
		if o.Quantised {
			limit = maxQuantisedSteps
		}
		d.Limit = &limit
		if s.most <= limit {
			d.State = profile.Rounding
		}
	}
}

func (s *sums) squares(u, v []float64) {
	for i, a := range u {
		b := v[i]
		if notFinite(a) || notFinite(b) {
			if a == b || a != a && b != b {
				s.same++
			} else {
				s.odd++
			}
			continue
		}
		s.finite++
		if a == b {
			s.same++
		}
		diff := a - b
		s.most = max(s.most, math.Abs(diff))
		s.aa += a * a
		s.bb += b * b
		s.ab += a * b
		s.dd += diff * diff
	}
}

func (s *sums) relative(u, v []float64, floor float64) {
	for i, a := range u {
		b := v[i]
		if notFinite(a) || notFinite(b) || a == b {
			continue
		}
		s.mostRelative = max(s.mostRelative, math.Abs(a-b)/max(math.Abs(a), math.Abs(b), floor))
	}
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// block is the number of elements that are read at a time.
const block = 4096

// eachBlock passes the elements of both tensors in blocks.
func eachBlock(x, y *tensor.Tensor, visit func(u, v []float64)) {
	n := x.Len()
	u, v := make([]float64, min(n, block)), make([]float64, min(n, block))
	for lo := 0; lo < n; lo += block {
		k := min(block, n-lo)
		tensor.Read(u[:k], x, lo)
		tensor.Read(v[:k], y, lo)
		visit(u[:k], v[:k])
	}
}

// view returns a tensor with a copy of the elements, aligned like all tensors.
func view(t tensor.Type, n int, data []byte) *tensor.Tensor {
	x := tensor.New(t, n)
	copy(x.Data, data)
	return x
}

// topAgreement returns the fraction of rows whose largest element is at the same position. It is
// nil for outputs that are not class scores: apart from the batch dimension exactly one has more
// than one element, and the elements are real or quantised.
func topAgreement(x, y *tensor.Tensor, shape []int, scores bool) *float64 {
	classes, wide := 1, 0
	for i, n := range shape {
		if n > 1 && (i > 0 || len(shape) == 1) {
			classes = n
			wide++
		}
	}
	n := x.Len()
	if !scores || wide != 1 || classes < minClasses || classes > maxClasses || n == 0 {
		return nil
	}
	u, v := make([]float64, classes), make([]float64, classes)
	same, rows := 0, n/classes
	for r := range rows {
		tensor.Read(u, x, r*classes)
		tensor.Read(v, y, r*classes)
		if argmax(u) == argmax(v) {
			same++
		}
	}
	return new(float64(same) / float64(rows))
}

// argmax returns the position of the first largest element, ignoring NaNs.
func argmax(v []float64) int {
	best := -1
	for i, x := range v {
		if x == x && (best < 0 || x > v[best]) {
			best = i
		}
	}
	return best
}

package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Hash is the SHA-256 of a tensor's elements in hexadecimal.
func Hash(t *tensor.Tensor) string {
	h := sha256.Sum256(t.Data)
	return hex.EncodeToString(h[:])
}

// Tolerance bounds the difference between an output and the recorded one. None at all
// means equal to the last bit: the bytes are compared, so that the sign of a zero and
// the bits of a NaN count.
type Tolerance struct {
	Relative float64 // to the largest magnitude of the recorded output, floats
	Steps    float64 // integers
}

// Exact asks for the recorded bytes.
var Exact = Tolerance{}

// rounding is the tolerance where all of a recorded output is zero.
const rounding = 1e-7

// Compare checks outputs against recorded ones. It returns a line for each that is
// wrong, and for outputs that one of the two lacks.
func Compare(dir string, want []Output, got []*tensor.Tensor, tol Tolerance) []string {
	return CompareFirst(dir, want, got, tol, 0)
}

// CompareFirst is Compare for the first entries of axis 1 only, when entries is not 0.
func CompareFirst(dir string, want []Output, got []*tensor.Tensor, tol Tolerance, entries int) []string {
	var wrong []string
	if len(got) > len(want) {
		wrong = append(wrong, fmt.Sprintf("%d outputs, %d are recorded", len(got), len(want)))
	}
	for i := range want {
		var t *tensor.Tensor
		if i < len(got) {
			t = got[i]
		}
		if w := want[i].CheckFirst(dir, t, tol, entries); w != "" {
			wrong = append(wrong, fmt.Sprintf("output %d %s", i, w))
		}
	}
	return wrong
}

// Check compares a tensor with a recorded output. It returns what is wrong, ""
// when nothing is.
func (o *Output) Check(dir string, got *tensor.Tensor, tol Tolerance) string {
	return o.CheckFirst(dir, got, tol, 0)
}

// CheckFirst is Check for the first entries of axis 1 only, when entries is not 0.
func (o *Output) CheckFirst(dir string, got *tensor.Tensor, tol Tolerance, entries int) string {
	if got == nil || !got.Known() {
		return "not computed"
	}
	typ, ok := tensor.ParseType(o.Dtype)
	if !ok {
		return fmt.Sprintf("recorded type %q", o.Dtype)
	}
	if got.Type != typ {
		return fmt.Sprintf("type %v, want %v", got.Type, typ)
	}
	if !sameShape(got.Shape, o.Shape) {
		return fmt.Sprintf("shape %s, want %s", tensor.FormatShape(got.Shape), tensor.FormatShape(o.Shape))
	}
	if Hash(got) == o.SHA256 {
		return ""
	}
	worst, at, scale, err := o.difference(dir, got, entries)
	switch {
	case tol == Exact && err != nil:
		return "hash differs"
	case tol == Exact && !(worst > 0):
		return "hash differs beyond the recorded sample, or in zeros and NaNs"
	case err != nil:
		return err.Error()
	case !typ.IsFloat() && worst == 0 && entries == 0:
		return "hash differs beyond the recorded sample"
	case tol != Exact && typ.IsFloat() && worst <= tol.Relative*scale+rounding:
		return ""
	case tol != Exact && !typ.IsFloat() && worst <= tol.Steps:
		return ""
	case typ.IsFloat():
		return fmt.Sprintf("differs by %.3g (%.2g of the largest value) near element %d", worst, worst/scale, at)
	}
	return fmt.Sprintf("differs by %g steps near element %d", worst, at)
}

// Off is the largest difference between the recorded elements and those of exact, the
// same output computed in more digits: how far off the recording itself is.
func (o *Output) Off(dir string, exact *tensor.Tensor) (float64, error) {
	worst, _, _, err := o.difference(dir, exact, 0)
	return worst, err
}

// difference is the largest one between the recorded elements and those of got, with
// its place, and the largest recorded magnitude. What is a number on one side only
// differs without limit.
func (o *Output) difference(dir string, got *tensor.Tensor, entries int) (worst float64, at int, scale float64, err error) {
	want, have, err := o.sample(dir, got)
	if err != nil {
		return 0, 0, 0, err
	}
	if o.Min != nil {
		scale = max(math.Abs(*o.Min), math.Abs(*o.Max))
	}
	at = -1
	for p := range want {
		w, h := numbers(want[p]), numbers(have[p])
		if len(w) == 0 && got.Len() > 0 {
			return 0, 0, 0, fmt.Errorf("no element is recorded")
		}
		if entries > 0 && len(o.Shape) > 1 {
			w = w[:min(len(w), len(w)/o.Shape[1]*entries)]
		}
		for i := range w {
			if !math.IsInf(w[i], 0) && !math.IsNaN(w[i]) {
				scale = max(scale, math.Abs(w[i]))
			}
			d := math.Abs(w[i] - h[i])
			switch {
			case w[i] == h[i] || math.IsNaN(w[i]) && math.IsNaN(h[i]):
				d = 0
			case math.IsNaN(d):
				d = math.Inf(1)
			}
			if d > worst {
				worst, at = d, i
			}
		}
	}
	return worst, at, scale, nil
}

// numbers widens elements.
func numbers(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Len())
	if t.Type.IsNumber() {
		tensor.Read(out, t, 0)
		return out
	}
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

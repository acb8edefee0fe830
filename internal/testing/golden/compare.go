package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/tensor"
)

// Hash is the SHA-256 of a tensor's elements in hexadecimal.
func Hash(t *tensor.Tensor) string {
	h := sha256.Sum256(t.Data)
	return hex.EncodeToString(h[:])
}

// Tolerance bounds the difference between an output and the recorded one.
type Tolerance struct {
	Relative float64 // to the largest magnitude of the recorded output, floats
	Steps    float64 // integers
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
	if !typ.IsFloat() && tol.Steps == 0 && len(o.First) == 0 && o.File == "" {
		return "hash differs"
	}
	want, have, err := o.sample(dir, got)
	if err != nil {
		return err.Error()
	}
	scale := 0.0
	if o.Min != nil {
		scale = max(math.Abs(*o.Min), math.Abs(*o.Max))
	}
	limit, worst, at := tol.Steps, 0.0, -1
	for p := range want {
		w, h := numbers(want[p]), numbers(have[p])
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
	if typ.IsFloat() {
		// A recorded output of zeros leaves room for rounding only.
		limit = tol.Relative*scale + 1e-7
	} else if worst == 0 {
		return "hash differs beyond the recorded sample"
	}
	if worst <= limit {
		return ""
	}
	if typ.IsFloat() {
		return fmt.Sprintf("differs by %.3g (%.2g of the largest value) near element %d", worst, worst/scale, at)
	}
	return fmt.Sprintf("differs by %g steps near element %d", worst, at)
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

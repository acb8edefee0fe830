package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
)

// Outputs are the outputs of one inference.
type Outputs []outputdiff.Tensor

// Hash is the hash of the outputs: types, shapes and elements. Names are left out.
func (o Outputs) Hash() string {
	h := sha256.New()
	for _, t := range o {
		fmt.Fprintf(h, "%s %v %d\n", t.DType, t.Shape, len(t.Data))
		h.Write(t.Data)
		for _, s := range t.Strings {
			fmt.Fprintf(h, "%d %s\n", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Difference is the figure [OutputError] of outputs and those of the base, with a description of
// the output that differs most. ok is false if they do not compare: other types or shapes, or
// elements that are infinite or NaN on one side only.
func (o Outputs) Difference(base Outputs) (worst float64, text string, ok bool) {
	for _, d := range outputdiff.Compare(o, base, outputdiff.Options{With: "base"}) {
		v := 0.0
		switch {
		case d.State == profile.NotComparable:
			return 0, fmt.Sprintf("output %q does not compare: %s", d.Name, d.Cause.Text), false
		case d.NotFinite != nil && *d.NotFinite > 0:
			return 0, fmt.Sprintf("output %q: %d elements are infinite or NaN in one version only", d.Name, *d.NotFinite), false
		case d.State == profile.Equal:
		case d.Steps != nil:
			v = *d.Steps
		case d.SNR != nil:
			v = math.Pow(10, -*d.SNR/20)
		case d.MaxRelative != nil: // the base is all zeros
			v = *d.MaxRelative
		case d.Same != nil:
			v = 1 - *d.Same
		default:
			v = math.Inf(1)
		}
		if v > worst {
			worst, text = v, fmt.Sprintf("output %q: %s", d.Name, d.Magnitude())
		}
	}
	return worst, text, !math.IsInf(worst, 0)
}

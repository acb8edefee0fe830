package profile

import (
	"fmt"
	"math"
)

// DifferenceState says how an output of one engine compares with another's.
type DifferenceState string

// States of differences. The rule is in docs/reference/profile.md.
const (
	Equal DifferenceState = "equal" // bit by bit
	// by no more than rounding in another order explains
	Rounding DifferenceState = "rounding"
	Differs  DifferenceState = "differs" // by more
	// other shapes or types, or one of the two is missing
	NotComparable DifferenceState = "not_comparable"
)

// Difference compares an output of the model with the one that another engine made of the same
// inputs. Figures are absent where they say nothing: of texts, or of outputs without elements.
type Difference struct {
	// Output is the place among the model's outputs, from 0, Name its name.
	Output int64  `json:"output"`
	Name   string `json:"name,omitzero"`
	// With is the engine that it is compared with.
	With string `json:"with"`
	// State says how they compare.
	State DifferenceState `json:"state"`
	// Cause says why they cannot be compared.
	Cause *Cause `json:"cause,omitzero"`
	// DType is the element type.
	DType string `json:"dtype,omitzero"`
	// Elements is their number.
	Elements *int64 `json:"elements,omitzero"`
	// Same is the part of the elements that are equal, 0 to 1.
	Same *float64 `json:"same,omitzero"`
	// MaxAbsolute is the largest difference, in units of the elements, over those that are finite
	// in both.
	MaxAbsolute *float64 `json:"max_absolute,omitzero"`
	// MaxRelative is the largest difference of an element as a part of the larger of the two.
	// Elements below a thousandth of the root of the mean square of the other engine's count as
	// that large: what is next to nothing has no relative error to speak of.
	MaxRelative *float64 `json:"max_relative,omitzero"`
	// SNR is the mean square of the other engine's elements over that of the differences, in
	// decibels. Absent where nothing differs.
	SNR *float64 `json:"snr_db,omitzero"`
	// Cosine is that of the angle between the two as vectors.
	Cosine *float64 `json:"cosine,omitzero"`
	// Top is, of an output that may be scores of classes, the part of the rows whose largest
	// element stands at the same place, 0 to 1.
	Top *float64 `json:"top,omitzero"`
	// Steps is the largest difference in steps of the elements' quantisation.
	Steps *float64 `json:"steps,omitzero"`
	// NotFinite is the number of elements that are infinite or no number in one engine and
	// something else in the other.
	NotFinite *int64 `json:"not_finite,omitzero"`
	// Limit is what State was judged by: the least SNR in decibels of [Rounding], or of
	// integers the most steps.
	Limit *float64 `json:"limit,omitzero"`
}

// Magnitude says how large the difference is and how much of the output differs, "" where nothing
// is known: "up to 2 quantisation steps in 5.6 % of the elements", "SNR 92 dB, at most 1.2e-6".
func (d *Difference) Magnitude() string {
	part := ""
	switch {
	case d.Same == nil || *d.Same >= 1:
	case *d.Same < 0.005: // two digits of it would be 1e+02
		part = " in nearly all elements"
	default:
		part = fmt.Sprintf(" in %.2g %% of the elements", 100*(1-*d.Same))
	}
	snr := 0.0
	if d.SNR != nil {
		snr = math.Round(*d.SNR) + 0 // no -0
	}
	switch {
	case d.State == Equal || d.State == NotComparable:
		return ""
	case d.Steps != nil && *d.Steps == 1:
		return "1 quantisation step" + part
	case d.Steps != nil:
		return fmt.Sprintf("up to %.0f quantisation steps", *d.Steps) + part
	case d.SNR != nil && d.MaxAbsolute != nil:
		return fmt.Sprintf("SNR %.0f dB, at most %.2g%s", snr, *d.MaxAbsolute, part)
	case d.SNR != nil:
		return fmt.Sprintf("SNR %.0f dB", snr)
	case d.MaxAbsolute != nil && part != "":
		return fmt.Sprintf("at most %.2g%s", *d.MaxAbsolute, part)
	case d.Same != nil:
		return fmt.Sprintf("%.3g %% of the elements are equal", 100**d.Same)
	}
	return ""
}

func (c *checker) differences(ds []Difference) {
	for i := range ds {
		d := &ds[i]
		at := fmt.Sprintf("differences[%d]", i)
		c.need(at+".with", d.With)
		c.word(at+".state", string(d.State), string(Equal), string(Rounding), string(Differs), string(NotComparable))
		c.counts(at, named{"output", &d.Output}, named{"elements", d.Elements}, named{"not_finite", d.NotFinite})
		c.fraction(at+".same", d.Same)
		c.fraction(at+".top", d.Top)
		c.reals(at, realNamed{"max_absolute", d.MaxAbsolute}, realNamed{"max_relative", d.MaxRelative}, realNamed{"steps", d.Steps}, realNamed{"limit", d.Limit})
		if d.SNR != nil && (math.IsNaN(*d.SNR) || math.IsInf(*d.SNR, 0)) {
			c.fail(at+".snr_db", "is %v", *d.SNR)
		}
		if d.Cosine != nil && !(*d.Cosine >= -1-1e-9 && *d.Cosine <= 1+1e-9) {
			c.fail(at+".cosine", "is %v, want -1 to 1", *d.Cosine)
		}
		if d.Cause != nil {
			c.cause(at+".cause.code", d.Cause.Code)
		}
		if (d.State == NotComparable) != (d.Cause != nil) {
			c.fail(at+".cause", "and state %q do not agree", d.State)
		}
	}
}

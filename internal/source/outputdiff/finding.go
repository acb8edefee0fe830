package outputdiff

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Finding describes the differences, nil if rounding explains all of them.
func Finding(ds []profile.Difference) *profile.Finding {
	var parts []string
	severity, missing := profile.Warning, true
	for i := range ds {
		d := &ds[i]
		name := d.Name
		if name == "" {
			name = fmt.Sprintf("output %d", d.Output)
		}
		switch d.State {
		case profile.Differs:
			parts, missing = append(parts, name+describeDifference(d)), false
			if d.NotFinite != nil {
				severity = profile.Problem
			}
		case profile.NotComparable:
			parts = append(parts, fmt.Sprintf("%s cannot be compared (%s)", name, d.Cause.Text))
			missing = missing && d.Cause.Code == profile.ByData
		}
	}
	if len(parts) == 0 {
		return nil
	}
	const most = 4
	if n := len(parts) - most; n > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", n))
	}
	if missing {
		return &profile.Finding{ID: "outputs.unknown", Severity: profile.Info, Text: fmt.Sprintf("Outputs were not compared with those of %s: %s.", ds[0].With, strings.Join(parts, ", "))}
	}
	return &profile.Finding{
		ID: "outputs.differ", Severity: severity,
		Text: fmt.Sprintf("Outputs differ from %s for the same inputs by more than rounding: %s. The times are not comparable either.", ds[0].With, strings.Join(parts, ", ")),
	}
}

// describeDifference formats in brackets by how much an output differs, as far as known.
func describeDifference(d *profile.Difference) string {
	var s []string
	if d.NotFinite != nil {
		s = append(s, fmt.Sprintf("%d elements are infinite or NaN in one of the two", *d.NotFinite))
	}
	if m := d.Magnitude(); m != "" {
		s = append(s, m)
	}
	if d.Top != nil && *d.Top < 1 {
		s = append(s, "top-1 class differs")
	}
	if len(s) == 0 {
		return ""
	}
	return " (" + strings.Join(s, ", ") + ")"
}

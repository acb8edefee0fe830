package outputdiff

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Finding says what a reader should know of the differences, nil where rounding explains all of them.
func Finding(ds []profile.Difference) *profile.Finding {
	var parts []string
	severity := profile.Warning
	for i := range ds {
		d := &ds[i]
		name := d.Name
		if name == "" {
			name = fmt.Sprintf("output %d", d.Output)
		}
		switch d.State {
		case profile.Differs:
			parts = append(parts, name+by(d))
			if d.NotFinite != nil {
				severity = profile.Problem
			}
		case profile.NotComparable:
			parts = append(parts, fmt.Sprintf("%s cannot be compared (%s)", name, d.Cause.Text))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	const most = 4
	if n := len(parts) - most; n > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", n))
	}
	return &profile.Finding{
		ID: "outputs.differ", Severity: severity,
		Text: fmt.Sprintf("Outputs differ from those of %s for the same inputs by more than rounding explains: %s. Times of engines that do not compute the same do not compare either.", ds[0].With, strings.Join(parts, ", ")),
	}
}

// by says in brackets by how much an output differs, as far as that is known.
func by(d *profile.Difference) string {
	var s []string
	if d.NotFinite != nil {
		s = append(s, fmt.Sprintf("%d elements are infinite or no number in one of the two", *d.NotFinite))
	}
	switch {
	case d.Steps != nil:
		s = append(s, fmt.Sprintf("up to %.0f steps of its quantisation", *d.Steps))
	case d.SNR != nil:
		s = append(s, fmt.Sprintf("%.0f dB", *d.SNR))
	case d.Same != nil:
		s = append(s, fmt.Sprintf("%.3g %% of the elements are equal", 100**d.Same))
	}
	if d.Top != nil && *d.Top < 1 {
		s = append(s, "another class comes first")
	}
	if len(s) == 0 {
		return ""
	}
	return " (" + strings.Join(s, ", ") + ")"
}

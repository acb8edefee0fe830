package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// strictness is the value of --strict: what a measurement must be fit for. The zero value asks for
// nothing.
type strictness struct {
	fit profile.Fit
	// tolerance is the largest one as a fraction, 0 for any.
	tolerance float64
}

// strictOf reads the value of --strict.
func strictOf(s string) (strictness, error) {
	switch f := profile.Fit(s); f {
	case "", profile.FitComparing, profile.FitShares:
		return strictness{fit: f}, nil
	}
	number, ok := strings.CutSuffix(s, "%")
	if v, err := strconv.ParseFloat(strings.TrimSpace(number), 64); ok && err == nil && v > 0 && v <= 100 {
		return strictness{profile.FitComparing, v / 100}, nil
	}
	return strictness{}, useError("--strict %q: use comparing, shares or a tolerance such as 5%%", s)
}

// met reports whether a measurement is fit for what is asked for.
func (s strictness) met(t *profile.Trust) bool {
	switch s.fit {
	case profile.FitComparing:
		return t.Fit == profile.FitComparing && (s.tolerance == 0 || t.Tolerance != nil && *t.Tolerance <= s.tolerance)
	case profile.FitShares:
		return t.Fit != profile.FitNothing && !t.SharesDoubted()
	}
	return true
}

// gate is an error with the exit status of a failed check where a measurement is not fit for what
// --strict asks for. It is nil without the flag and for a profile without a latency, which has an
// error of its own.
func (f *runFlags) gate(p *profile.Profile) error {
	want, err := strictOf(f.strict)
	if err != nil {
		return err
	}
	if p == nil || p.Trust == nil || want.met(p.Trust) {
		return nil
	}
	text := fmt.Sprintf("%s: --strict asks for a measurement that is fit for %s", p.Model.Name, want.fit)
	if want.tolerance > 0 {
		text += fmt.Sprintf(" at ±%.3g %%", 100*want.tolerance)
	}
	text += ", this one is: " + words.Fit(p.Trust)
	if why := words.Doubts(p.Trust); why != "" {
		text += "; reasons: " + why
	}
	if _, what := words.Reason(p.Trust); what != "" {
		text += "; " + what
	}
	return withStatus(statusGate, fmt.Errorf("%s", text))
}

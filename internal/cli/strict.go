package cli

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// gate is an error with the exit status of a failed check where the measurement quality is below
// that of --strict. It is nil without the flag and for a profile without a latency, which has an
// error of its own.
func (f *runFlags) gate(p *profile.Profile) error {
	if f.strict == "" || p == nil || p.Trust == nil || p.Trust.Verdict.AtLeast(profile.Verdict(f.strict)) {
		return nil
	}
	return withStatus(statusGate, fmt.Errorf("%s: measurement quality is %s: %s", p.Model.Name, words.Verdict(p.Trust.Verdict), words.Doubts(p.Trust)))
}

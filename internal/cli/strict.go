package cli

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// gate is the error of a run whose latency has a worse verdict than the flag allows,
// with the exit status of a gate that failed; nil where there is no flag, and for a
// profile without a latency, which has its own error.
func (f *runFlags) gate(p *profile.Profile) error {
	if f.strict == "" || p == nil || p.Trust == nil || p.Trust.Verdict.AtLeast(profile.Verdict(f.strict)) {
		return nil
	}
	return withStatus(statusGate, fmt.Errorf("%s: the verdict on its latency is %q: %s", p.Model.Name, words.Verdict(p.Trust.Verdict), words.Doubts(p.Trust)))
}

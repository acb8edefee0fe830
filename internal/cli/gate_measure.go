package cli

import (
	"context"
	"strings"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/measure/machine"
)

// thisMachine names this computer in the index.
func thisMachine() string {
	h := machine.NewWatch().End()
	return strings.TrimSpace(h.CPUModel + " " + h.Fingerprint)
}

// measureAll times both versions of all jobs that a rule asks for.
func (g *gateRun) measureAll(_ context.Context, _ []prepared, _ *gate.Result) error { return nil }

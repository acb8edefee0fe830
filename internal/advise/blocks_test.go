package advise

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestDisturbedBlocks marks blocks as disturbed while other programs have the processor, and takes
// the time on the processor: the time that passed holds that of the others.
func TestDisturbedBlocks(t *testing.T) {
	t.Parallel()
	usage := machine.ThreadUsage()
	if usage == nil {
		t.Skip("this system does not tell the time of a thread")
	}
	m, err := opmeter.Open(filepath.Join(material.Root(), "examples", "autoencoder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	release, err := loop.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	const others = 20 // times the time of the thread
	begin := time.Now()
	now := func() int64 { return others * int64(time.Since(begin)) }
	for _, fresh := range []bool{false, true} {
		s := &sessions{
			runs:  []sessionRun{{m: bridge.Of(m).Graph, o: engine.Options{Registry: operators.Registry(), Threads: 1}, fresh: fresh}},
			clock: loop.SimulatedClock(now, 1e-9, 1e-9),
		}
		if err := s.Begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		from := now()
		b, err := s.Block(t.Context(), 0, 0)
		passed := float64(now()-from) / 1e9
		s.End(0)
		if err != nil || !b.Disturbed || b.Inferences < 1 || b.Seconds*float64(b.Inferences) > passed/2 {
			t.Errorf("fresh %v: %+v in %v s, %v", fresh, b, passed, err)
		}
	}
}

package testengine_test

import (
	"context"
	"errors"
	"testing"

	opm "github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

// TestPreparesInTurn: an engine is not prepared while another measurement has its turn.
func TestPreparesInTurn(t *testing.T) {
	t.Parallel()
	lib, err := testengine.Write(t.TempDir(), testengine.Behaviour{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := engine.Find("onnxruntime=" + lib)
	if err != nil {
		t.Fatal(err)
	}
	m, err := opm.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	var turns opm.Interleaver
	other := turns.Join()
	if err := other.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // the turn of the other does not end before
	o := opm.Options{Engine: found[0], Interleaver: &turns, Progress: func(phase string, _ float64) { t.Errorf("%q beside another measurement", phase) }}
	if _, err := opm.Profile(ctx, m, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	other.Leave()
	o.Progress, o.Runs = nil, 3
	if p, err := opm.Profile(t.Context(), m, o); err != nil || p.Totals.Latency == nil {
		t.Errorf("a turn of its own: %v", err)
	}
}

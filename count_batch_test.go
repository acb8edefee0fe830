package opmeter_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
)

// TestCountNeedsNoMemory counts and estimates a batch that no computer of tests could run. To run
// it is an error before its inputs, of 3 GiB, are generated.
func TestCountNeedsNoMemory(t *testing.T) {
	m, err := opmeter.Open("examples/resnet8.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	in := opmeter.Inputs{Batch: 1 << 20}
	p, err := opmeter.Count(m, in)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *p.Totals.MACs, int64(12501632)<<20; got != want {
		t.Errorf("%d MACs, expected %d", got, want)
	}
	if p.Memory == nil || p.Memory.PeakBytes == nil || *p.Memory.PeakBytes != 48<<30 {
		t.Errorf("memory %+v, expected a peak of 48 GiB", p.Memory)
	}
	e, err := opmeter.Estimate(m, "stm32h743", opmeter.EstimateOptions{Inputs: in})
	if err != nil {
		t.Fatal(err)
	}
	if e.Totals.Latency == nil {
		t.Error("an estimate without a latency")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = opmeter.NewSession(m, opmeter.RunOptions{Inputs: in, MaxMemory: 4 << 30})
	if _, large := errors.AsType[*opmeter.ModelError](err); !large || !strings.Contains(err.Error(), "the model needs 51") {
		t.Errorf("a session: %v", err)
	}
	_, err = opmeter.Profile(t.Context(), m, opmeter.Options{Inputs: in, MaxMemory: 4 << 30})
	if err == nil || !strings.Contains(err.Error(), "the model needs 51") {
		t.Errorf("a profile: %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
		t.Errorf("%d bytes were allocated: inputs were generated before the check", n)
	}
}

// TestCountBatch counts a batch whose inputs take most of a gigabyte: they are not generated.
func TestCountBatch(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open("examples/resnet8.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := opmeter.Count(m, opmeter.Inputs{Batch: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *p.Totals.MACs, int64(12501632)<<18; got != want {
		t.Errorf("%d MACs, expected %d", got, want)
	}
	for name, in := range p.Settings.Inputs {
		if in.SHA256 != "" {
			t.Errorf("input %s has the hash of elements, but none were generated", name)
		}
	}
}

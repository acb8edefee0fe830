package opmeter_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// TestCheck measures layers again with opmeter's own engine, which takes what is cut out: figures
// come of it, whatever the machine lets be said of them.
func TestCheck(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("inferences of a real model by the hundred")
	}
	m, err := opmeter.Open(filepath.Join(material.Path(t, "models", "real"), "mlperf_tiny_resnet8_fp32.tflite"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := opmeter.Options{Runs: 5, Warmup: -1, Time: 50 * time.Millisecond}
	p, err := opmeter.Profile(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := opmeter.Check(t.Context(), m, p, o); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	checked := 0
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Check == nil {
			continue
		}
		checked++
		if !slices.Contains([]profile.CheckOutcome{profile.CheckAgrees, profile.CheckDiffers, profile.CheckOpen}, l.Check.Outcome) {
			t.Errorf("layer %d: %+v", i, l.Check)
		}
		if v, ok := l.Figure("checked_s").Best(); ok && !(v > 0) {
			t.Errorf("layer %d takes %v s", i, v)
		}
	}
	if checked == 0 {
		t.Error("nothing was checked")
	}
}

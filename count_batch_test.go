package opmeter_test

import (
	"testing"

	"github.com/opmeter/opmeter"
)

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

package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTake: the profile of a builder without a copy is the one with it, and the builder has none
// and takes no more events.
func TestTake(t *testing.T) {
	t.Parallel()
	b := begun(t)
	if err := b.Measure(-1, "latency_s", 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	want, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	got := b.Take()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if b.Profile() != nil || b.Take() != nil {
		t.Error("the builder still has a profile")
	}
	if err := b.Measure(-1, "latency_s", 1); err == nil {
		t.Error("the builder took an event")
	}
}

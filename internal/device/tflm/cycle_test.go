package tflm

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record/tflm"
)

// TestCycle finds what repeats, and not the blocks that repeat within it.
func TestCycle(t *testing.T) {
	t.Parallel()
	net := strings.Fields("C D D C D C D C P R S")
	var all []string
	for range 20 {
		all = append(all, net...)
	}
	if got := cycle(all, 8); !slices.Equal(got, net) {
		t.Errorf("%v", got)
	}
	if got := cycle(all[:5*len(net)], 8); got != nil {
		t.Errorf("five times are too few: %v", got)
	}
	if got := cycle(strings.Fields(strings.Repeat("C ", 100)), 8); got != nil {
		t.Errorf("one operator tells nothing: %v", got)
	}
	if cycle(nil, 8) != nil {
		t.Error("nothing repeats in nothing")
	}
	for _, tt := range []struct {
		begun  bool
		net    string
		want   string
		turned bool
	}{
		{true, "A B C", "A B C", false},
		{false, "B C SOFTMAX A", "A B C SOFTMAX", false},
		{false, "SOFTMAX B SOFTMAX C", "SOFTMAX B SOFTMAX C", true}, // which of the two ends it?
		{false, "B C A", "B C A", true},
	} {
		a := newAssembler(nil, tt.begun, func(inference) {}, func([]string) {})
		for _, op := range strings.Fields(strings.Repeat("A B C ", 3)) {
			a.held = append(a.held, tflm.Event{Tag: op, Row: -1})
		}
		if got := strings.Join(a.begin(strings.Fields(tt.net)), " "); got != tt.want || a.turned != tt.turned {
			t.Errorf("%+v: %q, %v", tt, got, a.turned)
		}
	}
}

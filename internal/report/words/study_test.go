package words

import (
	"testing"

	"github.com/opmeter/opmeter/study"
)

// TestStudyCodes looks for words for all codes.
func TestStudyCodes(t *testing.T) {
	t.Parallel()
	for _, c := range study.Causes() {
		if changeCauses[c] == "" {
			t.Errorf("no words for the cause %q", c)
		}
	}
	for _, m := range study.Methods() {
		if Method(m) == string(m) {
			t.Errorf("no words for the method %q", m)
		}
	}
}

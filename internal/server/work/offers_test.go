package work

import (
	"slices"
	"testing"
)

// A port of the computer itself is a board only if something was heard there.
func TestBoards(t *testing.T) {
	t.Parallel()
	got := boards(`{"ports": [{"name": "ttyS0", "usb": false, "state": "silent"}, {"name": "ttyS1", "usb": false}, {"name": "ttyACM0", "usb": true, "state": "silent"}]}`)
	if want := []string{"ttyS1", "ttyACM0"}; !slices.Equal(got, want) {
		t.Errorf("boards %v, expected %v", got, want)
	}
	if got := boards("no JSON"); got == nil || len(got) > 0 {
		t.Errorf("boards %v", got)
	}
}

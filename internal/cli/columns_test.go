package cli

import (
	"bytes"
	"testing"
)

// TestColumns sets the width of an output that is not a terminal.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int
	}{{"", 0}, {"60", 60}, {"0", 0}, {"-1", 0}, {"wide", 0}} {
		t.Setenv("COLUMNS", c.value)
		if got := newApp(nil, &bytes.Buffer{}, &bytes.Buffer{}).width; got != c.want {
			t.Errorf("COLUMNS=%q: width %d, want %d", c.value, got, c.want)
		}
	}
}

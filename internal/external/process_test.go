package external

import (
	"strings"
	"testing"
)

// What a library prints of an error that it reports in general terms is the first line that says
// that it is one, or else the last; nothing of a fault of Go is.
func TestPrinted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 400)
	for _, c := range []struct{ lines, want string }{
		{"", ""},
		{"\n \n", ""},
		{"INFO: made a delegate\nERROR: no operator of this kind\nERROR: it follows\nbye\n", "; it printed: ERROR: no operator of this kind"},
		{"first\n  second  \n\n", "; it printed: second"},
		{"words\nfatal error: something\ngoroutine 1 [running]:\n", "; it printed: words"},
		{long, "; it printed: " + long[:600] + "…"},
	} {
		if got := printed(strings.Split(c.lines, "\n")); got != c.want {
			t.Errorf("%q: %q, want %q", c.lines, got, c.want)
		}
	}
}

// What a user set of the runtime stays in effect in a child.
func TestUnsignalled(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		"":                         "GODEBUG=asyncpreemptoff=1",
		"madvdontneed=1,gctrace=1": "GODEBUG=madvdontneed=1,gctrace=1,asyncpreemptoff=1",
	} {
		if got := unsignalled(settings); got != want {
			t.Errorf("%q: %q, want %q", settings, got, want)
		}
	}
}

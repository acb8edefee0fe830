package subprocess

import (
	"strings"
	"testing"
)

// Whoever ends a process for lack of memory says so in words of its own.
func TestStarved(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{ // of a process that was limited
		"fatal error: runtime: out of memory":                                  true,
		"fatal error: out of memory allocating heap arena metadata":            true,
		"fatal error: runtime: cannot allocate memory":                         true,
		"runtime: failed to create new OS thread (have 5 already; errno=11)":   true,
		"runtime/cgo: pthread_create failed: Resource temporarily unavailable": true,
		"terminate called after throwing an instance of 'std::bad_alloc'":      true,
		"lib.so: failed to map segment from shared object":                     true,
		"lib.so: cannot open shared object file: Cannot allocate memory":       true,
		"fatal error: unexpected signal during runtime execution":              false,
		"an allocation was made":                                               false,
		"terminate called after throwing an instance of 'std::runtime_error'":  false,
	} {
		if got := Starved([]string{"something", text}, true); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if got := Starved([]string{"something", text}, false); got != (want && strings.HasPrefix(text, "fatal error: ")) {
			t.Errorf("%q without a limit: %v", text, got)
		}
	}
}

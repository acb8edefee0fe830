package cli

import (
	"io"
	"os"
	"slices"
	"testing"
)

// Flags lists what the help shows, with the placeholder of the value, whether a flag
// repeats, and whether it may stand without its value.
func TestFlags(t *testing.T) {
	t.Parallel()
	list, err := Flags("profile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Flag{{"threads", "N", false, false}, {"shape", "NAME=DIMS", true, false}, {"pin", "", false, true}, {"time", "TIME", false, false}, {"cold", "WHAT", false, true}} {
		if !slices.Contains(list, want) {
			t.Errorf("no %+v in %+v", want, list)
		}
	}
	for _, f := range list {
		if f.Name == "help" || f.Name == "accelerator" {
			t.Errorf("--%s is listed", f.Name)
		}
	}
	if list, err := Flags("compress perf"); err != nil || len(list) == 0 {
		t.Errorf("compress perf: %v, %v", list, err)
	}
	for _, bad := range []string{"profil", "profile x"} {
		if _, err := Flags(bad); err == nil {
			t.Errorf("%q is a command", bad)
		}
	}
}

// The variable shows progress on a pipe, too.
func TestProgressVariable(t *testing.T) {
	for value, want := range map[string]bool{"": false, "1": true} {
		t.Setenv(progressVariable, value)
		if a := newApp(nil, io.Discard, io.Discard); a.tty {
			t.Errorf("%q: progress without a file", value)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if a := newApp(nil, io.Discard, w); a.tty != want {
			t.Errorf("%q: progress %v, want %v", value, a.tty, want)
		}
		r.Close()
		w.Close()
	}
}

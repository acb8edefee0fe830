// Package update holds files of expected results for tests, and the flag -update that
// rewrites them from what the tests got. It is for tests only.
package update

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var wanted = flag.Bool("update", false, "rewrite files of expected results from what the tests get")

// Wanted reports whether the files are to be rewritten.
func Wanted() bool { return *wanted }

// File compares got with a file of text, line by line, or rewrites it.
func File(t testing.TB, path string, got []byte) {
	t.Helper()
	if Wanted() {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, d)
	}
}

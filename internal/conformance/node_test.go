package conformance_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/conformance"
	"github.com/opmeter/opmeter/internal/material"
	"github.com/opmeter/opmeter/internal/operators"
)

var update = flag.Bool("update", false, "rewrite testdata/known_failures.txt")

// TestNodeTests runs all backend tests. testdata/known_failures.txt lists those
// that fail: a test outside the list must pass and one in the list must fail, so
// that the list stays true.
func TestNodeTests(t *testing.T) {
	t.Parallel()
	tests, err := conformance.Load(material.Path(t, "models", "onnx_node_tests"))
	if err != nil {
		t.Fatal(err)
	}
	rows := conformance.RunAll(tests, operators.Registry(), runtime.GOMAXPROCS(0), 30*time.Second)
	var report bytes.Buffer
	if err := conformance.Report(&report, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(report.String()), "\n")
	t.Log(lines[len(lines)-1])

	list := filepath.Join("testdata", "known_failures.txt")
	if *update {
		var out strings.Builder
		for _, r := range rows {
			if r.Status != conformance.Pass {
				out.WriteString(r.Test.ID() + "\n")
			}
		}
		if err := os.WriteFile(list, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if id, _, _ := strings.Cut(strings.TrimSpace(line), " "); id != "" {
			known[id] = true
		}
	}
	for _, r := range rows {
		id := r.Test.ID()
		switch {
		case r.Status != conformance.Pass && !known[id]:
			t.Errorf("%s: %v: %s", id, r.Status, r.Reason)
		case r.Status == conformance.Pass && known[id]:
			t.Errorf("%s passes: remove it from %s", id, list)
		}
		delete(known, id)
	}
	for id := range known {
		t.Errorf("%s is in %s, but there is no such test", id, list)
	}
}

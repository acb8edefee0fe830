package conformance_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/conformance"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/update"
)

// TestNodeTests runs all backend tests. testdata/known_failures.txt lists those
// that fail: a test outside the list must pass and one in the list must fail, so
// that the list stays true.
func TestNodeTests(t *testing.T) {
	t.Parallel()
	tests, err := conformance.Load(material.Path(t, "models", "onnx_node_tests"))
	if err != nil {
		t.Fatal(err)
	}
	plain := conformance.Options{Registry: operators.Registry(), Workers: runtime.GOMAXPROCS(0)}
	if update.Wanted() {
		updateKnown(t, conformance.RunAll(tests, plain))
	}
	alone := plain
	alone.Alone = true
	again := plain
	again.Constants, again.Runs, again.Threads = true, 2, 2
	for _, tt := range []struct {
		name string
		opts conformance.Options
	}{
		{"as they are", plain},
		// As in real models: weights are constants, memory is used again, work is shared.
		{"constants, second run, two threads", again},
		// Outputs that nothing reads are left out where an operator need not make them.
		{"one output at a time", alone},
	} {
		t.Run(tt.name, func(t *testing.T) { judgeRows(t, conformance.RunAll(tests, tt.opts)) })
	}
}

const knownFailures = "testdata/known_failures.txt"

func updateKnown(t *testing.T, rows []conformance.Row) {
	t.Helper()
	var out strings.Builder
	for _, r := range rows {
		if r.Status != conformance.Pass {
			out.WriteString(r.Test.ID() + " " + strings.Join(strings.Fields(r.Reason), " ") + "\n")
		}
	}
	if err := os.WriteFile(filepath.FromSlash(knownFailures), []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func judgeRows(t *testing.T, rows []conformance.Row) {
	t.Helper()
	var report bytes.Buffer
	if err := conformance.Report(&report, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(report.String()), "\n")
	t.Log(lines[len(lines)-1])
	data, err := os.ReadFile(filepath.FromSlash(knownFailures))
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
			t.Errorf("%s passes: remove it from %s", id, knownFailures)
		}
		delete(known, id)
	}
	for id := range known {
		t.Errorf("%s is in %s, but there is no such test", id, knownFailures)
	}
}

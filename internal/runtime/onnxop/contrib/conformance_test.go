package contrib

import (
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/conformance"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestONNXNodeTests runs every backend test of the ONNX project whose operators
// are all of this package.
func TestONNXNodeTests(t *testing.T) {
	t.Parallel()
	tests, err := conformance.Load(material.Path(t, "models", "onnx_node_tests"))
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]bool{}
	for _, d := range allDefs() {
		if d.Domain == "" {
			mine[d.Name] = true
		}
	}
	var run []*conformance.Test
	for _, test := range tests {
		all := true
		for _, name := range test.Ops {
			all = all && mine[name]
		}
		if all {
			run = append(run, test)
		}
	}
	if len(run) < 400 {
		t.Errorf("only %d tests are of this package", len(run))
	}
	for _, o := range []conformance.Options{
		{Runs: 2},                              // the second run finds its outputs dirty
		{Constants: true, Threads: 2, Runs: 2}, // packed weights
	} {
		o.Registry, o.Workers, o.Limit = op.NewRegistry(allDefs()), 2, 20*time.Second
		for _, row := range conformance.RunAll(run, o) {
			if row.Status != conformance.Pass {
				t.Errorf("constants %t: %s: %v: %s", o.Constants, row.Test.ID(), row.Status, row.Reason)
			}
		}
	}
}

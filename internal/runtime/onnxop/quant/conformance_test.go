package quant

import (
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/conformance"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestONNXNodeTests runs every backend test of the ONNX project whose operators are all of this
// package.
func TestONNXNodeTests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long")
	}
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
	t.Logf("%d tests", len(run))
	if len(run) < 690 {
		t.Errorf("only %d tests are of this package", len(run))
	}
	reg := op.NewRegistry(allDefs())
	for _, o := range []conformance.Options{
		{Registry: reg, Workers: 2, Limit: 20 * time.Second, Threads: 1},
		{Registry: reg, Workers: 1, Limit: 20 * time.Second, Threads: 2, Constants: true, Runs: 2},
	} {
		for _, row := range conformance.RunAll(run, o) {
			if row.Status != conformance.Pass {
				t.Errorf("%s (constants %v): %v: %s", row.Test.ID(), o.Constants, row.Status, row.Reason)
			}
		}
	}
}

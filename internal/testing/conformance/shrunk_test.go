package conformance_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// TestShrunkWeights cuts a model file short while a session computes with its
// weights: an error that names the file, not the end of the process.
func TestShrunkWeights(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut short on Windows")
	}
	t.Parallel()
	const n = 1 << 20
	x := tensor.New(tensor.Float32, n)
	value := func(id int, name string, c *tensor.Tensor) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: []int{n}, HasShape: true, Const: c}
	}
	data, err := onnx.Encode(&graph.Model{Opsets: map[string]int{"": 14}, Graphs: []*graph.Graph{{
		Values: []*graph.Value{value(0, "x", nil), value(1, "w", x), value(2, "y", nil)},
		Inputs: []int{0}, Outputs: []int{2},
		Nodes: []*graph.Node{{Op: "Add", Inputs: []int{0, 1}, Outputs: []int{2}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 3} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := onnx.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := engine.New(m, []*tensor.Tensor{x}, engine.Options{Registry: operators.Registry(), Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 4096); err != nil {
			t.Fatal(err)
		}
		err = mapped.Guard(func() error { return s.Run(t.Context()) })
		if c, ok := errors.AsType[*mapped.ChangedError](err); !ok || c.File != path {
			t.Errorf("%d threads: got error %v", threads, err)
		}
		s.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

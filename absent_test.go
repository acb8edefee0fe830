package opmeter_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// beside writes an ONNX model of one matrix multiplication with external weights, and the weights
// unless they are to be absent.
func beside(t *testing.T, absent bool) string {
	t.Helper()
	const n = 64
	w := tensor.New(tensor.Float32, n, n)
	g := &graph.Graph{
		Name: "g", Inputs: []int{0}, Outputs: []int{2},
		Values: []*graph.Value{
			{ID: 0, Name: "x", Type: tensor.Float32, Shape: []int{1, n}, HasShape: true, Offset: -1},
			{ID: 1, Name: "w", Type: tensor.Float32, Shape: []int{n, n}, HasShape: true, Const: w, Offset: -1},
			{ID: 2, Name: "y", Type: tensor.Float32, Shape: []int{1, n}, HasShape: true, Offset: -1},
		},
		Nodes: []*graph.Node{{Op: "MatMul", Version: 13, Inputs: []int{0, 1}, Outputs: []int{2}}},
	}
	m := &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{g}}
	data, weights, err := onnx.EncodeExternal(m, "w.bin")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "w.bin"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.onnx")
	if err := errors.Join(weights.Write(f), f.Close(), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	if absent {
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestExternalData: size and flash of a model include its external weights. Without them its counts
// are the same, its size, hashes and zeros of weights are unknown, and nothing else works.
func TestExternalData(t *testing.T) {
	t.Parallel()
	for _, absent := range []bool{false, true} {
		path := beside(t, absent)
		m, err := opmeter.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := opmeter.Count(m, opmeter.Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		if macs, params := p.Totals.MACs, p.Totals.Params; macs == nil || *macs != 64*64 || params == nil || *params != 64*64 {
			t.Errorf("absent %v: %v MACs, %v parameters", absent, macs, params)
		}
		graph, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := graph.Size() + 4*64*64; p.Totals.FlashBytes == nil || *p.Totals.FlashBytes != want {
			t.Errorf("absent %v: flash %v, want %d", absent, p.Totals.FlashBytes, want)
		} else if size := p.Model.FileBytes; absent != (size == nil) || size != nil && *size != want {
			t.Errorf("absent %v: size of the files %v, want %d", absent, size, want)
		}
		if known := p.Model.WeightsSHA256 != "" && p.Layers[0].Sparsity != nil; known == absent {
			t.Errorf("absent %v: hash %q, sparsity %v", absent, p.Model.WeightsSHA256, p.Layers[0].Sparsity)
		}
		if absent != (len(p.Findings) > 0) {
			t.Errorf("absent %v: findings %+v", absent, p.Findings)
		}
		_, err = opmeter.Profile(t.Context(), m, opmeter.Options{Runs: 1, Warmup: -1})
		if absent != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("absent %v: profile gives %v", absent, err)
		}
		s, err := opmeter.NewSession(m, opmeter.RunOptions{})
		if absent != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("absent %v: session gives %v", absent, err)
		}
		if s != nil {
			s.Close()
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestRunText: text is read from arrays of type U and written as such. Arrays of Python objects are
// refused with the way to save them.
func TestRunText(t *testing.T) {
	t.Parallel()
	value := func(id int, name string) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.String, Shape: []int{2}, HasShape: true}
	}
	g := &graph.Graph{
		Name: "net", Inputs: []int{0, 1}, Outputs: []int{2}, Values: []*graph.Value{value(0, "a"), value(1, "b"), value(2, "c")},
		Nodes: []*graph.Node{{Op: "StringConcat", Version: 20, Inputs: []int{0, 1}, Outputs: []int{2}}},
	}
	model, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 9, Opsets: map[string]int{"": 20}, Graphs: []*graph.Graph{g}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	a, b := tensor.New(tensor.String, 2), tensor.New(tensor.String, 2)
	copy(a.Strings, []string{"ä", ""})
	copy(b.Strings, []string{"bc", "€"})
	objects := "\x93NUMPY\x01\x00\x36\x00{'descr': '|O', 'fortran_order': False, 'shape': (2,)}\n"
	for _, err := range []error{
		os.WriteFile(at("m.onnx"), model, 0o600), npy.WriteFile(at("a.npy"), a), npy.WriteFile(at("b.npy"), b),
		os.WriteFile(at("o.npy"), []byte(objects+"\x80\x04."), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	status, out, errs := command(t, "run", at("m.onnx"), "--input", "a="+at("a.npy"), "--input", "b="+at("b.npy"), "--output", at("out"))
	if status != statusDone || !strings.Contains(out, "out_0.npy") {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	y, err := npy.ReadFile(at("out/out_0.npy"), nil)
	if err != nil || !slices.Equal(y.Strings, []string{"äbc", "€"}) {
		t.Errorf("%v %v", y, err)
	}
	status, _, errs = command(t, "run", at("m.onnx"), "--input", "a="+at("o.npy"), "--output", at("out"))
	if status != statusInput || !strings.Contains(errs, "numpy.save(file, x.astype('U'))") {
		t.Errorf("status %d: %s", status, errs)
	}
}

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// TestSignatures: summary shows every signature of a file, --signature chooses one, and one that
// is absent or would be ignored is an error.
func TestSignatures(t *testing.T) {
	t.Parallel()
	m := &graph.Model{Format: "tflite", IRVersion: 3}
	for i, name := range []string{"dec", "enc"} {
		value := func(id int, n string) *graph.Value {
			return &graph.Value{ID: id, Name: name + n, Type: tensor.Float32, Shape: []int{1, 4 + i}, HasShape: true, Offset: -1}
		}
		m.Graphs = append(m.Graphs, &graph.Graph{
			Index: i, Name: name, Values: []*graph.Value{value(0, "_in"), value(1, "_out")}, Inputs: []int{0}, Outputs: []int{1},
			Nodes: []*graph.Node{{Domain: graph.TFLite, Op: []string{"TANH", "ABS"}[i], Version: 1, Inputs: []int{0}, Outputs: []int{1}}},
		})
		m.Signatures = append(m.Signatures, graph.Signature{Key: name, Graph: i, Inputs: []graph.SignatureTensor{{Name: "x", Value: 0}}})
	}
	// Another signature of the first graph has other names.
	m.Signatures = append(m.Signatures, graph.Signature{Key: "other", Inputs: []graph.SignatureTensor{{Name: "y", Value: 0}}})
	data, err := tflite.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "two.tflite")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "out")
	array := func(n int) string {
		name := filepath.Join(t.TempDir(), "x.npy")
		if err := npy.WriteFile(name, tensor.From(tensor.Float32, []int{1, n}, make([]float32, n))); err != nil {
			t.Fatal(err)
		}
		return name
	}
	four, five := array(4), array(5)
	for _, tt := range []struct {
		args   []string
		status int
		has    []string
		lacks  string
	}{
		{[]string{"summary", file}, statusDone, []string{"dec; the file also has enc", "enc; the file also has dec", "TANH", "ABS", "1x5"}, ""},
		{[]string{"summary", file, "--signature", "enc"}, statusDone, []string{"enc; the file also has dec", "ABS"}, "TANH"},
		{[]string{"summary", file, "--format", "csv"}, statusDone, []string{"TANH"}, "ABS"},
		{[]string{"summary", file, "--signature", "x"}, statusUse, []string{`no signature "x": the file has "dec", "enc"`}, "ABS"},
		{[]string{"profile", file, "--signature", "enc", "--on", "device:x"}, statusUse, []string{"--signature enc"}, "ABS"},
		{[]string{"run", file, "--signature", "enc", "--input", "x=" + five, "--output", folder}, statusDone, []string{"enc_out float32 1x5"}, ""},
		{[]string{"run", file, "--signature", "enc", "--input", "enc_in=" + five, "--output", folder}, statusDone, []string{"enc_out float32 1x5"}, ""},
		{[]string{"run", file, "--signature", "dec", "--input", "x=" + four, "--output", folder}, statusDone, []string{"dec_out float32 1x4"}, ""},
		{[]string{"run", file, "--signature", "other", "--input", "y=" + four, "--output", folder}, statusDone, []string{"dec_out float32 1x4"}, ""},
		{[]string{"run", file, "--signature", "other", "--input", "x=" + four, "--output", folder}, statusUse, []string{`no input "x"`}, ""},
		{[]string{"run", file, "--input", "x=" + four, "--input", "dec_in=" + four, "--output", folder}, statusUse, []string{`"x" and "dec_in" are the same input`}, ""},
		{[]string{"run", file, "--signature", "enc", "--output", folder}, statusDone, []string{"enc_out float32 1x5"}, ""},
	} {
		status, out, errs := command(t, tt.args...)
		if status != tt.status {
			t.Errorf("%v: status %d, want %d: %s", tt.args, status, tt.status, errs)
		}
		for _, s := range tt.has {
			if !strings.Contains(out+errs, s) {
				t.Errorf("%v: output lacks %q:\n%s%s", tt.args, s, out, errs)
			}
		}
		if tt.lacks != "" && strings.Contains(out, tt.lacks) {
			t.Errorf("%v: output has %q:\n%s", tt.args, tt.lacks, out)
		}
	}
}

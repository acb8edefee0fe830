package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// multiplied is y = x·w with weights in a file of their own, of any name.
func multiplied(t *testing.T, dir, weights string, value float32) {
	t.Helper()
	w := make([]float32, 64*64)
	for i := range w {
		w[i] = value
	}
	g := &graph.Graph{Name: "net", Inputs: []int{0}, Outputs: []int{1}, Values: []*graph.Value{
		{ID: 0, Name: "x", Type: tensor.Float32, Shape: []int{1, 64}, HasShape: true},
		{ID: 1, Name: "y", Type: tensor.Float32, Shape: []int{1, 64}, HasShape: true},
		{ID: 2, Name: "w", Type: tensor.Float32, Shape: []int{64, 64}, HasShape: true, Const: tensor.From(tensor.Float32, []int{64, 64}, w)},
	}, Nodes: []*graph.Node{{Op: "MatMul", Version: 13, Inputs: []int{0, 2}, Outputs: []int{1}}}}
	model, data, err := onnx.EncodeExternal(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}}, weights)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := data.Write(&b); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"net.onnx": model, weights: b.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A change of weights that are in a file of their own is a change of the model, whatever the name
// of the file: its outputs are compared with those of the base.
func TestGateExternalWeights(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is absent")
	}
	for _, weights := range []string{"net.onnx.data", "other.bin"} {
		dir := t.TempDir()
		git := func(args ...string) {
			t.Helper()
			c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.com"}, args...)...)
			c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
			}
		}
		gateOf := func() string {
			t.Helper()
			status, out, errs := here(t, "gate", filepath.Join(dir, "net.onnx"), "--baselines", filepath.Join(dir, gate.Folder), "--base", "HEAD", "--all")
			if status != 0 {
				t.Fatalf("status %d: %s%s", status, out, errs)
			}
			return out
		}
		git("init", "-q", "-b", "main")
		multiplied(t, dir, weights, 1)
		git("add", "-A")
		git("commit", "-q", "-m", "one")
		if out := gateOf(); strings.Contains(out, "Output difference") && !strings.Contains(out, "equal") {
			t.Errorf("%s, unchanged:\n%s", weights, out)
		}
		multiplied(t, dir, weights, 1.5)
		if out := gateOf(); !strings.Contains(out, `note: output "y": `) || !strings.Contains(out, "worse, optional") {
			t.Errorf("%s, other weights:\n%s", weights, out)
		}
	}
}

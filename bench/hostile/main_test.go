package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestMutants sends damaged models through the whole program: each is profiled
// or refused with a reason, and none ends the run.
func TestMutants(t *testing.T) {
	t.Parallel()
	const n = 60
	dir := t.TempDir()
	o := options{n: n, level: "bytes", models: material.Path(t, "models"), seed: 7}
	if err := write(o, dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"summary", dir}, {"profile", dir, "--runs", "1", "--warmup", "0s"}} {
		var out, errw bytes.Buffer
		status := cli.Main(args, strings.NewReader(""), &out, &errw)
		if status != 3 {
			t.Errorf("%s: status %d, want 3: %s", args[0], status, errw.String())
		}
		text := out.String()
		if strings.Contains(text, "internal error") {
			t.Errorf("%s: an internal error:\n%s", args[0], text)
		}
		if want := fmt.Sprintf("\n%d models, ", n); !strings.Contains(text, want) {
			t.Errorf("%s: no line %q at the end:\n%s", args[0], want, text)
		}
		for i := range n {
			if want := fmt.Sprintf("%04d_", i); !strings.Contains(text, want) {
				t.Errorf("%s: no line for file %s", args[0], want)
			}
		}
	}
}

// TestGraphs changes models at the level of the graph and sends them through plan and
// engine.
func TestGraphs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := try(&out, options{n: 300, level: "graph", models: material.Path(t, "models"), seed: 11, workers: 2}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if s := out.String(); !strings.Contains(s, "300 models of ") {
		t.Errorf("no figures in %q", s)
	}
}

// small is a model of either format with a node.
func small(t *testing.T, format string) source {
	t.Helper()
	g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: []int{2}, Values: []*graph.Value{
		{ID: 0, Name: "x", Type: tensor.Float32, Shape: []int{2, 3}, HasShape: true},
		{ID: 1, Name: "w", Type: tensor.Float32, Shape: []int{4, 3}, HasShape: true, Const: tensor.New(tensor.Float32, 4, 3)},
		{ID: 2, Name: "y", Type: tensor.Float32, Shape: []int{2, 4}, HasShape: true},
	}}
	m := &graph.Model{Format: format, Graphs: []*graph.Graph{g}}
	encode := tflite.Encode
	if format == "onnx" {
		encode, m.Opsets, m.IRVersion = onnx.Encode, map[string]int{"": 17}, 8
		g.Nodes = []*graph.Node{{Op: "Gemm", Version: 17, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{"transB": int64(1), "alpha": float32(1)}}}
	} else {
		g.Nodes = []*graph.Node{{Domain: graph.TFLite, Op: "FULLY_CONNECTED", Version: 1, Inputs: []int{0, 1, -1}, Outputs: []int{2}, Attrs: graph.Attrs{"fused_activation_function": "RELU"}}}
	}
	b, err := encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return source{"small." + format, b}
}

// TestSame makes the same models from the same seed, and different ones of each number.
func TestSame(t *testing.T) {
	t.Parallel()
	all := []source{small(t, "onnx"), small(t, "tflite")}
	for _, level := range []string{"bytes", "graph"} {
		seen := map[string]bool{}
		o := options{level: level, seed: 3}
		for i := range 200 {
			name, data := mutant(all, o, i)
			name2, data2 := mutant(all, o, i)
			if name != name2 || !bytes.Equal(data, data2) {
				t.Errorf("%s: model %d differs from itself", level, i)
			}
			if len(data) == 0 {
				t.Errorf("%s: model %s is empty", level, name)
			}
			seen[string(data)] = true
		}
		if len(seen) < 120 {
			t.Errorf("%s: only %d different models of 200", level, len(seen))
		}
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := sources(options{models: dir}); err == nil || !strings.Contains(err.Error(), "no .tflite or .onnx file") {
		t.Errorf("sources of an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.onnx"), make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := sources(options{models: dir}); err != nil || len(got) != 1 {
		t.Errorf("sources: %d files, %v; want 1", len(got), err)
	}
}

package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRowNames names rows of a comparison as its tables do.
func TestRowNames(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]string{
		`{"op":"Flatten","name":"c","operators":2,"certain":true,"figures":[{"value":1e-6},{}]}`: "Flatten +1 c: 1 µs, unknown",
		`{"op":"Relu","name":"r","operators":1,"certain":false,"figures":[null]}`:                "Relu r ?: unknown",
		`{"op":"Conv","name":"a","operators":1,"certain":true,"figures":[{"value":0.002}]}`:      "Conv a: 2 ms",
	} {
		var g versusGroup
		if err := json.Unmarshal([]byte(group), &g); err != nil {
			t.Fatal(err)
		}
		r := g.row()
		if got := r.text("s"); got != want {
			t.Errorf("%s: %q, expected %q", group, got, want)
		}
	}
}

// TestFolders finds relative names in each allowed folder and in that of --write.
func TestFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := func(name string) string {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, file := range []string{"first/a", "second/a", "second/b", "out/c", "outside/d"} {
		dir(filepath.Dir(file))
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var p paths
	if err := p.open([]string{dir("first"), dir("second")}, dir("out")); err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for name, want := range map[string]string{"a": "first/a", "b": "second/b", "c": "out/c"} {
		got, err := p.read("model", name, false)
		if err != nil || !strings.HasSuffix(filepath.ToSlash(got), want) {
			t.Errorf("%s is %s, %v; expected %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"none": dir("second"), "../outside/d": "is outside", "../outside/none": "is outside"} {
		if _, err := p.read("model", name, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", name, err, want)
		}
	}
	for name, want := range map[string]string{"sub/d.html": `has no folder "sub"`, "a\x00.json": "zero byte", strings.Repeat("x", 5000): "5000 bytes"} {
		if err := p.checkSave(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("save %.20q: %v, expected %q", name, err, want)
		}
	}
}

// TestAgentWords puts arguments in place of flags.
func TestAgentWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"use smaller inputs (--shape, --batch) or a higher limit (--max-memory; without it, none)": "use smaller inputs (shapes, batch)",
		"--engine onnxruntime: no such engine":                                                     "engine onnxruntime: no such engine",
		"name the format with --from":                                                              "name the format with format",
		`no target "x": opmeter targets lists`:                                                     `no target "x": the tool fit lists`,
		"--shapes and --time-out stay as a-- b":                                                    "--shapes and --time-out stay as a-- b (in a terminal only: --shapes, --time-out)",
		"TFLM arena   12 KiB + persistent part (see --on TARGET)":                                  "TFLM arena   12 KiB + persistent part (see the tool estimate)",
		"Next step    try --threads 2 (of 4 CPUs) and opmeter compare":                             "Next step    try threads 2 (of 4 CPUs) and the tool compare",
		"Next step    compare with the engine that you ship: --engine opmeter,onnxruntime":         "Next step    compare with the engine that you ship: engine onnxruntime",
		"Next step    measure on the board: --on device:PORT (opmeter devices lists ports)":        "Next step    measure on the board: with opmeter in a terminal",
		"Next step    see the timeline: -o page.html":                                              "Next step    see the timeline of a page, which the terminal writes",
		"Next step    compare with an estimate or another run: opmeter compare A B":                "Next step    compare with an estimate or another run: the tool compare",
		"Repeat with --time 10s, best on an idle machine.":                                         "Repeat with seconds 10, best on an idle machine.",
		"For another size: opmeter summary m.onnx --batch 8":                                       "For another size: opmeter summary m.onnx --batch 8 (a command for a terminal)",
		"give the clock with --clock for times.":                                                   "give the clock with --clock for times. (in a terminal only: --clock)",
	} {
		if got := agentWords(text); got != want {
			t.Errorf("%q becomes %q, expected %q", text, got, want)
		}
	}
}

package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRowNames names rows of a comparison as its tables do.
func TestRowNames(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]string{
		`{"op":"Flatten","name":"c","operators":2,"figures":[{"value":1e-6},{}]}`:                            "Flatten +1 c: 1 µs, unknown",
		`{"op":"Relu","name":"r","operators":1,"matches":[{},{"kind":"same"}],"figures":[{"value":2},null]}`: "Relu r: 2 s, unknown (same?)",
		`{"op":"Conv","name":"a","operators":1,"figures":[{"value":0.002}]}`:                                 "Conv a: 2 ms",
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

// TestComparedRow says by run how the layers of a row differ from those of the first run.
func TestComparedRow(t *testing.T) {
	t.Parallel()
	value := func(v float64) *versusValue { return &versusValue{Value: &v} }
	g := versusGroup{
		Op: "Conv", Name: "c", Count: 2, Figures: []*versusValue{value(1), value(2), value(3), nil},
		Matches: []versusMatch{{}, {"same", true}, {"quantised", false}, {"removed", false}},
	}
	r := g.row()
	if want := []string{"", "same", "quantised", "removed"}; !slices.Equal(r.Kinds, want) {
		t.Errorf("kinds %q, want %q", r.Kinds, want)
	}
	if want := []bool{false, false, true, false}; !slices.Equal(r.Unsure, want) {
		t.Errorf("unsure %v, want %v", r.Unsure, want)
	}
	if got, want := r.text("B"), "Conv +1 c: 1 B, 2 B, 3 B (quantised?), unknown (removed)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A layer that did not run by itself says where it went, or why, without loose ends.
func TestState(t *testing.T) {
	for want, a := range map[string]explainAnswer{
		" State: fused into layer #3.":             {State: "fused", FusedInto: new(int64(3))},
		" State: lost. by_record: no such layer":   {State: "lost", Cause: "by_record: no such layer"},
		"Layer #0 of 1 is RELU. State: not_timed.": {State: "not_timed"},
	} {
		a.Op, a.Of = "RELU", 1
		if got := a.text("latency_s"); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want the end %q", got, want)
		}
	}
}

package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestStandardInput reads a model, and a profile, from standard input. The copy is removed.
func TestStandardInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opmeter := func(in []byte, args ...string) (status int, out, errs string) {
		var o, e bytes.Buffer
		status = run(t.Context(), args, bytes.NewReader(in), &o, &e)
		return status, o.String(), e.String()
	}
	model, saved := filepath.Join(dir, "m.tflite"), filepath.Join(dir, "m.opmeter")
	if status, _, errs := opmeter(nil, "build", filepath.Join(material.Root(), "examples", "ds_cnn.yaml"), "-o", model); status != 0 {
		t.Fatal(errs)
	}
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, args := range [][]string{{"-"}, {"summary", "-"}, {"profile", "-", "--on", "stm32l4r5"}} {
		if status, out, errs := opmeter(read(model), append(args, "-o", saved)...); status != 0 || !strings.Contains(out, "stdin") {
			t.Errorf("%q: status %d: %s%s", args, status, out, errs)
		}
	}
	if status, out, errs := opmeter(read(saved), "report", "-"); status != 0 || !strings.Contains(out, "stdin.tflite on stm32l4r5") {
		t.Errorf("report: status %d: %s%s", status, out, errs)
	}
	if status, _, errs := opmeter([]byte("words"), "profile", "-"); status != statusInput || !strings.HasPrefix(errs, "opmeter: standard input: is text and not a model") {
		t.Errorf("text: status %d: %s", status, errs)
	}
	if status, _, errs := opmeter(read(saved), "compare", "-", "-"); status != statusUse || !strings.Contains(errs, "twice") {
		t.Errorf("twice: status %d: %s", status, errs)
	}
	a := newApp(bytes.NewReader(read(model)), io.Discard, io.Discard)
	if status := a.execute(t.Context(), []string{"summary", "-"}); status != 0 || a.stdin == "" {
		t.Errorf("status %d", status)
	}
	if _, err := os.Stat(filepath.Dir(a.stdin)); !os.IsNotExist(err) {
		t.Errorf("the copy stays: %v", err)
	}
}

// TestImplied puts a verb before files and nothing else.
func TestImplied(t *testing.T) {
	t.Parallel()
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	file := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"", ""},
		{"--help", "--help"},
		{"-", "profile -"},
		{"x.onnx --top 3", "profile x.onnx --top 3"},
		{"X.TFLITE", "profile X.TFLITE"},
		{"x.opmeter", "report x.opmeter"},
		{"x.opmeter-journal", "report x.opmeter-journal"},
		{file, "profile " + file},
		{filepath.Dir(file), filepath.Dir(file)},
		{"porfile x.onnx", "porfile x.onnx"},
		{"diff a b", "diff a b"},
		{"help profile", "help profile"},
		{"__complete profile", "__complete profile"},
	} {
		if got := implied(root, strings.Fields(c.args)); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}

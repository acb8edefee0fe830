package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestMutants sends damaged models through the whole program: each is profiled
// or refused with a reason, and none ends the run.
func TestMutants(t *testing.T) {
	t.Parallel()
	const n = 60
	dir := t.TempDir()
	if err := run(material.Path(t, "models"), dir, n, 7); err != nil {
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

// TestSame makes the same files from the same seed.
func TestSame(t *testing.T) {
	t.Parallel()
	all := []source{{"a.onnx", bytes.Repeat([]byte("abc\x00"), 99)}, {"b.tflite", bytes.Repeat([]byte{0, 1, 2, 3}, 50)}}
	seen := map[string]bool{}
	for i := range 200 {
		name, data := mutant(all, 3, i)
		name2, data2 := mutant(all, 3, i)
		if name != name2 || !bytes.Equal(data, data2) {
			t.Errorf("file %d differs from itself", i)
		}
		if len(data) == 0 {
			t.Errorf("file %s is empty", name)
		}
		seen[string(data)] = true
	}
	if len(seen) < 150 {
		t.Errorf("only %d different files of 200", len(seen))
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	if _, err := load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no .tflite or .onnx file") {
		t.Errorf("load of an empty folder: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.onnx"), make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := load(dir); err != nil || len(got) != 1 {
		t.Errorf("load: %d files, %v; want 1", len(got), err)
	}
}

package firmware_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	embedded "github.com/opmeter/opmeter/firmware"
	"github.com/opmeter/opmeter/internal/device/firmware"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// host runs a program on this computer: first with the embedded inputs, then with those
// that it reads, and writes all outputs.
const host = `#include <stdio.h>
#include "model.h"

static void inference(void) {
  uint32_t i, n;
  model_run();
  for (i = 0; i < model_outputs(); i++) {
    const void *p = model_output(i, &n);
    fwrite(p, 1, n, stdout);
  }
}

int main(void) {
  uint32_t i, n;
  model_set_inputs();
  inference();
  for (;;) {
    model_set_inputs();
    for (i = 0; i < model_inputs(); i++) {
      void *p = model_input(i, &n);
      if (fread(p, 1, n, stdin) != n) return 0;
    }
    if (model_inputs() == 0) return 0;
    inference();
  }
}
`

// compiler is the path of a program, or skips.
func compiler(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if material.Required() {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

// open reads a model file.
func open(t testing.TB, path string) *graph.Model {
	t.Helper()
	m, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m.Close != nil {
			_ = m.Close()
		}
	})
	return m
}

// drawn are random inputs of a model.
func drawn(t testing.TB, m *graph.Model, seed uint64) []*tensor.Tensor {
	t.Helper()
	ins, _, err := inputs.Inputs(m, inputs.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return ins
}

// expected are the outputs of the engine for inputs, in a session of their own.
func expected(t testing.TB, m *graph.Model, ins []*tensor.Tensor) []byte {
	t.Helper()
	s, err := engine.New(m, ins, engine.Options{Registry: operators.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for i := range m.Main().Outputs {
		out = append(out, s.Output(i).Data...)
	}
	return out
}

// write puts a program and a main file into a folder.
func write(t testing.TB, p *firmware.Program, main string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range p.Files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "main.c"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sources lists the C files of a folder.
func sources(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(files)
	return files
}

var warnings = []string{"-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-ffp-contract=off", "-DMODEL_NO_AGENT"}

// compare makes a program of a model, runs it with embedded inputs and those of further
// seeds, and compares the outputs with the engine's.
func compare(t *testing.T, m *graph.Model, seeds []uint64, flags ...string) *firmware.Program {
	t.Helper()
	return compareWith(t, m, func(seed uint64) []*tensor.Tensor { return drawn(t, m, seed) }, seeds, flags...)
}

// compareWith is [compare] with inputs of the caller's choice.
func compareWith(t *testing.T, m *graph.Model, inputs func(seed uint64) []*tensor.Tensor, seeds []uint64, flags ...string) *firmware.Program {
	t.Helper()
	ins := inputs(seeds[0])
	p, err := firmware.Generate(m, firmware.Options{Inputs: ins})
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, p, host)
	exe := filepath.Join(dir, "program")
	args := append(append(append([]string{}, warnings...), flags...), "-o", exe)
	if out, err := exec.Command(compiler(t, "cc"), append(args, sources(t, dir)...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("compiling: %v\n%s", err, out)
	}
	want := expected(t, m, ins)
	var in bytes.Buffer
	for _, seed := range seeds[1:] {
		ins := inputs(seed)
		for _, x := range ins {
			in.Write(x.Data)
		}
		want = append(want, expected(t, m, ins)...)
	}
	cmd := exec.Command(exe)
	cmd.Stdin = &in
	var errs strings.Builder
	cmd.Stderr = &errs
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("running: %v\n%s", err, errs.String())
	}
	if !bytes.Equal(got, want) {
		t.Errorf("outputs differ: %s", difference(got, want))
	}
	return p
}

func difference(got, want []byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
	}
	n, first := 0, -1
	for i := range got {
		if got[i] != want[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Sprintf("%d of %d bytes, the first at %d: %#x, want %#x", n, len(got), first, got[first], want[first])
}

// allKernels are the kernel files by name.
func allKernels(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := embedded.Kernels.ReadDir("kernels")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		if out[f.Name()], err = embedded.Kernels.ReadFile("kernels/" + f.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

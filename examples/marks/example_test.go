package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/marks"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/record"
)

// imported is the profile of a file of marks.
func imported(t *testing.T, path string, m *opmeter.Model) *profile.Profile {
	t.Helper()
	got, err := record.Import(t.Context(), path, record.Options{Model: m})
	if err != nil || len(got.Profiles) != 1 {
		t.Fatal(got, err)
	}
	p := got.Profiles[0]
	var names []string
	for _, l := range p.Layers {
		names = append(names, l.Name)
	}
	if want := []string{"decode", "preprocess", "preprocess/resize", "infer", "postprocess"}; !slices.Equal(names, want) {
		t.Errorf("stages %q, want %q", names, want)
	}
	if len(p.Incomplete) != 0 {
		t.Error(p.Incomplete)
	}
	return p
}

// TestGo: the pipeline of the example has its stages, on two lanes, with the work of its model.
func TestGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.marks")
	if err := marks.Open(path); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join("..", "resnet8.yaml")
	var out bytes.Buffer
	if err := run(model, 12, &out); err != nil || !bytes.HasPrefix(out.Bytes(), []byte("12 images")) {
		t.Fatal(err, out.String())
	}
	if err := marks.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := opmeter.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p := imported(t, path, m)
	if p.Model.Name != "resnet8" || p.Layers[3].MACs == nil || *p.Layers[3].MACs != *p.Totals.MACs {
		t.Errorf("%+v %+v", p.Model, p.Layers[3])
	}
	if *p.Totals.Latency.N != 11 || len(p.Timeline.Lanes) < 3 || len(p.Timeline.Counters) != 1 {
		t.Errorf("%d frames, %d lanes, %d counters", *p.Totals.Latency.N, len(p.Timeline.Lanes), len(p.Timeline.Counters))
	}
}

// TestC: the same of the example in C.
func TestC(t *testing.T) {
	t.Parallel()
	cc, err := exec.LookPath("cc")
	if err != nil {
		material.Skip(t, "cc is missing: install gcc")
	}
	dir := t.TempDir()
	native := filepath.Join("..", "..", "marks", "native", "c")
	program := filepath.Join(dir, "pipeline")
	if out, err := exec.Command(cc, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2", "-I"+native, "-o", program, "c/pipeline.c", filepath.Join(native, "opmeter_marks.c"), "-pthread").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(dir, "run.marks")
	cmd := exec.Command(program, "60")
	cmd.Env = append(os.Environ(), "OPMETER_MARKS="+path)
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("60 frames")) {
		t.Fatalf("%v: %s", err, out)
	}
	p := imported(t, path, nil)
	if *p.Totals.Latency.N != 59 || p.Layers[3].Option("model") != "linear.tflite" || *p.Layers[0].Figures["marked_pixels"].Median != 320*240 {
		t.Errorf("%+v", p.Layers)
	}
}

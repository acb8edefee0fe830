package target_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/target"
)

// A faulty file is reported with its place; the built-in targets stay.
func TestLoadFaulty(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "faulty.yaml"), []byte("id: faulty\nmemories: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := target.Load(folder)
	if e, ok := errors.AsType[*target.Error](err); !ok || filepath.Base(e.File) != "faulty.yaml" || e.Text == "" {
		t.Errorf("got %#v", err)
	}
	if set == nil || len(set.List()) == 0 {
		t.Error("the built-in targets are missing")
	}
}

// The zero value of a target is refused by all that take one.
func TestZeroTarget(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open(filepath.Join(material.Root(), "examples", "autoencoder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	job, err := compress.Open(m, compress.Options{Study: filepath.Join(t.TempDir(), "x.study")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = job.Close() }()
	var zero target.Target
	_, estimate := zero.Estimate(m, opmeter.EstimateOptions{})
	_, calibrate := zero.Calibrate("x.csv", "")
	_, speed := job.Speed(t.Context(), compress.SpeedOptions{On: &zero})
	_, fit := job.Plan(t.Context(), compress.PlanOptions{Fit: &zero})
	for name, err := range map[string]error{"estimate": estimate, "calibrate": calibrate, "speed": speed, "fit": fit} {
		if e, ok := errors.AsType[*opmeter.OptionError](err); !ok || e.Option != "target" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

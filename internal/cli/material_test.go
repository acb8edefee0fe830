package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// heavy models take seconds a run.
var heavy = []string{"vgg19", "resnet50", "inception", "zfnet", "super_resolution", "alexnet", "SqueezeNet_fp16", "bodypix", "conformer"}

// suited are models that fail with numbers drawn at random for what they take as
// indices, masks and lengths.
var suited = map[string]bool{"lyra_quantizer.tflite": true, "genai_tiny_gpt2_past.onnx": true, "genai_tiny_qwen35_fp16.onnx": true}

// TestMaterial profiles the real models: each gives a profile that every reader
// can rely on.
func TestMaterial(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes about half a minute")
	}
	dir := material.Path(t, "models", "real")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !isModel(path) {
			return err
		}
		for _, h := range heavy {
			if strings.Contains(path, h) {
				return nil
			}
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := opmeter.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.Close() }()
			p, err := opmeter.Profile(t.Context(), m, opmeter.Options{Runs: 1, Warmup: -1})
			if _, unrun := errors.AsType[*opmeter.UnrunError](err); err != nil && !unrun {
				t.Fatal(err)
			}
			if err := p.Validate(); err != nil {
				t.Errorf("the profile is not valid: %v", err)
			}
			idle, most := p.Unrun()
			if suited[filepath.Base(path)] && len(idle) > 0 {
				t.Errorf("layers %v did not run", idle)
			}
			if most != (p.Totals.Latency == nil) {
				t.Errorf("most did not run: %v, and latency %v", most, p.Totals.Latency)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

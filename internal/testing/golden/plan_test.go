package golden

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestPlansAgree holds three plans of every real model against each other: all
// values kept, memory shared and activations fused, and the latter on three
// threads. Two runs each, so that what the first leaves in memory would show. The
// outputs must be the same bytes.
func TestPlansAgree(t *testing.T) {
	t.Parallel()
	over, err := synth.LoadOverrides(material.Path(t, "oracle", "inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, sub := range []string{"real", "synthetic", "mltk", "mcu"} {
		for _, end := range []string{"*.tflite", "*.onnx"} {
			fs, err := filepath.Glob(filepath.Join(material.Path(t, "models", sub), end))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, fs...)
		}
	}
	if len(files) < 150 {
		t.Errorf("%d models found", len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			m, err := modelfile.Open(f)
			if err != nil {
				t.Fatal(err)
			}
			if m.Close != nil {
				defer func() { _ = m.Close() }()
			}
			o := inputs.Options{Seed: 1, Overrides: over[filepath.Base(f)]}
			want := outputs(t, m, o, engine.Options{KeepAll: true})
			for _, e := range []engine.Options{{Exact: true}, {Exact: true, Threads: 3}} {
				got := outputs(t, m, o, e)
				for i := range want {
					if !bytes.Equal(got[i], want[i]) {
						t.Errorf("%d threads: output %d differs from that of the plan that keeps all values", max(e.Threads, 1), i)
					}
				}
			}
		})
	}
}

func outputs(t *testing.T, m *graph.Model, f inputs.Options, o engine.Options) [][]byte {
	t.Helper()
	in, _, err := inputs.Inputs(m, f)
	if err != nil {
		t.Fatal(err)
	}
	o.Registry = operators.Registry()
	s, err := engine.New(m, in, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out [][]byte
	for range 2 {
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		out = out[:0]
		for i := range m.Main().Outputs {
			x := s.Output(i)
			if !x.Known() {
				t.Fatalf("output %d is not computed", i)
			}
			out = append(out, bytes.Clone(x.Data))
		}
	}
	return out
}

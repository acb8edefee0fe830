package rewrite_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// TestHostile mutates small models byte by byte, and applies every change to those that can still
// be read: nothing panics.
func TestHostile(t *testing.T) {
	t.Parallel()
	rounds := 12
	if material.Required() {
		rounds = 100
	}
	for _, name := range []string{"mcu/tflm_hello_world_float.tflite", "mcu/tinymaix_mnist_valid_q.tflite", "mcu/mltk_fingerprint_signature_generator.tflite", "real/shark_quantizedmlp.onnx", "real/winml_mnist.onnx"} {
		data, err := os.ReadFile(material.Path(t, "models", filepath.Dir(name), filepath.Base(name)))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(len(data)), 1))
		for range rounds {
			b := append([]byte(nil), data...)
			for range 1 + r.IntN(6) {
				b[r.IntN(len(b))] = byte(r.IntN(256))
			}
			var m *graph.Model
			if filepath.Ext(name) == ".tflite" {
				m, err = tflite.Parse(b, name)
			} else {
				m, err = onnx.Parse(b, name, "")
			}
			if err == nil {
				everything(t, m, r)
			}
		}
	}
}

// everything returns all changes of a model.
func everything(t *testing.T, m *graph.Model, r *rand.Rand) {
	t.Helper()
	layers := weights.Find(m, nil)
	for _, s := range append(study.Structures(), study.Dense) {
		f := append(study.Formats(), study.OriginalFormat)[r.IntN(len(study.Formats())+1)]
		var changes []rewrite.Change
		for _, l := range layers {
			changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Structure: s, Level: 0.5, Format: f}})
		}
		next, _, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
		if err == nil {
			_, _ = rewrite.Encode(next)
		}
	}
	for i := range m.Main().Nodes {
		_, _, _ = rewrite.Suffix(m, []int{i})
	}
}

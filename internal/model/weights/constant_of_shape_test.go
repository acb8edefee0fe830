package weights_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestFilled finds the weights of models that have them as ConstantOfShape.
func TestFilled(t *testing.T) {
	t.Parallel()
	m, err := modelfile.Open(material.Path(t, "models", "real", "onnx_light_squeezenet.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if got := weights.ExpandConstantOfShape(m, 1000); got != m {
		t.Error("made more than the limit")
	}
	f := weights.ExpandConstantOfShape(m, 0)
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	if n := len(weights.Find(f, nil)); n != 26 {
		t.Errorf("%d layers, want 26", n)
	}
	if got := weights.ExpandConstantOfShape(f, 0); got != f {
		t.Error("filled twice")
	}
}

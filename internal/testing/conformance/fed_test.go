package conformance_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/conformance"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// unfed are tests whose inputs have to go together in a way that no one can see from
// one operator: sizes and ends that a function treats separately, columns of padded images.
var unfed = []string{"test_affine_grid_", "test_col2im_", "test_range_"}

// TestFed runs the models of all backend tests on inputs of the program's own, which
// must suit what the operators use them for: more than two hundred of these models fail
// with numbers drawn at random.
func TestFed(t *testing.T) {
	t.Parallel()
	tests, err := conformance.Load(material.Path(t, "models", "onnx_node_tests"))
	if err != nil {
		t.Fatal(err)
	}
	ran, made := 0, 0
	for _, tt := range tests {
		m, err := onnx.Parse(tt.Model, tt.Name+".onnx", "")
		if err != nil {
			continue // the other test judges readers
		}
		uses, err := fed(t, m)
		switch {
		case errors.Is(err, errNotFed):
			continue
		case err != nil && !unfeedable(tt.Name):
			t.Errorf("%s: %v", tt.ID(), err)
		}
		ran++
		if uses {
			made++
		}
	}
	t.Logf("%d models, %d with inputs that were made for their use", ran, made)
	if ran < 1500 || made < 200 {
		t.Errorf("%d models ran, %d with inputs that were made: at least 1500 and 200 are there", ran, made)
	}
}

func unfeedable(name string) bool {
	for _, p := range unfed {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// errNotFed marks models with inputs of types that the generator does not make, and
// with operators that the engine lacks.
var errNotFed = errors.New("not fed")

// fed runs a model once and reports whether an input was made for its use.
func fed(t *testing.T, m *graph.Model) (made bool, err error) {
	t.Helper()
	const most = 1 << 28
	ins, src, err := inputs.Inputs(m, inputs.Options{Seed: 1, MaxBytes: most})
	if err != nil {
		return false, errNotFed
	}
	for _, s := range src {
		made = made || s.Use != nil
	}
	s, err := engine.New(m, ins, engine.Options{Registry: operators.Registry(), Threads: 1, MaxBytes: most})
	if err != nil {
		return made, err
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		return made, err
	}
	for _, st := range s.Steps() {
		if st.Err != nil {
			return made, st.Err
		}
	}
	return made, nil
}

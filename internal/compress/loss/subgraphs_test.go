package loss

import (
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// TestBodies finds losses of layers in the branches of an If. For the branch that runs, end to
// end losses equal those of running the complete model, and output errors exist; for the other
// branch they are absent.
func TestBodies(t *testing.T) {
	t.Parallel()
	m, err := modelfile.Open(material.Path(t, "models", "real", "silero_vad.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	s, err := samples.Open(m, samples.Options{Made: 3, Feed: inputs.Options{Shapes: map[string][]int{"input": {1, 512}}}})
	if err != nil {
		t.Fatal(err)
	}
	ls := weights.All(m, nil)
	cs := []study.Change{{Structure: study.Unstructured, Level: 0.5}, {Format: study.Int8}, {Format: study.Weight4}}
	run := func(method study.Method) (out []study.LossPoint) {
		j := &Job{Model: m, Layers: ls, Data: s, Settings: study.LossSettings{Method: method, Changes: cs}}
		j.Point = func(p study.LossPoint) error { out = append(out, p); return nil }
		if _, err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(out) != len(ls)*len(cs) {
			t.Fatalf("%s: %d points, want %d", method, len(out), len(ls)*len(cs))
		}
		return out
	}
	// ONNX has no LSTM of integers.
	none := func(p study.LossPoint) bool {
		return p.Cause == study.NoFormat && p.Change.Format == study.Int8 && ls[p.Layer].Op == "LSTM"
	}
	ran := 0
	for _, p := range run(study.OutputError) {
		switch {
		case none(p):
			ran++
		case p.Cause != "" && p.Cause != study.NotRun:
			t.Errorf("layer %d, %+v: %s", p.Layer, p.Change, p.Cause)
		case p.Cause == "" && !(*p.Value.Median > 0 && *p.Value.Median < 1):
			t.Errorf("layer %d, %+v: %v", p.Layer, p.Change, *p.Value.Median)
		case p.Cause == "":
			ran++
		}
	}
	if ran != len(ls)*len(cs)/2 {
		t.Errorf("%d points, want those of one of two branches", ran)
	}
	ranges, err := Ranges(t.Context(), m, ls, s, MinMax, 1)
	if err != nil {
		t.Fatal(err)
	}
	base := allOutputs(t, m, s)
	for _, p := range run(study.EndToEnd) {
		if p.Cause != "" {
			if p.Cause != study.NotRun && !none(p) {
				t.Errorf("layer %d, %+v: %s", p.Layer, p.Change, p.Cause)
			}
			continue
		}
		changed, _, err := rewrite.Apply(m, []rewrite.Change{{Layer: ls[p.Layer], Change: p.Change}}, rewrite.Options{Ranges: ranges})
		if err != nil {
			t.Fatal(err)
		}
		num, den := 0.0, 0.0
		// all outputs of a sample, one after the other
		for i, o := range allOutputs(t, changed, s) {
			n, d := squaredDistance(o, base[i])
			num, den = num+n, den+d
		}
		if v := *p.Value.Median; v != num/den || v == 0 {
			t.Errorf("layer %d, %+v: %v, want %v", p.Layer, p.Change, v, num/den)
		}
	}
}

// allOutputs are the numbers of all outputs, by run.
func allOutputs(t *testing.T, m *graph.Model, s *samples.Set) (out [][]float64) {
	t.Helper()
	err := runAll(t.Context(), m, s, 1, func(_ int, e *engine.Session) error {
		var all []float64
		for i := range m.Main().Outputs {
			all = append(all, toReal(e.Output(i))...)
		}
		out = append(out, all)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

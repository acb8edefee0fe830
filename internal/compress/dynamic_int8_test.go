package compress

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// TestDynamicPlan applies a plan of dynamic int8 and writes its model: the loss of the file is
// that of the evaluation, exactly.
func TestDynamicPlan(t *testing.T) {
	t.Parallel()
	m := linear(6)
	for _, v := range m.Main().Values {
		if v.Const != nil {
			tensor.Fill(v.Const, func(i int) float64 { return math.Sin(float64(i*i + v.ID)) })
		}
	}
	j := openedModel(t, m)
	p := &study.Plan{Name: "p", Choices: []study.Choice{{Layer: 0, Change: study.Change{Format: study.Dynamic8}}, {Layer: 1, Change: study.Change{Format: study.Dynamic8}}}}
	if err := j.File.Append(study.Record{Plan: p}); err != nil {
		t.Fatal(err)
	}
	data := &LossOptions{Data: &Data{Options: samples.Options{Path: oneHot(t, 20, 8)}}}
	e, err := j.newEvaluator(t.Context(), &PlanOptions{Try: data}, &study.Loss{LossSettings: study.LossSettings{Method: study.EndToEnd, Metric: loss.RelativeError}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := j.applied(t.Context(), p, data, false)
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.loss(t.Context(), e.tried, c)
	if err != nil {
		t.Fatal(err)
	}
	a, err := j.Apply(t.Context(), "p", data, false)
	if err != nil || len(a.Refused) > 0 {
		t.Fatal(a, err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := a.Write(path); err != nil {
		t.Fatal(err)
	}
	back, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = back.Close() }()
	got, err := e.loss(t.Context(), e.tried, changedModel{m: back})
	if err != nil || *got.Median != *want.Median || !(*got.Median > 0 && *got.Median < 1e-3) {
		t.Errorf("the file loses %v, want %v, %v", *got.Median, *want.Median, err)
	}
}

// TestDefaultFormats tries dynamic int8 where the file format has its operators.
func TestDefaultFormats(t *testing.T) {
	t.Parallel()
	dynamic := study.Change{Format: study.Dynamic8}
	for _, tt := range []struct {
		name    string
		job     *Job
		here    bool
		formats []study.Format
		want    bool
	}{
		{"onnx", openedModel(t, linear(6)), true, nil, true},
		{"a target", openedModel(t, linear(6)), false, nil, false},
		{"tflite", opened(t, "autoencoder.yaml", filepath.Join(t.TempDir(), "m.study")), true, nil, false},
		{"tflite, as asked", opened(t, "autoencoder.yaml", filepath.Join(t.TempDir(), "m.study")), true, []study.Format{study.Dynamic8}, true},
	} {
		got, err := tt.job.Grid(tt.here, nil, nil, tt.formats)
		if err != nil || slices.Contains(got, dynamic) != tt.want {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
}

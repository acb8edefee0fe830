package compress

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// made writes distinct samples for an example's input, and a label for each.
func made(t *testing.T, j *Job, n int) (x, y string) {
	t.Helper()
	ins, err := j.inputs(0)
	if err != nil {
		t.Fatal(err)
	}
	data, labels := tensor.New(tensor.Float32, append([]int{n}, ins[0].Shape[1:]...)...), tensor.New(tensor.Int64, n)
	tensor.Fill(data, func(i int) float64 { return float64(i%17) - 8 })
	dir := t.TempDir()
	put := func(name string, x *tensor.Tensor) string {
		var b bytes.Buffer
		if err := npy.Write(&b, x); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return put("x.npy", data), put("y.npy", labels)
}

// TestUsualLoss checks the default method and metric.
func TestUsualLoss(t *testing.T) {
	j := opened(t, "autoencoder.yaml", filepath.Join(t.TempDir(), "m.study"))
	x, y := made(t, j, 20)
	one := []study.Change{{Structure: study.Unstructured, Level: .5}}
	for _, tt := range []struct {
		name   string
		data   samples.Options
		method study.Method // that is asked for
		n      int          // changes
		want   study.LossSettings
	}{
		{"labels", samples.Options{Path: x, Labels: y}, "", 1, study.LossSettings{Method: study.EndToEnd, Metric: loss.Accuracy}},
		{"labels, and much to do", samples.Options{Path: x, Labels: y}, "", 1 << 20, study.LossSettings{Method: study.EndToEnd, Metric: loss.Accuracy}},
		{"data", samples.Options{Path: x}, "", 1, study.LossSettings{Method: study.EndToEnd, Metric: loss.RelativeError}},
		{"data, and much to do", samples.Options{Path: x}, "", 1 << 20, study.LossSettings{Method: study.Calibrated, Metric: loss.RelativeError}},
		{"nothing", samples.Options{Limit: 20}, "", 1, study.LossSettings{Method: study.OutputError, Metric: loss.RelativeError}},
		{"asked for", samples.Options{Path: x}, study.Calibrated, 1, study.LossSettings{Method: study.Calibrated, Metric: loss.RelativeError}},
		{"end to end asked for", samples.Options{Path: x}, study.EndToEnd, 1, study.LossSettings{Method: study.EndToEnd, Metric: loss.RelativeError}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := LossOptions{Method: tt.method, Changes: slices.Repeat(one, tt.n), Data: &Data{Options: tt.data}}
			got, err := j.lossSettings(t.Context(), &o)
			if err != nil || got.Method != tt.want.Method || got.Metric != tt.want.Metric {
				t.Errorf("%s by %s, error %v; want %s by %s", got.Method, got.Metric, err, tt.want.Method, tt.want.Metric)
			}
		})
	}
}

// TestCalibratedKept checks that a study stores the anchors: a profile that grows reuses them.
func TestCalibratedKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.study")
	j := opened(t, "autoencoder.yaml", path)
	x, _ := made(t, j, 20)
	run := func(levels ...float64) *study.Loss {
		o := LossOptions{Method: study.Calibrated, Data: &Data{Options: samples.Options{Path: x}}}
		for _, v := range levels {
			o.Changes = append(o.Changes, study.Change{Structure: study.Unstructured, Level: v})
		}
		p, err := j.Loss(t.Context(), o)
		if err != nil || !p.Done {
			t.Fatal(err)
		}
		return p
	}
	first := run(.5)
	n := len(j.Layers)
	if len(first.Points) != n || len(first.Anchors) != 3*n {
		t.Fatalf("%d points and %d anchors of %d layers", len(first.Points), len(first.Anchors), n)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = opened(t, "autoencoder.yaml", path)
	if second := run(.5, .7); len(second.Points) != 2*n || len(second.Anchors) != 3*n {
		t.Errorf("with another level %d points and %d anchors of %d layers", len(second.Points), len(second.Anchors), n)
	}
}

package compress

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// opened opens a study of an example model.
func opened(t *testing.T, name, path string) *Job {
	t.Helper()
	m, err := modelfile.Open(filepath.Join(material.Root(), "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	j, err := Open(m, path, Options{Identity: func() (*describe.Identity, error) { return describe.Identify(m, m.Content) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestGrid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		levels     []float64
		structures []study.Structure
		formats    []study.Format
		want       int
		err        string
	}{
		{"usual", nil, nil, nil, 3*9 + 4 + 3, ""},
		{"filters and int8", []float64{.4, .5}, []study.Structure{study.Filter}, []study.Format{study.Int8}, 2 + 1 + 1, ""},
		{"two of four has one level", []float64{.3, .6}, []study.Structure{study.TwoOfFour}, []study.Format{}, 1, ""},
		{"level 0 is the unchanged model", []float64{0, .5}, []study.Structure{study.Filter}, []study.Format{study.Half}, 2, ""},
		{"nothing", []float64{0}, nil, []study.Format{}, 0, "nothing to try"},
		{"level", []float64{1.5}, nil, nil, 0, "levels from 0 to 1"},
		{"structure", nil, []study.Structure{"x"}, nil, 0, `no structure "x"`},
		{"format", nil, nil, []study.Format{"x"}, 0, `no format "x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Grid(true, tt.levels, tt.structures, tt.formats)
			if len(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, %v, want %d and %q", got, err, tt.want, tt.err)
			}
		})
	}
}

// TestResume stops a performance profile after the first change and resumes it: nothing is
// measured twice, and other settings are refused.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.study")
	j := opened(t, "ds_cnn.yaml", path)
	changes, err := Grid(true, []float64{.5, .9}, []study.Structure{study.Unstructured}, []study.Format{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	j.o.Progress = func(phase string, _ float64) {
		if strings.Contains(phase, "90 %") {
			cancel()
		}
	}
	o := SpeedOptions{Changes: changes, Time: time.Millisecond}
	p, err := j.Speed(ctx, o)
	if !errors.Is(err, context.Canceled) || p.Done || len(p.Points) != len(j.Layers) {
		t.Fatalf("%v: %d points, done %v", err, len(p.Points), p.Done)
	}
	first := p.Points[0].Ratio
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = opened(t, "ds_cnn.yaml", path)
	if p, err = j.Speed(t.Context(), o); err != nil || !p.Done || len(p.Points) != 2*len(j.Layers) || *p.Points[0].Ratio.Median != *first.Median {
		t.Errorf("%v: %d points, done %v", err, len(p.Points), p.Done)
	}
	o.Name, o.Threads = "host", 2
	if _, err := j.Speed(t.Context(), o); err == nil || !strings.Contains(err.Error(), "was made with threads 1, not 2") {
		t.Errorf("other settings: %v", err)
	}
	o.Name, o.Counted = "", true
	if p, err = j.Speed(t.Context(), o); err != nil || p.Name != "flops" || !p.Done {
		t.Errorf("%v: %+v", err, p)
	}
}

// TestWhole runs all steps with generated data.
func TestWhole(t *testing.T) {
	j := opened(t, "autoencoder.yaml", filepath.Join(t.TempDir(), "m.study"))
	changes, err := Grid(true, []float64{.5, .9}, []study.Structure{study.Unstructured}, []study.Format{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Speed(t.Context(), SpeedOptions{Changes: changes, Time: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	l := LossOptions{Changes: changes, Data: &Data{}}
	lo, err := j.Loss(t.Context(), l)
	if err != nil || !lo.Done || !lo.Random || lo.Method != study.OutputError {
		t.Fatalf("%v: %+v", err, lo)
	}
	p, err := j.Plan(t.Context(), PlanOptions{Goal: study.Goal{Sparsity: new(.3)}, Try: &l})
	if err != nil || p.Measured == nil || p.Measured.Speedup == nil || p.Name != "sparsity-0.3" {
		t.Fatalf("%v: %+v", err, p)
	}
	a, err := j.Apply(t.Context(), "", &l, true)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.tflite")
	if err := a.Write(file); err != nil {
		t.Fatal(err)
	}
	if m, err := modelfile.Open(file); err != nil || len(m.Main().Nodes) != len(j.m.Main().Nodes) {
		t.Errorf("the compressed model: %v", err)
	}
	for _, kind := range Exports() {
		data, _, err := j.Export(ExportOptions{Kind: kind})
		if err != nil || len(data) == 0 {
			t.Errorf("%s: %v", kind, err)
		}
		if kind == "sparsify-perf" || kind == "sparsify-loss" {
			if i, err := j.Import(data, "x.json", kind+"-again"); err != nil || len(i.Unmatched) > 0 {
				t.Errorf("%s again: %+v, %v", kind, i, err)
			}
		}
	}
	if _, err := j.Plan(t.Context(), PlanOptions{Goal: study.Goal{Speedup: new(1000.)}}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a thousand times as fast: %v", err)
	}
}

// TestChosenByError checks that a plan's model has the weights that its loss was measured with,
// if they were pruned by error on the data, also after reopening the study.
func TestChosenByError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.study")
	j := opened(t, "autoencoder.yaml", path)
	l := LossOptions{Choice: loss.ByError, Changes: []study.Change{{Structure: study.Unstructured, Level: .5}}, Data: &Data{}}
	lo, err := j.Loss(t.Context(), l)
	if err != nil || len(lo.InputEnergies) != len(j.Layers) {
		t.Fatalf("%v: %d energies of %d layers", err, len(lo.InputEnergies), len(j.Layers))
	}
	if _, err := j.Plan(t.Context(), PlanOptions{Goal: study.Goal{Sparsity: new(.1)}, SkipRun: true}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = opened(t, "autoencoder.yaml", path)
	p, err := j.plan("")
	if err != nil {
		t.Fatal(err)
	}
	a, err := j.Apply(t.Context(), "", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*weights.Layer{}
	for _, x := range weights.Find(a.Graph, j.shape) {
		by[x.ID] = x
	}
	changed, other := 0, 0
	for _, c := range p.Choices {
		if c.Change.IsZero() {
			continue
		}
		x := j.Layers[c.Layer]
		want, large := x.Read(nil), make([]float32, x.Rows*x.Cols)
		order, _ := mask.New(x, loss.ErrorScores(want, x.Rows, x.Cols, j.Study().Loss(p.Loss).InputEnergyOf(c.Layer)), c.Change.Structure)
		for i, v := range want {
			large[i] = max(v, -v)
		}
		plain, _ := mask.New(x, large, c.Change.Structure)
		large = slices.Clone(want)
		order.Zero(want, c.Change.Level)
		plain.Zero(large, c.Change.Level)
		got := by[x.ID].Read(nil)
		if !slices.Equal(got, want) {
			t.Errorf("%s: other weights than those of the profile", x.Name)
		}
		if !slices.Equal(got, large) {
			other++
		}
		changed++
	}
	if changed == 0 || other == 0 {
		t.Errorf("%d layers changed, %d of them otherwise than by magnitude", changed, other)
	}
}

// TestOtherData resumes a loss profile after its data file has changed: that is refused. The same
// values with another modification time are accepted.
func TestOtherData(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, "autoencoder.yaml", filepath.Join(dir, "m.study"))
	ins, err := j.inputs(0)
	if err != nil {
		t.Fatal(err)
	}
	x := ins[0].Clone()
	put := func() string {
		var b bytes.Buffer
		if err := npy.Write(&b, x); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "x.npy")
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run := func(level float64) error {
		o := LossOptions{Changes: []study.Change{{Structure: study.Unstructured, Level: level}}, Data: &Data{Options: samples.Options{Path: put()}}}
		_, err := j.Loss(t.Context(), o)
		return err
	}
	if err := errors.Join(run(.5), run(.6)); err != nil {
		t.Fatal(err)
	}
	x.Data[0] ^= 1
	if err := run(.7); err == nil || !strings.Contains(err.Error(), "a different version") {
		t.Errorf("with other data: %v", err)
	}
}

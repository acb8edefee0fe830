package opmeter_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

func open(t testing.TB, name string) *opmeter.Model {
	t.Helper()
	m, err := opmeter.Open(filepath.Join(material.Root(), "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

var quick = opmeter.Options{Runs: 4, Warmup: -1}

// Options that nothing can be done with are refused before any work, by name.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	m := open(t, "autoencoder.yaml")
	for want, o := range map[string]opmeter.Options{
		"Threads":       {Threads: -3},
		"Runs":          {Runs: -5},
		"Time":          {Time: -time.Second},
		"MaxMACs":       {MaxMACs: -1},
		"Inputs.Batch":  {Inputs: opmeter.Inputs{Batch: -2}},
		"Inputs.Shapes": {Inputs: opmeter.Inputs{Shapes: map[string][]int{"nothing": {1}}}},
		"Inputs.Files":  {Inputs: opmeter.Inputs{Files: map[string]string{"nothing": "x.npy"}}},
		"Carry":         {Carry: map[string]string{"nothing": "input"}},
		"Journal":       {Journal: filepath.Join(t.TempDir(), "no", "folder")},
	} {
		p, err := opmeter.Profile(t.Context(), m, o)
		e, ok := errors.AsType[*opmeter.OptionError](err)
		if !ok || e.Option != want || p != nil {
			t.Errorf("%s: %v (%T), profile %v", want, err, err, p != nil)
		}
	}
	if _, err := opmeter.NewSession(m, opmeter.RunOptions{Threads: -1}); err == nil {
		t.Error("a session with -1 threads")
	}
	if _, err := opmeter.Count(m, opmeter.Inputs{Batch: -1}); err == nil {
		t.Error("a count with a batch of -1")
	}
	if _, err := opmeter.Estimate(m, "stm32l4r5", opmeter.EstimateOptions{ClockHz: -5}); err == nil {
		t.Error("an estimate at -5 Hz")
	}
	big := quick
	big.MaxMACs = 10
	if _, err := opmeter.Profile(t.Context(), m, big); !isA[*opmeter.TooLargeError](err) {
		t.Errorf("a limit of 10 MACs gives %v", err)
	}
}

func isA[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

// A model from memory is the same model, and what is wrong with one says where.
func TestOpenBytes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(material.Root(), "examples", "ds_cnn.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := opmeter.OpenBytes("ds_cnn.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := opmeter.Count(a, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := opmeter.Count(open(t, "ds_cnn.yaml"), opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	if *p.Totals.MACs != *q.Totals.MACs || p.Model.SHA256 != q.Model.SHA256 || p.Model.WeightsSHA256 != q.Model.WeightsSHA256 || p.Model.StructureSHA256 == "" {
		t.Errorf("%+v and %+v", p.Model, q.Model)
	}
	_, err = opmeter.OpenBytes("x.tflite", []byte("\x20\x00\x00\x00TFL3 and nothing that fits"))
	if e, ok := errors.AsType[*opmeter.ModelError](err); !ok || e.File != "x.tflite" || e.Offset < 0 {
		t.Errorf("%v (%T)", err, err)
	}
}

// Everything needed to repeat an estimate is in it.
func TestEstimateCanBeRepeated(t *testing.T) {
	t.Parallel()
	p, err := opmeter.Estimate(open(t, "ds_cnn.yaml"), "stm32l4r5", opmeter.EstimateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]string{
		"date": p.Created, "version": p.Settings.Version, "hash of the target": p.Settings.TargetSHA256, "hash of the model": p.Model.SHA256,
		"hash of the structure": p.Model.StructureSHA256, "hash of the weights": p.Model.WeightsSHA256, "engine": p.Settings.Engine,
	} {
		if v == "" {
			t.Errorf("an estimate has no %s", what)
		}
	}
}

// The same model has the same totals whether it is counted, run or estimated.
func TestTotalsAgree(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ds_cnn.yaml", "resnet8.yaml", "autoencoder.yaml"} {
		m := open(t, name)
		a, err := opmeter.Count(m, opmeter.Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := opmeter.Profile(t.Context(), m, quick)
		if err != nil {
			t.Fatal(err)
		}
		c, err := opmeter.Estimate(m, "efr32xg24-mvp", opmeter.EstimateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range profile.Quantities() {
			if !q.Whole || !q.Adds || a.Totals.Figure(q.Key) == nil {
				continue
			}
			x, _ := a.Totals.Value(q.Key)
			for _, p := range []*profile.Profile{b, c} {
				if y, ok := p.Totals.Value(q.Key); !ok || x != y {
					t.Errorf("%s: %s is %v counted and %v for %s", name, q.Key, x, y, p.Target.ID)
				}
			}
		}
	}
}

// What is added up comes from the same runs: layers and gaps make up the wall time,
// and shares one.
func TestTimesAddUp(t *testing.T) {
	t.Parallel()
	p, err := opmeter.Profile(t.Context(), open(t, "resnet8.yaml"), opmeter.Options{Runs: 12, Warmup: -1})
	if err != nil {
		t.Fatal(err)
	}
	var sum, share float64
	for i := range p.Layers {
		l := &p.Layers[i]
		v, ok := l.Latency.Best()
		if ok && l.Latency.Estimator() != "median" {
			t.Errorf("layer %d shows its %s", i, l.Latency.Estimator())
		}
		sum += v
		if l.Share != nil {
			share += *l.Share
		}
	}
	r := p.Reconcile
	if math.Abs(sum-*r.OperatorsS) > 1e-9*sum || math.Abs(sum+*r.GapsS-*r.WallS) > 1e-9*sum || math.Abs(share-1) > 1e-9 {
		t.Errorf("layers %v s, operators %v s, gaps %v s, wall %v s, shares %v", sum, *r.OperatorsS, *r.GapsS, *r.WallS, share)
	}
}

// Nothing is measured by a count.
func TestCountMeasuresNothing(t *testing.T) {
	t.Parallel()
	p, err := opmeter.Count(open(t, "ds_cnn.yaml"), opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Memory.ProcessPeakBytes != nil || p.Phases != nil && p.Phases.PlanS != nil || p.Totals.Latency != nil || p.Host != nil {
		t.Errorf("memory %+v, phases %+v", p.Memory, p.Phases)
	}
}

// Profiles that are asked for at once wait for each other, and the collector is as
// it was afterwards.
func TestProfilesAtOnce(t *testing.T) {
	before := debug.SetGCPercent(123)
	defer debug.SetGCPercent(before)
	m := open(t, "ds_cnn.yaml")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := opmeter.Profile(t.Context(), m, quick); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p := debug.SetGCPercent(123); p != 123 {
		t.Errorf("the collector is left at %d %%", p)
	}
}

// A session runs a model and gives its outputs.
func TestSession(t *testing.T) {
	t.Parallel()
	s, err := opmeter.NewSession(open(t, "autoencoder.yaml"), opmeter.RunOptions{KeepAll: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := s.Outputs()
	if len(out) != 1 || out[0].Data == nil || out[0].DType == "" || !out[0].Array() {
		t.Errorf("outputs %+v", out)
	}
	for _, o := range s.Operators() {
		if o.Err != nil || len(o.Outputs) != 1 || o.Outputs[0].Data == nil {
			t.Errorf("operator %+v", o)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was stopped: %v", err)
	}
}

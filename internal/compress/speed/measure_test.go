package speed

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

func open(t *testing.T, path string) (*graph.Model, []*weights.Layer, Options) {
	t.Helper()
	m, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ins, _, err := inputs.Inputs(m, inputs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m, weights.Find(m, nil), Options{Engine: engine.Options{Registry: operators.Registry(), Threads: 1}, Inputs: ins, Time: time.Millisecond}
}

func TestMeasure(t *testing.T) {
	m, layers, o := open(t, filepath.Join(material.Root(), "examples", "resnet8.yaml"))
	o.Changes = []study.Change{{Structure: study.Unstructured, Level: .9}, {Structure: study.Filter, Level: .5}, {Format: study.Int8}}
	o.Have = func(c study.Change) bool { return c.Structure == study.Filter }
	var s study.Speed
	err := Measure(context.Background(), m, layers, o, func(p *study.SpeedPoints) error {
		if p.Layers != nil {
			s.Layers, s.Latency = p.Layers, p.Latency
		}
		s.Points = append(s.Points, p.Points...)
		s.Done = p.Done
		return nil
	})
	if err != nil || !s.Done || s.Latency == nil || len(s.Layers) != len(layers) || len(s.Points) != 2*len(layers) {
		t.Fatalf("%v: %d layers, %d points of %d layers", err, len(s.Layers), len(s.Points), len(layers))
	}
	for _, l := range s.Layers {
		if l.Latency == nil || l.Kernel == "" {
			t.Errorf("layer %d: %+v", l.Layer, l)
		}
	}
	for _, p := range s.Points {
		if p.Cause == "" && (p.Ratio == nil || p.Ratio.CI95 == nil) {
			t.Errorf("layer %d with %v: %+v", p.Layer, p.Change, p)
		}
	}
}

// TestGroups gives what a change makes of other layers to the layer that has it: filters of a
// convolution within a block reach the next one, those that are added up go together, and those
// of the last layer stay.
func TestGroups(t *testing.T) {
	m, layers, o := open(t, filepath.Join(material.Root(), "examples", "resnet8.yaml"))
	o.Changes, o.NoLimits = []study.Change{{Structure: study.Filter, Level: .5}}, true
	models := groupsByModel(rewrite.Groups(m, layers, study.Filter), layers)
	if len(models) < 2 || len(models) > 4 {
		t.Errorf("%d models", len(models))
	}
	seen := map[int]bool{}
	for _, gs := range models {
		nodes := map[int]bool{}
		for _, g := range gs {
			for _, l := range g.Layers {
				if seen[l] {
					t.Errorf("layer %d is in two groups", l)
				}
				seen[l] = true
			}
			for _, n := range g.Nodes {
				if nodes[n] {
					t.Errorf("two groups of a model touch node %d", n)
				}
				nodes[n] = true
			}
		}
	}
	var points []study.SpeedPoint
	err := Measure(context.Background(), m, layers, o, func(p *study.SpeedPoints) error {
		points = append(points, p.Points...)
		return nil
	})
	if err != nil || len(points) != len(layers) {
		t.Fatalf("%v: %d points", err, len(points))
	}
	alone, tied := 0, 0
	for i, p := range points {
		switch {
		case i == len(layers)-1:
			if p.Cause != study.Coupled {
				t.Errorf("the last layer: %+v", p)
			}
		case p.Ratio == nil || p.Layer != i:
			t.Errorf("layer %d: %+v", i, p)
		case len(p.With) > 0:
			tied++
		case len(p.Affected) != 1 || p.Affected[0].Layer != i+1:
			t.Errorf("layer %d reaches %+v", i, p.Affected)
		default:
			alone++
		}
	}
	if alone != 3 || tied != len(layers)-4 {
		t.Errorf("%d layers go alone, %d with others", alone, tied)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	m, layers, o := open(t, filepath.Join(material.Root(), "examples", "resnet8.yaml"))
	o.Changes = []study.Change{{Structure: study.Unstructured, Level: .5}, {Structure: study.TwoOfFour, Level: .5}}
	points, done := 0, false
	err := Count(m, layers, o.Changes, nil, func(p *study.SpeedPoints) error {
		points, done = points+len(p.Points), p.Done
		for _, x := range p.Points {
			if x.Cause == "" && (x.Ratio == nil || *x.Ratio.Median < .45 || *x.Ratio.Median > .55) {
				t.Errorf("layer %d with %v: %+v", x.Layer, x.Change, x)
			}
		}
		return nil
	})
	if err != nil || !done || points != 2*len(layers) {
		t.Errorf("%v: %d points of %d layers", err, points, len(layers))
	}
}

// TestEstimate asks a chip: filters gain, single zeros do not.
func TestEstimate(t *testing.T) {
	t.Parallel()
	m, layers, o := open(t, filepath.Join(material.Root(), "examples", "resnet8.yaml"))
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	target, err := set.Find("stm32l4r5")
	if err != nil {
		t.Fatal(err)
	}
	o.Changes = []study.Change{{Structure: study.Unstructured, Level: .5}, {Structure: study.Filter, Level: .5}}
	gained := 0
	err = Estimate(t.Context(), m, layers, TargetOptions{Target: target, Changes: o.Changes}, func(p *study.SpeedPoints) error {
		for _, x := range p.Points {
			switch {
			case x.Change.Structure == study.Unstructured && x.Cause != study.NoKernel && x.Cause != study.ShapeMismatch:
				t.Errorf("layer %d: single zeros gain: %+v", x.Layer, x)
			case x.Change.Structure == study.Filter && x.Cause == "" && *x.Ratio.Median < .8 && x.Ratio.Band != nil:
				gained++
			}
		}
		for _, l := range p.Layers {
			if l.Latency == nil || l.Latency.Band == nil {
				t.Errorf("layer %d has no estimate", l.Layer)
			}
		}
		return nil
	})
	if err != nil || gained == 0 {
		t.Errorf("%v: %d layers gain", err, gained)
	}
}

// TestCompare runs a model interleaved with itself.
func TestCompare(t *testing.T) {
	m, _, o := open(t, filepath.Join(material.Root(), "examples", "resnet8.yaml"))
	r, err := Compare(t.Context(), m, m, o)
	if err != nil || r.Before == nil || r.After == nil || r.Speedup.CI95 == nil || *r.Speedup.N < 2*minPairs {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestMeasureBodies finds the times of layers in the branch of an If that runs.
func TestMeasureBodies(t *testing.T) {
	m, err := modelfile.Open(material.Path(t, "models", "real", "silero_vad.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	ins, _, err := inputs.Inputs(m, inputs.Options{Shapes: map[string][]int{"input": {1, 512}}})
	if err != nil {
		t.Fatal(err)
	}
	layers := weights.All(m, nil)
	o := Options{Engine: engine.Options{Registry: operators.Registry(), Threads: 1}, Inputs: ins, Time: time.Millisecond, NoLimits: true}
	o.Changes = []study.Change{{Structure: study.Unstructured, Level: .95}}
	ran := 0
	err = Measure(t.Context(), m, layers, o, func(p *study.SpeedPoints) error {
		for _, l := range p.Layers {
			if layers[l.Layer].Graph == 0 || *l.Latency.Median <= 0 || *l.Latency.Median >= *p.Latency.Median {
				t.Errorf("layer %d: %v of %v", l.Layer, *l.Latency.Median, *p.Latency.Median)
			}
			for _, n := range l.Fused {
				if n >= len(m.Graphs[layers[l.Layer].Graph].Nodes) {
					t.Errorf("layer %d holds node %d", l.Layer, n)
				}
			}
		}
		for _, x := range p.Points {
			if x.Cause == "" || x.Cause == study.NoKernel {
				ran++
			} else if x.Cause != study.NotRun {
				t.Errorf("layer %d: %s", x.Layer, x.Cause)
			}
		}
		return nil
	})
	if err != nil || ran != len(layers)/2 {
		t.Errorf("%v: %d of %d layers ran", err, ran, len(layers))
	}
}

package speed

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/compress/weights"
	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/operators"
	"github.com/opmeter/opmeter/internal/read/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

func open(t *testing.T, path string) (*graph.Model, []*weights.Layer, Options) {
	t.Helper()
	m, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ins, _, err := feed.Inputs(m, feed.Options{})
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

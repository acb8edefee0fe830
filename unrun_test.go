package opmeter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestUnrunError profiles a model of which nothing runs: the error is typed, and a program that
// reads the profile nevertheless finds no headline.
func TestUnrunError(t *testing.T) {
	t.Parallel()
	value := func(id int, name string) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: []int{2, 2}, HasShape: true, Offset: -1}
	}
	g := &graph.Graph{
		Name: "g", Values: []*graph.Value{value(0, "x"), value(1, "y")}, Inputs: []int{0}, Outputs: []int{1},
		Nodes: []*graph.Node{{Domain: "com.example", Op: "Own", Version: 1, Inputs: []int{0}, Outputs: []int{1}}},
	}
	data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17, "com.example": 1}, Graphs: []*graph.Graph{g}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := opmeter.OpenBytes("own.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := opmeter.Profile(t.Context(), m, opmeter.Options{Runs: 3, Time: time.Second, Warmup: -1, SkipPeaks: true})
	e, ok := errors.AsType[*opmeter.UnrunError](err)
	if !ok || len(e.Layers) != 1 || e.Of != 1 || e.Error() != "own.onnx: 1 of 1 layers did not run: no latency for the model" {
		t.Fatalf("error %v", err)
	}
	if p == nil {
		t.Fatal("no profile")
	}
	if h, ok := p.Headline(); ok {
		t.Errorf("headline %+v", h)
	}
	if got := p.Slowest(-1); got != nil {
		t.Errorf("slowest layers %+v", got)
	}
}

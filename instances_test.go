package opmeter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestSharedMemory gives sessions that run at the same time one limit: what holds one of them does
// not hold four.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	value := func(id int, name string) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: []int{1 << 20}, HasShape: true, Offset: -1}
	}
	g := &graph.Graph{
		Name: "g", Values: []*graph.Value{value(0, "x"), value(1, "y")}, Inputs: []int{0}, Outputs: []int{1},
		Nodes: []*graph.Node{{Op: "Abs", Version: 13, Inputs: []int{0}, Outputs: []int{1}}},
	}
	data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := opmeter.OpenBytes("abs.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const limit = 12 << 20 // a session takes 4 MiB of input at least
	for _, record := range []bool{false, true} {
		o := opmeter.RunOptions{MaxMemory: limit, Record: record}
		ss, err := opmeter.NewSessions(m, o, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := opmeter.RunConcurrently(t.Context(), ss, 1); err != nil {
			t.Error(err)
		}
		for _, s := range ss {
			s.Close()
		}
		if ss, err = opmeter.NewSessions(m, o, 4); err == nil {
			err = opmeter.RunConcurrently(t.Context(), ss, 1)
		}
		if !errors.Is(err, opmeter.ErrMemory) || !strings.Contains(err.Error(), "needs ") || !strings.Contains(err.Error(), "the limit is 3.0 MiB") || !strings.HasSuffix(err.Error(), ": 4 instances share a limit of 12.0 MiB") {
			t.Errorf("recorded %v: error %v", record, err)
		}
	}
	// A node without memory does not run, and says the same.
	ss, err := opmeter.NewSessions(m, opmeter.RunOptions{MaxMemory: 2 * limit}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range ss {
		if err := s.Operators()[0].Err; err == nil || !strings.HasSuffix(err.Error(), "the limit is 6.0 MiB: 4 instances share a limit of 24.0 MiB") {
			t.Errorf("operator: %v", err)
		}
		s.Close()
	}
	if _, err := opmeter.NewSessions(m, opmeter.RunOptions{}, 0); err == nil {
		t.Error("no error for no sessions")
	}
}

package onnx_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// chain is a model of a few nodes in a row.
func chain(t testing.TB) []byte {
	t.Helper()
	g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: []int{3}}
	for i := range 4 {
		g.Values = append(g.Values, &graph.Value{ID: i, Name: string(rune('a' + i)), Type: tensor.Float32, Shape: []int{2}, HasShape: true})
	}
	for i, op := range []string{"Relu", "Neg", "Abs"} {
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Op: op, Name: fmt.Sprintf("n%d", i), Inputs: []int{i}, Outputs: []int{i + 1}})
	}
	b, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func annotate(data []byte, model []onnx.Property, node func(int, string, string) []onnx.Property) ([]byte, error) {
	var b bytes.Buffer
	err := onnx.Annotate(&b, data, "own.", model, node)
	return b.Bytes(), err
}

func none(int, string, string) []onnx.Property { return nil }

// Without properties the bytes stay. With them the model stays the same, and taking them away
// gives the file as it was, so that a second annotation replaces the first.
func TestAnnotate(t *testing.T) {
	t.Parallel()
	file := chain(t)
	if b, err := annotate(file, nil, none); err != nil || !bytes.Equal(b, file) {
		t.Errorf("without properties the file differs: %v", err)
	}
	// Properties of others stay.
	file, err := annotate(file, []onnx.Property{{Key: "theirs", Value: "x"}}, func(at int, _, _ string) []onnx.Property {
		return []onnx.Property{{Key: "theirs", Value: fmt.Sprint(at)}}
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	long := string(bytes.Repeat([]byte("y"), 300)) // lengths of messages take more bytes
	noted, err := annotate(file, []onnx.Property{{Key: "own.a", Value: "1"}}, func(at int, name, op string) []onnx.Property {
		seen = append(seen, fmt.Sprintf("%d %s %s", at, name, op))
		if at == 1 {
			return nil
		}
		return []onnx.Property{{Key: "own.time", Value: long}, {Key: "own.share", Value: "5 %"}}
	})
	if err != nil || fmt.Sprint(seen) != "[0 n0 Relu 1 n1 Neg 2 n2 Abs]" {
		t.Fatalf("%v: nodes %v", err, seen)
	}
	if bytes.Count(noted, []byte(long)) != 2 || bytes.Count(noted, []byte("own.a")) != 1 {
		t.Error("a property is absent")
	}
	m, err := onnx.Parse(noted, "m.onnx", "")
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Main().Nodes; len(n) != 3 || n[1].Op != "Neg" || len(m.Metadata) != 2 {
		t.Errorf("%d nodes, metadata %v", len(n), m.Metadata)
	}
	if b, err := annotate(noted, nil, none); err != nil || !bytes.Equal(b, file) {
		t.Errorf("taking the properties away leaves %d bytes of %d: %v", len(b), len(file), err)
	}
}

// Damaged files give an error with a place, or are cut between two fields.
func TestAnnotateDamaged(t *testing.T) {
	t.Parallel()
	file := chain(t)
	for n := range file {
		if b, err := annotate(file[:n], nil, none); err == nil && !bytes.Equal(b, file[:n]) {
			t.Errorf("the first %d of %d bytes give %d others", n, len(file), len(b))
		}
	}
	if _, err := annotate([]byte("\x3a\x02\x0a\x00"), nil, none); err == nil || err.Error() != "node has no operator type (at byte 4)" {
		t.Errorf("a node without operator: %v", err)
	}
}

func FuzzAnnotate(f *testing.F) {
	f.Add(chain(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		noted, err := annotate(data, []onnx.Property{{Key: "own.a", Value: "b"}}, func(int, string, string) []onnx.Property { return []onnx.Property{{Key: "own.c", Value: "d"}} })
		if err != nil {
			return
		}
		plain, err := annotate(data, nil, none)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := annotate(noted, nil, none); err != nil || !bytes.Equal(back, plain) {
			t.Fatalf("taking properties away leaves %d bytes of %d: %v", len(back), len(plain), err)
		}
	})
}

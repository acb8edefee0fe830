package onnx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestBeside writes constants beside a model: those of a page and more, at whole pages, those
// that share their bytes once.
func TestBeside(t *testing.T) {
	t.Parallel()
	made := func(n int) *tensor.Tensor {
		c := tensor.New(tensor.Uint8, n)
		for i := range c.Data {
			c.Data[i] = byte(i + n)
		}
		return c
	}
	a, b := made(5000), made(4096)
	again := *a
	g := &graph.Graph{Name: "g"}
	for i, c := range []*tensor.Tensor{a, made(4095), b, &again} {
		g.Values = append(g.Values, &graph.Value{ID: i, Name: string(rune('a' + i)), Type: c.Type, Shape: c.Shape, HasShape: true, Const: c})
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Op: "Identity", Inputs: []int{i}, Outputs: []int{i + 4}})
	}
	for i := range 4 {
		g.Values = append(g.Values, &graph.Value{ID: i + 4, Name: string(rune('p' + i)), Type: tensor.Uint8})
		g.Outputs = append(g.Outputs, i+4)
	}
	m := &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}}
	file, beside, err := onnx.EncodeExternal(m, "m.onnx.data")
	if err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if err := beside.Write(&data); err != nil {
		t.Fatal(err)
	}
	if data.Len() != 8192+4096 || !bytes.Equal(data.Bytes()[8192:], b.Data) {
		t.Errorf("%d bytes beside the model", data.Len())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.onnx.data"), data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := onnx.Parse(file, "m.onnx", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = back.Close() }()
	if want := []string{filepath.Join(dir, "m.onnx.data")}; !slices.Equal(back.Beside, want) {
		t.Errorf("beside %q, want %q", back.Beside, want)
	}
	if back.BesideFileBytes != int64(data.Len()) {
		t.Errorf("%d bytes beside the model, want %d", back.BesideFileBytes, data.Len())
	}
	for i := range 4 {
		got := back.Main().Values[back.Main().Nodes[i].Inputs[0]].Const
		if want := g.Values[i].Const; got == nil || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("constant %d differs", i)
		}
	}
}

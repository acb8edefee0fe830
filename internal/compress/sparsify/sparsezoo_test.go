package sparsify

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// integers is a QLinearConv of one input channel group with zero point 3 and padding.
func quantised() *graph.Model {
	g := &graph.Graph{}
	value := func(name string, typ tensor.Type, shape []int, data any) int {
		v := &graph.Value{ID: len(g.Values), Name: name, Type: typ, Shape: shape, HasShape: true}
		switch d := data.(type) {
		case []uint8:
			v.Const = tensor.From(typ, shape, d)
		case []int32:
			v.Const = tensor.From(typ, shape, d)
		case []float32:
			v.Const = tensor.From(typ, shape, d)
		}
		g.Values = append(g.Values, v)
		return v.ID
	}
	w := make([]uint8, 2*6*3*3)
	for i := range w {
		w[i] = 3
	}
	w[0], w[7] = 0, 9 // two weights that are not zero
	x := value("x", tensor.Uint8, []int{1, 6, 5, 5}, nil)
	one := func(name string) int { return value(name, tensor.Float32, []int{}, []float32{1}) }
	zero := func(name string, z uint8) int { return value(name, tensor.Uint8, []int{}, []uint8{z}) }
	in := []int{
		x, one("xs"), zero("xz", 0), value("w", tensor.Uint8, []int{2, 6, 3, 3}, w), one("ws"), zero("wz", 3), one("ys"), zero("yz", 0),
		value("b", tensor.Int32, []int{2}, []int32{1, 0}),
	}
	g.Inputs = []int{x}
	y := value("y", tensor.Uint8, []int{1, 2, 5, 5}, nil)
	g.Nodes = []*graph.Node{{Name: "conv", Op: "QLinearConv", Inputs: in, Outputs: []int{y}, Attrs: graph.Attrs{"pads": []int64{1, 1, 1, 1}, "kernel_shape": []int64{3, 3}}}}
	g.Outputs = []int{y}
	return &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, Opsets: map[string]int{"": 17}}
}

func TestZoo(t *testing.T) {
	t.Parallel()
	m := quantised()
	shapes := func(id int) []int { return m.Main().Values[id].Shape }
	z := AnalyseZoo(m, shapes, weights.Find(m, shapes))
	n := z.Nodes[0]
	if !n.Prunable || !n.Sparse || !n.Quantized || fmt.Sprint(n.ZeroPoint) != "3" {
		t.Errorf("%+v", n)
	}
	if s := n.Summary; s.Total != 110 || s.Pruned != 106 || s.BlockStructure[single] != (ZooZeros{106, 2, 106.0 / 108, 108}) {
		t.Errorf("parameters %+v", s)
	}
	// Six channels are a block of four and one that is padded with ones: of 36 blocks 18 can be
	// zero, and the first channel's two weights are in two of them.
	if b := n.Summary.BlockStructure[block4]; b.Zero != 16 || b.NonZero != 20 {
		t.Errorf("blocks %+v", b)
	}
	// Cells of a row of the window lie on 4, 5 and 4 of five outputs.
	ops := n.Operations.Ops
	at := []int64{4, 5, 4}
	dense := 2 * (at[0]*at[0] + at[2]*at[1])
	all := int64(2 * 12 * 13 * 13)
	if s := ops.BlockStructure[single]; s.Dense != dense+50 || s.Sparse != all-dense {
		t.Errorf("operations %+v, want %d and %d", s, dense+50, all-dense)
	}
	if macs := n.Operations.MACs; macs.Total != all/2 || macs.Precision["uint8"].Dense != dense/2 {
		t.Errorf("multiply-accumulates %+v", macs)
	}
	if z.AllNodes != (ZooNodes{1, 1, 1, 1}) || z.NonParameterized.Total != 0 || z.NodeCounts["QLinearConv"] != 1 {
		t.Errorf("%+v", z)
	}
	for name, text := range map[string]func() ([]byte, error){"yaml": z.YAML, "json": z.JSON} {
		b, err := text()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseZoo(b, name)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, b)
		}
		back.Nodes[0].ZeroPoint, n.ZeroPoint = nil, nil
		z.Nodes[0].ZeroPoint = nil
		if d := cmp.Diff(z, back); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		z.Nodes[0].ZeroPoint = int64(3)
	}
	for _, text := range []string{"a: 1", "- 1", "nodes: 3", "nodes: [{name: a, parameter_summary: {total: 1, pruned: 2}}]"} {
		if _, err := ParseZoo([]byte(text), "z.yaml"); err == nil || !strings.HasPrefix(err.Error(), "z.yaml") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestZooTable(t *testing.T) {
	t.Parallel()
	m := quantised()
	shapes := func(id int) []int { return m.Main().Values[id].Shape }
	rows := AnalyseZoo(m, shapes, weights.Find(m, shapes)).Rows()
	want := `Layers  total  bits  sparsity  quantised
conv    110    34    96.36     98.18

Parameters   total  bits  sparsity  quantised
QLinearConv  110    34    96.36     98.18
Total        110    34    96.36     98.18

Operations   total  bits  sparsity  quantised
QLinearConv  4106   1012  97.03     98.78
Total        4106   1012  97.03     98.78

Overall  total  bits  sparsity  quantised
Total    4216   1045  97.01     98.77
`
	if got := string(ZooTable(rows)); got != want {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	for _, r := range ZooDifference(rows, rows) {
		if r.Total != 0 || r.Bits != 0 || r.Sparsity != 0 {
			t.Errorf("difference from itself: %+v", r)
		}
	}
	if d := ZooDifference(nil, rows); len(d) != len(rows) || d[0].Total != -110 {
		t.Errorf("difference from nothing: %+v", d)
	}
}

// opened reads a reference model with the shapes of its values.
func opened(t *testing.T, file string) (*graph.Model, func(id int) []int) {
	m, err := modelfile.Open(file)
	if err != nil {
		t.Skip(err)
	}
	if m.Close != nil {
		t.Cleanup(func() { _ = m.Close() })
	}
	ins, _, err := inputs.Shapes(m, inputs.Options{})
	if err != nil {
		t.Skip(err)
	}
	p, err := plan.Make(m, ins, plan.Options{Registry: operators.Registry()})
	if err != nil {
		t.Skip(err)
	}
	return m, func(id int) []int {
		x := p.Main.Known(id)
		if x == nil || x.Type == tensor.Invalid || x.Type.IsContainer() {
			return nil
		}
		return append([]int{}, x.Shape...)
	}
}

// TestModels analyses reference models: what is written is read again, correct counts agree with
// those of the counting rules, and operations of convolutions with those that they execute.
func TestModels(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"*.onnx", "*.tflite"} {
		files, err := filepath.Glob(filepath.Join(material.Path(t, "models", "real"), end))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				m, shapes := opened(t, file)
				found := weights.Find(m, shapes)
				var layers []study.Layer
				for _, l := range found {
					layers = append(layers, l.Layer)
				}
				for _, compat := range []bool{true, false} {
					a := Analyse(m, shapes, layers, compat)
					text, err := a.JSON()
					if err != nil {
						t.Fatal(err)
					}
					back, err := ParseAnalysis(text, file)
					if err != nil {
						t.Fatal(err)
					}
					again, _ := back.JSON()
					if string(again) != string(text) {
						t.Errorf("an analysis changes when it is read: %s", cmp.Diff(string(text), string(again)))
					}
					Allocate(a, nil, nil, Defaults())
				}
				z := AnalyseZoo(m, shapes, found)
				for i, n := range m.Main().Nodes {
					ls := of(found, i)
					if n.Op != "Conv" || n.Attrs.Int("group", 1) != 1 || len(ls) != 1 {
						continue
					}
					got := z.Nodes[i].Operations.MACs.BlockStructure[single]
					want := executed(m, n, shapes)
					if out := shapes(n.Outputs[0]); len(out) < 3 || want == nil {
						continue // not known before it runs
					}
					if batch := int64(shapes(n.Outputs[0])[0]); want == nil || got.Dense+got.Sparse != *want/batch {
						t.Errorf("node %d: %+v, want %v", i, got, want)
					}
				}
			})
		}
	}
}

func executed(m *graph.Model, n *graph.Node, shapes func(id int) []int) *int64 {
	of := func(ids []int) (out []*tensor.Tensor) {
		for _, id := range ids {
			v := m.Main().Values[id]
			x := v.Const
			if x == nil {
				x = &tensor.Tensor{Type: tensor.Float32, Shape: shapes(id)}
			}
			out = append(out, x)
		}
		return out
	}
	return count.Count(m, m.Main(), n, of(n.Inputs), of(n.Outputs)).MACsExecuted
}

func FuzzZoo(f *testing.F) {
	f.Add([]byte("node_counts: {Conv: 1}\nnodes:\n- {name: a, op_type: Conv, parameter_summary: {total: 2, pruned: 1}, inputs: [{name: x, shape: [1, null]}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := ParseZoo(data, "f")
		if err != nil {
			return
		}
		text, err := z.JSON()
		if err != nil {
			return // a zero point that JSON does not have
		}
		if _, err := ParseZoo(text, "again"); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

func of(found []*weights.Layer, node int) (out []*weights.Layer) {
	for _, l := range found {
		if l.Node == node {
			out = append(out, l)
		}
	}
	return out
}

package rewrite_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// wrapped puts a drawn network into a body of control flow: into both branches of an If, which
// share its weights, into the body of a Loop, or into the subgraphs of an IF.
func wrapped(t *rapid.T, m *graph.Model) *graph.Model {
	net := m.Main()
	main := &graph.Graph{Name: "main"}
	add := func(v graph.Value) int {
		v.ID = len(main.Values)
		main.Values = append(main.Values, &v)
		return v.ID
	}
	value := func(name string, t tensor.Type, shape []int) graph.Value {
		return graph.Value{Name: name, Type: t, Shape: append([]int{}, shape...), HasShape: true, Offset: -1}
	}
	n := &graph.Node{Name: "around", Version: m.Opsets[""], Attrs: graph.Attrs{}}
	if m.Format == "tflite" {
		n.Domain, n.Version = graph.TFLite, 1
	}
	for _, id := range net.Inputs {
		v := net.Values[id]
		main.Inputs = append(main.Inputs, add(value("given_"+v.Name, v.Type, v.Shape)))
	}
	turns := m.Format == "onnx" && rapid.Bool().Draw(t, "loop")
	for _, id := range net.Outputs {
		v := net.Values[id]
		shape := v.Shape
		if turns {
			shape = append([]int{2}, shape...)
		}
		n.Outputs = append(n.Outputs, add(value("made_"+v.Name, v.Type, shape)))
	}
	main.Outputs = slices.Clone(n.Outputs)
	out := &graph.Model{Format: m.Format, IRVersion: m.IRVersion, Opsets: m.Opsets, Graphs: []*graph.Graph{main}}
	body := func() graph.GraphRef {
		g := *net
		g.Index, g.Values = len(out.Graphs), nil
		for _, v := range net.Values {
			c := *v
			g.Values = append(g.Values, &c)
		}
		if g.Name = "body"; m.Format == "onnx" { // reads the inputs where they are
			g.Parent, g.Inputs = main, nil
			for i, id := range net.Inputs {
				g.Captures = append(g.Captures, graph.Capture{Inner: id, Outer: main.Inputs[i]})
				g.Values[id].Name = main.Values[main.Inputs[i]].Name
			}
		}
		out.Graphs = append(out.Graphs, &g)
		return graph.GraphRef(g.Index)
	}
	switch {
	case turns:
		n.Op = "Loop"
		ref := body()
		g := out.Graphs[ref]
		n.Attrs["body"] = ref
		v := value("twice", tensor.Int64, nil)
		v.Const = tensor.From(tensor.Int64, []int{}, []int64{2})
		n.Inputs = []int{add(v), -1}
		for i, name := range []string{"turn", "on"} {
			v := value(name, []tensor.Type{tensor.Int64, tensor.Bool}[i], nil)
			v.ID = len(g.Values)
			g.Values, g.Inputs = append(g.Values, &v), append(g.Inputs, v.ID)
		}
		v = value("on_still", tensor.Bool, nil)
		v.ID = len(g.Values)
		g.Values = append(g.Values, &v)
		g.Nodes = append(slices.Clone(g.Nodes), &graph.Node{Index: len(g.Nodes), Op: "Identity", Version: n.Version, Inputs: []int{g.Inputs[1]}, Outputs: []int{v.ID}})
		g.Outputs = append([]int{v.ID}, g.Outputs...)
	case m.Format == "onnx":
		n.Op = "If"
		n.Attrs["then_branch"], n.Attrs["else_branch"] = body(), body()
		n.Inputs = []int{add(value("way", tensor.Bool, nil))}
		main.Inputs = append(main.Inputs, n.Inputs[0])
	default:
		n.Op = "IF"
		n.Attrs["then_subgraph_index"], n.Attrs["else_subgraph_index"] = body(), body()
		n.Inputs = append([]int{add(value("way", tensor.Bool, nil))}, main.Inputs...)
		main.Inputs = append(main.Inputs, n.Inputs[0])
	}
	main.Nodes = []*graph.Node{n}
	return out
}

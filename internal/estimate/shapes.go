package estimate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/operators"
	"github.com/opmeter/opmeter/internal/tensor"
)

// most is the memory that values of a model may take while shapes are found out;
// what needs more fits no microcontroller.
const most = 2 << 30

// shaped returns m with the shapes of all values that follow from the inputs'
// shapes, and a sentence when the file left dimensions open. Files of ONNX seldom
// say more than the shapes of inputs and outputs. The model itself is not changed.
func shaped(m *graph.Model) (*graph.Model, string) {
	g := m.Main()
	if known(g) {
		return m, ""
	}
	ins, _, err := feed.Inputs(g, feed.Options{Zeros: true, MaxBytes: most})
	if err != nil {
		return m, ""
	}
	// With everything kept no operator is fused into another, so that all shapes can
	// be told; where memory does not suffice, those of fused ones are missing.
	o := engine.Options{Registry: operators.Registry(), Threads: 1, MaxBytes: most, KeepAll: true}
	s, err := engine.New(m, ins, o)
	if err != nil {
		o.KeepAll = false
		if s, err = engine.New(m, ins, o); err != nil {
			return m, ""
		}
	}
	defer s.Close()
	main := *g
	main.Values = slices.Clone(g.Values)
	set := func(ids []int, ts []*tensor.Tensor) {
		for k, id := range ids {
			if id < 0 || k >= len(ts) || ts[k] == nil || g.Values[id].Const != nil {
				continue
			}
			v := *g.Values[id]
			if ts[k].Type != tensor.Invalid {
				v.Type = ts[k].Type
			}
			if whole(ts[k].Shape) {
				v.Shape, v.HasShape, v.Placeholder = ts[k].Shape, true, nil
			}
			main.Values[id] = &v
		}
	}
	set(g.Inputs, ins)
	for _, st := range s.Steps() {
		set(st.Node.Inputs, st.In)
		set(st.Node.Outputs, st.Out)
	}
	out := *m
	out.Graphs = slices.Clone(m.Graphs)
	out.Graphs[0] = &main
	return &out, assumed(g, ins)
}

// known reports whether the file states all shapes.
func known(g *graph.Graph) bool {
	for _, n := range g.Nodes {
		for _, id := range slices.Concat(n.Inputs, n.Outputs) {
			if id < 0 {
				continue
			}
			if v := g.Values[id]; v.Const == nil && (!v.HasShape || !whole(v.Shape)) && v.Placeholder == nil {
				return false
			}
		}
	}
	return true
}

func whole(shape []int) bool {
	for _, d := range shape {
		if d < 0 {
			return false
		}
	}
	return true
}

// assumed tells the shapes that were taken for inputs that leave dimensions open.
func assumed(g *graph.Graph, ins []*tensor.Tensor) string {
	var list []string
	for k, id := range g.Inputs {
		if id < 0 || k >= len(ins) || ins[k] == nil {
			continue
		}
		if v := g.Values[id]; !v.HasShape || !whole(v.Shape) {
			list = append(list, fmt.Sprintf("%s is taken as %s", v.Name, strings.Trim(strings.ReplaceAll(fmt.Sprint(ins[k].Shape), " ", "x"), "[]")))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "The model leaves dimensions open: " + strings.Join(list, ", ") + "."
}

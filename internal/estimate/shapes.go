package estimate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/operators"
	"github.com/opmeter/opmeter/internal/plan"
	"github.com/opmeter/opmeter/internal/tensor"
)

// most is the memory that values of a model may take while shapes are found out;
// what needs more fits no microcontroller.
const most = 2 << 30

// shaped returns m with the shapes of all values that follow from the inputs'
// shapes, and a sentence when the file left dimensions open. Files of ONNX seldom
// say more than the shapes of inputs and outputs. The model itself is not changed.
func shaped(m *graph.Model) (*graph.Model, string) {
	if !slices.ContainsFunc(m.Graphs, func(g *graph.Graph) bool { return !known(g) }) {
		return m, "" // as most files of TFLite do: nothing is left to find out
	}
	g := m.Main()
	ins, _, err := feed.Inputs(g, feed.Options{Zeros: true, MaxBytes: most})
	if err != nil {
		return m, ""
	}
	p, err := plan.Make(m, ins, plan.Options{Registry: operators.Registry(), MaxBytes: most, KeepAll: true})
	if err != nil {
		return m, ""
	}
	return p.Shaped(), assumed(g, ins)
}

// known reports whether the file states all shapes.
func known(g *graph.Graph) bool {
	stated := func(ids []int) bool {
		for _, id := range ids {
			if id < 0 {
				continue
			}
			if v := g.Values[id]; v.Const == nil && (!v.HasShape || !whole(v.Shape)) && v.Placeholder == nil {
				return false
			}
		}
		return true
	}
	for _, n := range g.Nodes {
		if !stated(n.Inputs) || !stated(n.Outputs) {
			return false
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

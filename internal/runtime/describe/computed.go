package describe

import (
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// computed counts elements of constants that layers read, and that no file holds: what
// is computed once of other constants, less the weights that it is computed of, so that
// a transposed weight counts nothing.
func computed(m *graph.Model, slots []plan.Slot) int64 {
	type value struct{ graph, id int }
	makers := map[value]*plan.Slot{}
	read := map[value]bool{}
	for i := range slots {
		s := &slots[i]
		if s.State == plan.Folded {
			for _, id := range s.Node.Outputs {
				if id >= 0 {
					makers[value{s.Graph, id}] = s
				}
			}
			continue
		}
		for _, id := range s.Node.Inputs {
			if id >= 0 {
				read[value{s.Graph, id}] = true
			}
		}
	}
	var sum int64
	for v := range read {
		s := makers[v]
		if s == nil {
			continue
		}
		n := elements(s, v.id)
		// What it is made of, each weight once.
		seen := map[int]bool{v.id: true}
		for open := []int{v.id}; len(open) > 0 && n > 0; {
			at := open[len(open)-1]
			open = open[:len(open)-1]
			from := makers[value{v.graph, at}]
			if from == nil {
				continue
			}
			for _, id := range from.Node.Inputs {
				if id < 0 || seen[id] {
					continue
				}
				seen[id] = true
				if c := m.Graphs[v.graph].Values[id]; count.Weight(from.Node, c) {
					n -= int64(c.Const.Len())
				}
				open = append(open, id)
			}
		}
		sum += max(0, n)
	}
	return sum
}

// elements is the number of elements of what a slot makes where they may be weights.
func elements(s *plan.Slot, id int) int64 {
	for k, out := range s.Node.Outputs {
		if out != id || k >= len(s.Out) || s.Out[k] == nil {
			continue
		}
		switch t := s.Out[k]; t.Type {
		case tensor.Int32, tensor.Int64, tensor.Bool, tensor.String:
			return 0 // shapes, axes, masks
		default:
			if n, err := tensor.CheckShape(t.Type, t.Shape); err == nil {
				return int64(n)
			}
		}
	}
	return 0
}

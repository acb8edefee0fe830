package describe

import (
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// countPrecomputed counts elements of constants that layers read and that the file does not
// contain: values folded from other constants, minus the weights that they are computed from. A
// transposed weight therefore counts nothing.
func countPrecomputed(m *graph.Model, slots []plan.Slot) int64 {
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
		// Subtract the weights that it is computed from, each once.
		seen := map[int]bool{v.id: true}
		for open := []int{v.id}; len(open) > 0 && n > 0; {
			at := open[len(open)-1]
			open = open[:len(open)-1]
			from := makers[value{v.graph, at}]
			if from == nil {
				continue
			}
			for k, id := range from.Node.Inputs {
				if id < 0 || seen[id] {
					continue
				}
				seen[id] = true
				if c := m.Graphs[v.graph].Values[id]; count.Weight(from.Node, k, c) {
					n -= int64(c.Const.Len())
				}
				open = append(open, id)
			}
		}
		sum += max(0, n)
	}
	return sum
}

// elements returns the number of elements of a slot's output if they may be weights.
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

package describe

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/memplan"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// lifetime is a value that is live from one layer to another.
type lifetime struct {
	name        string
	bytes       *int64 // nil if unknown
	first, last int
}

// planAlign is the alignment of buffers in the plan of a description.
const planAlign = 64

// memory sets which activations are live while each layer runs, with the inputs and outputs of the
// model and the values of the bodies that run at that time. Its peak is their largest sum, unknown
// if a layer cannot run. Models
// with bodies also get a plan that places all of them, because the engine plans each graph apart.
func (d *describer) memory(layers []profile.Layer, p *plan.Plan) *profile.Memory {
	mem := &profile.Memory{TFLMArenaBytes: tflmArena(p)}
	lives, whole := d.lifetimes(p)
	live := make([]int64, len(d.slots))
	for _, v := range lives {
		for i := v.first; i <= min(v.last, len(live)-1); i++ {
			if v.bytes == nil {
				whole[i] = false
			} else {
				live[i] += *v.bytes
			}
		}
	}
	var peak int64
	all, bodies := true, false
	for i := range d.slots {
		s := &d.slots[i]
		bodies = bodies || s.Graph != 0
		if s.State == plan.Folded || s.State == plan.Fused {
			continue
		}
		if !whole[i] || s.Runs == nil { // the values of a layer that cannot run have no place
			all = false
			continue
		}
		layers[i].LiveBytes = new(live[i])
		peak = max(peak, live[i])
	}
	if all {
		mem.PeakBytes = &peak
	}
	if all && bodies {
		place(mem, lives)
	}
	return mem
}

// place plans all values in one arena.
func place(mem *profile.Memory, lives []lifetime) {
	buffers := make([]memplan.Buffer, len(lives))
	for i, v := range lives {
		buffers[i] = memplan.Buffer{Bytes: int(*v.bytes), First: v.first, Last: v.last}
	}
	offsets, total := memplan.Greedy(buffers, planAlign)
	mem.ArenaBytes, mem.AlignBytes, mem.Planner = new(int64(total)), new(int64(planAlign)), "greedy by size, bodies included"
	for i, v := range lives {
		mem.Plan = append(mem.Plan, profile.Buffer{Name: v.name, Bytes: *v.bytes, Offset: int64(offsets[i]), First: int64(v.first), Last: int64(v.last)})
	}
}

// lifetimes lists the values of all graphs that are computed, and the inputs of the model. The
// inputs of a body are values of the layer that runs it. That layer's values are live until its
// bodies end. Values that a plan never computes are left out. whole is false for the layers of
// graphs without a plan.
func (d *describer) lifetimes(p *plan.Plan) (list []lifetime, whole []bool) {
	n := len(d.slots)
	whole = make([]bool, n)
	at := map[[2]int]int{}
	end := make([]int, n) // last layer of the bodies that a layer runs
	for i := n - 1; i >= 0; i-- {
		s := &d.slots[i]
		at[[2]int{s.Graph, s.Node.Index}] = i
		end[i] = max(end[i], i)
		if s.Parent >= 0 {
			end[s.Parent] = max(end[s.Parent], end[i])
		}
	}
	for index, f := range d.m.Graphs {
		g := p.Planned(index)
		if g == nil {
			continue
		}
		first, last := make([]int, len(g.Graph.Values)), make([]int, len(g.Graph.Values))
		for i := range first {
			first[i], last[i] = -1, -1
		}
		over := n - 1
		if index > 0 {
			if i, ok := at[[2]int{index, 0}]; ok {
				over = end[d.slots[i].Parent]
			}
		}
		if index == 0 {
			for _, id := range f.Inputs {
				first[id], last[id] = 0, 0
			}
		}
		for _, s := range g.Steps() {
			i, listed := at[[2]int{index, s.Node.Index}]
			if !listed {
				continue
			}
			whole[i] = true
			if s.Runs == nil || s.State == plan.Folded || s.State == plan.Fused {
				continue
			}
			for _, id := range slices.Concat(s.Runs.Inputs, g.Captured(s.Runs)) {
				if id >= 0 {
					last[id] = end[i]
				}
			}
			for _, id := range s.Runs.Outputs {
				if id >= 0 {
					first[id], last[id] = i, max(last[id], end[i])
				}
			}
		}
		for _, id := range f.Outputs {
			if id >= 0 {
				last[id] = over
			}
		}
		for id, v := range g.Graph.Values {
			if first[id] >= 0 && (v.Const == nil || v.Variable) {
				list = append(list, lifetime{v.Name, size(g.Known(id)), first[id], last[id]})
			}
		}
	}
	return list, whole
}

// tflmArena returns the arena size that TensorFlow Lite Micro would plan, nil if its planner does
// not apply or an operator's scratch memory is not known.
func tflmArena(plan *plan.Plan) *int64 {
	if plan.Model.Format != "tflite" {
		return nil
	}
	m := plan.Shaped()
	scratch, unknown := memplan.ReferenceScratch(m)
	if len(unknown) > 0 {
		return nil
	}
	p, err := memplan.TFLM(m, scratch)
	if err != nil {
		return nil
	}
	return new(int64(p.Bytes))
}

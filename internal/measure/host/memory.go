package host

import (
	"github.com/opmeter/opmeter/profile"
)

// memory returns the engine's memory plan.
func (r *runner) memory() profile.Noted {
	arena, _ := r.s.Memory()
	scratch := r.s.Working()
	mem := profile.Memory{}
	if r.p.Memory != nil {
		mem = *r.p.Memory // values of the description
	}
	mem.ArenaBytes, mem.ScratchBytes = new(int64(arena)), new(int64(scratch))
	mem.Planner, mem.AlignBytes = "greedy by size", new(int64(64))
	mem.Plan, mem.StepLayers = make([]profile.Buffer, 0, len(r.s.Plan())), nil
	for _, pl := range r.s.Plan() {
		mem.Plan = append(mem.Plan, profile.Buffer{
			Name: pl.Name, Bytes: int64(pl.Bytes), Offset: int64(pl.Offset), First: int64(pl.First), Last: int64(pl.Last),
		})
	}
	if len(r.slots) > len(r.m.Main().Nodes) { // layers of bodies are in between
		for i := range r.slots {
			if r.slots[i].Graph == 0 {
				mem.StepLayers = append(mem.StepLayers, int64(i))
			}
		}
	}
	return profile.Noted{Memory: &mem, RAMBytes: new(int64(arena + scratch))}
}

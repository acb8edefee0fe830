package host

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
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
	mem.ScratchBytes = new(int64(scratch))
	if len(r.m.Graphs) == 1 && !r.o.Static {
		mem.WeightsBytes = new(int64(r.s.WeightBytes(llm.Lookups)))
	}
	if len(r.slots) > len(r.m.Main().Nodes) {
		// The engine plans each graph apart, when it runs first: the description has all of them.
		if mem.ArenaBytes == nil {
			return profile.Noted{Memory: &mem}
		}
		return profile.Noted{Memory: &mem, RAMBytes: new(*mem.ArenaBytes + int64(scratch))}
	}
	if slices.ContainsFunc(r.slots, func(s plan.Slot) bool { return s.State >= plan.Unsupported }) {
		return profile.Noted{Memory: &mem} // the values of layers that cannot run have no place
	}
	mem.ArenaBytes = new(int64(arena))
	mem.Planner, mem.AlignBytes = "greedy by size", new(int64(64))
	mem.Plan, mem.StepLayers = make([]profile.Buffer, 0, len(r.s.Plan())), nil
	for _, pl := range r.s.Plan() {
		mem.Plan = append(mem.Plan, profile.Buffer{
			Name: pl.Name, Bytes: int64(pl.Bytes), Offset: int64(pl.Offset), First: int64(pl.First), Last: int64(pl.Last),
		})
	}
	return profile.Noted{Memory: &mem, RAMBytes: new(int64(arena + scratch))}
}

// PlanBytes returns the memory that the engine plans for a run, like RAMBytes of a profile, without
// running anything.
func PlanBytes(m *graph.Model, feed inputs.Options, inPlace []Carry) (int64, error) {
	pairs, err := Carries(m.Main(), inPlace)
	if err != nil {
		return 0, err
	}
	shapes, _, err := inputs.Shapes(m, feed)
	if err != nil {
		return 0, err
	}
	s, err := engine.New(m, shapes, engine.Options{Registry: operators.Registry(), MaxBytes: feed.MaxBytes, InPlace: pairs, Static: true})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	arena, _ := s.Memory()
	return int64(arena + s.Working()), nil
}

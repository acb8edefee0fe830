package host

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/count"
	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/machine"
	"github.com/opmeter/opmeter/internal/memplan"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
)

// staticCalls sets how often layers of bodies run where the model alone tells.
func (b *builder) staticCalls() {
	times := make([]float64, len(b.slots))
	for i, s := range b.slots {
		times[i] = 1
		if s.parent < 0 {
			continue
		}
		p := b.slots[s.parent].step
		times[i] = math.NaN()
		for _, c := range count.Bodies(b.m, p.Node, known(b.m.Graphs[p.Graph], p), p.Out) {
			if c.Graph == s.step.Graph && c.Times != nil {
				times[i] = times[s.parent] * float64(*c.Times)
			}
		}
		if c := times[i]; !math.IsNaN(c) && c != 1 {
			b.p.Layers[i].Calls = &c
		}
	}
}

// known returns a step's inputs, constants with their elements.
func known(g *graph.Graph, st engine.Step) []*tensor.Tensor {
	in := slices.Clone(st.In)
	for k, id := range st.Node.Inputs {
		if id >= 0 && k < len(in) && g.Values[id].Const != nil {
			in[k] = g.Values[id].Const
		}
	}
	return in
}

// totals turns the counts of layers, which are of one call until here, into those of
// one inference, and sums what is known. Work inside bodies counts once where it is
// not known how often they run.
func (b *builder) totals() {
	t := &b.p.Totals
	t.Layers = new(int64(len(b.p.Layers)))
	var unsupported, uncounted int64
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		if l.Unsupported {
			unsupported++
		}
		if l.Ops == nil && !l.Folded && (l.Calls == nil || *l.Calls > 0) {
			uncounted++
		}
		times := 1.0
		if l.Calls != nil {
			times = *l.Calls
		}
		if l.Folded {
			times = 0
		}
		for _, x := range []struct{ to, from **int64 }{
			{&t.Ops, &l.Ops},
			{&t.MACs, &l.MACs},
			{&t.MACsExecuted, &l.MACsExecuted},
			{&t.MLTKOps, &l.MLTKOps},
			{&t.MLTKMACs, &l.MLTKMACs},
			{&t.BytesRead, &l.BytesRead},
			{&t.BytesWritten, &l.BytesWritten},
		} {
			if *x.from == nil {
				continue
			}
			v := int64(math.Round(float64(**x.from) * times))
			if !l.Folded {
				*x.from = new(v)
			}
			if *x.to != nil {
				v += **x.to
			}
			*x.to = &v
		}
	}
	t.UnsupportedLayers, t.UncountedLayers = &unsupported, &uncounted
	t.Params, t.WeightsBytes = parameters(b.m)
}

// parameters counts the elements of all constants that a node reads, each once.
func parameters(m *graph.Model) (params, bytes *int64) {
	var n, size int64
	for _, g := range m.Graphs {
		used := make([]bool, len(g.Values))
		for _, nd := range g.Nodes {
			for _, id := range nd.Inputs {
				if id >= 0 {
					used[id] = true
				}
			}
		}
		for _, v := range g.Values {
			if v.Const == nil || v.Variable || !used[v.ID] {
				continue
			}
			n += int64(v.Const.Len())
			if v.Sparse != nil {
				size += int64(v.Sparse.StoredBytes)
			} else {
				size += int64(v.Const.Bytes())
			}
		}
	}
	return &n, &size
}

func (b *builder) memory() {
	if b.processPeak == nil {
		b.processPeak = machine.ProcessPeakBytes()
	}
	arena, _ := b.s.Memory()
	scratch, peak := 0, 0
	for _, s := range b.slots {
		scratch += s.step.Scratch
	}
	mem := &profile.Memory{
		ArenaBytes: new(int64(arena)), Planner: "greedy by size", AlignBytes: new(int64(64)),
		ScratchBytes: new(int64(scratch)), ProcessPeakBytes: b.processPeak, AllocatedPerRunBytes: b.allocated,
	}
	plan := b.s.Plan()
	live := make([]int, len(b.m.Main().Nodes)+2)
	ends := map[[2]int]int{} // bytes of what ends at an offset and step
	for _, pl := range plan {
		if pl.First < pl.Last {
			ends[[2]int{pl.Offset, pl.Last}] = pl.Bytes
		}
	}
	for _, pl := range plan {
		// A result that takes its operand's place shares the bytes for one step.
		if pl.First < len(live) {
			live[pl.First] -= min(ends[[2]int{pl.Offset, pl.First}], pl.Bytes)
		}
		mem.Plan = append(mem.Plan, profile.Placement{
			Name: b.m.Main().Values[pl.Value].Name, Bytes: int64(pl.Bytes), Offset: int64(pl.Offset), First: int64(pl.First), Last: int64(pl.Last),
		})
		for i := pl.First; i <= pl.Last && i < len(live); i++ {
			live[i] += pl.Bytes
		}
	}
	if len(b.slots) > len(b.m.Main().Nodes) { // layers of bodies stand between
		for i, s := range b.slots {
			if s.step.Graph == 0 {
				mem.StepLayers = append(mem.StepLayers, int64(i))
			}
		}
	}
	if len(plan) > 0 {
		peak = slices.Max(live)
		b.live(live)
	}
	mem.PeakBytes = new(int64(peak))
	mem.TFLMArenaBytes = tflmArena(b.m)
	b.p.Memory = mem
	b.p.Totals.RAMBytes = new(int64(arena + scratch))
	if b.m.FileBytes > 0 {
		b.p.Totals.FlashBytes = new(b.m.FileBytes)
	}
}

// live notes the bytes in use while each node of the main graph runs. Layers of
// bodies have arenas of their own, and folded or fused ones do not run.
func (b *builder) live(bytes []int) {
	for i, s := range b.slots {
		if l := &b.p.Layers[i]; s.step.Graph == 0 && !l.Folded && l.FusedInto == nil {
			l.LiveBytes = new(int64(bytes[s.step.Node.Index]))
		}
	}
}

// tflmArena is what TensorFlow Lite Micro would plan, nil where its planner does
// not apply or the scratch memory of an operator is not known.
func tflmArena(m *graph.Model) *int64 {
	if m.Format != "tflite" {
		return nil
	}
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

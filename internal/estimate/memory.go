package estimate

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/tflm"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
	"github.com/opmeter/opmeter/profile"
)

// peakFits reports a peak of activations that alone exceeds the chip's memory. A smaller one does
// not say that the whole fits.
func (b *builder) peakFits() {
	n := b.p.Memory.PeakBytes
	if most, ok := b.t.RAM(); ok && n != nil && *n > int64(most) {
		b.fit("target.ram", "RAM", "The activation peak of %s", n, b.t.RAM)
	}
}

// memory plans the arena if the runtime's planner is known. The activation memory that all
// runtimes need is in the description.
func (b *builder) memory() error {
	b.kernels = tflm.Kernels(b.rt.Arena)
	if b.m.ONNX() {
		if n := b.p.Memory.PeakBytes; n != nil {
			b.find("target.memory", profile.Info, fmt.Sprintf("At least %s of RAM for activations; what the runtime needs beside them is not known for a file of ONNX.", sized(*n)))
		}
		b.peakFits()
		return nil
	}
	if b.kernels == "" {
		// Another runtime plans by its own rules: the peak of live activations is all that
		// follows from the model.
		b.peakFits()
		return nil
	}
	a, err := tflm.Plan(b.m, b.kernels)
	switch {
	case err != nil:
		b.find("target.memory", profile.Warning, "Memory is not estimated: "+err.Error()+".")
		return nil //nolint:nilerr // a finding of the estimate, which stands without it
	case a.Plan == nil:
		b.find("target.memory", profile.Warning, "The arena cannot be planned: "+a.Problem+".")
		return nil
	}
	mem := *b.p.Memory
	mem.Plan, mem.StepLayers = nil, nil
	mem.TFLMArenaBytes = nil // of reference kernels; this target's are those of its build
	mem.Planner, mem.AlignBytes = "tflm", new(int64(memplan.TFLMAlign))
	mem.ArenaBytes, mem.PersistentBytes = new(int64(a.Plan.Bytes)), new(int64(a.PersistentBytes))
	scratch := 0
	for _, s := range a.Scratch {
		scratch = max(scratch, s.Bytes)
	}
	mem.ScratchBytes = new(int64(scratch))
	layer := map[int]int64{} // of a node of the main graph
	for i := range b.slots {
		if b.slots[i].Graph == 0 {
			layer[b.slots[i].Node.Index] = int64(i)
		}
	}
	for _, n := range a.Plan.Nodes {
		at := int64(-1)
		if l, ok := layer[n]; ok && n >= 0 {
			at = l
		}
		mem.StepLayers = append(mem.StepLayers, at)
	}
	for _, e := range a.Plan.Entries {
		pl := profile.Buffer{Bytes: int64(e.Bytes), Offset: int64(e.Offset), First: int64(e.First), Last: int64(e.Last), Scratch: e.Value < 0}
		if e.Value >= 0 {
			pl.Name = b.m.Graphs[e.Graph].Values[e.Value].Name
		} else if s := a.Scratch[min(e.Scratch, len(a.Scratch)-1)]; s.Node < len(b.m.Graphs[s.Graph].Nodes) {
			pl.Name = "scratch of " + b.m.Graphs[s.Graph].Nodes[s.Node].Op
		}
		mem.Plan = append(mem.Plan, pl)
	}
	b.p.Totals.RAMBytes = new(int64(a.Total()))
	if model := b.p.Totals.FlashBytes; b.opt.Flash == chip.FlashRAM && model != nil {
		*b.p.Totals.RAMBytes += *model
		b.find("target.memory", profile.Info, fmt.Sprintf("RAM includes the model of %s, which is copied there.", sized(*model)))
	}
	if len(a.Unknown) > 0 {
		b.find("target.memory", profile.Warning, "The working memory of "+strings.Join(a.Unknown, ", ")+" is not known; the arena may be larger.")
	}
	return b.to.Send(profile.Event{Noted: &profile.Noted{Memory: &mem, RAMBytes: b.p.Totals.RAMBytes}})
}

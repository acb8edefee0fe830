package ort

import (
	"maps"
	"slices"
	"strconv"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// run makes the run of the events so far.
func (r *reader) run(name, path string) *runlog.Run {
	p := &profile.Profile{
		Model:    profile.Model{Name: name, Path: path, Format: Name},
		Target:   profile.Target{ID: "onnxruntime", Engine: "ONNX Runtime"},
		Settings: profile.Settings{Engine: "ONNX Runtime"},
		Layers:   make([]profile.Layer, len(r.rows)),
	}
	out := &runlog.Run{Profile: p, Hints: make([]runlog.Hint, len(r.rows))}
	order, place := r.order()
	for i, at := range order {
		out.Hints[i] = r.layer(&p.Layers[i], &r.rows[at], place)
	}
	if p.Timeline = r.timeline(); p.Timeline != nil {
		for _, lane := range p.Timeline.Lanes {
			for k, at := range lane.Layers {
				if at >= 0 {
					lane.Layers[k] = int32(place[at])
				}
			}
		}
	}
	if r.load != nil || r.plan != nil {
		p.Phases = &profile.Phases{LoadS: r.load, PlanS: r.plan}
	}
	if r.arena >= 0 || r.peak >= 0 {
		p.Memory = &profile.Memory{ArenaBytes: draft.Count(r.arena, true), PeakBytes: draft.Count(r.peak, true)}
	}
	if r.workers > 0 {
		p.Settings.Threads = new(int64(r.workers + 1))
	}
	r.tally.Reorder(order)
	r.tally.Fill(p)
	p.Quantities = r.qs.List
	r.findings(out, order)
	r.dropped.To(out)
	return out
}

// order returns the rows, each followed by the rows that it runs, in the order of their first
// events; place is the new position of each row.
func (r *reader) order() (order, place []int) {
	kids := map[int32][]int{}
	for i, w := range r.rows {
		kids[w.parent] = append(kids[w.parent], i)
	}
	place = make([]int, len(r.rows))
	var walk func(parent int32)
	walk = func(parent int32) {
		for _, i := range kids[parent] {
			place[i] = len(order)
			order = append(order, i)
			walk(int32(i))
		}
	}
	walk(-1)
	return order, place
}

// layer sets a layer and returns the hint to the model's node.
func (r *reader) layer(l *profile.Layer, w *row, place []int) runlog.Hint {
	n := r.nodes[w.node]
	l.Name, l.Op, l.Inputs, l.Outputs, l.Options = n.name, n.op, n.in, n.out, n.options
	if w.parent >= 0 {
		l.Parent = new(int64(place[w.parent]))
		l.Graph = "body of " + r.nodes[r.rows[w.parent].node].name
	}
	if n.provider != "" {
		l.Placement = &profile.Placement{On: provider(n.provider)}
	}
	if n.index >= 0 {
		l.Options = append(l.Options, profile.Option{Key: "node_index", Value: strconv.FormatInt(n.index, 10)})
	}
	if n.blocks != "" {
		l.Options = append(l.Options, profile.Option{Key: "block_size", Value: n.blocks})
	}
	r.figures(l, n)
	if n.name == "" {
		return runlog.Hint{}
	}
	return runlog.Hint{Nodes: []string{n.name}}
}

// figures sets the figures of a node's events other than their times.
func (r *reader) figures(l *profile.Layer, n *node) {
	whole := func(i int) *int64 {
		m := n.figures[i].mean()
		return draft.Count(int64(m+0.5), m >= 0 && m < 1<<53)
	}
	act, par := whole(activationSize), whole(parameterSize)
	if act != nil && par != nil {
		l.BytesRead = new(*act + *par)
	}
	l.WeightsBytes, l.BytesWritten = par, whole(outputSize)
	for _, f := range memoryFigures {
		if s := n.figures[f.at]; s.n > 0 {
			v := s.mean()
			if f.most {
				v = s.most
			}
			r.qs.Set(l, f.q, v)
		}
	}
	for i, s := range n.threadsOf {
		if s.n > 0 {
			r.qs.Set(l, profile.Quantity{Key: "pool_" + runlog.Key(phases[i].key) + "_s", Unit: "s", Name: phases[i].name, Group: "Threads", Adds: true, Better: -1, Doc: phases[i].doc + " Mean of its calls."}, s.mean())
		}
	}
	if n.device.n > 0 {
		r.qs.Set(l, profile.Quantity{Key: "device_s"}, n.device.total/float64(max(1, r.runs+r.left)))
	}
	for _, key := range slices.Sorted(maps.Keys(n.more)) {
		r.qs.Set(l, profile.Quantity{Name: key, Doc: "As ONNX Runtime records it; mean of the calls."}, n.more[key].mean())
	}
}

// memoryFigures are those of the arena; most selects the maximum instead of the mean.
var memoryFigures = []struct {
	at   int
	most bool
	q    profile.Quantity
}{
	{inUseDelta, false, profile.Quantity{Key: "arena_in_use_change_bytes", Unit: "B", Head: "arena change", Name: "Change of the arena in use", Group: "Memory", Doc: "How much more of the arena was in use after the node than before; mean of its calls."}},
	{inUse, true, profile.Quantity{Key: "arena_in_use_bytes", Unit: "B", Head: "arena", Name: "Arena in use", Group: "Memory", Doc: "Most memory of the arena that was in use when the node had run."}},
	{requestedInUse, true, profile.Quantity{Key: "arena_requested_bytes", Unit: "B", Head: "arena req.", Name: "Arena requested", Group: "Memory", Doc: "The same without what the arena adds to each request."}},
	{arenaHeld, true, profile.Quantity{Key: "arena_held_bytes", Unit: "B", Name: "Arena held", Group: "Memory", Doc: "Most memory that the arena held when the node had run."}},
	{inUsePeak, true, profile.Quantity{Key: "arena_peak_bytes", Unit: "B", Name: "Arena peak", Group: "Memory", Doc: "Most memory of the arena that had been in use until the node had run."}},
	{requestedDelta, false, profile.Quantity{Key: "arena_requested_change_bytes", Unit: "B", Name: "Change of the arena requested", Group: "Memory", Doc: "The same without what the arena adds to each request."}},
	{arenaDelta, false, profile.Quantity{Key: "arena_held_change_bytes", Unit: "B", Name: "Growth of the arena", Group: "Memory", Doc: "How much more the arena held after the node than before; mean of its calls."}},
}

// findings adds findings about missing inferences and changed shapes.
func (r *reader) findings(out *runlog.Run, order []int) {
	if r.sessions > 0 && r.runs+r.left == 0 {
		out.Found("import.no_run", profile.Warning, "The record has no inference: the session was made and not run, or what it ran was lost.")
	}
	if r.left > 0 {
		out.Found("record.incomplete", profile.Warning, "Inferences left out of all times: %d of %d. The duration of a call in them cannot be read. Correct these durations, or record the model again.", r.left, r.runs+r.left)
	}
	if r.summed {
		out.Found("import.summed", profile.Info, "The record has no event of a whole inference: its time is the sum of its operators, without what lies between them.")
	}
	changed := []int64{}
	for i := range out.Profile.Layers {
		if r.nodes[r.rows[order[i]].node].shapes > 0 {
			changed = append(changed, int64(i))
		}
	}
	if len(changed) > 0 {
		out.Profile.Findings = append(out.Profile.Findings, profile.Finding{
			ID: "import.shapes_change", Severity: profile.Info, Layers: changed,
			Text: "Shapes changed between inferences. Those shown are of the first one; times are over all.",
		})
	}
}

package pytorch

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// layer is an operator at a call site: within the same operators and annotations.
type layer struct {
	layerKey
	first   int64 // start of its first call
	kernels map[int32]int64
	taken   int64   // bytes that it allocated
	busy    float64 // occupancy times nanoseconds
	known   int64   // nanoseconds with an occupancy
	kernel  bool    // a kernel without an operator
}

type layerKey struct{ parent, op, scope int32 }

// fill sets layers, figures and the timeline.
func (r *run) fill(out *runlog.Run) {
	t := &r.trace
	t.Nest()
	var walls []int64
	var dev []deviceCall
	outside := 0
	for _, p := range r.parts {
		sorting.Stable(p.steps, func(a, b step) int { return cmp.Compare(a.Start, b.Start) })
		walls = p.iterations(walls)
		p.placeOperators()
		dev = append(dev, p.link()...)
		p.memories()
		for _, s := range p.slices() {
			if s.Layer >= 0 && s.Iteration < 0 {
				outside++
			}
		}
	}
	ranks := r.join(walls)
	if ranks != nil {
		walls = ranks.walls
		for i := range dev {
			if n := dev[i].iteration; n >= 0 {
				dev[i].iteration = ranks.to[n]
			}
		}
	}
	r.order(out.Profile, dev)
	r.figures(out, walls, dev)
	ranks.figures(out, dev)
	for _, p := range r.parts {
		p.addSteps()
	}
	r.flows.Links(t)
	out.Profile.Timeline = t.Timeline("first event of the trace", "recorded by PyTorch's profiler")
	if tl := out.Profile.Timeline; tl != nil && len(walls) > 0 {
		tl.Iterations = new(int64(r.steps(walls)))
	}
	if outside > 0 {
		out.Found("import.outside", profile.Info, "%d calls of operators lie outside of the recorded steps: they are shown, and count in no figure.", outside)
	}
}

// iterations assigns slices to steps. A step without operators, such as one that was cut short,
// does not count. Without steps, the whole trace is one iteration. It appends the lengths of
// iterations to walls.
func (p *part) iterations(walls []int64) []int64 {
	t := &p.run.trace
	p.first = int32(len(walls))
	defer func() { p.end = int32(len(p.run.number)) }()
	var steps []track.Step
	all := make([]track.Step, len(p.steps))
	for i, s := range p.steps {
		all[i] = s.Step
	}
	for i, n := range p.operators(all) {
		if n > 0 {
			p.run.number = append(p.run.number, int32(i))
			steps = append(steps, all[i])
			walls = append(walls, all[i].End-all[i].Start)
		}
	}
	if len(steps) == 0 {
		mine := map[*track.Track]bool{}
		for _, x := range p.list {
			mine[t.Tracks[x.track]] = true
		}
		start, end, _ := t.Span(func(k *track.Track) bool { return mine[k] && !k.Aside })
		steps = []track.Step{{Start: start, End: end + 1}}
		walls = append(walls, end-start)
		p.run.number = append(p.run.number, -1)
	}
	for _, s := range p.slices() {
		if s.Iteration = track.InStep(steps, s.Start); s.Iteration >= 0 {
			s.Iteration += p.first
		}
	}
	return walls
}

// slices iterates over the slices of a part and their places.
func (p *part) slices() iter.Seq2[at, *track.Slice] {
	return func(yield func(at, *track.Slice) bool) {
		for _, x := range p.list {
			k := p.run.trace.Tracks[x.track]
			for i := range k.Slices {
				if !yield(at{x.track, int32(i)}, &k.Slices[i]) {
					return
				}
			}
		}
	}
}

// operators counts the calls of operators in each step.
func (p *part) operators(steps []track.Step) []int {
	out := make([]int, len(steps))
	for _, s := range p.slices() {
		if n := track.InStep(steps, s.Start); n >= 0 && p.class(s) == operator {
			out[n]++
		}
	}
	return out
}

// class returns the class of a slice.
func (p *part) class(s *track.Slice) class {
	if s.Extra == 0 {
		return other
	}
	return p.aux[s.Extra-1].class
}

// placeOperators makes layers of operators by call site, and computes their own time without the
// operators that they call. Calls of the runtime count for the operator that makes them.
func (p *part) placeOperators() {
	r := p.run
	for _, x := range p.list {
		k := r.trace.Tracks[x.track]
		scopes := make([]int32, len(k.Slices)) // annotations, by slice
		around := make([]int32, len(k.Slices)) // operator around each slice
		for i := range k.Slices {
			s := &k.Slices[i]
			scopes[i], around[i] = -1, -1
			if o := k.Parents[i]; o >= 0 {
				scopes[i], around[i] = scopes[o], around[o]
				if k.Slices[o].Layer >= 0 {
					around[i] = o
				}
			}
			switch p.class(s) {
			case annotation:
				scopes[i] = r.scope(scopes[i], s.Label)
			case operator:
				parent := int32(-1)
				if o := around[i]; o >= 0 {
					parent = k.Slices[o].Layer
					k.Self[o] -= s.Dur
				}
				k.Self[i] = s.Dur
				s.Layer = r.layer(layerKey{parent, s.Layer, scopes[i]}, s.Start)
			}
		}
		// Operators may exceed the operator around them.
		for i := range k.Slices {
			k.Self[i] = max(0, k.Self[i])
		}
	}
}

// scope returns the path of an annotation within another one.
func (r *run) scope(outer, label int32) int32 {
	name := r.trace.Text(label)
	if outer >= 0 {
		name = r.trace.Text(outer) + "/" + name
	}
	return r.trace.Name([]byte(name))
}

func (r *run) layer(k layerKey, start int64) int32 {
	if n, ok := r.at[k]; ok {
		r.layers[n].first = min(r.layers[n].first, start)
		return n
	}
	if len(r.layers) >= track.MaxLayers {
		// Without call sites, the number of layers is that of operators, which has a limit.
		flat := layerKey{-1, k.op, -1}
		if n, ok := r.at[flat]; ok || k == flat {
			if ok {
				return n
			}
		} else {
			return r.layer(flat, start)
		}
	}
	n := int32(len(r.layers))
	r.at[k] = n
	r.layers = append(r.layers, layer{layerKey: k, first: start})
	return n
}

// memories adds allocations to the operators that made them.
func (p *part) memories() {
	t := &p.run.trace
	for _, m := range p.memory {
		if m.bytes <= 0 {
			continue
		}
		k := t.Tracks[m.track]
		i := k.At(m.ts)
		for i >= 0 && (k.Slices[i].Layer < 0 || p.class(&k.Slices[i]) != operator) {
			i = k.Parents[i]
		}
		if i >= 0 && k.Slices[i].Iteration >= 0 {
			p.run.layers[k.Slices[i].Layer].taken += m.bytes
		}
	}
	p.memory = nil
}

// order sorts layers by their first call and renumbers the slices.
func (r *run) order(p *profile.Profile, dev []deviceCall) {
	var to []int32
	r.layers, to = track.Sorted(r.layers, func(a, b *layer) int { return cmp.Compare(a.first, b.first) })
	r.trace.Relabel(to)
	for i := range dev {
		dev[i].layer = to[dev[i].layer]
	}
	for i := range r.layers {
		l := &r.layers[i]
		if l.parent >= 0 {
			l.parent = to[l.parent]
		}
		p.Layers = append(p.Layers, r.describe(l))
	}
}

// describe returns the layer of the profile.
func (r *run) describe(l *layer) profile.Layer {
	var out profile.Layer
	if l.kernel {
		out.Name, out.Op = r.trace.Text(-2-l.op), "kernel"
		out.Placement = &profile.Placement{On: "device"}
		return out
	}
	o := &r.ops.list[l.op]
	out.Op, out.Inputs = o.name, slices.Clone(o.inputs)
	if l.parent >= 0 {
		out.Parent = new(int64(l.parent))
	}
	out.Scope = cmp.Or(o.module, r.trace.Text(l.scope))
	if len(o.values) > 0 {
		out.Options = append(out.Options, profile.Option{Key: "values", Value: strings.ToValidUTF8(string(o.values), "\ufffd")})
	}
	best, most := int32(-1), int64(-1)
	for k, ns := range l.kernels {
		if ns > most || ns == most && k < best {
			best, most = k, ns
		}
	}
	out.Kernel = r.trace.Text(best)
	return out
}

var (
	occupancy = profile.Quantity{Key: "occupancy", Unit: "1", Head: "occupancy", Name: "Estimated occupancy", Group: "Record", Better: 1, Doc: "Kineto's estimate of the achieved occupancy of the device by the layer's kernels, weighted with their times."}
	taken     = profile.Quantity{Key: "allocated_bytes", Unit: "B", Head: "allocated", Name: "Memory allocated", Group: "Record", Adds: true, Better: -1, Doc: "Memory that the operator itself allocated in one step, on all devices; what it released is not subtracted."}
)

// figures computes the times of layers over the steps.
func (r *run) figures(out *runlog.Run, walls []int64, dev []deviceCall) {
	p, t := out.Profile, &r.trace
	var tally, device runlog.Tally
	t.Tally(&tally, walls, -1)
	tally.Fill(p)
	sorting.Stable(dev, func(a, b deviceCall) int { return cmp.Compare(a.iteration, b.iteration) })
	i := 0
	for i < len(dev) && dev[i].iteration < 0 {
		i++
	}
	for n := range r.steps(walls) {
		for ; i < len(dev) && dev[i].iteration == int32(n); i++ {
			device.Call(int(dev[i].layer), dev[i].dur)
		}
		device.End(-1)
	}
	var qs runlog.Quantities
	side := &profile.Profile{Layers: make([]profile.Layer, len(p.Layers))}
	if len(dev) > 0 {
		device.Fill(side)
	}
	for i := range p.Layers {
		l, x := &p.Layers[i], &r.layers[i]
		if m := side.Layers[i].Latency; m != nil {
			_ = l.Set("device_s", m)
			if x.kernel && l.State == profile.NotReached {
				l.State = profile.Ran // on the device, without an operator
			}
		}
		if x.known > 0 {
			qs.Set(l, occupancy, x.busy/float64(x.known)/100)
		}
		if x.taken > 0 && len(walls) > 0 {
			qs.Set(l, taken, float64(x.taken)/float64(len(r.number)))
		}
	}
	if len(dev) > 0 && side.Totals.Latency != nil {
		side.Totals.Latency.Method = "work of all streams, added up"
		_ = p.Totals.Set("device_s", side.Totals.Latency)
	}
	r.peaks(p, &qs)
	p.Quantities = qs.List
}

// steps returns the number of steps that figures are of: those that are not left out stand first.
func (r *run) steps(walls []int64) int {
	if n := slices.Index(walls, track.NoWall); n >= 0 {
		return n
	}
	return len(walls)
}

// peaks sets the peak memory of each kind of device.
func (r *run) peaks(p *profile.Profile, qs *runlog.Quantities) {
	most := map[string]float64{}
	for _, x := range r.parts {
		for key, c := range x.counters {
			where, what, _ := strings.Cut(key, "\x00")
			if c == nil || what != "allocated" {
				continue
			}
			if v, ok := c.Most(); ok && v > 0 {
				where, _, _ = strings.Cut(where, " ")
				most[where] = max(most[where], v)
			}
		}
	}
	for _, where := range slices.Sorted(maps.Keys(most)) {
		qs.SetTotal(&p.Totals, profile.Quantity{
			Key: where + "_peak_bytes", Unit: "B", Name: fmt.Sprintf("Most memory allocated, %s", where), Group: "Record", Better: -1, Model: true,
			Doc: "The largest amount of memory that the record saw allocated at a time, on the device that had most.",
		}, most[where])
	}
}

// addSteps adds the lane of steps and numbers the steps within their rank.
func (p *part) addSteps() {
	t := &p.run.trace
	for _, s := range p.slices() {
		s.Extra = 0
		if s.Iteration >= 0 {
			s.Iteration = p.run.number[s.Iteration]
		}
	}
	if len(p.steps) == 0 {
		return
	}
	n := t.Track(timeline.Iteration, p.group("steps"), "steps")
	k := t.Tracks[n]
	k.Rank, k.Aside = -1<<40, true
	for _, x := range p.list {
		if o := t.Tracks[x.track]; !x.stream {
			k.Group, k.GroupRank = o.Group, o.GroupRank
			break
		}
	}
	for i, s := range p.steps {
		t.Add(n, track.Slice{Start: s.Start, Dur: s.End - s.Start, Bytes: -1, Layer: -1, Iteration: int32(i), Label: t.Name([]byte("step " + s.name)), Type: -1})
	}
	t.NestOne(n)
}

// deviceCall is work on a device for a layer in an iteration.
type deviceCall struct {
	iteration, layer int32
	dur              int64
}

// at identifies a slice.
type at struct{ track, slice int32 }

// link assigns work on devices to the operator that launched it. The launch has the same
// correlation and lies within the operator. Otherwise the external identifier of the operator is
// the same.
func (p *part) link() (calls []deviceCall) {
	r, t := p.run, &p.run.trace
	launches := map[int64]at{}
	some := false
	for x, s := range p.slices() {
		switch p.class(s) {
		case launch:
			if c := p.aux[s.Extra-1].correlation; c >= 0 {
				launches[c] = x
			}
		case operator:
			some = true
		}
	}
	var external map[int64]at
	for x, s := range p.slices() {
		if p.class(s) != work {
			continue
		}
		a := p.aux[s.Extra-1]
		owner := at{-1, -1}
		if l, ok := launches[a.correlation]; ok && a.correlation >= 0 {
			t.Links = append(t.Links, track.Link{FromTrack: l.track, From: l.slice, ToTrack: x.track, To: x.slice})
			owner = inOperator(t, l)
			if b := p.aux[t.Tracks[l.track].Slices[l.slice].Extra-1]; a.external < 0 && b.external != b.correlation {
				a.external = b.external
			}
		}
		if owner.slice < 0 && a.external >= 0 && a.external != a.correlation && some {
			if external == nil {
				external = p.externals()
			}
			if o, ok := external[a.external]; ok {
				owner = o
			}
		}
		c := deviceCall{iteration: s.Iteration, dur: s.Dur}
		if owner.slice >= 0 {
			o := &t.Tracks[owner.track].Slices[owner.slice]
			c.iteration, c.layer = o.Iteration, o.Layer
		} else {
			c.layer = r.layer(layerKey{-1, -2 - s.Label, -1}, s.Start)
			r.layers[c.layer].kernel = true
			if !some {
				s.Layer, t.Tracks[x.track].Self[x.slice] = c.layer, s.Dur
			}
		}
		r.layers[c.layer].work(s, &a)
		calls = append(calls, c)
	}
	return calls
}

// work adds work on a device to a layer.
func (l *layer) work(s *track.Slice, a *aux) {
	if l.kernels == nil {
		l.kernels = map[int32]int64{}
	}
	if len(l.kernels) < 1000 {
		l.kernels[s.Label] += s.Dur
	}
	if a.occupancy >= 0 {
		l.busy += float64(a.occupancy) * float64(s.Dur)
		l.known += s.Dur
	}
}

// inOperator returns the innermost operator around a slice.
func inOperator(t *track.Trace, l at) at {
	k := t.Tracks[l.track]
	for i := k.Parents[l.slice]; i >= 0; i = k.Parents[i] {
		if k.Slices[i].Layer >= 0 {
			return at{l.track, i}
		}
	}
	return at{-1, -1}
}

// externals returns operators by external identifier.
func (p *part) externals() map[int64]at {
	out := map[int64]at{}
	for x, s := range p.slices() {
		if p.class(s) == operator && p.aux[s.Extra-1].external >= 0 {
			out[p.aux[s.Extra-1].external] = x
		}
	}
	return out
}

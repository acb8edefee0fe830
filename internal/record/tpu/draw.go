package tpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/names"
	"github.com/opmeter/opmeter/profile/timeline"
)

type drawing struct {
	*builder
	r       *capture.Recording
	ls      *layers
	members map[*capture.Engine]member
	// coarse joins consecutive commands of a layer because there are too many bars.
	coarse bool
	// iterations means that there is more than one inference.
	iterations bool
	subnets    map[uint32]int32
	bars       map[*capture.Engine][]place // bars has the place of each record of an engine
}

const maxBars = runlog.MaxBars

func draw(r *capture.Recording, ls *layers, members map[*capture.Engine]member) *timeline.Timeline {
	d := &drawing{builder: newBuilder(), r: r, ls: ls, members: members, subnets: map[uint32]int32{}, bars: map[*capture.Engine][]place{}}
	records := 0
	for e := range r.Units() {
		d.iterations = d.iterations || e.Step.Iteration > 0
		records += e.Len()
	}
	d.coarse = records > maxBars/2
	d.steps()
	for _, core := range coresOf(r) {
		d.core(core)
	}
	d.firmware()
	d.host()
	d.links()
	d.memories()
	d.bandwidth()
	d.clocks()
	t := d.t
	if len(t.Lanes)+len(t.Counters)+len(t.Memories) == 0 {
		return nil
	}
	t.Origin = "first record of the chip"
	t.Method = "cycle counters of the engines' monitors, on one axis by what commands waited for; time between steps on the host is left out"
	if d.coarse {
		t.Method += "; commands of a layer that follow one another are one bar"
	}
	if n := r.Steps; len(n) > 0 {
		t.Iterations = new(int64(n[len(n)-1].Iteration + 1))
	}
	t.Dropped = new(d.dropped)
	return t
}

// coresOf lists the numbers of the cores of all steps in order.
func coresOf(r *capture.Recording) []int {
	var out []int
	for _, c := range r.Cores() {
		if !slices.Contains(out, c.Number) {
			out = append(out, c.Number)
		}
	}
	return out
}

func coreName(n int) string { return fmt.Sprintf("core %d", n) }

// subnet returns the number of a subnet in the timeline's list.
func (d *drawing) subnet(s *capture.Step) int32 {
	if !s.HasInfo {
		return -1
	}
	if i, ok := d.subnets[s.Info.Subnet]; ok {
		return i
	}
	i := int32(len(d.t.Subnets))
	d.subnets[s.Info.Subnet] = i
	d.t.Subnets = append(d.t.Subnets, subnetName(s))
	return i
}

func subnetName(s *capture.Step) string {
	kind := fmt.Sprintf("kind %d", s.Info.Kind)
	switch s.Info.Kind {
	case block.OnTPU:
		kind = "TPU, static"
		if s.Dynamic() {
			kind = "TPU, dynamic"
		}
	case block.OnCPU:
		kind = "CPU, " + names.Of(names.CPU, s.Info.Extra)
	case block.Merge:
		kind = "merge"
	case block.Switch:
		kind = fmt.Sprintf("switch, condition %d", s.Info.Extra)
	}
	return fmt.Sprintf("subnet %d (%s)", s.Info.Subnet, kind)
}

func (d *drawing) iteration(s *capture.Step) int32 {
	if !d.iterations {
		return -1
	}
	return int32(s.Iteration)
}

func (d *drawing) steps() {
	var inferences, subnets []bar
	begin, now := 0.0, -1
	for i, s := range d.r.Steps {
		if s.Iteration != now {
			begin, now = s.Base, s.Iteration
		}
		if d.iterations && (i+1 == len(d.r.Steps) || d.r.Steps[i+1].Iteration != now) {
			x := empty(begin, s.Base+s.Length)
			x.label, x.iteration = d.name(fmt.Sprintf("inference %d", now)), int32(now)
			inferences = append(inferences, x)
		}
		if s.HasInfo {
			x := empty(s.Base, s.Base+s.Length)
			x.subnet, x.iteration = d.subnet(s), d.iteration(s)
			x.label = d.name(d.t.Subnets[x.subnet])
			if hostTimed(s) {
				x.layer = d.ls.hostLayer(s)
			}
			subnets = append(subnets, x)
		}
	}
	d.lane(laneKey{timeline.Iteration, "", "inferences", ""}, inferences)
	d.lane(laneKey{timeline.Subnet, "", "subnets", ""}, subnets)
}

// core draws groups, layers and engines of a core over all steps.
func (d *drawing) core(number int) {
	group := coreName(number)
	d.layerLanes(number, group)
	type origin struct {
		e *capture.Engine
		i int32 // the record
	}
	type engineLane struct {
		name string
		bars []bar
		from []origin
	}
	var lanes []*engineLane
	var runtime, sync []bar
	for u := range d.r.Units() {
		if u.Core.Number != number || u.Len() == 0 {
			continue
		}
		name := engineName(u.Engine)
		k := slices.IndexFunc(lanes, func(l *engineLane) bool { return l.name == name })
		if k < 0 {
			k = len(lanes)
			lanes = append(lanes, &engineLane{name: name})
		}
		l := lanes[k]
		work, other, messages, at := d.engine(u.Step, u.Engine)
		for _, i := range at {
			l.from = append(l.from, origin{u.Engine, i})
		}
		l.bars = append(l.bars, work...)
		runtime, sync = append(runtime, other...), append(sync, messages...)
	}
	for _, l := range lanes {
		for k, w := range d.lane(laneKey{timeline.Engine, group, l.name, ""}, l.bars) {
			from := l.from[k]
			if d.bars[from.e] == nil {
				d.bars[from.e] = slices.Repeat([]place{{-1, -1}}, from.e.Len())
			}
			d.bars[from.e][from.i] = w
		}
	}
	d.lane(laneKey{timeline.Engine, group, "synchronisation", ""}, sync)
	d.lane(laneKey{timeline.Engine, group, "runtime's copies", ""}, runtime)
}

// engine returns the bars of an engine in a step. at has the record of each bar of work.
func (d *drawing) engine(s *capture.Step, e *capture.Engine) (work, runtime, sync []bar, at []int32) {
	m := d.members[e]
	for i := range e.Len() {
		if d.coarse && e.Class[i] == capture.Work && len(work) > 0 {
			last := &work[len(work)-1]
			if last.layer == m.layer[i] && m.layer[i] >= 0 && s.Base+e.Begin[i] >= last.start+last.duration {
				d.join(last, s, e, i)
				continue
			}
		}
		x := d.bar(s, e, m, i)
		switch e.Class[i] {
		case capture.Work:
			work, at = append(work, x), append(at, int32(i))
		case capture.Sync:
			x.label, x.kind = d.name(engineName(e)+" "+functionName(e, i)), d.name("synchronisation")
			sync = append(sync, x)
		case capture.Runtime:
			x.kind = d.name("runtime's copy")
			runtime = append(runtime, x)
		}
	}
	return work, runtime, sync, at
}

func (d *drawing) join(last *bar, s *capture.Step, e *capture.Engine, i int) {
	last.duration = max(last.duration, s.Base+e.Finish[i]-last.start)
	last.commands = max(last.commands, 1) + 1
	last.label, last.number, last.direction, last.use = -1, -1, -1, -1
	if e.Conflicts != nil && last.conflicts >= 0 {
		last.conflicts += float64(e.Conflicts[i])
	}
	if e.Kind == command.TIU {
		return
	}
	if from, to := direction(e, i, d.r.Chip); from != command.NoSpace || to != command.NoSpace {
		last.bytes = max(last.bytes, 0) + payload(e, i, to)
	}
	if e.Stall != nil {
		last.stall += float64(e.Stall[i]) / d.r.Clock.DMA
	}
}

func (d *drawing) bar(s *capture.Step, e *capture.Engine, m member, i int) bar {
	x := empty(s.Base+e.Begin[i], s.Base+e.Finish[i])
	x.layer, x.iteration, x.subnet = m.layer[i], d.iteration(s), d.subnet(s)
	c := commandOf(e, i)
	label := functionName(e, i)
	if c != nil && !c.Op.System() {
		label += ", " + c.DType().String()
	}
	x.label = d.name(label)
	if k := e.Command[i]; k >= 0 {
		x.number = float64(k + 1)
	}
	if e.Kind == command.TIU {
		if e.Conflicts != nil {
			x.conflicts = float64(e.Conflicts[i])
		}
		if e.Stall != nil {
			x.stall = float64(e.Stall[i]) / d.r.Clock.TIU
		}
		if c != nil {
			if w, ok := c.Work(d.r.Chip); ok {
				if p := x.duration * peakOf(d.r.Chip, d.r.Clock.TIU, c.DType()); p > 0 {
					x.use = min(1, float64(w.Alg)/p)
				}
			}
		}
		return x
	}
	from, to := direction(e, i, d.r.Chip)
	if e.Stall != nil {
		x.stall = float64(e.Stall[i]) / d.r.Clock.DMA
	}
	if from != command.NoSpace || to != command.NoSpace {
		x.direction = d.name(from.String() + " to " + to.String())
		x.bytes = payload(e, i, to)
		if peak := d.r.Chip.DDRPeak; peak > 0 && x.duration > 0 && (from == command.DDR || to == command.DDR) {
			x.use = min(1, float64(x.bytes)/x.duration/peak)
		}
	}
	return x
}

func (d *drawing) layerLanes(number int, group string) {
	var bars, groupBars []bar
	var gs groups
	if p := d.r.Program; p != nil {
		gs.list = p.Groups
	}
	for _, s := range d.r.Steps {
		visits, spans := visitBars{}, visitBars{}
		for _, c := range s.Cores {
			if c.Number != number {
				continue
			}
			for _, e := range c.Engines {
				m := d.members[e]
				for i, layer := range m.layer {
					if layer < 0 {
						continue
					}
					b, f := s.Base+e.Begin[i], s.Base+e.Finish[i]
					if g := gs.of(d.line(layer)); g >= 0 {
						spans.extend(int32(g), b, f)
					}
					if v := m.visit[i]; v >= 0 {
						visits.extend(v, b, f).layer = layer
					}
				}
			}
		}
		for _, y := range visits.list {
			y.iteration, y.subnet = d.iteration(s), d.subnet(s)
			bars = append(bars, y.bar)
		}
		for _, y := range spans.list {
			y.label = d.name(fmt.Sprintf("group %d, line %d", y.key, gs.list[y.key].Begin))
			y.iteration, y.subnet = d.iteration(s), d.subnet(s)
			groupBars = append(groupBars, y.bar)
		}
	}
	d.lane(laneKey{timeline.LayerGroup, group, "layer groups", ""}, groupBars)
	d.lane(laneKey{timeline.Layer, group, "layers", ""}, bars)
}

// visitBars contains a bar for each key, in the order of their first intervals.
type visitBars struct {
	list []*keyedBar
	at   map[int32]*keyedBar
}

type keyedBar struct {
	key int32
	end float64
	bar
}

// extend extends the bar of a key to include an interval.
func (v *visitBars) extend(key int32, begin, finish float64) *keyedBar {
	x := v.at[key]
	if x == nil {
		if v.at == nil {
			v.at = map[int32]*keyedBar{}
		}
		x = &keyedBar{key, finish, empty(begin, finish)}
		v.at[key] = x
		v.list = append(v.list, x)
		return x
	}
	x.start, x.end = min(x.start, begin), max(x.end, finish)
	x.duration = max(0, x.end-x.start)
	return x
}

// line returns the line of a layer in the program, -1 if it has none.
func (d *drawing) line(layer int32) int64 {
	if d.ls.lineOf == nil {
		d.ls.lineOf = slices.Repeat([]int64{-1}, len(d.ls.list))
		for k, i := range d.ls.at {
			if k.name == "" {
				d.ls.lineOf[i] = k.id
			}
		}
	}
	if int(layer) >= len(d.ls.lineOf) {
		return -1
	}
	return d.ls.lineOf[layer]
}

const maxLinks = 20_000

// links draws the dependencies of commands, each once.
func (d *drawing) links() {
	for _, c := range d.r.Cores() {
		t, g := c.Engine(command.TIU), c.Engine(command.GDMA)
		if t == nil || g == nil {
			continue
		}
		for _, p := range [][2]*capture.Engine{{t, g}, {g, t}} {
			e, o := p[0], p[1]
			last := -1
			for i := range e.Len() {
				j := e.WaitedFor(i, o)
				if j < 0 || j == last {
					continue
				}
				last = j
				if d.bars[e] == nil || d.bars[o] == nil {
					continue
				}
				if a, b := d.bars[o][j], d.bars[e][i]; a.lane >= 0 && b.lane >= 0 && len(d.t.Links) < maxLinks {
					d.t.Links = append(d.t.Links, timeline.Link{FromLane: a.lane, FromBar: a.bar, ToLane: b.lane, ToBar: b.bar})
				}
			}
		}
	}
}

// clocks describes the relation of the engines' counters to the axis.
func (d *drawing) clocks() {
	k := d.r.Clock
	for e := range d.r.Units() {
		if e.Len() == 0 || len(d.t.Clocks) >= 1000 {
			continue
		}
		c := e.Core
		name := fmt.Sprintf("%s %s", coreName(c.Number), engineName(e.Engine))
		if len(d.r.Steps) > 1 {
			name = fmt.Sprintf("step %d %s", e.Step.Number, name)
		}
		hz, method := k.DMA, fmt.Sprintf("counter at %.6g MHz: %s", k.DMA/1e6, k.DMAMethod)
		if e.Kind == command.TIU {
			hz, method = k.TIU, fmt.Sprintf("counter at %.6g MHz: %s; %s", k.TIU/1e6, k.TIUMethod, d.offsetMethod(c))
		}
		if c.ShiftMethod != "" {
			method += "; the core by the " + c.ShiftMethod
		}
		clock := timeline.Clock{Name: d.clockName(name), Method: method}
		if e.Kind != command.TIU || c.Aligned {
			clock.OffsetS = new(float64(e.Start[0])/hz - (e.Step.Base + e.Begin[0]))
		}
		d.t.Clocks = append(d.t.Clocks, clock)
	}
}

// clockName returns a name that no other clock has.
func (d *drawing) clockName(name string) string {
	free := name
	for n := 2; slices.ContainsFunc(d.t.Clocks, func(c timeline.Clock) bool { return c.Name == free }); n++ {
		free = fmt.Sprintf("%s (%d)", name, n)
	}
	return free
}

func (d *drawing) offsetMethod(c *capture.Core) string {
	o := c.Offset
	switch {
	case !c.Aligned:
		return "nothing recorded tells how it stands to the copies"
	case o.Violated > 0:
		return fmt.Sprintf("placed so that %d of %d dependencies are contradicted", o.Violated, o.Waits)
	case math.IsInf(o.Low, 0) || math.IsInf(o.High, 0):
		return fmt.Sprintf("placed by %d dependencies, which bound it on one side", o.Waits)
	}
	return fmt.Sprintf("placed by %d dependencies within %.4g cycles", o.Waits, o.High-o.Low)
}

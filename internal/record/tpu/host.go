package tpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/names"
	"github.com/opmeter/opmeter/profile/timeline"
)

const hostClock = "host"

// globalMemory is the kind of allocations in global memory.
const globalMemory = 1

// firmware draws the firmware of each core, on its own clock.
func (d *drawing) firmware() {
	for s, c := range d.r.Cores() {
		f := &c.Firmware
		if len(f.Records) == 0 {
			continue
		}
		clock := fmt.Sprintf("firmware of %s", coreName(c.Number))
		if len(d.r.Steps) > 1 {
			clock += fmt.Sprintf(", step %d", s.Number)
		}
		clock = d.clockName(clock)
		base := slices.MinFunc(f.Records, func(a, b block.Dyn) int { return cmp.Compare(a.Begin, b.Begin) }).Begin
		at := func(v uint64) float64 { return float64(v-base) * f.TickS }
		var bars []bar
		for i := range f.Records {
			r := &f.Records[i]
			x := empty(at(r.Begin), at(r.Begin))
			if r.End >= r.Begin && r.End != math.MaxUint64 {
				x.duration = max(0, at(r.End)-at(r.Begin))
			}
			x.iteration, x.subnet = d.iteration(s), d.subnet(s)
			x.label, x.kind = d.name(d.firmwareLabel(c, r)), d.name("firmware")
			bars = append(bars, x)
		}
		d.lane(laneKey{timeline.Engine, coreName(c.Number), "firmware", clock}, bars)
		k := timeline.Clock{Name: clock, Method: fmt.Sprintf("ticks of %g ns", f.TickS*1e9)}
		if offset, ok := d.issueOffset(s, c, at); ok && f.Valid {
			k.OffsetS = &offset
			k.Method += "; the first command that the firmware issued is taken to have started when it was issued"
		} else if !f.Valid {
			k.Method += ", which is assumed: the record does not say"
		}
		d.t.Clocks = append(d.t.Clocks, k)
	}
}

// issueOffset returns the firmware's time at the origin of the timeline.
func (d *drawing) issueOffset(s *capture.Step, c *capture.Core, at func(uint64) float64) (float64, bool) {
	for _, e := range c.Engines {
		for i, k := range e.Issue {
			if k >= 0 && e.Issued[k].At < len(c.Firmware.Records) {
				return at(c.Firmware.Records[e.Issued[k].At].Begin) - (s.Base + e.Begin[i]), true
			}
		}
	}
	return 0, false
}

var dynNames = map[uint32]string{
	block.DynCDMA: "CDMA", block.DynGDE: "GDE", block.DynSort: "sort", block.DynNMS: "NMS", block.DynVSDMA: "VSDMA",
	block.DynSend: "send message", block.DynWait: "wait for message",
}

func (d *drawing) firmwareLabel(c *capture.Core, r *block.Dyn) string {
	t := r.Type & 0xFF
	what := cmp.Or(dynNames[t], fmt.Sprintf("type %d", t))
	switch n := r.Node(d.r.Chip.Name); {
	case t == block.DynFunc:
		what = firmwareLayer(r.Func())
	case t == block.DynNodeWait:
		what = fmt.Sprintf("wait for TIU %d, GDMA %d", n.BD, n.GDMA)
	case t == block.DynNodeSet && n.Engine == block.TIU:
		what = fmt.Sprintf("issue TIU %d", n.BD)
	case t == block.DynNodeSet:
		what = fmt.Sprintf("issue GDMA %d", n.GDMA)
	case t == block.DynCustom:
		what = fmt.Sprintf("custom %d", r.ID)
	}
	for _, s := range c.Firmware.Texts(r.Profile) {
		what += ": " + clean(s)
	}
	return what
}

func firmwareLayer(f block.Func) string {
	if f.Kind == 2 {
		return names.Of(names.Copy, uint64(f.Layer))
	}
	return names.Of(names.Firmware, uint64(f.Layer))
}

// clean makes a text of a record printable: valid UTF-8, at most 200 bytes, in one line.
func clean(s string) string {
	s = strings.ToValidUTF8(strings.Trim(s, "\x00 \r\n\t"), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
	const most = 200
	if len(s) > most {
		s = s[:most]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return s
}

// host draws the runtime and programs on the host, on its clock.
func (d *drawing) host() {
	least := uint64(math.MaxUint64)
	see := func(v uint64) {
		if v > 0 {
			least = min(least, v)
		}
	}
	for _, s := range d.r.Steps {
		see(s.Info.Begin)
	}
	for _, x := range d.r.Drivers {
		see(x.Calls.Begin)
		for _, v := range driverEvents(&x.Calls) {
			see(v.begin)
		}
	}
	for _, a := range d.r.Log.Memory {
		see(a.Alloc)
	}
	if least == math.MaxUint64 {
		return
	}
	at := func(v uint64) float64 {
		if v < least {
			return 0
		}
		return float64(v-least) * 1e-6
	}
	before := len(d.t.Lanes) + len(d.t.Counters)
	var steps []bar
	for _, s := range d.r.Steps {
		if _, ok := s.HostSeconds(); !ok {
			continue
		}
		x := empty(at(s.Info.Begin), at(s.Info.End))
		x.label, x.iteration = d.name(subnetName(s)), d.iteration(s)
		steps = append(steps, x)
	}
	d.lane(laneKey{timeline.Host, "host", "runtime", hostClock}, steps)
	d.drivers(at)
	d.allocated(at)
	if len(d.t.Lanes)+len(d.t.Counters) > before {
		d.t.Clocks = append(d.t.Clocks, timeline.Clock{Name: hostClock, Method: "the host's clock from its first event; nothing recorded tells how it stands to the chip's"})
	}
}

type driverEvent struct {
	kind, position uint32 // of its text
	begin, end     uint64
	label          string
	way            string // of a copy
	bytes          int64  // -1 if unknown
}

// driverLanes are the names of lanes by kind of event.
var driverLanes = [...]string{"calls", "waits", "marks", "copies", "memory"}

// driverEvents returns the events of a recording. Calls that switch the recorder have no label.
func driverEvents(c *block.Driver) []driverEvent {
	var out []driverEvent
	add := func(kind, position int, begin, end uint64, label, way string, bytes int64) {
		out = append(out, driverEvent{uint32(kind), uint32(position), begin, max(begin, end), label, way, bytes})
	}
	for i, v := range c.Sends {
		label := names.Of(names.Call, uint64(v.API))
		if v.API == 986 || v.API == 987 {
			label = ""
		}
		add(0, i, v.Time, v.Time, label, "", -1)
	}
	for i, v := range c.Syncs {
		add(1, i, v.Begin, v.End, "wait for the chip", "", -1)
	}
	for i, v := range c.Marks {
		add(2, i, v.Begin, v.End, fmt.Sprintf("mark %d", v.ID), "", -1)
	}
	for i, v := range c.Copies {
		way := pick("copy", v.Direction, "host to chip", "chip to host", "chip to chip")
		add(3, i, v.Begin, v.End, way, way, int64(v.Size))
	}
	for i, v := range c.Memory {
		what := pick("memory operation", v.Kind, "allocate", "free", "invalidate", "flush")
		add(4, i, v.Begin, v.End, fmt.Sprintf("%s %#x", what, v.Address), "", int64(v.Size))
	}
	return out
}

// pick returns the name with a number, other for numbers without a name.
func pick(other string, n uint32, names ...string) string {
	if n < uint32(len(names)) {
		return names[n]
	}
	return other
}

func (d *drawing) drivers(at func(uint64) float64) {
	for n, x := range d.r.Drivers {
		group := "driver"
		if len(d.r.Drivers) > 1 {
			group = fmt.Sprintf("driver %d (%s)", n, x.File)
		}
		texts := map[[2]uint32]string{}
		for _, e := range x.Extras {
			if s := clean(string(e.Data)); s != "" {
				texts[[2]uint32{e.Owner, e.Kind}] = s
			}
		}
		var lanes [len(driverLanes)][]bar
		for _, v := range driverEvents(&x.Calls) {
			if v.label == "" {
				continue
			}
			b := empty(at(v.begin), at(v.end))
			if t := texts[[2]uint32{v.kind, v.position}]; t != "" {
				v.label += ": " + t
			}
			b.label, b.direction, b.bytes = d.name(v.label), d.name(v.way), v.bytes
			lanes[v.kind] = append(lanes[v.kind], b)
		}
		for kind, bars := range lanes {
			d.lane(laneKey{timeline.Host, group, driverLanes[kind], hostClock}, bars)
		}
	}
}

func (d *drawing) allocated(at func(uint64) float64) {
	var edges []edge
	for _, a := range d.r.Log.Memory {
		if a.Kind != globalMemory || a.Alloc == 0 || a.Bytes > 1<<50 {
			continue
		}
		edges = append(edges, edge{at(a.Alloc), float64(a.Bytes), 1})
		if a.Free >= a.Alloc && a.Free > 0 {
			edges = append(edges, edge{at(a.Free), -float64(a.Bytes), -1})
		}
	}
	if len(edges) > maxPoints {
		return
	}
	c := counter("allocated global memory", edges)
	c.Unit, c.Group, c.Clock = "B", "host", hostClock
	if len(c.Times) == 0 {
		return
	}
	d.t.Counters = append(d.t.Counters, c)
}

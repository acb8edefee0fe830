package tpu

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/names"
	"github.com/opmeter/opmeter/profile/timeline"
)

const hostClock = "host"

// firmware draws what the firmware of each core did, on its own clock.
func (d *drawing) firmware() {
	for _, s := range d.r.Steps {
		for _, c := range s.Cores {
			f := &c.Firmware
			if len(f.Records) == 0 {
				continue
			}
			clock := fmt.Sprintf("firmware of %s", coreName(c.Number))
			if len(d.r.Steps) > 1 {
				clock += fmt.Sprintf(", step %d", s.Number)
			}
			clock = d.clockName(clock)
			base := f.Records[0].Begin
			for i := range f.Records {
				base = min(base, f.Records[i].Begin)
			}
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
}

// issueOffset is the firmware's time at the timeline's origin.
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

// firmwareLabel says what a record of the firmware is.
func (d *drawing) firmwareLabel(c *capture.Core, r *block.Dyn) string {
	var what string
	switch t := r.Type & 0xFF; t {
	case block.DynFunc:
		f := r.Func()
		what = names.Of(names.Firmware, uint64(f.Layer))
		if f.Kind == 2 {
			what = names.Of(names.Copy, uint64(f.Layer))
		}
	case block.DynNodeSet, block.DynNodeWait:
		n := r.Node(d.r.Chip.Name)
		what = fmt.Sprintf("wait for TIU %d, GDMA %d", n.BD, n.GDMA)
		if t == block.DynNodeSet {
			what = "issue GDMA " + fmt.Sprint(n.GDMA)
			if n.Engine == block.TIU {
				what = "issue TIU " + fmt.Sprint(n.BD)
			}
		}
	case block.DynCDMA:
		what = "CDMA"
	case block.DynGDE:
		what = "GDE"
	case block.DynSort:
		what = "sort"
	case block.DynNMS:
		what = "NMS"
	case block.DynVSDMA:
		what = "VSDMA"
	case block.DynSend:
		what = "send message"
	case block.DynWait:
		what = "wait for message"
	case block.DynCustom:
		what = fmt.Sprintf("custom %d", r.ID)
	default:
		what = fmt.Sprintf("type %d", t)
	}
	for _, s := range c.Firmware.Texts(r.Profile) {
		what += ": " + clean(s)
	}
	return what
}

// clean makes a text of a record fit to show: valid, short, without ends of lines.
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

// host draws what the runtime and programs did on the host, on its clock.
func (d *drawing) host() {
	least := uint64(math.MaxUint64)
	see := func(v uint64) {
		if v > 0 {
			least = min(least, v)
		}
	}
	for _, s := range d.r.Steps {
		if s.HasInfo {
			see(s.Info.Begin)
		}
	}
	for _, x := range d.r.Drivers {
		c := &x.Calls
		see(c.Begin)
		for _, v := range c.Sends {
			see(v.Time)
		}
		for _, v := range c.Syncs {
			see(v.Begin)
		}
		for _, v := range c.Marks {
			see(v.Begin)
		}
		for _, v := range c.Copies {
			see(v.Begin)
		}
		for _, v := range c.Memory {
			see(v.Begin)
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
	if len(steps) > 0 {
		d.lane(laneKey{timeline.Host, "host", "runtime", hostClock}, steps)
	}
	d.drivers(at)
	d.allocated(at)
	if len(d.t.Lanes)+len(d.t.Counters) > before {
		d.t.Clocks = append(d.t.Clocks, timeline.Clock{Name: hostClock, Method: "the host's clock from its first event; nothing recorded tells how it stands to the chip's"})
	}
}

// drivers draws recordings of the driver.
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
		label := func(kind, i int, s string) int32 {
			if t := texts[[2]uint32{uint32(kind), uint32(i)}]; t != "" {
				s += ": " + t
			}
			return d.name(s)
		}
		span := func(begin, end uint64) bar {
			if end < begin {
				end = begin // a point
			}
			return empty(at(begin), at(end))
		}
		var calls, syncs, marks, copies, memory []bar
		for i, v := range x.Calls.Sends {
			if !kernelCall(v.API) && (v.API == 986 || v.API == 987) {
				continue // switches of the recorder itself
			}
			b := span(v.Time, v.Time)
			b.label = label(0, i, names.Of(names.Call, uint64(v.API)))
			calls = append(calls, b)
		}
		for i, v := range x.Calls.Syncs {
			b := span(v.Begin, v.End)
			b.label = label(1, i, "wait for the chip")
			syncs = append(syncs, b)
		}
		for i, v := range x.Calls.Marks {
			b := span(v.Begin, v.End)
			b.label = label(2, i, fmt.Sprintf("mark %d", v.ID))
			marks = append(marks, b)
		}
		for i, v := range x.Calls.Copies {
			b := span(v.Begin, v.End)
			way := "copy"
			if v.Direction < 3 {
				way = [...]string{"host to chip", "chip to host", "chip to chip"}[v.Direction]
			}
			b.label, b.direction, b.bytes = label(3, i, way), d.name(way), int64(v.Size)
			copies = append(copies, b)
		}
		for i, v := range x.Calls.Memory {
			b := span(v.Begin, v.End)
			what := "memory operation"
			if v.Kind < 4 {
				what = [...]string{"allocate", "free", "invalidate", "flush"}[v.Kind]
			}
			b.label, b.bytes = label(4, i, fmt.Sprintf("%s %#x", what, v.Address)), int64(v.Size)
			memory = append(memory, b)
		}
		for _, l := range []struct {
			name string
			bars []bar
		}{{"calls", calls}, {"waits", syncs}, {"marks", marks}, {"copies", copies}, {"memory", memory}} {
			if len(l.bars) > 0 {
				d.lane(laneKey{timeline.Host, group, l.name, hostClock}, l.bars)
			}
		}
	}
}

// kernelCall reports whether a call runs something on the chip.
func kernelCall(api uint32) bool {
	switch {
	case api == 0, api == 986, api == 987, api >= 0x80000001 && api <= 0x8000000B, api == 0x90000001, api == 0x90000002, api == 0x90000004:
		return false
	}
	return true
}

// allocated draws how much of the chip's memory was allocated.
func (d *drawing) allocated(at func(uint64) float64) {
	var edges []edge
	for _, a := range d.r.Log.Memory {
		const global = 1
		if a.Kind != global || a.Alloc == 0 || a.Bytes > 1<<50 {
			continue
		}
		edges = append(edges, edge{at(a.Alloc), float64(a.Bytes), 1})
		if a.Free >= a.Alloc && a.Free > 0 {
			edges = append(edges, edge{at(a.Free), -float64(a.Bytes), -1})
		}
	}
	if len(edges) == 0 || len(edges) > maxPoints {
		return
	}
	c := counter("allocated global memory", edges)
	c.Unit, c.Group, c.Clock = "B", "host", hostClock
	if len(c.Times) == 0 {
		return
	}
	d.t.Counters = append(d.t.Counters, c)
}

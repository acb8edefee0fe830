// Package perfetto writes timelines as Perfetto traces (.pftrace), which
// ui.perfetto.dev opens and trace_processor queries.
//
// Source of the format: the protobuf definitions in protos/perfetto/trace of the
// Perfetto project. A trace is a sequence of packets; bars have no length but a
// beginning and an end, in order of time; names are numbered at their first use.
package perfetto

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/report/figures"
	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// FullArgs is the number of bars up to which every bar carries what is known about
// its layer; in longer traces only the first bar of each layer does.
const FullArgs = 100_000

// Numbers of fields, by message.
const (
	tracePacket = 1

	packetTimestamp     = 8
	packetSequence      = 10
	packetTrackEvent    = 11
	packetInterned      = 12
	packetSequenceFlags = 13
	packetDescriptor    = 60

	descriptorUUID     = 1
	descriptorName     = 2
	descriptorProcess  = 3
	descriptorThread   = 4
	descriptorParent   = 5
	descriptorCounter  = 8
	descriptorRank     = 12
	descriptorAbout    = 14
	descriptorOrdering = 11

	eventCategoryID  = 3
	eventAnnotation  = 4
	eventType        = 9
	eventNameID      = 10
	eventTrack       = 11
	eventDouble      = 44
	eventFlow        = 47
	annotationNameID = 1
	annotationInt    = 4
	annotationDouble = 5
	annotationString = 6

	internedCategories  = 1
	internedNames       = 2
	internedAnnotations = 3
)

// Kinds of track events.
const (
	sliceBegin = 1
	sliceEnd   = 2
	counter    = 4
)

const (
	sequence     = 1 // the writer of all packets; must not be 0
	stateCleared = 1
	needsState   = 2
	explicit     = 3 // child tracks in order of their ranks
)

// Write writes p as a Perfetto trace. Every bar of the timeline is there.
func Write(w io.Writer, p *profile.Profile) error {
	v := spans.Of(p)
	t := &writer{w: bufio.NewWriterSize(w, 1<<16), v: v, full: v.Size() <= FullArgs, seen: make([]bool, len(p.Layers)), quantities: figures.Stored(p)}
	for i := range t.ids {
		t.ids[i] = map[string]uint64{}
	}
	t.links()
	t.tracks()
	for e := range v.Events() {
		switch e.Kind {
		case spans.Begin:
			t.begin(e)
		case spans.End:
			t.event(sliceEnd, laneTrack(e.Bar.Lane))
			t.packet(e.At)
		case spans.Value:
			t.event(counter, t.counterTrack(e.Item))
			t.ev = protowire.AppendTag(t.ev, eventDouble, protowire.Fixed64Type)
			t.ev = protowire.AppendFixed64(t.ev, math.Float64bits(v.Counters[e.Item].Values[e.Index]))
			t.packet(e.At)
		}
	}
	return t.w.Flush()
}

type writer struct {
	w     *bufio.Writer // keeps the first error
	v     *spans.View
	full  bool
	seen  []bool
	first bool                 // a packet was written
	ids   [4]map[string]uint64 // numbers of categories, names, annotation names
	// from and to hold the links that leave and reach bars.
	from, to map[[2]int32][]uint64

	ev, interned, ann, b []byte
	quantities           []profile.Quantity // that bars carry
}

// Tracks are numbered: 1 the model, then groups, lanes, counters.
const maxGroups = 1 << 20

func laneTrack(i int) uint64                { return 2*maxGroups + uint64(i) }
func groupTrack(i int) uint64               { return 1 + uint64(i) }
func (t *writer) counterTrack(i int) uint64 { return laneTrack(len(t.v.Lanes)) + uint64(i) }

func (t *writer) links() {
	t.from, t.to = map[[2]int32][]uint64{}, map[[2]int32][]uint64{}
	for i, l := range t.v.Links {
		from, to := [2]int32{l.FromLane, l.FromBar}, [2]int32{l.ToLane, l.ToBar}
		t.from[from] = append(t.from[from], uint64(i)+1)
		t.to[to] = append(t.to[to], uint64(i)+1)
	}
}

func str(b []byte, field protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, strings.ToValidUTF8(s, "\ufffd"))
}

func num(b []byte, field protowire.Number, v uint64) []byte {
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, v)
}

func sub(b []byte, field protowire.Number, m []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, m)
}

// tracks describes processes, threads and counters before their first events.
func (t *writer) tracks() {
	p, v := t.v.Profile, t.v
	groups := map[string]int{"": 0}
	process := func(i int, name string) {
		d := num(nil, descriptorUUID, groupTrack(i))
		pr := num(nil, 1, uint64(i)+1)
		d = sub(d, descriptorProcess, str(pr, 6, name))
		d = num(d, descriptorOrdering, explicit)
		d = num(d, descriptorRank, uint64(i))
		if i == 0 {
			d = str(d, descriptorAbout, about(v, t.full))
		}
		t.descriptor(d)
	}
	process(0, p.Model.Name+" on "+p.Target.ID)
	for _, g := range v.Groups() {
		if g != "" {
			groups[g] = len(groups)
			process(groups[g], g)
		}
	}
	for i := range v.Lanes {
		g := groups[v.Lanes[i].Group]
		d := num(nil, descriptorUUID, laneTrack(i))
		d = num(d, descriptorParent, groupTrack(g))
		th := num(nil, 1, uint64(g)+1)
		// A thread whose number is that of its process is taken for its main thread.
		th = num(th, 2, uint64(1000+i))
		d = sub(d, descriptorThread, str(th, 5, v.Lanes[i].Name))
		d = num(d, descriptorRank, uint64(i))
		t.descriptor(d)
	}
	for i := range v.Counters {
		c := &v.Counters[i]
		d := num(nil, descriptorUUID, t.counterTrack(i))
		d = str(d, descriptorName, c.Name)
		d = num(d, descriptorParent, groupTrack(groups[c.Group]))
		var k []byte
		if c.Unit != "" {
			k = str(k, 6, c.Unit)
		}
		d = sub(d, descriptorCounter, k)
		t.descriptor(d)
	}
}

// about says what the times are, for the description of the first track.
func about(v *spans.View, full bool) string {
	s := v.Method
	if v.Origin != "" {
		s += "; time 0 is the " + v.Origin
	}
	if v.Iterations != nil {
		s += fmt.Sprintf("; %d iterations ran", *v.Iterations)
	}
	if v.Dropped != nil && *v.Dropped > 0 {
		s += fmt.Sprintf("; %d records were dropped", *v.Dropped)
	}
	if !full {
		s += "; only the first bar of a layer has all figures"
	}
	if n := len(v.Memories); n > 0 {
		s += fmt.Sprintf("; accesses to %d memories are left out", n)
	}
	return s
}

func (t *writer) descriptor(d []byte) {
	t.b = num(t.b[:0], packetSequence, sequence)
	t.b = t.flags(t.b)
	t.b = sub(t.b, packetDescriptor, d)
	t.write()
}

func (t *writer) flags(b []byte) []byte {
	if !t.first {
		t.first = true
		return num(b, packetSequenceFlags, stateCleared)
	}
	return num(b, packetSequenceFlags, needsState)
}

// write puts the packet in t.b into the file.
func (t *writer) write() {
	var head [16]byte
	h := protowire.AppendTag(head[:0], tracePacket, protowire.BytesType)
	_, _ = t.w.Write(protowire.AppendVarint(h, uint64(len(t.b))))
	_, _ = t.w.Write(t.b)
}

// event begins a track event; packet finishes it.
func (t *writer) event(kind, track uint64) {
	t.interned = t.interned[:0]
	t.ev = num(t.ev[:0], eventType, kind)
	t.ev = num(t.ev, eventTrack, track)
}

func (t *writer) packet(at int64) {
	t.b = num(t.b[:0], packetTimestamp, uint64(at))
	t.b = num(t.b, packetSequence, sequence)
	t.b = t.flags(t.b)
	t.b = sub(t.b, packetTrackEvent, t.ev)
	if len(t.interned) > 0 {
		t.b = sub(t.b, packetInterned, t.interned)
	}
	t.write()
}

// id numbers a text. At its first use the number is defined in the same packet.
func (t *writer) id(table protowire.Number, s string) uint64 {
	if n, ok := t.ids[table][s]; ok {
		return n
	}
	n := uint64(len(t.ids[table])) + 1
	t.ids[table][s] = n
	t.interned = sub(t.interned, table, str(num(nil, 1, n), 2, s))
	return n
}

func (t *writer) begin(e spans.Event) {
	b := e.Bar
	l := &t.v.Lanes[b.Lane]
	t.event(sliceBegin, laneTrack(b.Lane))
	name, kind := "stall", "stall"
	if !b.Stall {
		name, kind = t.v.Name(l, b.Index), t.v.Type(l, b.Index)
	}
	t.ev = num(t.ev, eventNameID, t.id(internedNames, name))
	t.ev = num(t.ev, eventCategoryID, t.id(internedCategories, kind))
	if !b.Stall {
		t.annotations(l, b)
		at := [2]int32{int32(b.Lane), int32(b.Index)}
		for _, f := range t.from[at] {
			t.flow(eventFlow, f)
		}
		for _, f := range t.to[at] {
			// What began to wait before what it waits for is the first end of the arrow.
			t.flow(eventFlow, f)
		}
	}
	t.packet(e.At)
}

func (t *writer) flow(field protowire.Number, id uint64) {
	t.ev = protowire.AppendTag(t.ev, field, protowire.Fixed64Type)
	t.ev = protowire.AppendFixed64(t.ev, id)
}

// annotations writes what is known about the bar itself, then of its layer.
func (t *writer) annotations(l *timeline.Lane, b spans.Bar) {
	i := b.Index
	if n := spans.At(l.Iterations, i); n >= 0 {
		t.int("iteration", int64(n))
	}
	if n := spans.At(l.Subnets, i); n >= 0 {
		t.text("subnet", t.v.Subnets[n])
	}
	if n := spans.At(l.Directions, i); n >= 0 {
		t.text("direction", t.v.Names[n])
	}
	if i < len(l.Bytes) && l.Bytes[i] >= 0 {
		t.int("moved_bytes", l.Bytes[i])
	}
	if i < len(l.Utilisation) && l.Utilisation[i] >= 0 {
		t.double("utilisation", l.Utilisation[i])
	}
	if i < len(l.Stalls) && l.Stalls[i] > 0 {
		t.double("stall_s", l.Stalls[i])
	}
	for key, v := range figures.OfBar(l, i) {
		t.double(key, v)
	}
	n := spans.At(l.Layers, i)
	if n < 0 {
		return
	}
	t.int("layer", int64(n))
	if l.Kind == timeline.Layer && (t.full || !t.seen[n]) {
		t.seen[n] = true
		t.layer(&t.v.Profile.Layers[n])
	}
}

func (t *writer) layer(l *profile.Layer) {
	for _, s := range []struct{ key, v string }{{"op", l.Op}, {"name", l.Name}, {"options", words.Options(l)}, {"scope", l.Scope}, {"graph", l.Graph}, {"kernel", l.Kernel}} {
		if s.v != "" {
			t.text(s.key, s.v)
		}
	}
	for _, s := range []struct {
		key string
		ts  []profile.Tensor
	}{{"inputs", l.Inputs}, {"outputs", l.Outputs}} {
		if v := tensors(s.ts); v != "" {
			t.text(s.key, v)
		}
	}
	for i := range t.quantities {
		q := &t.quantities[i]
		switch v, ok := l.Value(q.Key); {
		case ok && q.Whole:
			t.int(q.Key, int64(v))
		case ok:
			t.double(q.Key, v)
		}
	}
}

// tensors lists names, types and shapes: "image int8 1x32x32x3, …".
func tensors(ts []profile.Tensor) string {
	var out []string
	for _, t := range ts {
		if t.Absent {
			continue
		}
		out = append(out, strings.Join(strings.Fields(t.Name+" "+t.DType+" "+words.Dims(t.Shape, "x")), " "))
	}
	return strings.Join(out, ", ")
}

func (t *writer) annotation(key string) {
	t.ann = num(t.ann[:0], annotationNameID, t.id(internedAnnotations, key))
}

func (t *writer) int(key string, v int64) {
	t.annotation(key)
	t.ann = num(t.ann, annotationInt, uint64(v))
	t.ev = sub(t.ev, eventAnnotation, t.ann)
}

func (t *writer) double(key string, v float64) {
	t.annotation(key)
	t.ann = protowire.AppendTag(t.ann, annotationDouble, protowire.Fixed64Type)
	t.ann = protowire.AppendFixed64(t.ann, math.Float64bits(v))
	t.ev = sub(t.ev, eventAnnotation, t.ann)
}

func (t *writer) text(key, s string) {
	t.annotation(key)
	t.ann = str(t.ann, annotationString, s)
	t.ev = sub(t.ev, eventAnnotation, t.ann)
}

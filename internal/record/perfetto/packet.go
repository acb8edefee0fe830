package perfetto

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record/track"
)

// packetTag begins a packet: field 1 of a trace, with a length.
const packetTag = 1<<3 | 2

// Numbers of fields, by message.
const (
	packetClocks     = 6
	packetTimestamp  = 8
	packetSequence   = 10
	packetEvent      = 11
	packetInterned   = 12
	packetFlags      = 13
	packetCleared    = 41 // legacy form of the flag
	packetLost       = 42
	packetClock      = 58
	packetDefaults   = 59
	packetDescriptor = 60

	// Legacy descriptions of processes and threads, and fields that are not used.
	packetProcess = 43
	packetThread  = 44
	packetUser    = 3
	packetPID     = 79
	packetFirst   = 87
	packetMachine = 98

	stateCleared = 1
	needsState   = 2
)

// reader builds a trace from packets.
type reader struct {
	trace     track.Trace
	layers    track.Layers
	own       track.Own
	owned     int64 // bars that name a layer
	read      int64 // packets
	others    int64 // packets of other data sources
	sequences map[uint32]*sequence
	tracks    map[uint64]*trackInfo
	order     []*trackInfo
	clocks    clocks
	flows     track.Flows
	processes map[int64]*process
	threads   map[[2]int64]*trackInfo
	names     map[string]int32 // of slices
	written   bool             // by opmeter, as its first track shows
	about     string
}

func newReader() *reader {
	return &reader{
		sequences: map[uint32]*sequence{}, tracks: map[uint64]*trackInfo{}, processes: map[int64]*process{}, threads: map[[2]int64]*trackInfo{},
		names: map[string]int32{}, clocks: clocks{offsets: map[clockKey]int64{}},
	}
}

// sequence holds the state of a writer of packets.
type sequence struct {
	texts              [maxTextField + 1]map[uint64]string // by field of interned data
	valid              bool
	clock              uint64 // default of timestamps
	track              uint64 // default of events
	extra, extraDouble []uint64
	clocks             map[uint64]*ownClock // that the writer defines
	counters           map[uint64]int64     // of incremental counters
	pid, tid           int64                // legacy description of threads
	time               int64                // legacy: sum of deltas, nanoseconds
}

// Limits of writers and their state.
const (
	maxInterned  = 200_000
	maxSequences = 10_000
)

// Fields of interned data.
const (
	categoryField = 1
	nameField     = 2
	keyField      = 3 // of annotations
	maxTextField  = 29
	textField     = maxTextField // of annotations
)

func newSequence(valid bool) *sequence {
	return &sequence{counters: map[uint64]int64{}, clocks: map[uint64]*ownClock{}, valid: valid}
}

func (s *sequence) clear() {
	clear(s.texts[:])
	s.track, s.extra, s.extraDouble, s.clock = 0, nil, nil, 0
	s.counters, s.valid = map[uint64]int64{}, true
}

// parts holds the fields of a packet.
type parts struct {
	event, interned, descriptor, defaults, clock []byte
	ts, flags, clockID                           uint64
	id                                           uint32 // of the writer
	hasTS, lost, cleared                         bool
}

// split reads the fields of a packet; ok is false if it is malformed.
func (b *reader) split(data []byte) (p parts, ok bool) {
	r := protoread.NewReader(data)
	for r.Next() {
		switch r.Num() {
		case packetTimestamp:
			p.ts, p.hasTS = uint64(r.Int()), true
		case packetSequence:
			p.id = uint32(r.Int())
		case packetEvent:
			p.event = r.Bytes()
		case packetInterned:
			p.interned = r.Bytes()
		case packetFlags:
			p.flags = uint64(r.Int())
			p.cleared = p.cleared || p.flags&stateCleared != 0
		case packetCleared:
			p.cleared = p.cleared || r.Int() != 0
		case packetLost:
			p.lost = r.Int() != 0
		case packetClock:
			p.clockID = uint64(r.Int())
		case packetDefaults:
			p.defaults = r.Bytes()
		case packetDescriptor:
			p.descriptor = r.Bytes()
		case packetClocks:
			p.clock = r.Bytes()
		case packetProcess, packetThread:
			b.oldDescriptor(uint64(p.id), r.Num() == packetThread, r.Bytes())
		case packetUser, packetPID, packetFirst, packetMachine:
		default:
			b.others++
		}
	}
	return p, r.Err() == nil
}

// sequence returns the state of the writer of a packet, nil beyond the limit.
func (b *reader) sequence(p *parts) *sequence {
	s := b.sequences[p.id]
	if s == nil {
		if len(b.sequences) >= maxSequences {
			b.trace.Dropped.Add("packets of more than 10,000 writers", 1)
			return nil
		}
		s = newSequence(p.flags&needsState == 0)
		b.sequences[p.id] = s
	}
	if p.lost {
		s.valid = false
	}
	if p.cleared {
		s.clear()
	}
	return s
}

// packet reads one packet.
func (b *reader) packet(data []byte) {
	b.read++
	p, ok := b.split(data)
	if !ok {
		b.trace.Dropped.Add("packets that are malformed", 1)
		return
	}
	s := b.sequence(&p)
	if s == nil {
		return
	}
	b.clocks.snapshot(p.clock, p.id, s)
	if p.flags&needsState != 0 && !s.valid {
		if p.event != nil {
			b.trace.Dropped.Add("events whose names were lost before", 1)
		}
		if p.descriptor == nil {
			return
		}
		p.event = nil
	}
	s.intern(p.interned)
	s.defaults(p.defaults)
	if p.descriptor != nil {
		b.descriptor(p.descriptor)
	}
	if p.event == nil {
		return
	}
	at := int64(0)
	if p.hasTS {
		if p.clockID == 0 {
			p.clockID = s.clock
		}
		at = b.clocks.time(p.ts, p.clockID, p.id, s)
	}
	b.event(p.event, at, p.hasTS, s)
}

// intern reads texts that later packets refer to by number.
func (s *sequence) intern(data []byte) {
	for _, field := range []int{categoryField, nameField, keyField, textField} {
		for m := range protoread.NewReader(data).Messages(field) {
			var id uint64
			var name []byte
			_ = m.Scan(1, &id, 2, &name)
			if s.texts[field] == nil {
				s.texts[field] = map[uint64]string{}
			}
			if len(s.texts[field]) < maxInterned {
				s.texts[field][id] = text(name)
			}
		}
	}
}

// text decodes a text and limits its length.
func text(b []byte) string { return track.Clip(b) }

// defaults reads the defaults of later events.
func (s *sequence) defaults(data []byte) {
	r := protoread.NewReader(data)
	for r.Next() {
		switch r.Num() {
		case packetClock:
			s.clock = uint64(r.Int())
		case 11: // of track events
			m := r.Message()
			s.extra, s.extraDouble = nil, nil
			for m.Next() {
				switch m.Num() {
				case 11:
					s.track = uint64(m.Int())
				case 31:
					s.extra = numbers(&m, s.extra)
				case 45:
					s.extraDouble = numbers(&m, s.extraDouble)
				}
			}
		}
	}
}

// numbers appends at most 256 numbers.
func numbers(r *protoread.Reader, to []uint64) []uint64 {
	for _, n := range r.Ints(nil) {
		if len(to) < 256 {
			to = append(to, uint64(n))
		}
	}
	return to
}

// clocks converts times to one clock, with snapshots of several clocks.
type clocks struct {
	main    uint64 // the main clock, 0 for the default
	offsets map[clockKey]int64
}

// clockKey identifies a clock; clocks 64 to 127 belong to one writer.
type clockKey struct {
	sequence uint32
	clock    uint64
}

// ownClock is a clock that a writer defines.
type ownClock struct {
	unit        uint64
	incremental bool
	last        int64
}

// bootTime is the default clock.
const bootTime = 6

func keyOf(clock uint64, sequence uint32) clockKey {
	if clock < 64 || clock >= 128 {
		sequence = 0
	}
	return clockKey{sequence, clock}
}

func (c *clocks) mainClock() uint64 {
	if c.main != 0 {
		return c.main
	}
	return bootTime
}

// reading is the time of a clock in a snapshot.
type reading struct {
	clock uint64
	ns    int64
}

// snapshot reads the times of several clocks at one moment.
func (c *clocks) snapshot(data []byte, id uint32, s *sequence) {
	var all []reading
	r := protoread.NewReader(data)
	for r.Next() {
		if r.Num() == 2 {
			if c.main == 0 && len(c.offsets) == 0 {
				c.main = uint64(r.Int())
			}
			continue
		}
		if r.Num() != 1 || len(all) >= 32 {
			continue
		}
		var clock, ts, unit uint64
		incremental := false
		m := r.Message()
		_ = m.Scan(1, &clock, 2, &ts, 3, &incremental, 4, &unit)
		ns := scaled(ts, unit)
		if k := keyOf(clock, id); k.sequence == id && clock >= 64 && clock < 128 {
			s.clocks[clock] = &ownClock{unit, incremental, ns}
		}
		all = append(all, reading{clock, ns})
	}
	c.set(all, id)
}

// set computes the offsets of clocks from the main clock, which is in the snapshot itself or
// known through another clock.
func (c *clocks) set(all []reading, id uint32) {
	base, known := int64(0), false
	for _, x := range all {
		if x.clock == c.mainClock() {
			base, known = x.ns, true
		}
	}
	for _, x := range all {
		if off, ok := c.offsets[keyOf(x.clock, id)]; ok && !known {
			base, known = clamp(x.ns, off), true
		}
	}
	if !known {
		return
	}
	for _, x := range all {
		if len(c.offsets) < 100_000 {
			c.offsets[keyOf(x.clock, id)] = clamp(base, -x.ns)
		}
	}
}

// clamp adds and saturates.
func clamp(a, b int64) int64 {
	s := a + b
	if (s > a) != (b > 0) && b != 0 {
		if b > 0 {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return s
}

// time converts the time of a packet to nanoseconds of the main clock.
func (c *clocks) time(ts, clock uint64, id uint32, s *sequence) int64 {
	if clock == 0 {
		clock = c.mainClock()
	}
	ns := scaled(ts, 1)
	if o := s.clocks[clock]; o != nil {
		ns = scaled(ts, o.unit)
		if o.incremental {
			o.last = clamp(o.last, ns)
			ns = o.last
		}
	}
	return clamp(ns, c.offsets[keyOf(clock, id)])
}

// scaled multiplies by a unit and saturates.
func scaled(v, unit uint64) int64 {
	if unit == 0 {
		unit = 1
	}
	if v > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return int64(v * unit)
}

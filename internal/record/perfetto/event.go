package perfetto

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Kinds of track events.
const (
	sliceBegin = 1
	sliceEnd   = 2
	instant    = 3
	counter    = 4
)

// event is a track event as it stands.
type event struct {
	kind               uint64
	track              uint64
	name, category     string
	annotations        [][]byte
	value              float64
	hasValue, whole    bool
	integer            int64
	extra, extraDouble []uint64 // values of other counters
	of, ofDouble       []uint64 // the tracks of these
	flows              []uint64
	legacy             []byte
	naming, values     map[uint64]string // of annotations, and their texts
	delta, absolute    int64
	hasDelta, hasAbs   bool
}

func (s *sequence) parse(data []byte) (e event, ok bool) {
	e.track, e.naming, e.values = s.track, s.annotations, s.values
	var categories []string
	var of, ofDouble []uint64
	r := protoread.NewReader(data)
	for r.Next() {
		switch r.Num() {
		case 1:
			e.delta, e.hasDelta = r.Int(), true
		case 3:
			for _, n := range r.Ints(nil) {
				categories = append(categories, s.categories[uint64(n)])
			}
		case 4:
			if len(e.annotations) < 200 {
				e.annotations = append(e.annotations, r.Bytes())
			}
		case 6:
			e.legacy = r.Bytes()
		case 9:
			e.kind = uint64(r.Int())
		case 10:
			e.name = s.names[uint64(r.Int())]
		case 11:
			e.track = uint64(r.Int())
		case 12:
			e.extra = numbers(&r, e.extra)
		case 16:
			e.absolute, e.hasAbs = r.Int(), true
		case 22:
			categories = append(categories, text(r.Bytes()))
		case 23:
			e.name = text(r.Bytes())
		case 30:
			e.integer, e.hasValue, e.whole = r.Int(), true, true
		case 44:
			for _, f := range r.Doubles(nil) {
				e.value, e.hasValue = f, true
			}
		case 46:
			e.extraDouble = fixed(&r, e.extraDouble)
		case 31:
			of = numbers(&r, of)
		case 45:
			ofDouble = numbers(&r, ofDouble)
		case 36, 42:
			e.flows = numbers(&r, e.flows)
		case 47, 48:
			e.flows = fixed(&r, e.flows)
		}
	}
	if len(categories) > 0 {
		e.category = categories[0]
	}
	e.of, e.ofDouble = s.extra, s.extraDouble
	if of != nil {
		e.of = of
	}
	if ofDouble != nil {
		e.ofDouble = ofDouble
	}
	return e, r.Err() == nil
}

// fixed takes identifiers of eight bytes, packed or single.
func fixed(r *protoread.Reader, to []uint64) []uint64 {
	for _, f := range r.Doubles(nil) {
		if len(to) < 256 {
			to = append(to, math.Float64bits(f))
		}
	}
	return to
}

// mark is the beginning or the end of a slice.
type mark struct {
	ts    int64
	begin int32 // in reader.begins, -1 for an end
	name  string
}

const maxMarks = 4_000_000

// event takes a track event.
func (b *reader) event(data []byte, at int64, timed bool, s *sequence) {
	e, ok := s.parse(data)
	if !ok {
		b.trace.Dropped.Add("events that are malformed", 1)
		return
	}
	switch {
	case e.hasAbs:
		at, timed = scaled(uint64(max(0, e.absolute)), 1000), true
	case e.hasDelta:
		s.time = clamp(s.time, scaled(uint64(max(0, e.delta)), 1000))
		at, timed = s.time, true
	}
	if !timed {
		b.trace.Dropped.Add("events without a time", 1)
		return
	}
	l := legacy{duration: -1}
	if e.legacy != nil {
		l = parseLegacy(e.legacy, s)
		e.kind = cmp.Or(e.kind, l.kind())
		e.name = cmp.Or(e.name, l.name)
	}
	p := b.home(&e, &l, s)
	if p == nil {
		b.trace.Dropped.Add("events of more than 50,000 tracks", 1)
		return
	}
	b.extras(&e, at, s)
	switch e.kind {
	case sliceBegin, instant:
		b.begin(p, &e, at, l.duration, e.kind == instant)
	case sliceEnd:
		b.mark(p, mark{at, -1, e.name})
	case counter:
		if e.hasValue {
			b.count(p, &e, at, s)
		}
	default:
		b.trace.Dropped.Add("events of kinds that are not read", 1)
	}
}

// home finds the track of an event. Number 0 stands for the thread of the writer, or for the
// one that the old form names.
func (b *reader) home(e *event, l *legacy, s *sequence) *place {
	if l.async {
		return b.at(l.id ^ 0x9e3779b97f4a7c15)
	}
	if e.track != 0 {
		return b.at(e.track)
	}
	pid, tid := s.pid, s.tid
	if d := b.tracks[s.track]; s.track != 0 && d != nil && d.thread {
		pid, tid = d.pid, d.tid
	}
	if l.pid != 0 {
		pid = l.pid
	}
	if l.tid != 0 {
		tid = l.tid
	}
	if l.scope == 2 {
		tid = 0
	}
	return b.ofThread(pid, tid)
}

// begin takes the beginning of a slice, or one that is whole.
func (b *reader) begin(p *place, e *event, at, duration int64, point bool) {
	if b.marks >= maxMarks {
		b.trace.Dropped.Add("beginnings and ends beyond the first 4,000,000", 1)
		return
	}
	if p.track < 0 {
		kind := timeline.Thread
		if b.written {
			kind = ""
		}
		p.track = b.trace.Track(kind, "", "")
	}
	x := track.Slice{Start: at, Bytes: -1, Layer: -1, Iteration: -1, Label: -1, Type: -1}
	switch {
	case point:
		x.Label, x.Type = b.trace.Name([]byte(e.name)), b.trace.Name([]byte(cmp.Or(e.category, "instant")))
	case b.written:
		b.bar(p, &x, e)
	default:
		x.Layer = b.layer(e)
	}
	b.begins = append(b.begins, x)
	n := int32(len(b.begins) - 1)
	for _, f := range e.flows {
		b.flows.add(f, p.track, n, at)
	}
	b.mark(p, mark{at, n, e.name})
	if point || duration >= 0 {
		b.mark(p, mark{clamp(at, max(0, duration)), -1, e.name})
	}
}

func (b *reader) mark(p *place, m mark) {
	if b.marks >= maxMarks {
		b.trace.Dropped.Add("beginnings and ends beyond the first 4,000,000", 1)
		return
	}
	b.marks++
	p.marks = append(p.marks, m)
}

// layer gives the number of the layer of a slice: its name and category.
func (b *reader) layer(e *event) int32 {
	n := b.layers.Of([]byte(cmp.Or(e.name, "(unnamed)")), []byte(cmp.Or(e.category, "slice")))
	for len(b.options) <= int(n) {
		b.options = append(b.options, options{})
	}
	b.options[n].see(e)
	return n
}

// count takes the value of a counter.
func (b *reader) count(p *place, e *event, at int64, s *sequence) {
	v := e.value * p.scale
	if e.whole {
		n := e.integer
		if p.incremental {
			if _, ok := s.counters[p.uuid]; !ok && len(s.counters) > maxPlaces {
				return
			}
			s.counters[p.uuid] = clamp(s.counters[p.uuid], n)
			n = s.counters[p.uuid]
		}
		v = float64(n) * p.scale
	} else if p.incremental {
		bits := s.counters[p.uuid]
		sum := math.Float64frombits(uint64(bits)) + e.value
		s.counters[p.uuid] = int64(math.Float64bits(sum))
		v = sum * p.scale
	}
	if !p.asked {
		p.asked = true
		p.c = b.trace.Counter("", "", "")
	}
	b.trace.Value(p.c, at, v)
}

// extras takes values of counters that come with other events.
func (b *reader) extras(e *event, at int64, s *sequence) {
	each := func(values, of []uint64, value func(v uint64) event) {
		for i := range min(len(values), len(of)) {
			if p := b.at(of[i]); p != nil {
				x := value(values[i])
				b.count(p, &x, at, s)
			}
		}
	}
	each(e.extra, e.of, func(v uint64) event { return event{integer: int64(v), whole: true} })
	each(e.extraDouble, e.ofDouble, func(v uint64) event { return event{value: math.Float64frombits(v)} })
}

// pairs makes slices of beginnings and ends: an end closes the innermost slice under
// way, or the innermost of its name where it has one.
func (b *reader) pairs() {
	const unmarked = -2
	lengths, tracks := make([]int64, len(b.begins)), make([]int32, len(b.begins))
	for i := range lengths {
		lengths[i] = unmarked
	}
	for _, p := range b.order {
		slices.SortStableFunc(p.marks, func(x, y mark) int { return cmp.Compare(x.ts, y.ts) })
		var open []mark
		for _, m := range p.marks {
			if m.begin >= 0 {
				lengths[m.begin], tracks[m.begin] = -1, p.track
				open = append(open, m)
				continue
			}
			i := len(open) - 1
			for m.name != "" && i >= 0 && i > len(open)-1000 && open[i].name != m.name {
				i--
			}
			if i < 0 || m.name != "" && open[i].name != m.name {
				b.trace.Dropped.Add("ends without a beginning", 1)
				continue
			}
			lengths[open[i].begin] = m.ts - open[i].ts
			open = append(open[:i], open[i+1:]...)
		}
		p.marks = nil
	}
	// What begins at the same time lies in what began before.
	for i, x := range b.begins {
		seq := int32(-1)
		if x.Dur = lengths[i]; x.Dur != unmarked {
			seq = b.trace.Add(tracks[i], x)
		}
		b.flows.seqs = append(b.flows.seqs, seq)
	}
	b.begins = nil
}

// legacy is what stands in the old form of an event.
type legacy struct {
	phase    byte
	name     string
	duration int64 // nanoseconds, -1 for none
	pid, tid int64
	id       uint64
	async    bool
	scope    int64
}

func parseLegacy(data []byte, s *sequence) legacy {
	var l legacy
	var name, phase uint64
	duration := int64(math.MinInt64)
	r := protoread.NewReader(data)
	_ = r.Scan(1, &name, 2, &phase, 3, &duration, 6, &l.id, 10, &l.id, 11, &l.id, 14, &l.scope, 18, &l.pid, 19, &l.tid)
	l.phase, l.name, l.duration = byte(phase), s.names[name], -1
	if duration != math.MinInt64 {
		l.duration = scaled(uint64(max(0, duration)), 1000)
	}
	l.async = strings.IndexByte("beSF", l.phase) >= 0
	return l
}

// kind is the kind of event that a phase stands for.
func (l *legacy) kind() uint64 {
	switch l.phase {
	case 'B', 'X', 'b', 'S':
		return sliceBegin
	case 'E', 'e', 'F':
		return sliceEnd
	case 'I', 'i', 'n', 'R':
		return instant
	}
	return 0
}

// flows are arrows between slices, by their numbers.
type flows struct {
	ends []flowEnd
	seqs []int32 // of each beginning on its track, -1 for dropped
}

type flowEnd struct {
	flow  uint64
	track int32
	begin int32
	ts    int64
}

func (f *flows) add(flow uint64, track, begin int32, ts int64) {
	if len(f.ends) < 1_000_000 {
		f.ends = append(f.ends, flowEnd{flow, track, begin, ts})
	}
}

// links sets the arrows of a trace whose slices are in order.
func (f *flows) links(t *track.Trace) {
	slices.SortStableFunc(f.ends, func(a, b flowEnd) int { return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.ts, b.ts)) })
	places := map[int32][]int32{}
	place := func(e flowEnd) int32 {
		if f.seqs[e.begin] < 0 {
			return -1
		}
		p := places[e.track]
		if p == nil {
			p = t.Tracks[e.track].Places()
			places[e.track] = p
		}
		if n := f.seqs[e.begin]; int(n) < len(p) {
			return p[n]
		}
		return -1
	}
	for i := 1; i < len(f.ends); i++ {
		a, b := f.ends[i-1], f.ends[i]
		if a.flow != b.flow {
			continue
		}
		if from, to := place(a), place(b); from >= 0 && to >= 0 {
			t.Links = append(t.Links, track.Link{FromTrack: a.track, From: from, ToTrack: b.track, To: to})
		}
	}
}

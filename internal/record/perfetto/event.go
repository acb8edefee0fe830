package perfetto

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Kinds of track events.
const (
	sliceBegin = 1
	sliceEnd   = 2
	instant    = 3
	counter    = 4
)

// event is a track event.
type event struct {
	kind               uint64
	track              uint64
	name, category     string
	annotations        [][]byte
	value              float64
	hasValue, whole    bool
	integer            int64
	extra, extraDouble []uint64 // values of other counters
	of, ofDouble       []uint64 // tracks of these counters
	flows              []uint64
	legacy             []byte
	keys, texts        map[uint64]string // of annotations
	delta, absolute    int64
	hasDelta, hasAbs   bool
}

func (s *sequence) parse(data []byte) (e event, ok bool) {
	e.track, e.keys, e.texts = s.track, s.texts[keyField], s.texts[textField]
	var categories []string
	r := protoread.NewReader(data)
	for r.Next() {
		switch r.Num() {
		case 1:
			e.delta, e.hasDelta = r.Int(), true
		case 3:
			for _, n := range r.Ints(nil) {
				categories = append(categories, s.texts[categoryField][uint64(n)])
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
			e.name = s.texts[nameField][uint64(r.Int())]
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
			e.of = numbers(&r, e.of)
		case 45:
			e.ofDouble = numbers(&r, e.ofDouble)
		case 36, 42:
			e.flows = numbers(&r, e.flows)
		case 47, 48:
			e.flows = fixed(&r, e.flows)
		}
	}
	if len(categories) > 0 {
		e.category = categories[0]
	}
	if e.of == nil {
		e.of = s.extra
	}
	if e.ofDouble == nil {
		e.ofDouble = s.extraDouble
	}
	return e, r.Err() == nil
}

// fixed appends 8-byte identifiers, packed or single.
func fixed(r *protoread.Reader, to []uint64) []uint64 {
	for _, f := range r.Doubles(nil) {
		if len(to) < 256 {
			to = append(to, math.Float64bits(f))
		}
	}
	return to
}

// event reads a track event.
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
	p := b.trackOf(&e, &l, s)
	if p == nil {
		b.trace.Dropped.Add("events of more than 50,000 tracks", 1)
		return
	}
	b.extras(&e, at, s)
	switch e.kind {
	case sliceBegin, instant:
		b.begin(p, &e, at, l.duration, e.kind == instant)
	case sliceEnd:
		name := int32(-1)
		if e.name != "" {
			name = b.number(e.name)
		}
		b.trace.End(&p.Pending, name, at)
	case counter:
		if e.hasValue {
			b.count(p, &e, at, s)
		}
	default:
		b.trace.Dropped.Add("events of kinds that are not read", 1)
	}
}

// trackOf returns the track of an event. Number 0 is the thread of the writer, or the one that the
// legacy form names.
func (b *reader) trackOf(e *event, l *legacy, s *sequence) *trackInfo {
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
	pid, tid = cmp.Or(l.pid, pid), cmp.Or(l.tid, tid)
	if l.scope == 2 {
		tid = 0
	}
	return b.ofThread(pid, tid)
}

// begin adds the beginning of a slice, and its end if the event has a duration or is a point.
func (b *reader) begin(p *trackInfo, e *event, at, duration int64, point bool) {
	if p.Track < 0 {
		kind := timeline.Thread
		if b.written {
			kind = ""
		}
		p.Track = b.trace.Track(kind, "", "")
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
	name := b.number(e.name)
	n := b.trace.Begin(&p.Pending, name, x)
	if n < 0 {
		return
	}
	for _, f := range e.flows {
		var key [8]byte
		binary.LittleEndian.PutUint64(key[:], f)
		b.flows.Add(key[:], track.ArrowEnd{Track: p.Track, TS: at, Slice: n})
	}
	if point || duration >= 0 {
		b.trace.End(&p.Pending, name, clamp(at, max(0, duration)))
	}
}

// number returns the number of the name of a slice.
func (b *reader) number(name string) int32 {
	n, ok := b.names[name]
	if !ok {
		n = int32(len(b.names))
		b.names[name] = n
	}
	return n
}

// layer returns the layer of a slice, by name and category.
func (b *reader) layer(e *event) int32 {
	n := b.layers.Of([]byte(cmp.Or(e.name, "(unnamed)")), []byte(cmp.Or(e.category, "slice")))
	var all []annotation
	b.layers.Arguments(n, func(add func(key, value string)) {
		for _, a := range e.all() {
			add(a.key, a.value())
		}
	}, func(o *profile.Option) bool {
		if all == nil {
			all = e.all()
		}
		return slices.ContainsFunc(all, func(a annotation) bool { return a.key == o.Key && a.value() == o.Value })
	})
	return n
}

// count adds a value of a counter.
func (b *reader) count(p *trackInfo, e *event, at int64, s *sequence) {
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

// extras adds values of counters that are part of other events.
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

// legacy holds the legacy form of an event.
type legacy struct {
	phase    byte
	name     string
	duration int64 // nanoseconds, -1 if unknown
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
	l.phase, l.name, l.duration = byte(phase), s.texts[nameField][name], -1
	if duration != math.MinInt64 {
		l.duration = scaled(uint64(max(0, duration)), 1000)
	}
	l.async = strings.IndexByte("beSF", l.phase) >= 0
	return l
}

// kind returns the kind of event of a phase.
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

// annotation is an argument of an event, or a part of one.
type annotation struct {
	key    string
	text   string
	number float64
	isText bool
}

// Limits of the arguments of one event.
const (
	maxAnnotations = 100
	maxNesting     = 10
)

// role is the meaning of a field of an argument.
type role uint8

const (
	unused role = iota
	keyID       // number of an interned key
	key
	boolean
	unsigned
	integer
	double
	str
	strID  // number of an interned text
	nested // a value of the old form
	dict
	list
	entryKey // key of an entry of dict, in the same order
)

// form holds the roles of fields by number.
type form [18]role

// Arguments in the current form, and values in the old form of dictionaries and lists.
var (
	current  = form{1: keyID, 2: boolean, 3: unsigned, 4: integer, 5: double, 6: str, 7: unsigned, 8: nested, 9: str, 10: key, 11: dict, 12: list, 17: strID}
	oldValue = form{2: entryKey, 3: dict, 4: list, 5: integer, 6: double, 7: boolean, 8: str}
)

// flatten lists arguments, with those in dictionaries and lists as "a.b" and "a[0]".
func (e *event) flatten(data []byte, f *form, within string, depth int, to []annotation) []annotation {
	if len(to) >= maxAnnotations || depth > maxNesting {
		return to
	}
	a := annotation{key: within}
	set := false
	var keys, entries, elements [][]byte
	var old []byte
	add := func(to [][]byte, b []byte) [][]byte {
		if len(to) < maxAnnotations {
			to = append(to, b)
		}
		return to
	}
	for r := protoread.NewReader(data); r.Next(); {
		if r.Num() >= len(f) {
			continue
		}
		is := f[r.Num()]
		set = set || is >= boolean && is <= strID
		switch is {
		case keyID:
			a.key = join(within, e.keys[uint64(r.Int())])
		case key:
			a.key = join(within, text(r.Bytes()))
		case boolean:
			a.text, a.isText = strconv.FormatBool(r.Int() != 0), true
		case unsigned:
			a.number = float64(uint64(r.Int()))
		case integer:
			a.number = float64(r.Int())
		case double:
			for _, v := range r.Doubles(nil) {
				a.number = v
			}
		case str:
			a.text, a.isText = text(r.Bytes()), true
		case strID:
			a.text, a.isText = e.texts[uint64(r.Int())], true
		case nested:
			old = r.Bytes()
		case dict:
			entries = add(entries, r.Bytes())
		case list:
			elements = add(elements, r.Bytes())
		case entryKey:
			keys = add(keys, r.Bytes())
		}
	}
	if set && len(entries)+len(elements) == 0 {
		to = append(to, a)
	}
	if old != nil {
		to = e.flatten(old, &oldValue, a.key, depth+1, to)
	}
	for i, d := range entries {
		inner := a.key
		if f == &oldValue {
			if i >= len(keys) {
				break
			}
			inner = join(inner, text(keys[i]))
		}
		to = e.flatten(d, f, inner, depth+1, to)
	}
	for i, d := range elements {
		to = e.flatten(d, f, fmt.Sprintf("%s[%d]", a.key, i), depth+1, to)
	}
	return to
}

func join(within, name string) string {
	if within == "" {
		return name
	}
	return within + "." + name
}

// all returns the arguments of an event.
func (e *event) all() (out []annotation) {
	for _, a := range e.annotations {
		out = e.flatten(a, &current, "", 0, out)
	}
	return out
}

// value returns the text of an argument.
func (a *annotation) value() string {
	if a.isText {
		return a.text
	}
	return strconv.FormatFloat(a.number, 'g', -1, 64)
}

// bar reads a slice of a trace that opmeter wrote.
func (b *reader) bar(p *trackInfo, s *track.Slice, e *event) {
	x := track.NewOwnBar()
	for _, a := range e.all() {
		if a.isText {
			x.Text(a.key, a.text)
		} else {
			x.Number(a.key, a.number)
		}
	}
	if x.Layer >= 0 {
		b.owned++
	}
	b.own.Apply(&b.trace, p.Track, s, x, []byte(e.name), []byte(e.category))
}

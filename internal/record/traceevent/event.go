// Package traceevent reads events in the trace-event format of the Chromium project, which many
// tools write: a list of JSON objects, or an object with such a list. It knows the members of
// events and the units of times, but not their meaning.
//
// Source of the format: "Trace Event Format", a document of the Chromium project.
package traceevent

import (
	"bytes"
	"math"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/track"
)

// Event is one event. Fields are raw text: strings keep their quotes, absent fields are nil.
type Event struct {
	Phase byte // 0 if absent
	// TS and Dur are in nanoseconds; the file has microseconds.
	TS, Dur       int64
	HasTS, HasDur bool
	Name, Cat     []byte
	PID, TID      []byte
	ID, ID2       []byte
	BindID        []byte
	BindPoint     []byte
	Frame, Weight []byte // of samples
	FlowIn        bool
	FlowOut       bool
	Scope         []byte
	ThreadDur     []byte // tdur, if dur is absent

	pairs []pair // arguments
	key   []byte // memory for keys of arrows
}

// Parse parses the event object at the start of v and returns its length in bytes, or 0 if v does
// not start with a complete object. The result is valid until the next call and refers to v.
func (e *Event) Parse(v []byte) (n int) {
	*e = Event{pairs: e.pairs[:0], key: e.key}
	c := jsonscan.Cursor{Text: v}
	for c.Next() {
		if c.Depth == 1 && string(c.Key) == "args" && c.Enter() {
			continue
		}
		value := c.Value()
		switch {
		case value == nil:
			return 0
		case c.Depth > 1:
			e.pairs = append(e.pairs, pair{c.Key, value})
		default:
			e.member(c.Key, value)
		}
	}
	return c.Len()
}

// Each calls f for each argument.
func (e *Event) Each(f func(key, value []byte)) {
	for i := range e.pairs {
		f(e.pairs[i].key, e.pairs[i].value)
	}
}

// Fields reads arguments into variables. fields alternates keys and pointers: *[]byte receives
// the raw value, *string the decoded text (clipped, see [track.Clip]), *int64 and *float64
// numbers. Absent arguments and values of another type leave a variable unchanged.
func (e *Event) Fields(fields ...any) {
	for i := range e.pairs {
		store(fields, e.pairs[i].key, e.pairs[i].value)
	}
}

// Arrow adds an event of phase s, t or f as the end of an arrow on a track.
func (e *Event) Arrow(f *track.Flows, on int32) {
	e.key = Key(e.key, Bare(e.ID), Bare(e.Cat))
	f.Add(e.key, track.ArrowEnd{
		Track: on, TS: e.TS, Slice: -1, Next: e.Phase == 'f' && string(Bare(e.BindPoint)) != "e", Leaves: e.Phase == 's',
	})
}

// Bound adds the end of an arrow that leaves or reaches a slice.
func (e *Event) Bound(f *track.Flows, on int32) {
	e.key = Key(e.key, Bare(e.BindID), Bare(e.Cat))
	f.Add(e.key, track.ArrowEnd{Track: on, TS: e.TS, Slice: -1, Leaves: !e.FlowIn})
}

// pair is a member of an object.
type pair struct{ key, value []byte }

func (e *Event) member(key, v []byte) {
	switch string(key) {
	case "name":
		e.Name = v
	case "cat":
		e.Cat = v
	case "ph":
		if len(v) >= 3 && v[0] == '"' {
			e.Phase = v[1]
		}
	case "ts":
		e.TS, e.HasTS = Nanos(v)
	case "dur":
		e.Dur, e.HasDur = Nanos(v)
	case "tdur":
		e.ThreadDur = v
	case "pid":
		e.PID = v
	case "tid":
		e.TID = v
	case "id":
		e.ID = v
	case "id2":
		e.ID2 = v
	case "bp":
		e.BindPoint = v
	case "bind_id":
		e.BindID = v
	case "flow_in":
		e.FlowIn = string(v) == "true"
	case "flow_out":
		e.FlowOut = string(v) == "true"
	case "scope":
		e.Scope = v
	case "sf":
		e.Frame = v
	case "weight":
		e.Weight = v
	}
}

// Bare removes the quotes of a string, so that "7" and 7 are equal. Escapes remain.
func Bare(v []byte) []byte {
	if len(v) >= 2 && v[0] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

// Text decodes a string. Other values are unchanged, null and absent values are empty. The result
// is valid as long as v is.
func Text(v []byte) []byte {
	b := Bare(v)
	switch {
	case len(b) == len(v) && string(v) == "null":
		return nil
	case bytes.IndexByte(b, '\\') >= 0:
		return []byte(jsonscan.Decode(b))
	}
	return b
}

// Nanos converts microseconds (a number, also in quotes) to nanoseconds and rounds the rest. ok
// is false if v is not a number or does not fit.
func Nanos(v []byte) (ns int64, ok bool) {
	v = Bare(v)
	i, neg := 0, false
	if len(v) > 0 && v[0] == '-' {
		neg, i = true, 1
	}
	begin := i
	for ; i < len(v) && v[i]-'0' <= 9; i++ {
		ns = ns*10 + int64(v[i]-'0')
	}
	const fits = 9_000_000_000_000_000 // microseconds that are whole nanoseconds in 64 bits
	if i == begin || i-begin > 16 || ns > fits {
		return slow(v)
	}
	ns *= 1000
	if i < len(v) {
		if v[i] != '.' {
			return slow(v)
		}
		scale := int64(100)
		for i++; i < len(v) && v[i]-'0' <= 9; i++ {
			if scale == 0 {
				return slow(v)
			}
			ns += scale * int64(v[i]-'0')
			scale /= 10
		}
		if i < len(v) {
			return slow(v)
		}
	}
	if neg {
		ns = -ns
	}
	return ns, true
}

// slow parses numbers with exponents or many digits. Whole microseconds stay exact.
func slow(v []byte) (ns int64, ok bool) {
	if us, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		if us > math.MaxInt64/1000 || us < math.MinInt64/1000 {
			return 0, false
		}
		return us * 1000, true
	}
	if dot := bytes.IndexByte(v, '.'); dot > 0 && dot < len(v)-1 && !bytes.ContainsAny(v, "eE") {
		whole, ok := slow(v[:dot])
		if !ok {
			return 0, false
		}
		f, ok := jsonscan.Number(v[dot:])
		if !ok {
			return 0, false
		}
		rest := int64(math.Round(f * 1000))
		if v[0] == '-' {
			rest = -rest
		}
		if whole > math.MaxInt64-1000 || whole < math.MinInt64+1000 {
			return 0, false
		}
		return whole + rest, true
	}
	f, ok := jsonscan.Number(v)
	if f = math.Round(f * 1000); !ok || math.Abs(f) > 9e18 {
		return 0, false
	}
	return int64(f), true
}

// Members calls f for each member of an object. Keys are not decoded. Other values have no members.
func Members(v []byte, f func(key, value []byte)) {
	for c := (jsonscan.Cursor{Text: v}); c.Next(); {
		value := c.Value()
		if value == nil {
			return
		}
		f(c.Key, value)
	}
}

// Key joins the parts of a map key with zero bytes. It uses the memory of to.
func Key(to []byte, parts ...[]byte) []byte {
	to = to[:0]
	for i, p := range parts {
		if i > 0 {
			to = append(to, 0)
		}
		to = append(to, p...)
	}
	return to
}

// Fields reads members of an object into variables, see [Event.Fields].
func Fields(v []byte, fields ...any) {
	Members(v, func(k, v []byte) { store(fields, k, v) })
}

// store sets the variables for one member.
func store(fields []any, k, v []byte) {
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].(string) != string(k) {
			continue
		}
		switch to := fields[i+1].(type) {
		case *[]byte:
			*to = v
		case *string:
			*to = track.Clip(Text(v))
		case *int64:
			if n, ok := jsonscan.Int(v); ok {
				*to = n
			}
		case *float64:
			if f, ok := jsonscan.Number(v); ok {
				*to = f
			}
		default:
			// Printing the type would move the variables of callers to the heap.
			panic("traceevent: field of a type that is not supported")
		}
	}
}

// Elements calls f for each element of a list.
func Elements(v []byte, f func(value []byte)) {
	if len(v) > 0 && v[0] == '[' {
		_ = jsonscan.Walk(v, func(_, e []byte) bool { f(e); return true })
	}
}

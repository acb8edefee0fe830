package perfetto

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// annotation is one argument of an event, or a part of one.
type annotation struct {
	key    string
	text   string
	number float64
	isText bool
}

// Bounds of the arguments of one event.
const (
	maxAnnotations = 100
	maxNesting     = 10
)

// role is what a field of an argument contains.
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

// form holds the roles of fields by their numbers.
type form [18]role

// Arguments in the current form, and the values of the old form of dictionaries and lists.
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
			a.key = join(within, e.naming[uint64(r.Int())])
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
			a.text, a.isText = e.values[uint64(r.Int())], true
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

// all lists the arguments of an event.
func (e *event) all() (out []annotation) {
	for _, a := range e.annotations {
		out = e.flatten(a, &current, "", 0, out)
	}
	return out
}

// options are the arguments that all slices of a layer agree about.
type options struct {
	list []profile.Option
	seen bool
}

func (o *options) see(e *event) {
	if o.seen && len(o.list) == 0 {
		return
	}
	all := e.all()
	value := func(a annotation) string {
		if a.isText {
			return a.text
		}
		return strconv.FormatFloat(a.number, 'g', -1, 64)
	}
	if !o.seen {
		o.seen = true
		for _, a := range all {
			if v := value(a); a.key != "" && v != "" && len(v) <= 300 && len(a.key) <= 300 && len(o.list) < 16 {
				o.list = append(o.list, profile.Option{Key: a.key, Value: v})
			}
		}
		return
	}
	o.list = slices.DeleteFunc(o.list, func(x profile.Option) bool {
		return !slices.ContainsFunc(all, func(a annotation) bool { return a.key == x.Key && value(a) == x.Value })
	})
}

// bar takes a slice of a trace that opmeter wrote.
func (b *reader) bar(p *place, s *track.Slice, e *event) {
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

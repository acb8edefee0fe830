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

// flatten lists arguments with those in dictionaries and lists: "a.b", "a[0]".
func flatten(data []byte, names, values map[uint64]string, within string, depth int, to []annotation) []annotation {
	if len(to) >= maxAnnotations || depth > maxNesting {
		return to
	}
	key, set := within, false
	var a annotation
	var dict, list [][]byte
	var nestedValue []byte
	r := protoread.NewReader(data)
	for r.Next() {
		switch r.Num() {
		case 1:
			key = join(within, names[uint64(r.Int())])
		case 10:
			key = join(within, text(r.Bytes()))
		case 2:
			a.text, a.isText, set = strconv.FormatBool(r.Int() != 0), true, true
		case 3, 7:
			a.number, set = float64(uint64(r.Int())), true
		case 4:
			a.number, set = float64(r.Int()), true
		case 5:
			for _, f := range r.Doubles(nil) {
				a.number, set = f, true
			}
		case 6, 9:
			a.text, a.isText, set = text(r.Bytes()), true, true
		case 17:
			a.text, a.isText, set = values[uint64(r.Int())], true, true
		case 8:
			nestedValue = r.Bytes()
		case 11:
			if len(dict) < maxAnnotations {
				dict = append(dict, r.Bytes())
			}
		case 12:
			if len(list) < maxAnnotations {
				list = append(list, r.Bytes())
			}
		}
	}
	if set && len(dict)+len(list) == 0 {
		a.key = key
		to = append(to, a)
	}
	if nestedValue != nil {
		to = nested(nestedValue, key, depth+1, to)
	}
	for _, d := range dict {
		to = flatten(d, names, values, key, depth+1, to)
	}
	for i, d := range list {
		to = flatten(d, names, values, fmt.Sprintf("%s[%d]", key, i), depth+1, to)
	}
	return to
}

// nested lists the values of the old form of dictionaries and lists.
func nested(data []byte, key string, depth int, to []annotation) []annotation {
	if len(to) >= maxAnnotations || depth > maxNesting {
		return to
	}
	var keys []string
	var dict, list [][]byte
	r := protoread.NewReader(data)
	for r.Next() && len(to) < maxAnnotations {
		switch r.Num() {
		case 2:
			if len(keys) < maxAnnotations {
				keys = append(keys, text(r.Bytes()))
			}
		case 3:
			if len(dict) < maxAnnotations {
				dict = append(dict, r.Bytes())
			}
		case 4:
			if len(list) < maxAnnotations {
				list = append(list, r.Bytes())
			}
		case 5:
			to = append(to, annotation{key: key, number: float64(r.Int())})
		case 6:
			for _, f := range r.Doubles(nil) {
				to = append(to, annotation{key: key, number: f})
			}
		case 7:
			to = append(to, annotation{key: key, text: strconv.FormatBool(r.Int() != 0), isText: true})
		case 8:
			to = append(to, annotation{key: key, text: text(r.Bytes()), isText: true})
		}
	}
	for i, d := range dict {
		if i < len(keys) {
			to = nested(d, join(key, keys[i]), depth+1, to)
		}
	}
	for i, d := range list {
		to = nested(d, fmt.Sprintf("%s[%d]", key, i), depth+1, to)
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
		out = flatten(a, e.naming, e.values, "", 0, out)
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
	b.own.Apply(&b.trace, p.track, s, x, []byte(e.name), []byte(e.category))
}

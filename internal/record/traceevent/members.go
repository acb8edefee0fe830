package traceevent

import (
	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/track"
)

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

// Key joins the parts of a key of a map with zero bytes, in the memory of to.
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
			panic("traceevent: field of a type that is not supported") // naming it would move variables to the heap
		}
	}
}

// Elements calls f for each element of a list.
func Elements(v []byte, f func(value []byte)) {
	if len(v) > 0 && v[0] == '[' {
		_ = jsonscan.Walk(v, func(_, e []byte) bool { f(e); return true })
	}
}

package traceevent

import (
	"errors"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/track"
)

var errMembers = errors.New("no members")

// pair is a member of an object.
type pair struct{ key, value []byte }

// next finds the member of an object that begins at i, or behind blanks and commas; end is below
// 0 if absent any more (-1) or the text is not an object (-2). Events are most of the text
// of a trace, so that this is one pass. The text was found to be one value before; what is wrong
// within it ends the object early.
func next(v []byte, i int) (key []byte, value, end int) {
	for i < len(v) && gap[v[i]] {
		i++
	}
	if i >= len(v) {
		return nil, 0, -2
	}
	if v[i] != '"' {
		if v[i] == '}' {
			return nil, i + 1, -1
		}
		return nil, 0, -2
	}
	i++
	begin := i
	for i < len(v) && !stops[v[i]] {
		i++
	}
	if i < len(v) && v[i] == '\\' {
		if i = quoted(v, begin-1) - 1; i < 0 {
			return nil, 0, -2
		}
	}
	if i >= len(v) {
		return nil, 0, -2
	}
	key = v[begin:i]
	i++
	for i < len(v) && colon[v[i]] {
		i++
	}
	return key, i, skip(v, i)
}

// gap, colon and stops hold the bytes between members, those behind a key, and those at
// which something happens in a string.
var (
	gap   = [256]bool{' ': true, '\n': true, '\r': true, '\t': true, ',': true}
	colon = [256]bool{' ': true, '\n': true, '\r': true, '\t': true, ':': true}
	stops = [256]bool{'"': true, '\\': true}
)

// members calls f for each member of the object at the beginning of v.
func members(v []byte, f func(key, value []byte)) error {
	for i := 1; ; {
		key, at, end := next(v, i)
		switch {
		case end == -1 && key == nil:
			return nil
		case end < 0:
			return errMembers
		}
		f(key, v[at:end])
		i = end
	}
}

// nested gives the end of the object at i like [skip], and keeps its members.
func nested(v []byte, i int, to []pair) (list []pair, end int) {
	for i++; ; {
		key, at, end := next(v, i)
		switch {
		case end == -1 && key == nil:
			return to, at
		case end < 0:
			return to, -1
		}
		to = append(to, pair{key, v[at:end]})
		i = end
	}
}

// skip gives the end of the value that begins at i, -1 for none.
func skip(v []byte, i int) int {
	if i >= len(v) {
		return -1
	}
	switch v[i] {
	case '"':
		return quoted(v, i)
	case '{', '[':
		for depth := 0; i < len(v); {
			switch braces[v[i]] {
			case 0:
				i++
			case 1:
				if i = quoted(v, i); i < 0 {
					return -1
				}
			case 2:
				depth++
				i++
			default:
				i++
				if depth--; depth == 0 {
					return i
				}
			}
		}
		return -1
	}
	begin := i
	for i < len(v) && !ends[v[i]] {
		i++
	}
	if i == begin || i == len(v) {
		return -1
	}
	return i
}

var (
	braces = [256]uint8{'"': 1, '{': 2, '[': 2, '}': 3, ']': 3}
	ends   = [256]bool{',': true, '}': true, ']': true, ' ': true, '\n': true, '\r': true, '\t': true}
)

// quoted gives the end of the string that begins at i.
func quoted(v []byte, i int) int {
	for i++; i < len(v); i += 2 {
		for i < len(v) && !stops[v[i]] {
			i++
		}
		if i < len(v) && v[i] == '"' {
			return i + 1
		}
	}
	return -1
}

// Members calls f for each member of an object, decoded keys for those with escapes.
// What is not an object has none.
func Members(v []byte, f func(key, value []byte)) {
	if len(v) > 0 && v[0] == '{' {
		_ = members(v, f)
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

// Package jsontree holds a small JSON document in memory: values in file order, tolerating the
// errors that package jsonscan tolerates.
package jsontree

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
)

// Kind is the kind of a value.
type Kind int

// Kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

// Value is a JSON value. A nil pointer is an absent value: its methods return no members and no
// number, so that paths can be followed without checks. Items are never nil.
type Value struct {
	Kind Kind
	// Text is the text of a string, or of a word that is neither string nor number.
	Text string
	// Num is the value of a number, otherwise 0.
	Num float64
	// Keys are the names of an object's members, in the order of Items.
	Keys []string
	// Items are the members of an object, or the elements of a list.
	Items []*Value
}

// MaxValues limits the number of values in a document.
const MaxValues = 1_000_000

// maxDepth limits nesting.
const maxDepth = 64

// Parse reads a document. Lists and objects may end in commas, or not at all. If the text is
// truncated or invalid, the values before are returned together with the error, which gives the
// position.
func Parse(b []byte) (*Value, error) {
	v, _, err := ParseFirst(b)
	return v, err
}

// ParseFirst is [Parse] that also returns the text after the value, without blanks before it.
func ParseFirst(b []byte) (v *Value, rest []byte, err error) {
	p := &parser{b: bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), left: MaxValues}
	v = p.value(0)
	p.peek()
	return v, p.b[p.i:], p.err
}

type parser struct {
	b    []byte
	i    int
	left int
	err  error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("byte %d: %s", p.i, what)
	}
}

// peek skips white space and returns the next byte; 0 at the end.
func (p *parser) peek() byte {
	for p.i < len(p.b) {
		switch c := p.b[p.i]; c {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return c
		}
	}
	return 0
}

func (p *parser) value(depth int) *Value {
	if p.left--; p.left < 0 {
		p.fail(fmt.Sprintf("more than %d values", MaxValues))
		return &Value{}
	}
	switch c := p.peek(); c {
	case '{', '[':
		if depth >= maxDepth {
			p.fail(fmt.Sprintf("nests deeper than %d", maxDepth))
			return &Value{}
		}
		p.i++
		return p.inside(c, depth)
	case '"':
		s, ok := p.text()
		if !ok {
			return &Value{}
		}
		return &Value{Kind: String, Text: s}
	}
	from := p.i
	for p.i < len(p.b) && !strings.ContainsRune(" \t\n\r,:{}[]\"", rune(p.b[p.i])) && p.b[p.i] >= ' ' {
		p.i++
	}
	word := p.b[from:p.i]
	if len(word) == 0 {
		p.fail("want a value")
		return &Value{}
	}
	if f, ok := jsonscan.Number(word); ok {
		return &Value{Kind: Number, Num: f, Text: string(word)}
	}
	switch s := string(word[:min(len(word), 100)]); s {
	case "true", "false", "True", "False":
		return &Value{Kind: Bool, Text: strings.ToLower(s)}
	case "null":
		return &Value{}
	default: // NaN and what else writers leave
		return &Value{Text: strings.ToValidUTF8(s, "\ufffd")}
	}
}

// text reads a string.
func (p *parser) text() (string, bool) {
	for i := p.i + 1; i < len(p.b); i++ {
		switch p.b[i] {
		case '\\':
			i++
		case '"':
			s := jsonscan.Decode(p.b[p.i+1 : i])
			p.i = i + 1
			return s, true
		}
	}
	p.i = len(p.b)
	p.fail("ends within a text")
	return "", false
}

// inside reads the contents of an object or a list.
func (p *parser) inside(open byte, depth int) *Value {
	v := &Value{Kind: List}
	end := byte(']')
	if open == '{' {
		v.Kind, end = Object, '}'
	}
	for p.err == nil {
		c := p.peek()
		switch {
		case c == ',':
			p.i++
			continue
		case c == end:
			p.i++
			return v
		case c == 0 && p.i >= len(p.b):
			p.fail("ends within a list or an object")
			return v
		}
		key := ""
		if v.Kind == Object {
			if c != '"' {
				p.fail("want a name")
				return v
			}
			var ok bool
			if key, ok = p.text(); !ok {
				return v
			}
			if p.peek() != ':' {
				p.fail("want a colon")
				return v
			}
			p.i++
		}
		item := p.value(depth + 1)
		if p.err != nil && item.Kind == Null {
			return v // nothing remains
		}
		if v.Kind == Object {
			v.Keys = append(v.Keys, key)
		}
		v.Items = append(v.Items, item)
	}
	return v
}

// Get returns the member with a key, nil if it is absent.
func (v *Value) Get(key string) *Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	for i, k := range v.Keys {
		if k == key {
			return v.Items[i]
		}
	}
	return nil
}

// Members iterates over the members of an object in order; other values have none.
func (v *Value) Members() iter.Seq2[string, *Value] {
	return func(yield func(string, *Value) bool) {
		if v == nil || v.Kind != Object {
			return
		}
		for i, k := range v.Keys {
			if !yield(k, v.Items[i]) {
				return
			}
		}
	}
}

// Has reports whether there is a member with each of the keys.
func (v *Value) Has(keys ...string) bool {
	for _, k := range keys {
		if v.Get(k) == nil {
			return false
		}
	}
	return v != nil
}

// List returns the elements of a list.
func (v *Value) List() []*Value {
	if v == nil || v.Kind != List {
		return nil
	}
	return v.Items
}

// Float returns a number, also if it is quoted.
func (v *Value) Float() (float64, bool) {
	if v == nil {
		return 0, false
	}
	switch v.Kind {
	case Number:
		return v.Num, true
	case String:
		return jsonscan.Number([]byte(v.Text))
	}
	return 0, false
}

// Int returns an integer.
func (v *Value) Int() (int64, bool) {
	f, ok := v.Float()
	if !ok || f != float64(int64(f)) || f > 1<<53 || f < -(1<<53) {
		return 0, false
	}
	return int64(f), true
}

// Str returns the text of a string, of a number as written, or of true and false; "" for anything
// else.
func (v *Value) Str() string {
	if v == nil {
		return ""
	}
	return v.Text
}

// Ints returns a list of integers; ok is false if it contains anything else.
func (v *Value) Ints() (out []int64, ok bool) {
	if v == nil || v.Kind != List {
		return nil, false
	}
	out = []int64{}
	for _, e := range v.Items {
		n, ok := e.Int()
		if !ok {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

// Brief formats a value on one line for display, such as [7,7] or {a:1}; it is truncated after a
// few hundred bytes.
func (v *Value) Brief() string { return string(v.brief(nil)) }

const maxBrief = 500

func (v *Value) brief(b []byte) []byte {
	if v == nil || len(b) > maxBrief {
		return b
	}
	switch v.Kind {
	case List, Object:
		open, end := byte('['), byte(']')
		if v.Kind == Object {
			open, end = '{', '}'
		}
		b = append(b, open)
		for i, e := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if len(b) > maxBrief {
				b = append(b, "…"...)
				break
			}
			if v.Kind == Object {
				b = append(append(b, v.Keys[i]...), ':')
			}
			b = e.brief(b)
		}
		return append(b, end)
	case Null:
		return append(b, "null"...)
	}
	return append(b, v.Text...)
}

// Odd counts the words in the value that are neither JSON nor a number that float64 holds, such as
// NaN and 1e400: they have no value.
func (v *Value) Odd() (n int64) {
	if v == nil {
		return 0
	}
	if v.Kind == Null && v.Text != "" {
		n++
	}
	for _, e := range v.Items {
		n += e.Odd()
	}
	return n
}

// Package tree holds a JSON document that is small enough to be held: values in the
// order of the file, with the faults that package jsonscan gets over.
package tree

import (
	"fmt"
	"iter"

	"github.com/opmeter/opmeter/internal/jsonscan"
)

// Kind says what a value is.
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

// Value is a JSON value. The nil pointer is one that is not there: its methods find no members and
// no number, so that paths may be followed without looking. Items are never nil.
type Value struct {
	Kind Kind
	// Text of a string, or of a word that is neither string nor number.
	Text string
	// Num is a number; of other values 0.
	Num float64
	// Keys are the names of an object's members, in the order of Items.
	Keys []string
	// Items are the members of an object, or the elements of a list.
	Items []*Value
}

// MaxValues bounds the values of a document.
const MaxValues = 2_000_000

// maxDepth bounds nesting.
const maxDepth = 64

// Parse reads a document. Where its text breaks off or is no JSON, what came before is returned
// beside the error.
func Parse(b []byte) (*Value, error) {
	p := &parser{left: MaxValues}
	v := p.value(b, 0)
	return v, p.err
}

type parser struct {
	left int
	err  error
}

func (p *parser) value(b []byte, depth int) *Value {
	if p.left--; p.left < 0 {
		p.fail(fmt.Errorf("more than %d values", MaxValues))
		return &Value{}
	}
	if len(b) == 0 {
		return &Value{}
	}
	switch b[0] {
	case '{', '[':
		v := &Value{Kind: List}
		if b[0] == '{' {
			v.Kind = Object
		}
		if depth >= maxDepth {
			p.fail(fmt.Errorf("nests deeper than %d", maxDepth))
			return v
		}
		err := jsonscan.Walk(b, func(key, item []byte) bool {
			if p.left <= 0 {
				return false
			}
			if v.Kind == Object {
				v.Keys = append(v.Keys, jsonscan.Decode(key))
			}
			v.Items = append(v.Items, p.value(item, depth+1))
			return true
		})
		p.fail(err)
		return v
	case '"':
		s, _ := jsonscan.Unquote(b)
		return &Value{Kind: String, Text: s}
	}
	if f, ok := jsonscan.Number(b); ok {
		return &Value{Kind: Number, Num: f, Text: string(b)}
	}
	switch s := string(b); s {
	case "true", "false", "True", "False":
		return &Value{Kind: Bool, Text: s}
	case "null":
		return &Value{}
	default: // NaN and what else writers leave
		return &Value{Text: jsonscan.Decode(b[:min(len(b), 100)])}
	}
}

func (p *parser) fail(err error) {
	if err != nil && p.err == nil {
		p.err = err
	}
}

// Get returns the member with a key, nil where there is none.
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

// Members passes on the members of an object in their order; there are none of anything else.
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

// Float returns a number, also one that stands in quotes.
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

// Int returns a whole number.
func (v *Value) Int() (int64, bool) {
	f, ok := v.Float()
	if !ok || f != float64(int64(f)) || f > 1<<53 || f < -(1<<53) {
		return 0, false
	}
	return int64(f), true
}

// Str returns the text of a string, of a number as it was written, or of true and false; "" for anything else.
func (v *Value) Str() string {
	if v == nil {
		return ""
	}
	return v.Text
}

// Ints returns a list of whole numbers; ok is false where it holds anything else.
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

// Brief writes a value on one line, such as [7,7] or {a:1}, for people; it is cut
// after some hundreds of bytes.
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

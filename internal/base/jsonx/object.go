package jsonx

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is the unparsed text of a value.
type Raw = jsontext.Value

// Member is a name and its value.
type Member[V any] struct {
	Name  string
	Value V
}

// Object is an object whose members keep the order of the text. null decodes as nil.
type Object[V any] []Member[V]

// MarshalJSONTo writes the members in order.
func (o Object[V]) MarshalJSONTo(e *jsontext.Encoder) error {
	if o == nil {
		return e.WriteToken(jsontext.Null)
	}
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o {
		if err := e.WriteToken(jsontext.String(m.Name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(e, m.Value); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

// UnmarshalJSONFrom reads an object or null.
func (o *Object[V]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch t.Kind() {
	case 'n':
		*o = nil
		return nil
	case '{':
	default:
		return fmt.Errorf("an object was expected, not %s", t)
	}
	*o = Object[V]{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		m := Member[V]{Name: name.String()}
		if err := json.UnmarshalDecode(d, &m.Value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	_, err = d.ReadToken()
	return err
}

// Get returns the value of a name.
func (o Object[V]) Get(name string) (v V, ok bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return v, false
}

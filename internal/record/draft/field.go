package draft

import "github.com/opmeter/opmeter/profile"

// Field says which quantity a column or key of a record holds. A figure is multiplied by Times
// and divided by Per to get the unit of the quantity; 0 stands for 1.
type Field struct {
	Q          profile.Quantity
	Times, Per float64
}

// Fields are the fields of a record by the name of the column or key.
type Fields map[string]Field

func (fs Fields) find(name string, v float64) (profile.Quantity, float64, bool) {
	f, ok := fs[name]
	if f.Times != 0 {
		v *= f.Times
	}
	if f.Per != 0 {
		v /= f.Per
	}
	return f.Q, v, ok
}

// Layer sets the quantity of a layer that a column holds, see [Draft.Set]. It reports whether the
// column is one of fs.
func (fs Fields) Layer(d *Draft, i int, name string, v float64) bool {
	q, v, ok := fs.find(name, v)
	if ok {
		d.Set(i, q, v)
	}
	return ok
}

// Total is [Fields.Layer] for quantities of the whole model.
func (fs Fields) Total(d *Draft, name string, v float64) bool {
	q, v, ok := fs.find(name, v)
	if ok {
		d.Total(q, v)
	}
	return ok
}

// Known returns v, nil if ok is false.
func Known(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}

// Milli is [Known] for thousandths of the unit, such as milliseconds.
func Milli(v float64, ok bool) *float64 { return Known(v/1e3, ok) }

// Count returns n, nil if ok is false or n is negative.
func Count(n int64, ok bool) *int64 {
	if !ok || n < 0 {
		return nil
	}
	return &n
}

package draft

import (
	"math"

	"github.com/opmeter/opmeter/profile"
)

// Field says which quantity a column or key of a record holds, and the factor to its unit.
type Field struct {
	Q profile.Quantity
	// Scale is 1 if it is 0. A figure is divided by the inverse of a scale below 1, which is exact
	// for short decimal numbers.
	Scale float64
}

// Fields are the fields of a record by the name of the column or key.
type Fields map[string]Field

// Scaled multiplies by the scale of a [Field].
func Scaled(v, scale float64) float64 {
	switch {
	case scale == 0:
		return v
	case scale < 1:
		return v / math.Round(1/scale)
	}
	return v * scale
}

// Layer sets the quantity of a layer that a column holds, see [Draft.Set]. It reports whether the
// column is one of fs.
func (fs Fields) Layer(d *Draft, i int, name string, v float64) bool {
	f, ok := fs[name]
	if ok {
		d.Set(i, f.Q, Scaled(v, f.Scale))
	}
	return ok
}

// Total is [Fields.Layer] for quantities of the whole model.
func (fs Fields) Total(d *Draft, name string, v float64) bool {
	f, ok := fs[name]
	if ok {
		d.Total(f.Q, Scaled(v, f.Scale))
	}
	return ok
}

// SetKnown sets a quantity of a layer to a scaled figure, see [Field]; nil is ignored.
func (d *Draft) SetKnown(i int, q profile.Quantity, v *float64, scale float64) {
	if v != nil {
		d.Set(i, q, Scaled(*v, scale))
	}
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

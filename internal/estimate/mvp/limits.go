package mvp

import "fmt"

// Limits of the hardware. A program traverses each of its operands with up to maxDims dimensions:
// a dimension takes size steps of stride elements.
const (
	maxDims   = 3    // dimensions of one operand
	maxSize   = 1024 // steps of a dimension, passes of a loop
	maxStride = 2047 // elements from one step of a dimension to the next
)

// LimitError says which limit keeps a layer off the accelerator.
type LimitError struct {
	Text     string
	hardware bool // of a program that a kernel planned already
}

func (e *LimitError) Error() string { return e.Text }

func limit(format string, args ...any) error { return &LimitError{Text: fmt.Sprintf(format, args...)} }

// need is a requirement of a program on the hardware.
type need struct {
	what    string // in the plural: "columns of the input"
	n, most int
	far     bool // a stride rather than a size
}

// size requires a dimension, or a loop, of n steps over what.
func size(what string, n int) need { return need{what: what, n: n, most: maxSize} }

// stride requires steps of n elements between adjacent elements of what.
func stride(what string, n int) need { return need{what: what, n: n, most: maxStride, far: true} }

// fits returns the error of the first requirement beyond the limits, nil if all are met.
func fits(needs ...need) error {
	for _, x := range needs {
		if x.n <= x.most {
			continue
		}
		if x.far {
			return limit("neighbouring %s are %d elements apart, a stride reaches at most %d", x.what, x.n, x.most)
		}
		return limit("there are %d %s, a dimension of an array takes at most %d", x.n, x.what, x.most)
	}
	return nil
}

// errOutside is for outputs whose window lies entirely in the padding.
func errOutside() error {
	return limit("the window of some outputs lies entirely in the padding, and a program needs at least one element")
}

// errGeometry is for shapes that the operator cannot have.
func errGeometry(what string) error { return limit("its %s cannot be laid out as arrays", what) }

// errDilated is for dilated filters.
func errDilated() error {
	return limit("its filter is dilated, and programs walk filters without gaps")
}

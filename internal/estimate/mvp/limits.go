package mvp

import "fmt"

// Limits of the hardware. A program moves through each of its operands with up to
// maxDims dimensions: a dimension makes size steps of stride elements.
const (
	maxDims   = 3    // dimensions of one operand
	maxSize   = 1024 // steps of a dimension, passes of a loop
	maxStride = 2047 // elements from one step of a dimension to the next
)

// LimitError says which limit keeps a layer off the accelerator, in words for people.
type LimitError struct{ Text string }

func (e *LimitError) Error() string { return e.Text }

func limit(format string, args ...any) error { return &LimitError{fmt.Sprintf(format, args...)} }

// need is something that a program takes from the hardware.
type need struct {
	what    string // in the plural: "columns of the input"
	n, most int
	far     bool // a stride rather than a size
}

// size needs a dimension, or a loop, of n steps over what.
func size(what string, n int) need { return need{what: what, n: n, most: maxSize} }

// stride needs steps of n elements between neighbours of what.
func stride(what string, n int) need { return need{what: what, n: n, most: maxStride, far: true} }

// fits reports the first need beyond the limits, nil when the hardware meets all.
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

// errOutside is for outputs that see nothing of the input.
func errOutside() error {
	return limit("some outputs lie in the padding alone, and a program needs an element to begin with")
}

// errGeometry is for shapes that the operator cannot have.
func errGeometry(what string) error { return limit("its %s cannot be laid out as arrays", what) }

// errDilated is for filters with gaps.
func errDilated() error {
	return limit("its filter is dilated, and programs walk filters without gaps")
}

package samples

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// array makes a column of an array, whose first axis counts samples, or which is a single sample.
func (r *reader) array(s *inputSpec, t *tensor.Tensor, file, place string, table bool) (column, error) {
	c := column{file: file, place: place, whole: t, table: table, spec: s}
	switch {
	case len(t.Shape) > 0 && s.fit(t.Shape[1:], table):
		c.n = t.Shape[0]
	case !table && s.fit(t.Shape, false):
		c.n = 1
	case table:
		return c, dataError(file, place, "has %d numbers in a row, %s was expected", t.Shape[len(t.Shape)-1], s.expected())
	default:
		return c, dataError(file, place, "has the shape %s, samples by %s were expected", tensor.FormatShape(t.Shape), s.expected())
	}
	return c, nil
}

// input builds the input of a run of some samples.
func (c *column) input(r *reader, chosen []int) (*tensor.Tensor, error) {
	s := c.spec
	n, err := tensor.CheckShape(s.typ, s.shape)
	if err == nil {
		err = r.reserve(c.file, s.typ.Bytes(n))
	}
	if err != nil {
		return nil, err
	}
	t := tensor.New(s.typ, s.shape...)
	t.Quant = s.value.Quant
	each := n / max(len(chosen), 1)
	for i, k := range chosen {
		src, from, file := c.whole, k*each, c.file
		at := func(e int) string { return c.at(k, e) }
		if src == nil {
			file, from = c.files[k], 0
			if src, err = r.file(file, s); err != nil {
				return nil, err
			}
			at = func(e int) string { return "element " + place(src.Shape, e) }
			if src.Len() != each {
				return nil, dataError(file, "", "has the shape %s, %s was expected, as other files have", tensor.FormatShape(src.Shape), tensor.FormatShape(s.shape))
			}
		}
		if err := s.put(t, i*each, src, from, each, file, at); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// at formats the place of an element of a sample.
func (c *column) at(sample, element int) string {
	where := ""
	if c.place != "" {
		where = c.place + ", "
	}
	if c.table {
		return fmt.Sprintf("%srow %d, number %d", where, sample+1, element+1)
	}
	shape := c.whole.Shape
	if len(shape) > 0 {
		return where + "element " + place(shape, sample*(c.whole.Len()/max(c.n, 1))+element)
	}
	return where + "its element"
}

// place formats the indices of an element like NumPy.
func place(shape []int, e int) string {
	at := make([]int, len(shape))
	tensor.Unravel(e, shape, at)
	return strings.ReplaceAll(fmt.Sprint(at), " ", ", ")
}

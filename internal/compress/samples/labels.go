package samples

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// labels collects the labels of samples.
type labels struct {
	file, place string
	// names are labels as texts, in sample order, or all classes.
	names, all []string
	// rows says that names belong to the rows of a table.
	rows    bool
	values  []float64
	classes []string
}

// read reads the labels of a file if one is given, and checks that there are n.
func (l *labels) read(r *reader, n int) error {
	if r.o.Labels != "" {
		*l = labels{file: r.o.Labels}
		if err := l.open(r); err != nil {
			return err
		}
	} else if r.o.Column != "" && l.names == nil && l.values == nil {
		return dataError(r.columnsOf[0].file, "", "has no columns with names, and the labels were to be in %q", r.o.Column)
	}
	if l.values == nil && l.names != nil {
		if err := l.number(); err != nil {
			return err
		}
	}
	if l.values != nil && len(l.values) != n {
		return dataError(l.file, l.place, "has %d labels, %d were expected, one for each sample", len(l.values), n)
	}
	return nil
}

// open reads a label file.
func (l *labels) open(r *reader) error {
	path := r.o.Labels
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npy":
		t, err := r.npy(path)
		if err != nil {
			return err
		}
		return l.array(t, path, "")
	case ".csv", ".tsv", ".txt":
		text, err := infile.Read(path, maxText)
		if err != nil {
			return err
		}
		if ext == ".txt" {
			return l.text(path, text)
		}
		return l.table(path, text, r.o.Column)
	}
	return dataError(path, "", "is not a label file: .npy, .csv or .txt was expected")
}

// text reads one label per line.
func (l *labels) text(path string, text []byte) error {
	sc := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	sc.Buffer(nil, 1<<16)
	for sc.Scan() {
		l.names = append(l.names, strings.TrimSpace(sc.Text()))
	}
	if err := sc.Err(); err != nil {
		return dataError(path, fmt.Sprintf("line %d", len(l.names)+1), "%v", err)
	}
	for len(l.names) > 0 && l.names[len(l.names)-1] == "" {
		l.names = l.names[:len(l.names)-1]
	}
	l.rows = true
	return nil
}

// table reads labels of a separate table: its only column, or the named one.
func (l *labels) table(path string, text []byte, column string) error {
	first, at := true, 0
	return lines(path, text, func(line int, cells []string) error {
		if first {
			first = false
			var titles bool
			switch {
			case column != "":
				titles = slices.ContainsFunc(cells, func(c string) bool { _, ok := number(c); return !ok }) &&
					slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) == column })
				var err error
				if at, err = findColumn(path, cells, column, titles); err != nil {
					return err
				}
			case len(cells) != 1:
				return dataError(path, "", "has %d columns; name the one with labels with --label-column NAME, or give a file with one column", len(cells))
			default:
				// Text is taken for a title if numbers follow: see number.
				_, ok := number(cells[0])
				titles = !ok && strings.EqualFold(strings.TrimSpace(cells[0]), "label") || !ok && strings.EqualFold(strings.TrimSpace(cells[0]), "labels") || !ok && l.numbersFollow(text)
			}
			if titles {
				return nil
			}
		}
		if at >= len(cells) {
			return dataError(path, fmt.Sprintf("line %d", line), "has %d cells, a label was expected in column %d", len(cells), at+1)
		}
		l.names, l.rows = append(l.names, strings.TrimSpace(cells[at])), true
		return nil
	})
}

// numbersFollow reports whether the second line is a number.
func (l *labels) numbersFollow(text []byte) bool {
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	_, ok := number(strings.Trim(strings.TrimSpace(string(line)), `"`))
	return ok
}

// number converts labels to numbers: their values if all are numbers, else their indices among
// the sorted names.
func (l *labels) number() error {
	values, all := make([]float64, len(l.names)), true
	for i, s := range l.names {
		if s == "" {
			return dataError(l.file, l.where(i), "is empty, a label was expected")
		}
		v, ok := number(s)
		if ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return dataError(l.file, l.where(i), "is %s, a finite number was expected", s)
		}
		values[i], all = v, all && ok
	}
	if all {
		l.values = values
		return nil
	}
	classes := l.all
	if classes == nil {
		classes = l.names
	}
	l.classes = slices.Compact(slices.Sorted(slices.Values(classes)))
	l.values = values
	for i, s := range l.names {
		at, _ := slices.BinarySearch(l.classes, s)
		l.values[i] = float64(at)
	}
	return nil
}

func (l *labels) where(i int) string {
	if l.rows {
		return "label " + strconv.Itoa(i+1)
	}
	return ""
}

// array reads labels of an array with one for each sample.
func (l *labels) array(t *tensor.Tensor, file, place string) error {
	l.file, l.place = file, place
	if !t.Type.IsNumber() {
		return dataError(file, place, "has elements of the type %v, numbers were expected as labels", t.Type)
	}
	n := 0
	if len(t.Shape) > 0 {
		n = t.Shape[0]
	}
	if len(t.Shape) == 0 || t.Len() != n {
		return dataError(file, place, "has the shape %s, one label for each sample was expected", tensor.FormatShape(t.Shape))
	}
	l.values = make([]float64, n)
	tensor.Read(l.values, t, 0)
	for i, v := range l.values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dataError(file, fmt.Sprintf("element [%d]", i), "is %v, a finite number was expected as label", v)
		}
	}
	return nil
}

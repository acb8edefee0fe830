package samples

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// table reads rows of numbers; the label column, if requested, goes to the labels.
func (r *reader) table(path string) (*tensor.Tensor, error) {
	text, err := infile.Read(path, maxText)
	if err != nil {
		return nil, err
	}
	column := r.o.Column
	if r.labels.values != nil || r.labels.names != nil {
		column = ""
	}
	rows, names, err := parseTable(path, text, column)
	if err != nil {
		return nil, err
	}
	if column != "" {
		r.labels.names, r.labels.file, r.labels.rows = names, path, true
	}
	wide := len(rows[0])
	if err := r.reserve(path, 8*wide*len(rows)); err != nil {
		return nil, err
	}
	t := tensor.New(tensor.Float64, len(rows), wide)
	for i, row := range rows {
		copy(tensor.Of[float64](t)[i*wide:], row)
	}
	return t, nil
}

// separator returns the most frequent separator of the first line.
func separator(text []byte) rune {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	best, most := ',', 0
	for _, c := range ",;\t" {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// lines reads a table line by line. Lines and columns are counted from 1.
func lines(path string, text []byte, each func(line int, cells []string) error) error {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	c := csv.NewReader(bytes.NewReader(text))
	c.Comma, c.FieldsPerRecord, c.ReuseRecord, c.TrimLeadingSpace = separator(text), -1, true, true
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if p, ok := errors.AsType[*csv.ParseError](err); ok {
				return dataError(path, fmt.Sprintf("line %d", p.Line), "%v", p.Err)
			}
			return dataError(path, "", "%v", err)
		}
		line, _ := c.FieldPos(0)
		if err := each(line, cells); err != nil {
			return err
		}
	}
}

// number parses a cell.
func number(cell string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// parseTable reads rows of numbers, with or without titles, and the labels of a column.
func parseTable(path string, text []byte, column string) (rows [][]float64, names []string, err error) {
	at, wide := -1, 0
	err = lines(path, text, func(line int, cells []string) error {
		if wide == 0 {
			wide = len(cells)
			titles := false
			for i, c := range cells {
				_, ok := number(c)
				titles = titles || !ok && strconv.Itoa(i+1) != column
			}
			if column != "" {
				if at, err = findColumn(path, cells, column, titles); err != nil {
					return err
				}
			}
			if titles {
				return nil
			}
		}
		if len(cells) != wide {
			return dataError(path, fmt.Sprintf("line %d", line), "has %d cells, %d were expected, as in the first line", len(cells), wide)
		}
		row := make([]float64, 0, wide)
		for i, c := range cells {
			if i == at {
				names = append(names, strings.TrimSpace(c))
				continue
			}
			v, ok := number(c)
			where := fmt.Sprintf("line %d, column %d", line, i+1)
			if !ok && column == "" {
				return dataError(path, where, "is %q, a number was expected; if the column holds labels, name it with --label-column", truncated(c))
			}
			if !ok {
				return dataError(path, where, "is %q, a number was expected", truncated(c))
			}
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return dataError(path, where, "is %s, a finite number was expected", strings.TrimSpace(c))
			}
			row = append(row, v)
		}
		rows = append(rows, row)
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = dataError(path, "", "has no rows of numbers")
	}
	if err == nil && len(rows[0]) == 0 {
		err = dataError(path, "", "has no columns beside the labels")
	}
	return rows, names, err
}

// findColumn returns the index of the label column: by its title, or by its number.
func findColumn(path string, cells []string, column string, titles bool) (int, error) {
	if titles {
		for i, c := range cells {
			if strings.TrimSpace(c) == column {
				return i, nil
			}
		}
	}
	if n, err := strconv.Atoi(column); err == nil && n >= 1 && n <= len(cells) {
		return n - 1, nil
	}
	if !titles {
		return 0, dataError(path, "", "has no titles, and no column %q; a number from 1 to %d was expected", column, len(cells))
	}
	known := slices.Clone(cells)
	if len(known) > 20 {
		known = append(known[:20], "...")
	}
	return 0, dataError(path, "", "has no column %q; its columns are %s", column, quoted(known))
}

// truncated returns the beginning of a text.
func truncated(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return s
}

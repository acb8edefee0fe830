package xlsx

import (
	"strconv"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/internal/report/text"
)

// style names a look of a cell by its role.
type style struct {
	bold, title, head, edit, wrap, faint bool
	indent, right                        bool   // text that follows a number, heading of numbers
	color                                string // of the text, "" for black
	format                               string // number format, "" for general
}

// look is a style as the workbook has it.
func (s style) look() workbook.Style {
	x := workbook.Style{Vertical: "top", Wrap: s.wrap, Format: s.format}
	switch {
	case s.title:
		x.Size, x.Bold = 16, true
	case s.head:
		x.Bold, x.Color, x.Fill, x.Wrap, x.Vertical = true, "FFFFFF", "3B5B7A", true, "center"
	case s.bold:
		x.Bold = true
	case s.faint:
		x.Color = "666666"
	}
	if s.color != "" {
		x.Color = s.color
	}
	if s.indent {
		x.Horizontal, x.Indent = "left", 1
	}
	if s.right {
		x.Horizontal = "right"
	}
	if s.edit {
		x.Fill, x.Border = "FFF6CC", "D8C878"
	}
	return x
}

// book is a workbook being written.
type book struct{ *workbook.Writer }

// sheet writes one sheet from top to bottom.
type sheet struct {
	*workbook.Sheet
	row int // last row written
}

// sheet begins the next sheet. It prints across, as wide as one page.
func (b *book) sheet() *sheet {
	s := &sheet{Sheet: b.Sheet()}
	s.Pages = 1
	return s
}

// widths sets the widths of the first columns in characters.
func (s *sheet) widths(ws ...float64) {
	for i, w := range ws {
		s.Width(i, w)
	}
}

// cell is the content of a cell.
type cell struct {
	v       any    // nil, string, bool, int64 or float64; with a formula its result
	formula string // without the sign before it
	style   style
}

// label, number and formula make cells. Texts of all kinds are strings for the
// spreadsheet, whatever they look like.
func label(v string, st style) cell          { return cell{v: v, style: st} }
func number(v *float64, f string) cell       { return numberIn(v, style{format: f}) }
func formula(f string, v any, n string) cell { return cell{v: v, formula: f, style: style{format: n}} }

func numberIn(v *float64, st style) cell {
	if v == nil {
		return cell{style: st}
	}
	return cell{v: *v, style: st}
}

// add writes the next row. Height 0 leaves it to the program that shows it.
func (s *sheet) add(height float64, cells ...cell) {
	s.row++
	out := make([]workbook.Cell, len(cells))
	for i, c := range cells {
		if c.v == nil && c.formula == "" && !c.style.edit && !c.style.head {
			continue
		}
		if x, ok := c.v.(string); ok {
			c.v = text.Clean(x)
		}
		out[i] = workbook.Cell{Value: c.v, Formula: c.formula, Style: c.style.look()}
	}
	s.Row(s.row, height, out)
}

// merge joins cells of the last row, by columns from 0.
func (s *sheet) merge(from, to int) { s.Merge(at(from, s.row) + ":" + at(to, s.row)) }

// bars shows the figures of a range as bars behind them.
func (s *sheet) bars(ref string) { s.Bars(ref, "9CC3E6") }

// at names a cell by column from 0 and row from 1: "B7".
func at(col, row int) string { return workbook.CellName(col, row) }

// span names the cells of a column from one row to another, both fixed: "$B$2:$B$9".
func span(col, first, last int) string {
	l := workbook.ColumnName(col)
	return "$" + l + "$" + strconv.Itoa(first) + ":$" + l + "$" + strconv.Itoa(last)
}

// lines is the number of lines that a text takes in width characters.
func lines(s string, width int) int {
	return max(1, (utf8.RuneCountInString(s)+width-1)/width)
}

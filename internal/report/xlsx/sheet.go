package xlsx

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/report/text"
)

// maxRows is the number of rows that a sheet can have.
const maxRows = excelize.TotalRows

// style names a look of a cell; [book.styles] maps it to the file's number.
type style struct {
	bold, title, head, edit, wrap, faint bool
	indent, right                        bool   // text that follows a number, heading of numbers
	color                                string // of the text, "" for black
	format                               string // number format, "" for general
}

// book is a workbook being written.
type book struct {
	f      *excelize.File
	styles map[style]int
}

// id returns the number of a style, which is made on first use.
func (b *book) id(s style) (int, error) {
	if id, ok := b.styles[s]; ok {
		return id, nil
	}
	x := &excelize.Style{Alignment: &excelize.Alignment{Vertical: "top", WrapText: s.wrap}}
	font := &excelize.Font{Family: "Calibri", Size: 11}
	switch {
	case s.title:
		font.Size, font.Bold = 16, true
	case s.head:
		font.Bold, font.Color = true, "FFFFFF"
		x.Fill = excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"3B5B7A"}}
		x.Alignment.WrapText, x.Alignment.Vertical = true, "center"
	case s.bold:
		font.Bold = true
	case s.faint:
		font.Color = "666666"
	}
	if s.color != "" {
		font.Color = s.color
	}
	if s.indent {
		x.Alignment.Horizontal, x.Alignment.Indent = "left", 1
	}
	if s.right {
		x.Alignment.Horizontal = "right"
	}
	if s.edit {
		x.Fill = excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"FFF6CC"}}
		line := func(t string) excelize.Border { return excelize.Border{Type: t, Style: 1, Color: "D8C878"} }
		x.Border = []excelize.Border{line("left"), line("right"), line("top"), line("bottom")}
	}
	x.Font = font
	if s.format != "" {
		x.CustomNumFmt = &s.format
	}
	id, err := b.f.NewStyle(x)
	if err != nil {
		return 0, err
	}
	b.styles[s] = id
	return id, nil
}

// sheet writes one sheet from top to bottom. The first error stays and makes the
// rest do nothing.
type sheet struct {
	b    *book
	name string
	w    *excelize.StreamWriter
	row  int // last row written
	wide int // pages side by side in print, 0 for one
	err  error
}

func (b *book) sheet(name string) *sheet {
	s := &sheet{b: b, name: name}
	if b.f.GetSheetName(0) == "Sheet1" {
		s.do(b.f.SetSheetName("Sheet1", name))
	} else {
		_, err := b.f.NewSheet(name)
		s.do(err)
	}
	// The stream begins with these, so they come first.
	fit := true
	s.do(b.f.SetSheetProps(name, &excelize.SheetPropsOptions{FitToPage: &fit}))
	if s.err == nil {
		s.w, s.err = b.f.NewStreamWriter(name)
	}
	return s
}

func (s *sheet) do(err error) {
	if s.err == nil {
		s.err = err
	}
}

// widths sets the widths of the first columns in characters.
func (s *sheet) widths(ws ...float64) {
	for i, w := range ws {
		if s.err == nil {
			s.err = s.w.SetColWidth(i+1, i+1, w)
		}
	}
}

// freeze keeps the first rows and columns in view.
func (s *sheet) freeze(rows, cols int) {
	pane := "bottomRight"
	if cols == 0 {
		pane = "bottomLeft"
	}
	if s.err == nil {
		s.err = s.w.SetPanes(&excelize.Panes{Freeze: true, XSplit: cols, YSplit: rows, TopLeftCell: at(cols, rows+1), ActivePane: pane})
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
	if s.err != nil {
		return
	}
	out := make([]any, len(cells))
	for i, c := range cells {
		if c.v == nil && c.formula == "" && !c.style.edit && !c.style.head {
			continue
		}
		id, err := s.b.id(c.style)
		if err != nil {
			s.err = err
			return
		}
		v := c.v
		switch x := v.(type) {
		case string:
			v = text.Clean(x)
		case float64:
			if math.IsNaN(x) || math.IsInf(x, 0) {
				v = nil
			}
		}
		out[i] = excelize.Cell{StyleID: id, Formula: c.formula, Value: v}
	}
	var o []excelize.RowOpts
	if height > 0 {
		o = append(o, excelize.RowOpts{Height: height})
	}
	s.err = s.w.SetRow(at(0, s.row), out, o...)
}

// merge joins cells of the last row, by columns from 0.
func (s *sheet) merge(from, to int) {
	if s.err == nil {
		s.err = s.w.MergeCell(at(from, s.row), at(to, s.row))
	}
}

// bars shows the figures of a range as bars behind them.
func (s *sheet) bars(ref string) {
	if s.err == nil {
		s.err = s.b.f.SetConditionalFormat(s.name, ref, []excelize.ConditionalFormatOptions{{
			Type: "data_bar", Criteria: "=", MinType: "num", MinValue: "0", MaxType: "max", BarColor: "#9CC3E6",
		}})
	}
}

// flush ends the sheet. It prints across, as wide as its pages.
func (s *sheet) flush() error {
	if s.err != nil {
		return s.err
	}
	landscape, wide, high := "landscape", max(1, s.wide), 0
	if err := s.b.f.SetPageLayout(s.name, &excelize.PageLayoutOptions{Orientation: &landscape, FitToWidth: &wide, FitToHeight: &high}); err != nil {
		return err
	}
	return s.w.Flush()
}

// at names a cell by column from 0 and row from 1: "B7".
func at(col, row int) string { return letter(col) + strconv.Itoa(row) }

// letter names a column, from 0.
func letter(col int) string {
	s := ""
	for n := col + 1; n > 0; n = (n - 1) / 26 {
		s = string(rune('A'+(n-1)%26)) + s
	}
	return s
}

// span names the cells of a column from one row to another, both fixed: "$B$2:$B$9".
func span(col, first, last int) string {
	l := letter(col)
	return "$" + l + "$" + strconv.Itoa(first) + ":$" + l + "$" + strconv.Itoa(last)
}

// lines is the number of lines that a text takes in width characters.
func lines(s string, width int) int {
	return max(1, (utf8.RuneCountInString(s)+width-1)/width)
}

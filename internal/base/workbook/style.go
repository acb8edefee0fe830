package workbook

import (
	"bytes"
	"cmp"
	"fmt"
)

// Style is the look of a cell. The zero value is that of a cell without a style.
type Style struct {
	Bold                bool
	Size                float64 // of the font in points, 0 for 11
	Color, Fill, Border string  // RGB such as "3B5B7A", "" for none
	Format              string  // of numbers, "" for general
	Horizontal          string  // "left", "center", "right", "" for that of the kind of value
	Vertical            string  // "top", "center", "" for bottom
	Indent              int
	Wrap                bool
}

// numbered numbers different values by first use.
type numbered[T comparable] struct {
	ids  map[T]int
	list []T
}

func (n *numbered[T]) id(x T) int {
	if n.ids == nil {
		n.ids = map[T]int{}
	}
	id, ok := n.ids[x]
	if !ok {
		id = len(n.list)
		n.ids[x] = id
		n.list = append(n.list, x)
	}
	return id
}

// styles are the styles of a workbook. The first one is the default.
type styles struct{ numbered[Style] }

func (s *styles) id(x Style) int {
	s.numbered.id(Style{})
	return s.numbered.id(x)
}

// section is a list of different texts.
type section struct{ numbered[string] }

func (s *section) write(t *bytes.Buffer, name string) {
	if len(s.list) == 0 {
		return
	}
	fmt.Fprintf(t, `<%s count="%d">`, name, len(s.list))
	for _, x := range s.list {
		t.WriteString(x)
	}
	t.WriteString("</" + name + ">")
}

// firstFormat is the first number of a format that a workbook defines.
const firstFormat = 164

// text makes xl/styles.xml. Programs expect the first font, border and two fills.
func (s *styles) text() *bytes.Buffer {
	s.id(Style{})
	var formats, fonts, fills, borders, cells section
	none := `<border><left/><right/><top/><bottom/></border>`
	fills.id(`<fill><patternFill patternType="none"/></fill>`)
	fills.id(`<fill><patternFill patternType="gray125"/></fill>`)
	for i, x := range s.list {
		font := "<font>"
		if x.Bold {
			font += "<b/>"
		}
		font += fmt.Sprintf(`<sz val="%s"/>`, float(cmp.Or(x.Size, 11)))
		if x.Color != "" {
			font += `<color rgb="FF` + x.Color + `"/>`
		}
		font += `<name val="Calibri"/><family val="2"/></font>`
		fill, border, format := 0, none, 0
		if x.Fill != "" {
			fill = fills.id(`<fill><patternFill patternType="solid"><fgColor rgb="FF` + x.Fill + `"/></patternFill></fill>`)
		}
		if x.Border != "" {
			border = "<border>"
			for _, side := range []string{"left", "right", "top", "bottom"} {
				border += `<` + side + ` style="thin"><color rgb="FF` + x.Border + `"/></` + side + `>`
			}
			border += "</border>"
		}
		if x.Format != "" {
			var code bytes.Buffer
			escape(&code, x.Format)
			// The text of a format has no number in it, so that equal ones are found.
			format = firstFormat + formats.id(code.String())
		}
		cell := fmt.Sprintf(`<xf numFmtId="%d" fontId="%d" fillId="%d" borderId="%d" xfId="0"`, format, fonts.id(font), fill, borders.id(border))
		if i > 0 {
			cell += ` applyNumberFormat="1" applyFont="1" applyFill="1" applyBorder="1" applyAlignment="1"`
		}
		alignment := ""
		for _, a := range []struct{ name, value string }{{"horizontal", x.Horizontal}, {"vertical", x.Vertical}} {
			if a.value != "" {
				alignment += ` ` + a.name + `="` + a.value + `"`
			}
		}
		if x.Indent > 0 {
			alignment += fmt.Sprintf(` indent="%d"`, x.Indent)
		}
		if x.Wrap {
			alignment += ` wrapText="1"`
		}
		if alignment != "" {
			cell += `><alignment` + alignment + `/></xf>`
		} else {
			cell += `/>`
		}
		cells.list = append(cells.list, cell) // one a style, equal or not
	}
	for i, code := range formats.list {
		formats.list[i] = fmt.Sprintf(`<numFmt numFmtId="%d" formatCode="%s"/>`, firstFormat+i, code)
	}
	t := &bytes.Buffer{}
	t.WriteString(`<styleSheet xmlns="` + mainSpace + `">`)
	formats.write(t, "numFmts")
	fonts.write(t, "fonts")
	fills.write(t, "fills")
	borders.write(t, "borders")
	t.WriteString(`<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>`)
	cells.write(t, "cellXfs")
	t.WriteString(`<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`)
	return t
}

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

// styles numbers the styles of a workbook by first use.
type styles struct {
	ids  map[Style]int
	list []Style
}

func (s *styles) id(x Style) int {
	if s.ids == nil {
		s.ids = map[Style]int{{}: 0}
		s.list = []Style{{}}
	}
	id, ok := s.ids[x]
	if !ok {
		id = len(s.list)
		s.ids[x] = id
		s.list = append(s.list, x)
	}
	return id
}

// section is a list of different texts with their numbers.
type section struct {
	ids  map[string]int
	list []string
}

func (s *section) id(text string) int {
	if s.ids == nil {
		s.ids = map[string]int{}
	}
	id, ok := s.ids[text]
	if !ok {
		id = len(s.list)
		s.ids[text] = id
		s.list = append(s.list, text)
	}
	return id
}

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

package workbook

import (
	"bytes"
	"strings"
)

// theme makes xl/theme/theme1.xml. No style refers to it, but some programs resolve no colour at
// all without one. It is the least that the schema of DrawingML allows.
func theme() *bytes.Buffer {
	var t bytes.Buffer
	t.WriteString(`<a:theme xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" name="opmeter"><a:themeElements><a:clrScheme name="opmeter">`)
	for _, c := range []string{
		"dk1 000000", "lt1 FFFFFF", "dk2 3B5B7A", "lt2 F2F2F2", "accent1 3B5B7A", "accent2 B26B00", "accent3 666666", "accent4 D8C878", "accent5 9CC3E6",
		"accent6 B3261E", "hlink 0B5CAD", "folHlink 666666",
	} {
		name, color, _ := strings.Cut(c, " ")
		t.WriteString(`<a:` + name + `><a:srgbClr val="` + color + `"/></a:` + name + `>`)
	}
	fonts := `<a:latin typeface="Calibri"/><a:ea typeface=""/><a:cs typeface=""/>`
	fill := `<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>`
	t.WriteString(`</a:clrScheme><a:fontScheme name="opmeter"><a:majorFont>` + fonts + `</a:majorFont><a:minorFont>` + fonts + `</a:minorFont></a:fontScheme><a:fmtScheme name="opmeter">`)
	for _, list := range [][2]string{
		{"fillStyleLst", fill},
		{"lnStyleLst", `<a:ln>` + fill + `</a:ln>`},
		{"effectStyleLst", `<a:effectStyle><a:effectLst/></a:effectStyle>`},
		{"bgFillStyleLst", fill},
	} {
		t.WriteString(`<a:` + list[0] + `>` + strings.Repeat(list[1], 3) + `</a:` + list[0] + `>`)
	}
	t.WriteString(`</a:fmtScheme></a:themeElements></a:theme>`)
	return &t
}

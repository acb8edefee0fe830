package workbook

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Writer writes a workbook. Its first error stays, makes the rest do nothing and is that of Close.
type Writer struct {
	zip     *zip.Writer
	names   []string // of all sheets
	sheet   *Sheet   // that is being written
	begun   int      // sheets
	defined []definition
	styles  styles
	err     error
}

type definition struct {
	name, ref string
	sheet     int // from 0, -1 for the workbook
	hidden    bool
}

// About describes a workbook; Created is a time in RFC 3339, "" for unknown.
type About struct{ Creator, Title, Created string }

const (
	header        = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainSpace     = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	relationSpace = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	packageSpace  = "http://schemas.openxmlformats.org/package/2006/"
	mediaType     = "application/vnd.openxmlformats-officedocument.spreadsheetml."
)

// NewWriter begins a workbook with sheets of these names, in this order.
func NewWriter(w io.Writer, names ...string) *Writer {
	b := &Writer{zip: zip.NewWriter(w), names: names}
	var types bytes.Buffer
	types.WriteString(`<Types xmlns="` + packageSpace + `content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="` + mediaType + `sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="` + mediaType + `styles+xml"/>` +
		`<Override PartName="/xl/theme/theme1.xml" ContentType="application/vnd.openxmlformats-officedocument.theme+xml"/>` +
		`<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>`)
	for i := range names {
		fmt.Fprintf(&types, `<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="%sworksheet+xml"/>`, i+1, mediaType)
	}
	types.WriteString(`</Types>`)
	b.part("[Content_Types].xml", &types)
	b.part("_rels/.rels", bytes.NewBufferString(`<Relationships xmlns="`+packageSpace+`relationships"><Relationship Id="rId1" Type="`+relationSpace+`/officeDocument" Target="xl/workbook.xml"/>`+
		`<Relationship Id="rId2" Type="`+packageSpace+`relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>`))
	return b
}

func (b *Writer) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// part writes a whole file of the package.
func (b *Writer) part(name string, text *bytes.Buffer) {
	if b.err != nil {
		return
	}
	f, err := b.zip.Create(name)
	if err == nil {
		_, err = io.WriteString(f, header)
	}
	if err == nil {
		_, err = text.WriteTo(f)
	}
	b.fail(err)
}

// Define names cells of the workbook: a reference such as "Summary!$B$2".
func (b *Writer) Define(name, ref string) {
	b.defined = append(b.defined, definition{name: name, ref: ref, sheet: -1})
}

// Sheet begins the next sheet and ends the one before.
func (b *Writer) Sheet() *Sheet {
	b.end()
	s := &Sheet{b: b}
	if b.err == nil && b.begun == len(b.names) {
		b.err = errors.New("workbook: more sheets than names")
	}
	b.begun++
	if b.err == nil {
		s.out, b.err = b.zip.Create(fmt.Sprintf("xl/worksheets/sheet%d.xml", b.begun))
	}
	b.sheet = s
	return s
}

func (b *Writer) end() {
	if b.sheet != nil {
		b.sheet.end()
		b.sheet = nil
	}
}

// Close writes what belongs to all sheets and ends the workbook, not the stream below it.
func (b *Writer) Close(about About) error {
	b.end()
	if b.err == nil && b.begun < len(b.names) {
		b.err = errors.New("workbook: fewer sheets than names")
	}
	var t, relations bytes.Buffer
	t.WriteString(`<workbook xmlns="` + mainSpace + `" xmlns:r="` + relationSpace + `"><bookViews><workbookView/></bookViews><sheets>`)
	relations.WriteString(`<Relationships xmlns="` + packageSpace + `relationships">`)
	for i, name := range b.names {
		t.WriteString(`<sheet name="`)
		escape(&t, name)
		fmt.Fprintf(&t, `" sheetId="%d" r:id="rId%d"/>`, i+1, i+1)
		fmt.Fprintf(&relations, `<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, i+1, relationSpace, i+1)
	}
	for i, part := range [][2]string{{"styles", "styles.xml"}, {"theme", "theme/theme1.xml"}} {
		fmt.Fprintf(&relations, `<Relationship Id="rId%d" Type="%s/%s" Target="%s"/>`, len(b.names)+1+i, relationSpace, part[0], part[1])
	}
	relations.WriteString(`</Relationships>`)
	t.WriteString(`</sheets>`)
	if len(b.defined) > 0 {
		t.WriteString(`<definedNames>`)
		for _, d := range b.defined {
			t.WriteString(`<definedName name="` + d.name + `"`)
			if d.sheet >= 0 {
				fmt.Fprintf(&t, ` localSheetId="%d"`, d.sheet)
			}
			if d.hidden {
				t.WriteString(` hidden="1"`)
			}
			t.WriteByte('>')
			escape(&t, d.ref)
			t.WriteString(`</definedName>`)
		}
		t.WriteString(`</definedNames>`)
	}
	t.WriteString(`<calcPr calcId="122211"/></workbook>`)
	b.part("xl/workbook.xml", &t)
	b.part("xl/_rels/workbook.xml.rels", &relations)
	b.part("xl/styles.xml", b.styles.text())
	b.part("xl/theme/theme1.xml", theme())
	b.part("docProps/core.xml", about.text())
	b.fail(b.zip.Close())
	return b.err
}

func (a About) text() *bytes.Buffer {
	var t bytes.Buffer
	t.WriteString(`<cp:coreProperties xmlns:cp="` + packageSpace + `metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`)
	for _, f := range []struct{ name, kind, text string }{
		{"dc:title", "", a.Title},
		{"dc:creator", "", a.Creator},
		{"cp:lastModifiedBy", "", a.Creator},
		{"dcterms:created", ` xsi:type="dcterms:W3CDTF"`, a.Created},
		{"dcterms:modified", ` xsi:type="dcterms:W3CDTF"`, a.Created},
	} {
		if f.text != "" {
			t.WriteString("<" + f.name + f.kind + ">")
			escape(&t, f.text)
			t.WriteString("</" + f.name + ">")
		}
	}
	t.WriteString(`</cp:coreProperties>`)
	return &t
}

// Cell is the content of a cell.
type Cell struct {
	// Value is nil, a string, bool, int, int64, uint64 or float64. With a formula it is its
	// result. Floats that are not finite make empty cells.
	Value any
	// Formula has no sign before it.
	Formula string
	Style   Style
}

// Sheet is a sheet that is written from top to bottom. Fields and methods that describe all of it
// come before the first row.
type Sheet struct {
	// Pages is the number of pages side by side in print, in landscape; 0 leaves print alone.
	Pages int

	b             *Writer
	out           io.Writer
	line          bytes.Buffer
	begun         bool
	row           int // last one written
	columns       []columnWidth
	panes         string
	merges        []string
	filter        string
	bars, allowed bytes.Buffer
	barred        int
	checked       int
}

type columnWidth struct {
	chars  float64 // 0 for the usual one
	hidden bool
}

func (s *Sheet) column(column int) *columnWidth {
	for len(s.columns) <= column {
		s.columns = append(s.columns, columnWidth{})
	}
	return &s.columns[column]
}

// Width sets the width of a column, from 0, in characters.
func (s *Sheet) Width(column int, chars float64) { s.column(column).chars = chars }

// Hide hides a column, from 0.
func (s *Sheet) Hide(column int) { s.column(column).hidden = true }

// Freeze keeps the first rows and columns in view.
func (s *Sheet) Freeze(rows, columns int) {
	pane, split := "bottomRight", ""
	switch {
	case columns == 0:
		pane = "bottomLeft"
	case rows == 0:
		pane = "topRight"
	}
	if columns > 0 {
		split = fmt.Sprintf(` xSplit="%d"`, columns)
	}
	if rows > 0 {
		split += fmt.Sprintf(` ySplit="%d"`, rows)
	}
	s.panes = fmt.Sprintf(`<pane%s topLeftCell="%s" activePane="%s" state="frozen"/><selection pane="%s"/>`, split, CellName(columns, rows+1), pane, pane)
}

// Titles repeats columns and rows, such as "$A:$B" and "$1:$1", on each page in print.
func (s *Sheet) Titles(columns, rows string) {
	name := quoted(s.name())
	s.b.defined = append(s.b.defined, definition{name: "_xlnm.Print_Titles", ref: name + "!" + columns + "," + name + "!" + rows, sheet: s.b.begun - 1})
}

func (s *Sheet) name() string {
	if s.b.begun > len(s.b.names) {
		return ""
	}
	return s.b.names[s.b.begun-1]
}

// quoted is the name of a sheet in a reference.
func quoted(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !(r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') }) {
		return apostrophes(name)
	}
	return name
}

func apostrophes(name string) string { return "'" + strings.ReplaceAll(name, "'", "''") + "'" }

func (s *Sheet) begin() {
	if s.begun {
		return
	}
	s.begun = true
	t := &s.line
	t.WriteString(header + `<worksheet xmlns="` + mainSpace + `">`)
	if s.Pages > 0 {
		t.WriteString(`<sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>`)
	}
	selected := ""
	if s.b.begun == 1 {
		selected = ` tabSelected="1"`
	}
	t.WriteString(`<sheetViews><sheetView` + selected + ` workbookViewId="0">` + s.panes + `</sheetView></sheetViews>`)
	if slices.ContainsFunc(s.columns, func(c columnWidth) bool { return c != columnWidth{} }) {
		t.WriteString(`<cols>`)
		for i, c := range s.columns {
			if (c == columnWidth{}) {
				continue
			}
			if c.chars == 0 {
				c.chars = 9.140625
			}
			fmt.Fprintf(t, `<col min="%d" max="%d" width="%s" customWidth="1"`, i+1, i+1, float(c.chars))
			if c.hidden {
				t.WriteString(` hidden="1"`)
			}
			t.WriteString(`/>`)
		}
		t.WriteString(`</cols>`)
	}
	t.WriteString(`<sheetData>`)
}

// Row writes a row, from 1, after those before it. Height is in points; 0 leaves it to the program
// that shows it.
func (s *Sheet) Row(row int, height float64, cells []Cell) {
	if s.b.err != nil {
		return
	}
	if row <= s.row || row > MaxRows || len(cells) > MaxColumns {
		s.b.fail(fmt.Errorf("workbook: row %d of %d cells after row %d: a sheet has %d rows of %d columns", row, len(cells), s.row, MaxRows, MaxColumns))
		return
	}
	s.begin()
	s.row = row
	t := &s.line
	fmt.Fprintf(t, `<row r="%d"`, row)
	if height > 0 {
		fmt.Fprintf(t, ` ht="%s" customHeight="1"`, float(height))
	}
	t.WriteByte('>')
	for i := range cells {
		s.cell(i, &cells[i])
	}
	t.WriteString(`</row>`)
	s.flush()
}

func (s *Sheet) flush() {
	if s.b.err == nil {
		_, err := s.line.WriteTo(s.out)
		s.b.fail(err)
	}
}

// cell writes a cell. Formulas stand before their results.
func (s *Sheet) cell(column int, c *Cell) {
	kind, value := "", ""
	switch x := c.Value.(type) {
	case nil:
	case string:
		kind, value = "inlineStr", escapeUnits(cut(x))
		if c.Formula != "" {
			kind = "str"
		}
	case bool:
		kind, value = "b", "0"
		if x {
			value = "1"
		}
	case int:
		value = strconv.Itoa(x)
	case int64:
		value = strconv.FormatInt(x, 10)
	case uint64:
		value = strconv.FormatUint(x, 10)
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			value = float(x)
		}
	default:
		s.b.fail(fmt.Errorf("workbook: cell %s holds a %T", CellName(column, s.row), c.Value))
		return
	}
	if kind == "" && value == "" && c.Formula == "" && (c.Style == Style{}) {
		return
	}
	t := &s.line
	t.WriteString(`<c r="`)
	t.WriteString(CellName(column, s.row))
	t.WriteByte('"')
	if id := s.b.styles.id(c.Style); id > 0 {
		fmt.Fprintf(t, ` s="%d"`, id)
	}
	if kind != "" {
		t.WriteString(` t="` + kind + `"`)
	}
	t.WriteByte('>')
	if c.Formula != "" {
		t.WriteString(`<f>`)
		escape(t, c.Formula)
		t.WriteString(`</f>`)
	}
	switch {
	case kind == "inlineStr":
		t.WriteString(`<is><t`)
		if strings.TrimSpace(value) != value {
			t.WriteString(` xml:space="preserve"`)
		}
		t.WriteByte('>')
		escape(t, value)
		t.WriteString(`</t></is>`)
	case kind != "" || value != "":
		t.WriteString(`<v>`)
		escape(t, value)
		t.WriteString(`</v>`)
	}
	t.WriteString(`</c>`)
}

// float writes a number without exponent, with all its digits.
func float(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Merge joins cells, such as "B2:E2".
func (s *Sheet) Merge(ref string) { s.merges = append(s.merges, ref) }

// Filter puts buttons to filter a range by into its first row.
func (s *Sheet) Filter(ref string) {
	s.filter = ref
	from, to, _ := strings.Cut(ref, ":")
	s.b.defined = append(s.b.defined, definition{name: "_xlnm._FilterDatabase", ref: apostrophes(s.name()) + "!" + fixed(from) + ":" + fixed(to), sheet: s.b.begun - 1, hidden: true})
}

// fixed is a cell as a reference that does not move: "$B$7".
func fixed(cell string) string {
	i := strings.IndexAny(cell, "123456789")
	if i < 0 {
		return cell
	}
	return "$" + cell[:i] + "$" + cell[i:]
}

// Bars shows the figures of a range as bars behind them, from zero to the largest one.
func (s *Sheet) Bars(ref, color string) {
	s.barred++
	fmt.Fprintf(&s.bars, `<conditionalFormatting sqref="%s"><cfRule type="dataBar" priority="%d"><dataBar minLength="0" maxLength="100"><cfvo type="num" val="0"/><cfvo type="max"/><color rgb="FF%s"/></dataBar></cfRule></conditionalFormatting>`, ref, s.barred, color)
}

// Allow lets the cells of a range take numbers of an interval, or nothing. Others show a message.
func (s *Sheet) Allow(ref string, low, high float64, title, message string) {
	s.checked++
	s.allowed.WriteString(`<dataValidation type="decimal" operator="between" allowBlank="1" showErrorMessage="1" errorStyle="stop" errorTitle="`)
	escape(&s.allowed, title)
	s.allowed.WriteString(`" error="`)
	escape(&s.allowed, message)
	fmt.Fprintf(&s.allowed, `" sqref="%s"><formula1>%s</formula1><formula2>%s</formula2></dataValidation>`, ref, float(low), float(high))
}

// end writes what follows the rows, in the order of the schema.
func (s *Sheet) end() {
	if s.b.err != nil {
		return
	}
	s.begin()
	t := &s.line
	t.WriteString(`</sheetData>`)
	if s.filter != "" {
		t.WriteString(`<autoFilter ref="` + s.filter + `"/>`)
	}
	if len(s.merges) > 0 {
		fmt.Fprintf(t, `<mergeCells count="%d">`, len(s.merges))
		for _, m := range s.merges {
			t.WriteString(`<mergeCell ref="` + m + `"/>`)
		}
		t.WriteString(`</mergeCells>`)
	}
	_, _ = s.bars.WriteTo(t) // a buffer takes everything
	if s.checked > 0 {
		fmt.Fprintf(t, `<dataValidations count="%d">%s</dataValidations>`, s.checked, s.allowed.Bytes())
	}
	if s.Pages > 0 {
		fmt.Fprintf(t, `<pageSetup orientation="landscape" fitToWidth="%d" fitToHeight="0"/>`, s.Pages)
	}
	t.WriteString(`</worksheet>`)
	s.flush()
}

package workbook_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/base/workbook"
)

// sample is a workbook with what a sheet can have.
func sample(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := workbook.NewWriter(&b, "First", "Sparse what-if")
	w.Define("total", "First!$A$3")
	s := w.Sheet()
	s.Pages = 2
	s.Width(0, 20)
	s.Hide(2)
	s.Freeze(1, 2)
	s.Titles("$A:$B", "$1:$1")
	bold := workbook.Style{Bold: true, Fill: "3B5B7A", Format: "0.00"}
	s.Row(1, 22, []workbook.Cell{{Value: "name", Style: bold}, {Value: "<&\"\x00_x000D_ "}, {}, {Style: bold}})
	s.Row(3, 0, []workbook.Cell{
		{Value: 3, Style: bold},
		{Value: int64(-4)},
		{Value: uint64(math.MaxUint64)},
		{Value: 1.25e-7},
		{Value: true},
		{Value: math.NaN()},
		{Value: 7.0, Formula: `SUM(A3,4)&""`},
		{Value: "text", Formula: `"text"`},
		{Value: strings.Repeat("a", 40_000)},
	})
	s.Merge("A4:B4")
	s.Filter("A1:B3")
	s.Bars("A2:A3", "9CC3E6")
	s.Allow("B3:B4", 0, 1, "Not a figure", "a number")
	w.Sheet()
	if err := w.Close(workbook.About{Creator: "opmeter", Title: "A & B", Created: "2026-11-29T08:00:00Z"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Another program reads what was written, and the same calls give the same bytes.
func TestWriter(t *testing.T) {
	t.Parallel()
	data := sample(t)
	if !bytes.Equal(data, sample(t)) {
		t.Error("two workbooks of the same calls differ")
	}
	f, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for cell, want := range map[string]string{"A1": "name", "B1": "<&\"\ufffd_x000D_ ", "D1": "", "A3": "3", "B3": "-4", "C3": "18446744073709551615", "D3": "0.000000125", "E3": "1", "F3": "", "G3": "7", "H3": "text"} {
		if got, err := f.GetCellValue("First", cell, excelize.Options{RawCellValue: true}); err != nil || got != want {
			t.Errorf("%s: %q, want %q (%v)", cell, got, want, err)
		}
	}
	if got, _ := f.GetCellValue("First", "I3"); len(got) != workbook.MaxText {
		t.Errorf("a long text has %d characters", len(got))
	}
	if got, _ := f.GetCellFormula("First", "G3"); got != `SUM(A3,4)&""` {
		t.Errorf("formula %q", got)
	}
	if p, err := f.GetPanes("First"); err != nil || !p.Freeze || p.XSplit != 2 || p.YSplit != 1 {
		t.Errorf("panes %+v, %v", p, err)
	}
	if v, err := f.GetColVisible("First", "C"); err != nil || v {
		t.Errorf("column C is shown: %v", err)
	}
	if v, err := f.GetDataValidations("First"); err != nil || len(v) != 1 || v[0].Sqref != "B3:B4" {
		t.Errorf("limits %v, %v", v, err)
	}
	if v, err := f.GetConditionalFormats("First"); err != nil || len(v["A2:A3"]) != 1 {
		t.Errorf("bars %v, %v", v, err)
	}
	if p, err := f.GetDocProps(); err != nil || p.Title != "A & B" || p.Creator != "opmeter" || p.Created != "2026-11-29T08:00:00Z" {
		t.Errorf("properties %+v, %v", p, err)
	}
	var names []string
	for _, n := range f.GetDefinedName() {
		names = append(names, n.Name+"="+n.RefersTo)
	}
	if want := []string{"total=First!$A$3", "_xlnm.Print_Titles=First!$A:$B,First!$1:$1", "_xlnm._FilterDatabase='First'!$A$1:$B$3"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	if got := f.GetSheetList(); !slices.Equal(got, []string{"First", "Sparse what-if"}) {
		t.Errorf("sheets %q", got)
	}
}

// A bar of the shortest time is nothing, not the tenth of a cell that programs show by default.
func TestBarsBeginAtZero(t *testing.T) {
	t.Parallel()
	data := sample(t)
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if z.File[0].Name != "[Content_Types].xml" {
		t.Errorf("the archive begins with %s", z.File[0].Name)
	}
	f, err := z.Open("xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	var sheet bytes.Buffer
	if _, err := sheet.ReadFrom(f); err != nil || !strings.Contains(sheet.String(), `<dataBar minLength="0" maxLength="100">`) {
		t.Errorf("no full bars: %v", err)
	}
}

// Misuse is an error of Close.
func TestWriterErrors(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*workbook.Writer){
		"fewer sheets":    func(*workbook.Writer) {},
		"more sheets":     func(w *workbook.Writer) { w.Sheet(); w.Sheet() },
		"holds a []int":   func(w *workbook.Writer) { w.Sheet().Row(1, 0, []workbook.Cell{{Value: []int{1}}}) },
		"row 1 of 0":      func(w *workbook.Writer) { s := w.Sheet(); s.Row(1, 0, nil); s.Row(1, 0, nil) },
		"row 1048577 of":  func(w *workbook.Writer) { w.Sheet().Row(workbook.MaxRows+1, 0, nil) },
		"no room on disk": func(w *workbook.Writer) { w.Sheet() },
	} {
		out := &failing{after: 1 << 30}
		if name == "no room on disk" {
			out.after = 0
		}
		w := workbook.NewWriter(out, "one")
		use(w)
		if err := w.Close(workbook.About{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("no room on disk")
	}
	return len(p), nil
}

// rows reads a sheet, with | between cells.
func rows(t *testing.T, data []byte, sheet string) (out []string, err error) {
	t.Helper()
	r, err := workbook.NewReader(data, 1<<24)
	if err != nil {
		return nil, err
	}
	for fields, err := range r.Rows(sheet) {
		if err != nil {
			return out, err
		}
		out = append(out, strings.Join(fields, "|"))
	}
	return out, nil
}

// The reader returns what this and another writer wrote, with shared and rich texts.
func TestReader(t *testing.T) {
	t.Parallel()
	got, err := rows(t, sample(t), "First")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"name|<&\"\ufffd_x000D_ ||", "", "3|-4|18446744073709551615|0.000000125|1||7|text|" + strings.Repeat("a", workbook.MaxText)}; !slices.Equal(got, want) {
		t.Errorf("%.200q, want %.200q", got, want)
	}
	f := excelize.NewFile()
	for cell, v := range map[string]any{"A1": "one", "C1": 2.5, "A4": true, "AB4": "one"} {
		if err := f.SetCellValue("Sheet1", cell, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetCellRichText("Sheet1", "B1", []excelize.RichTextRun{{Text: "a "}, {Text: "b", Font: &excelize.Font{Bold: true}}}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	if got, err = rows(t, b.Bytes(), "Sheet1"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"one|a b|2.5", "", "", "1" + strings.Repeat("|", 27) + "one"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// packed is a workbook of one sheet with this content.
func packed(sheet string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{"xl/workbook.xml", `<workbook><sheets><x:sheet name="s" r:id="rId1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="rId1" Target="/xl/worksheets/sheet1.xml"/></Relationships>`},
		{"xl/sharedStrings.xml", `<sst><si><t>a_x0041_</t><rPh><t>no</t></rPh></si></sst>`},
		{"xl/worksheets/sheet1.xml", sheet},
	} {
		w, err := z.Create(f[0])
		if err == nil {
			_, err = w.Write([]byte(f[1]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Files that do not keep the rules give an error that names the place, or what can be read of them.
func TestReaderErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sheet, rows, err string }{
		{`<worksheet><sheetData><row><c t="s"><v>0</v></c><c/><c><v>5</v></c></row><row r="3"/></sheetData></worksheet>`, "[aA||5  ]", ""},
		{`<worksheet><row r="2"/><row r="2"/></worksheet>`, "", `row "2" after row 2`},
		{`<worksheet><row r="2000000"/></worksheet>`, "", `row "2000000"`},
		{`<worksheet><row><c r="B1"/><c r="A1"/></row></worksheet>`, "", `cell "A1" after column B`},
		{`<worksheet><row><c r="XFE1"/></row></worksheet>`, "", `cell "XFE1"`},
		{`<worksheet><c/></worksheet>`, "", "outside of rows"},
		{`<worksheet><row><c t="s"><v>1</v></c></row></worksheet>`, "", `text "1" of 1 shared`},
		{`<worksheet><row><c>`, "", "EOF"},
		{strings.Repeat("<a>", 100), "", "nested"},
		{`<row><c>` + strings.Repeat("<a>", 100), "", "nested"},
		{`<worksheet>&lol;</worksheet>`, "", "entity"},
	} {
		got, err := rows(t, packed(c.sheet), "s")
		if c.err == "" && (err != nil || fmt.Sprint(got) != c.rows) {
			t.Errorf("%s: %q, want %s (%v)", c.sheet, got, c.rows, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%.60s: %v, want %q", c.sheet, err, c.err)
		}
	}
	for name, data := range map[string][]byte{"not a workbook": []byte("PK\x03\x04"), "too many bytes": packed(strings.Repeat(" ", 1<<25))} {
		if _, err := rows(t, data, "s"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(`<worksheet><sheetData><row><c t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>x</t></is></c></row></sheetData></worksheet>`)
	f.Fuzz(func(t *testing.T, sheet string) {
		r, err := workbook.NewReader(packed(sheet), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for fields, err := range r.Rows("s") {
			if err != nil || len(fields) > workbook.MaxColumns {
				return
			}
		}
	})
}

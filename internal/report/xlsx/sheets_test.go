package xlsx

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/internal/report/whatif"
	"github.com/opmeter/opmeter/profile"
)

// written opens the workbook of a profile.
func written(t *testing.T, p *profile.Profile, cols []Column, sparse *whatif.Table) *excelize.File {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, p, cols, sparse); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// shown are the cells of a sheet as they are stored, a formula as "=formula": cells
// joined by "|", empty ones at the end left out.
func shown(t *testing.T, f *excelize.File, sheet string) []string {
	t.Helper()
	rows, err := f.GetRows(sheet, excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, r := range rows {
		for j := range r {
			if x := formulaAt(t, f, sheet, at(j, i+1)); x != "" {
				r[j] = "=" + x
			}
		}
		out = append(out, strings.TrimRight(strings.Join(r, "|"), "|"))
	}
	return out
}

func formulaAt(t *testing.T, f *excelize.File, sheet, cell string) string {
	t.Helper()
	x, err := f.GetCellFormula(sheet, cell)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func stored(t *testing.T, f *excelize.File, sheet, cell string) string {
	t.Helper()
	v, err := f.GetCellValue(sheet, cell, excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// computed asks of every cell with a formula that the value beside it is what the
// formula makes, and returns how many there are.
func computed(t *testing.T, f *excelize.File) int {
	t.Helper()
	n := 0
	for _, sheet := range f.GetSheetList() {
		for i, line := range shown(t, f, sheet) {
			for j, c := range strings.Split(line, "|") {
				if !strings.HasPrefix(c, "=") {
					continue
				}
				n++
				cell := at(j, i+1)
				got, err := f.CalcCellValue(sheet, cell, excelize.Options{RawCellValue: true})
				if err != nil {
					t.Errorf("%s!%s: %s: %v", sheet, cell, c, err)
					continue
				}
				want := stored(t, f, sheet, cell)
				a, errA := strconv.ParseFloat(got, 64)
				b, errB := strconv.ParseFloat(want, 64)
				if (errA != nil || errB != nil) && got != want || errA == nil && errB == nil && !(math.Abs(a-b) <= 1e-9*math.Abs(b)) {
					t.Errorf("%s!%s: %s makes %q, beside it stands %q", sheet, cell, c, got, want)
				}
			}
		}
	}
	return n
}

// looks is the style of a cell.
func looks(t *testing.T, f *excelize.File, sheet, cell string) *excelize.Style {
	t.Helper()
	id, err := f.GetCellStyle(sheet, cell)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.GetStyle(id)
	if err != nil {
		t.Fatal(err)
	}
	if s.Font == nil {
		s.Font = &excelize.Font{}
	}
	if s.Alignment == nil {
		s.Alignment = &excelize.Alignment{}
	}
	return s
}

func formatAt(t *testing.T, f *excelize.File, sheet, cell string) string {
	t.Helper()
	s := looks(t, f, sheet, cell)
	if s.CustomNumFmt != nil {
		return *s.CustomNumFmt
	}
	return map[int]string{0: "", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%"}[s.NumFmt]
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "(nothing)", "(nothing)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("%s, row %d: %s\nwant %s", what, i+1, g, w)
		}
	}
}

// four are layers of three operators: the last has work and no time, so that it is not a
// part of a rate.
func four() []Column {
	return []Column{
		col("index", []string{"0", "1", "2", "3"}),
		col("op", []string{"Conv", "Add", "Conv", "Relu"}),
		col("latency_s", []string{"0.125", "0.5", "0.375", ""}),
		col("share", []string{"", "", "", ""}),
		col("ops", []string{"2000", "100", "6000", "50"}),
		col("ops_per_s", []string{"16000", "200", "16000", ""}),
		col("bytes_read", []string{"400", "60", "100", "8"}),
		col("bytes_written", []string{"100", "", "28", "8"}),
		col("bytes_per_s", []string{"4000", "", "341", ""}),
		col("note", []string{"", "", "", "lost"}),
	}
}

// TestLayersSheet has every cell of layers and of sums by operator: what follows from
// other cells is a formula.
func TestLayersSheet(t *testing.T) {
	t.Parallel()
	f := written(t, &profile.Profile{}, four(), &whatif.Table{})
	equal(t, "Layers", shown(t, f, "Layers"), []string{
		"index|op|latency_s|share|cumulative|ops|ops_per_s|bytes_read|bytes_written|bytes_per_s|note|op_no",
		"0|Conv|0.125|=C2/layer_time_s|=SUM(E1,D2)|2000|=F2/C2|400|100|=(H2+I2)/C2||1",
		"1|Add|0.5|=C3/layer_time_s|=SUM(E2,D3)|100|=F3/C3|60||||2",
		"2|Conv|0.375|=C4/layer_time_s|=SUM(E3,D4)|6000|=F4/C4|100|28|=(H4+I4)/C4||1",
		"3|Relu|||=SUM(E4,D5)|50||8|8||lost|3",
	})
	equal(t, "By operator", shown(t, f, "By operator"), []string{
		"op_no|op|layers|latency_s|share|cumulative|ops|bytes_read|bytes_written|ops_per_s",
		"1|Conv|=COUNTIFS(Layers!$L$2:$L$5,A2)|=SUMIFS(Layers!$C$2:$C$5,Layers!$L$2:$L$5,A2)|=D2/layer_time_s|=SUM(F1,E2)|=SUMIFS(Layers!$F$2:$F$5,Layers!$L$2:$L$5,A2)|=SUMIFS(Layers!$H$2:$H$5,Layers!$L$2:$L$5,A2)|=SUMIFS(Layers!$I$2:$I$5,Layers!$L$2:$L$5,A2)|=G2/D2",
		"2|Add|=COUNTIFS(Layers!$L$2:$L$5,A3)|=SUMIFS(Layers!$C$2:$C$5,Layers!$L$2:$L$5,A3)|=D3/layer_time_s|=SUM(F2,E3)|=SUMIFS(Layers!$F$2:$F$5,Layers!$L$2:$L$5,A3)|=SUMIFS(Layers!$H$2:$H$5,Layers!$L$2:$L$5,A3)||=G3/D3",
		"3|Relu|=COUNTIFS(Layers!$L$2:$L$5,A4)|||=SUM(F3,E4)|=SUMIFS(Layers!$F$2:$F$5,Layers!$L$2:$L$5,A4)|=SUMIFS(Layers!$H$2:$H$5,Layers!$L$2:$L$5,A4)|=SUMIFS(Layers!$I$2:$I$5,Layers!$L$2:$L$5,A4)",
		"|all|=SUM(C2:C4)|=SUM(D2:D4)|||=SUM(G2:G4)|=SUM(H2:H4)|=SUM(I2:I4)",
	})
	// Values beside the formulas, by hand.
	for cell, want := range map[string]string{"D2": "0.125", "D3": "0.5", "D4": "0.375", "E2": "0.125", "E3": "0.625", "E4": "1", "E5": "1", "G2": "16000", "G3": "200", "J2": "4000", "J4": "341.3333333333333"} {
		if got := stored(t, f, "Layers", cell); got != want {
			t.Errorf("Layers!%s: %s, want %s", cell, got, want)
		}
	}
	for cell, want := range map[string]string{
		"C2": "2", "C3": "1", "C5": "4", "D2": "0.5", "D3": "0.5", "D5": "1", "E2": "0.5", "F2": "0.5", "F3": "1", "F4": "1",
		"G2": "8000", "G5": "8150", "H2": "500", "H5": "568", "I2": "128", "I5": "136", "J2": "16000", "J3": "200",
	} {
		if got := stored(t, f, "By operator", cell); got != want {
			t.Errorf("By operator!%s: %s, want %s", cell, got, want)
		}
	}
	// 12 of layers, 20 of operators, 5 of all of them, 2 of the summary.
	if n := computed(t, f); n != 39 {
		t.Errorf("%d formulas, want 39", n)
	}
	// Formats by unit.
	for cell, want := range map[string]string{"C2": "0.00000", "D2": "0.0%", "E2": "0.0%", "F2": "#,##0", "G2": "#,##0", "H2": "#,##0", "J2": "#,##0", "L2": "0"} {
		if got := formatAt(t, f, "Layers", cell); got != want {
			t.Errorf("Layers!%s is shown as %q, want %q", cell, got, want)
		}
	}
	for cell, want := range map[string]string{"A2": "0", "C2": "#,##0", "D2": "0.00000", "E2": "0.0%", "F2": "0.0%", "G2": "#,##0", "J2": "#,##0", "D5": "0.00000"} {
		if got := formatAt(t, f, "By operator", cell); got != want {
			t.Errorf("By operator!%s is shown as %q, want %q", cell, got, want)
		}
	}
}

// TestPartlyTimed sets no formula where a rate is of some of an operator's layers only.
func TestPartlyTimed(t *testing.T) {
	t.Parallel()
	f := written(t, &profile.Profile{}, []Column{
		col("op", []string{"A", "A", "B", "B", "C"}),
		col("latency_s", []string{"0.5", "", "0.25", "0.25", "1"}),
		col("ops", []string{"100", "900", "30", "", "0"}),
	}, &whatif.Table{})
	// Without a column "share" nothing adds up, but by operator there is.
	equal(t, "By operator", shown(t, f, "By operator")[:4], []string{
		"op_no|op|layers|latency_s|share|cumulative|ops|ops_per_s",
		"3|C|=COUNTIFS(Layers!$D$2:$D$6,A2)|=SUMIFS(Layers!$B$2:$B$6,Layers!$D$2:$D$6,A2)|=D2/layer_time_s|=SUM(F1,E2)|=SUMIFS(Layers!$C$2:$C$6,Layers!$D$2:$D$6,A2)",
		"1|A|=COUNTIFS(Layers!$D$2:$D$6,A3)|=SUMIFS(Layers!$B$2:$B$6,Layers!$D$2:$D$6,A3)|=D3/layer_time_s|=SUM(F2,E3)|=SUMIFS(Layers!$C$2:$C$6,Layers!$D$2:$D$6,A3)|200",
		"2|B|=COUNTIFS(Layers!$D$2:$D$6,A4)|=SUMIFS(Layers!$B$2:$B$6,Layers!$D$2:$D$6,A4)|=D4/layer_time_s|=SUM(F3,E4)|=SUMIFS(Layers!$C$2:$C$6,Layers!$D$2:$D$6,A4)|120",
	})
	computed(t, f)
}

// TestNoTimes leaves out times, shares and rates where no layer has a time, or all have
// one of zero.
func TestNoTimes(t *testing.T) {
	t.Parallel()
	for _, time := range []string{"", "0"} {
		f := written(t, &profile.Profile{}, []Column{col("op", []string{"A", "B"}), col("latency_s", []string{time, time}), col("share", []string{"", ""}), col("ops", []string{"1", "2"})}, &whatif.Table{})
		equal(t, "By operator", shown(t, f, "By operator"), []string{
			"op_no|op|layers|ops",
			"1|A|=COUNTIFS(Layers!$F$2:$F$3,A2)|=SUMIFS(Layers!$E$2:$E$3,Layers!$F$2:$F$3,A2)",
			"2|B|=COUNTIFS(Layers!$F$2:$F$3,A3)|=SUMIFS(Layers!$E$2:$E$3,Layers!$F$2:$F$3,A3)",
			"|all|=SUM(C2:C3)|=SUM(D2:D3)",
		})
		// Nothing is known about shares.
		for _, column := range []string{"C", "D"} {
			if v, err := f.GetColVisible("Layers", column); err != nil || v {
				t.Errorf("time %q: column %s is shown (%v)", time, column, err)
			}
		}
		computed(t, f)
	}
	// Without layers there are headings and no more.
	f := written(t, &profile.Profile{}, []Column{col("op", nil), col("latency_s", nil)}, &whatif.Table{})
	equal(t, "By operator", shown(t, f, "By operator"), []string{"op_no|op|layers"})
	equal(t, "Layers", shown(t, f, "Layers"), []string{"op|latency_s|op_no"})
}

// TestLayout has what helps the reader: widths by content, heads that stay, filters,
// bars behind times, what is text at the left and what is a number at the right.
func TestLayout(t *testing.T) {
	t.Parallel()
	cols := []Column{
		col("op", []string{"Conv", strings.Repeat("o", 30)}),
		col("latency_s", []string{"0.125", "0.5"}),
		col("name", []string{"ä", strings.Repeat("n", 90)}),
		col("note", []string{strings.Repeat("e", 90), ""}),
		col("options", []string{strings.Repeat("p", 70), ""}),
		col("macs", []string{"", ""}),
		col("bytes_written", []string{"1", "2"}),
		col("k", []string{"ääääää", ""}),
	}
	f := written(t, &profile.Profile{}, cols, &whatif.Table{})
	// Four characters more than the longest text, up to 40, notes up to 60; numbers 12.
	for column, want := range map[string]float64{"A": 34, "B": 13, "C": 40, "D": 60, "E": 60, "F": 12, "G": 17, "H": 10, "I": 12} {
		if w, err := f.GetColWidth("Layers", column); err != nil || w != want {
			t.Errorf("column %s is %v wide, want %v (%v)", column, w, want, err)
		}
	}
	for column, want := range map[string]bool{"A": true, "D": true, "F": false, "I": true} {
		if v, err := f.GetColVisible("Layers", column); err != nil || v != want {
			t.Errorf("column %s is shown: %v, want %v (%v)", column, v, want, err)
		}
	}
	// 246 characters, of which the 12 of a hidden column do not count, are two pages of 150.
	if l, err := f.GetPageLayout("Layers"); err != nil || *l.FitToWidth != 2 || *l.Orientation != "landscape" || *l.FitToHeight != 0 {
		t.Errorf("print: %+v, %v", l, err)
	}
	if l, err := f.GetPageLayout("Summary"); err != nil || *l.FitToWidth != 1 {
		t.Errorf("print: %+v, %v", l, err)
	}
	// By operator: names up to 40 with 4 more, heads with 4 more and 14 at least.
	for column, want := range map[string]float64{"A": 9, "B": 34, "C": 14, "D": 14, "G": 17} {
		if w, err := f.GetColWidth("By operator", column); err != nil || w != want {
			t.Errorf("by operator: column %s is %v wide, want %v (%v)", column, w, want, err)
		}
	}
	for sheet, want := range map[string][3]any{"Layers": {1, 1, "B2"}, "By operator": {2, 1, "C2"}, "Columns": {0, 1, "A2"}, "Sparse what-if": {0, 7, "A8"}} {
		p, err := f.GetPanes(sheet)
		if err != nil {
			t.Fatal(err)
		}
		pane := "bottomRight"
		if want[0] == 0 {
			pane = "bottomLeft"
		}
		if !p.Freeze || p.XSplit != want[0] || p.YSplit != want[1] || p.TopLeftCell != want[2] || p.ActivePane != pane {
			t.Errorf("%s: %+v, want %v", sheet, p, want)
		}
	}
	for sheet, want := range map[string][]string{"Layers": {"B2:B3"}, "By operator": {"D2:D3"}, "Summary": nil, "Columns": nil} {
		bars, err := f.GetConditionalFormats(sheet)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for ref, x := range bars {
			got = append(got, ref)
			if len(x) != 1 || x[0].Type != "data_bar" || x[0].MinType != "num" || x[0].MinValue != "0" || x[0].MaxType != "max" {
				t.Errorf("%s: bars %+v", sheet, x)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: bars behind %v, want %v", sheet, got, want)
		}
	}
	filters := map[string]string{}
	for _, n := range f.GetDefinedName() {
		if n.Name == "_xlnm._FilterDatabase" {
			filters[n.Scope] = n.RefersTo
		}
	}
	for sheet, want := range map[string]string{"Layers": "'Layers'!$A$1:$I$3", "By operator": "'By operator'!$A$1:$G$3"} {
		if filters[sheet] != want {
			t.Errorf("%s: filter of %q, want %q", sheet, filters[sheet], want)
		}
	}
	// Heads are white on blue, those of numbers at the right, texts a little in.
	for cell, right := range map[string]bool{"A1": false, "B1": true, "C1": false, "G1": true, "I1": true} {
		s := looks(t, f, "Layers", cell)
		if got := s.Alignment.Horizontal; got != map[bool]string{true: "right", false: "left"}[right] || !s.Font.Bold || s.Font.Color != "FFFFFF" || len(s.Fill.Color) != 1 {
			t.Errorf("head %s: %+v, %+v", cell, s.Alignment, s.Font)
		}
	}
	for cell, right := range map[string]bool{"A1": true, "B1": false, "C1": true} {
		if s := looks(t, f, "By operator", cell); (s.Alignment.Horizontal == "right") != right || (s.Alignment.Indent == 1) == right {
			t.Errorf("by operator, head %s: %+v", cell, s.Alignment)
		}
	}
	if s := looks(t, f, "Layers", "A2"); s.Alignment.Horizontal != "left" || s.Alignment.Indent != 1 || s.Font.Bold {
		t.Errorf("a name: %+v, %+v", s.Alignment, s.Font)
	}
	if s := looks(t, f, "By operator", "C4"); !s.Font.Bold {
		t.Error("the sum of all is not bold")
	}
	if h, err := f.GetRowHeight("Layers", 1); err != nil || h != 22 {
		t.Errorf("the head is %v high (%v)", h, err)
	}
}

// TestFormats has the number formats of units.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit  string
		whole bool
		want  string
	}{
		{"1", false, "0.0%"},
		{"1", true, "0.0%"},
		{"", true, "#,##0"},
		{"B", false, "#,##0"},
		{"cycles", false, "#,##0"},
		{"ops/s", false, "#,##0"},
		{"", false, "0.###"},
		{"J", false, "0.000E+00"},
		{"W", false, "0.000E+00"},
		{"K", false, "#,##0.000"},
	} {
		if got := numberFormat(c.unit, c.whole); got != c.want {
			t.Errorf("%q, whole %v: %q, want %q", c.unit, c.whole, got, c.want)
		}
	}
	tab, err := newTable([]Column{
		col("op", []string{"A"}), col("latency_s", []string{"0.002"}),
		{Key: "latency_min_s", Cells: []string{"1"}},
		{Key: "latency_n", Cells: []string{"1"}},
		col("energy_j", []string{"1"}), col("against_expected", []string{"1"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	// Two thousandths of a second show five digits: 0.0020000.
	for key, want := range map[string]string{"latency_s": "0.0000000", "latency_min_s": "0.0000000", "latency_n": "#,##0", "energy_j": "0.000E+00", "against_expected": "0.00", "op_no": "0"} {
		if got := tab.get(key).format; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	for _, c := range []struct {
		text  string
		width int
		want  int
	}{{"", 3, 1}, {"abc", 3, 1}, {"abcd", 3, 2}, {"äöü", 3, 1}, {"abcdefg", 3, 3}} {
		if got := lines(c.text, c.width); got != c.want {
			t.Errorf("%q takes %d lines of %d, want %d", c.text, got, c.width, c.want)
		}
	}
	for _, c := range []struct {
		col, row int
		want     string
	}{{0, 1, "A1"}, {25, 7, "Z7"}, {26, 10, "AA10"}} {
		if got := at(c.col, c.row); got != c.want {
			t.Errorf("%d, %d: %s, want %s", c.col, c.row, got, c.want)
		}
	}
}

// TestCells writes no figure that is none, and no character that a sheet cannot have.
func TestCells(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &book{workbook.NewWriter(&out, "one", "two")}
	s := b.sheet()
	nan, inf, two := math.NaN(), math.Inf(-1), 2.0
	s.add(0, number(&nan, ""), number(&inf, ""), number(&two, ""), number(nil, ""), label("a\x00b", style{}), cell{v: true})
	s.add(33, cell{}, formula("1+1", 2.0, "0.0"))
	s.merge(1, 3)
	b.sheet()
	if err := b.Close(workbook.About{}); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.GetSheetList(), []string{"one", "two"}) {
		t.Errorf("sheets %q", f.GetSheetList())
	}
	for cell, want := range map[string]string{"A1": "", "B1": "", "C1": "2", "D1": "", "F1": "1", "B2": "2"} {
		if got := stored(t, f, "one", cell); got != want && !(cell == "F1" && strings.EqualFold(got, "true")) {
			t.Errorf("%s: %q, want %q", cell, got, want)
		}
	}
	if got := stored(t, f, "one", "E1"); strings.Contains(got, "\x00") || !strings.HasPrefix(got, "a") || !strings.HasSuffix(got, "b") {
		t.Errorf("E1: %q", got)
	}
	if h, err := f.GetRowHeight("one", 2); err != nil || h != 33 {
		t.Errorf("row 2 is %v high (%v)", h, err)
	}
	if m, err := f.GetMergeCells("one"); err != nil || len(m) != 1 || m[0].GetStartAxis() != "B2" || m[0].GetEndAxis() != "D2" {
		t.Errorf("merged %v, %v", m, err)
	}
}

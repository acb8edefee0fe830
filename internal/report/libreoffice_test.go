package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/report/whatif"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/update"
	"github.com/opmeter/opmeter/profile"
)

// product makes a layer that can be sparse.
func product(op string, seconds, blocks float64, shape ...int64) profile.Layer {
	w := tensorOf("weights", shape...)
	w.Constant = true
	l := profile.Layer{
		Op: op, Name: "fc/" + op, State: profile.Ran, Options: options("activation:relu"), Latency: measured(seconds), Ops: new(int64(1000)), MACs: new(int64(500)),
		Inputs: []profile.Tensor{tensorOf("x", 1, shape[1]), w, tensorOf("scalar")}, Outputs: []profile.Tensor{tensorOf("a;b", 1, shape[0])},
	}
	if blocks >= 0 {
		l.Sparsity = &profile.Sparsity{Weights: new(0.9), Blocks: map[string]float64{"1x16": blocks, "4x1": 0.25, "rows": 0}}
	}
	return l
}

// sparseProfile is fixed with layers that can be sparse: one shape twice, one that
// is sparse already, one of which nothing is known.
func sparseProfile() *profile.Profile {
	p := withHostileNames()
	p.Totals.Energy = profile.Value(profile.Estimated, 3e-5, "test")
	p.Totals.CPUCycles = profile.Value(profile.Counted, 100000, "")
	p.Target.ClockHz = new(1e9)
	for _, l := range []profile.Layer{
		product("FULLY_CONNECTED", 2e-4, 0.1, 256, 1024), product("MatMul", 3.3e-4, -1, 256, 1024), product("Gemm", 7e-6, 0.75, 64, 8),
		product("InnerProduct", 1e-7, 0, 8, 64), product("Gemm", 1e-4, 0, 6, 8), product("Conv", 1e-3, 0, 8, 8),
	} {
		l.Index = int64(len(p.Layers))
		p.Layers = append(p.Layers, l)
	}
	p.Layers = append(p.Layers, profile.Layer{Index: int64(len(p.Layers)), Op: "Add", State: profile.Fused, FusedInto: new(int64(len(p.Layers) - 1))})
	return p
}

// workbooks are profiles for the tests of workbooks: full, without anything that
// can be sparse, without times, without layers.
func workbooks() map[string]*profile.Profile {
	untimed := sparseProfile()
	for i := range untimed.Layers {
		untimed.Layers[i].Latency, untimed.Layers[i].Share = nil, nil
	}
	untimed.Totals.Latency = nil
	zero := fixed()
	for i := range zero.Layers {
		if zero.Layers[i].Latency != nil {
			zero.Layers[i].Latency = profile.Value(profile.Measured, 0, "")
		}
	}
	none := fixed()
	none.Layers = []profile.Layer{}
	return map[string]*profile.Profile{"sparse": sparseProfile(), "dense": fixed(), "untimed": untimed, "zero": zero, "none": none}
}

// soffice converts files with LibreOffice, which computes all formulas anew.
func soffice(t *testing.T, to, out string, more []string, files ...string) {
	t.Helper()
	if _, err := exec.LookPath("soffice"); err != nil {
		material.Skip(t, "soffice is missing: install LibreOffice (libreoffice-calc)")
	}
	// A user profile of its own, so that tests do not meet, that computes on load.
	home := t.TempDir()
	config := `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>`
	if err := os.MkdirAll(filepath.Join(home, "user"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "user", "registrymodifications.xcu"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	args := append([]string{"-env:UserInstallation=file://" + home, "--headless"}, more...)
	args = append(append(args, "--convert-to", to, "--outdir", out), files...)
	c := exec.CommandContext(ctx, "soffice", args...)
	b, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("soffice: %v\n%s", err, b)
	}
}

func open(t *testing.T, path string) *excelize.File {
	t.Helper()
	f, err := excelize.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// raw is the value of a cell as it is stored.
func raw(t *testing.T, f *excelize.File, sheet, cell string) string {
	t.Helper()
	s, err := f.GetCellValue(sheet, cell, excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// same compares two stored values, numbers by size.
func same(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil {
		return a == b || strings.EqualFold(a, "true") && b == "1" || a == "1" && strings.EqualFold(b, "true")
	}
	return math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y))
}

// cells calls do for every cell of a workbook that has a value or formula.
func cells(t *testing.T, f *excelize.File, do func(sheet, cell, formula string)) {
	t.Helper()
	for _, sheet := range f.GetSheetList() {
		rows, err := f.GetRows(sheet, excelize.Options{RawCellValue: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rows {
			for j := range r {
				cell, err := excelize.CoordinatesToCellName(j+1, i+1)
				if err != nil {
					t.Fatal(err)
				}
				formula, err := f.GetCellFormula(sheet, cell)
				if err != nil {
					t.Fatal(err)
				}
				do(sheet, cell, formula)
			}
		}
	}
}

// find returns the cell to the right of the one with the text.
func find(t *testing.T, f *excelize.File, sheet, text string) string {
	t.Helper()
	at, err := f.SearchSheet(sheet, text)
	if err != nil || len(at) == 0 {
		t.Fatalf("%s has no cell %q: %v", sheet, text, err)
	}
	c, r, err := excelize.CellNameToCoordinates(at[0])
	if err != nil {
		t.Fatal(err)
	}
	cell, err := excelize.CoordinatesToCellName(c+1, r)
	if err != nil {
		t.Fatal(err)
	}
	return cell
}

const sparseSheet = "Sparse what-if"

// TestRecalculated has LibreOffice compute every formula anew and compares with
// the values that were written; then it edits ratios and targets and compares
// what LibreOffice makes of them with what this program computes.
func TestRecalculated(t *testing.T) {
	t.Parallel()
	in, out := t.TempDir(), t.TempDir()
	var files []string
	for name, p := range workbooks() {
		path := filepath.Join(in, name+".xlsx")
		if err := File(path, p, Options{}); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	// The edits: two ratios of the last shape, targets of 80 %, 70 %, another, none.
	p := sparseProfile()
	edited := open(t, filepath.Join(in, "sparse.xlsx"))
	want := whatif.Plain(p)
	shapes, err := edited.SearchSheet(sparseSheet, "weight shape")
	if err != nil {
		t.Fatal(err)
	}
	_, top, err := excelize.CellNameToCoordinates(shapes[0])
	if err != nil {
		t.Fatal(err)
	}
	set := func(cell string, v any) {
		t.Helper()
		if err := edited.SetCellValue(sparseSheet, cell, v); err != nil {
			t.Fatal(err)
		}
	}
	last := len(want.Shapes) - 1
	for i, v := range [4]float64{5, 3.5, 3, 1.25} {
		want.Shapes[last].Ratios[i] = v
		set(fmt.Sprintf("%c%d", 'B'+i, top+1+last), v)
	}
	targets := []any{0.8, 0.7, 0.55, nil}
	row, k := top+len(want.Shapes)+3, 0
	for i := range want.Rows {
		r := &want.Rows[i]
		if !r.Capable() {
			continue
		}
		r.Target = nil
		if v, ok := targets[k%4].(float64); ok {
			r.Target = &v
		}
		set(fmt.Sprintf("N%d", row+i), targets[k%4])
		k++
	}
	if k != 4 {
		t.Fatalf("%d operators can be sparse, want 4", k)
	}
	if err := edited.SaveAs(filepath.Join(in, "edited.xlsx")); err != nil {
		t.Fatal(err)
	}
	soffice(t, "xlsx", out, nil, append(files, filepath.Join(in, "edited.xlsx"))...)

	formulas := 0
	for name := range workbooks() {
		a, b := open(t, filepath.Join(in, name+".xlsx")), open(t, filepath.Join(out, name+".xlsx"))
		cells(t, a, func(sheet, cell, formula string) {
			if formula != "" {
				formulas++
			}
			if x, y := raw(t, a, sheet, cell), raw(t, b, sheet, cell); !same(x, y) {
				t.Errorf("%s: %s!%s =%s: written %.100q, LibreOffice has %.100q", name, sheet, cell, formula, x, y)
			}
		})
	}
	if formulas < 200 {
		t.Errorf("only %d formulas were compared", formulas)
	}
	got := open(t, filepath.Join(out, "edited.xlsx"))
	s := want.Totals()
	check := func(cell string, v float64) {
		t.Helper()
		if x := raw(t, got, sparseSheet, cell); !same(x, strconv.FormatFloat(v, 'g', -1, 64)) {
			t.Errorf("edited: %s is %s, want %g", cell, x, v)
		}
	}
	for i := range want.Rows {
		r := &want.Rows[i]
		if v, ok := want.Ratio(r); ok {
			check(fmt.Sprintf("O%d", row+i), v)
		}
		if v := want.Aim(r); v != nil {
			check(fmt.Sprintf("P%d", row+i), 1e3**v)
		}
	}
	for label, v := range totals(s) {
		check(find(t, got, sparseSheet, label), v)
	}
	if before := whatif.Plain(p).Totals(); *before.Improve == *s.Improve {
		t.Error("the edits change nothing")
	}
}

// totals are the figures below both kinds of table, by their names.
func totals(s *whatif.Totals) map[string]float64 {
	return map[string]float64{
		"total latency(ms)": 1e3 * s.Latency, "total aim to sparse latency(ms)": 1e3 * s.Aim, "sparse improve": *s.Improve,
		"sparse support latency(ms)": 1e3 * s.SupportLatency, "aim to sparse support latency(ms)": 1e3 * s.SupportAim,
		"sparse support latency ratio": *s.SupportShare, "aim to sparse support latency ratio": *s.AimShare,
	}
}

// TestWorkbookFormulas does the same as TestRecalculated by the library's own
// evaluator, so that it runs where LibreOffice is missing.
func TestWorkbookFormulas(t *testing.T) {
	t.Parallel()
	for name, p := range workbooks() {
		var b bytes.Buffer
		if err := Write(&b, p, "xlsx", Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f, err := excelize.OpenReader(&b)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		cells(t, f, func(sheet, cell, formula string) {
			if formula == "" {
				return
			}
			n++
			got, err := f.CalcCellValue(sheet, cell, excelize.Options{RawCellValue: true})
			if err != nil {
				t.Errorf("%s: %s!%s =%s: %v", name, sheet, cell, formula, err)
			} else if want := raw(t, f, sheet, cell); !same(got, want) {
				t.Errorf("%s: %s!%s =%s: %q, written %q", name, sheet, cell, formula, got, want)
			}
		})
		if n == 0 && name != "none" {
			t.Errorf("%s: no formulas", name)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// sections reads a Neural Engine table: strictly, rows of one part have one width.
func sections(t *testing.T, s string) (ratios, ops, sums [][]string) {
	t.Helper()
	r := csv.NewReader(strings.NewReader(s))
	r.FieldsPerRecord = -1
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range all {
		switch {
		case i == 0 && strings.Join(row, ",") != "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others":
			t.Errorf("heading of the ratios: %q", row)
		case len(row) == 5 && ops == nil && sums == nil:
			ratios = append(ratios, row)
		case len(row) == 16 && row[11] != "sparse support latency(ms)" && row[11] != "sparse support latency ratio":
			ops = append(ops, row)
		case len(row) == 18 || len(row) == 16 && len(sums) > 0:
			sums = append(sums, row)
		default:
			t.Errorf("row %d has %d fields: %q", i+1, len(row), row)
		}
	}
	return ratios, ops, sums
}

// typed is what a spreadsheet takes a text for.
func typed(s string) any {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case s == "true":
		return true
	case err != nil:
		return s
	case percent:
		return v / 100
	}
	return v
}

// TestNeuralEngine reads the table strictly, and has its formulas computed by the
// library that reads workbooks: the totals are those of the workbook.
func TestNeuralEngine(t *testing.T) {
	t.Parallel()
	for name, p := range workbooks() {
		var b bytes.Buffer
		if err := Write(&b, p, "neural-engine", Options{}); err != nil {
			t.Fatal(err)
		}
		if name == "sparse" {
			update.File(t, filepath.Join("testdata", "profile.ne.csv"), b.Bytes())
		}
		table := whatif.New(p)
		ratios, ops, sums := sections(t, b.String())
		if len(ratios) != 1+len(table.Shapes) || len(ops) != 1+len(table.Rows) {
			t.Fatalf("%s: %d ratios and %d operators, want %d and %d with headings", name, len(ratios), len(ops), 1+len(table.Shapes), 1+len(table.Rows))
		}
		for _, r := range ops[1:] {
			if r[13] != " " && r[13] != " 90%" {
				t.Errorf("%s: the target is %q, want a blank before it", name, r[13])
			}
		}
		s := table.Totals()
		if s == nil {
			if len(sums) != 0 {
				t.Errorf("%s: sums of nothing: %q", name, sums)
			}
			continue
		}
		f := excelize.NewFile()
		for i, row := range append(append(ratios, ops...), sums...) {
			for j, v := range row {
				cell, err := excelize.CoordinatesToCellName(j+1, i+1)
				if err != nil {
					t.Fatal(err)
				}
				if v = strings.TrimSpace(v); strings.HasPrefix(v, "=") {
					err = f.SetCellFormula("Sheet1", cell, v[1:])
				} else {
					err = f.SetCellValue("Sheet1", cell, typed(v))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if s.Improve == nil {
			continue // times of zero: no quotients
		}
		for label, want := range totals(s) {
			got, err := f.CalcCellValue("Sheet1", find(t, f, "Sheet1", label), excelize.Options{RawCellValue: true})
			if err != nil {
				t.Errorf("%s: %s: %v", name, label, err)
				continue
			}
			// The table has four digits or more of each time.
			if v, err := strconv.ParseFloat(got, 64); err != nil || math.Abs(v-want) > 1e-3*want {
				t.Errorf("%s: %s is %s, want %g", name, label, got, want)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNeuralEngineLong sums over more operators than a formula can name.
func TestNeuralEngineLong(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Write(&b, large(4000, 0), "neural-engine", Options{}); err != nil {
		t.Fatal(err)
	}
	_, ops, sums := sections(t, b.String())
	if want := `=SUMIF(L8:L4007,"<>",P8:P4007)`; len(ops) != 4001 || sums[1][15] != want {
		t.Errorf("%d operators, sum %.60q, want %q", len(ops)-1, sums[1][15], want)
	}
}

// TestNeuralEngineOpens has LibreOffice open tables as it does without being asked, and with
// percentages recognised, and compute them: the short one and one whose sum has a range.
func TestNeuralEngineOpens(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*profile.Profile{"short": sparseProfile(), "long": large(1200, 0)} {
		for _, options := range [][]string{nil, {"--infilter=CSV:44,34,76,1,,1033,false,true,false,false,false,-1,true"}} {
			in, out := t.TempDir(), t.TempDir()
			path := filepath.Join(in, "p.ne.csv")
			if err := File(path, p, Options{}); err != nil {
				t.Fatal(err)
			}
			soffice(t, "xlsx", out, options, path)
			f := open(t, filepath.Join(out, "p.ne.xlsx"))
			for label, want := range totals(whatif.New(p).Totals()) {
				sheet := f.GetSheetList()[0]
				got := raw(t, f, sheet, find(t, f, sheet, label))
				if v, err := strconv.ParseFloat(got, 64); err != nil || math.Abs(v-want) > 1e-3*want {
					t.Errorf("%s, %q: %s is %q, want %g", name, options, label, got, want)
				}
			}
		}
	}
}

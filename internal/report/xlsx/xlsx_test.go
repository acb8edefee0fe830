package xlsx

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/profile"
)

// col makes a column as a report would: texts for what is not a quantity.
func col(key string, cells []string) Column {
	q, ok := profile.Lookup(key)
	if !ok {
		return Column{Key: key, Text: true, Cells: cells}
	}
	return Column{Key: key, Cells: cells, Quantity: &q}
}

func TestColumnsOf(t *testing.T) {
	t.Parallel()
	op, time := col("op", []string{"A", "B"}), col("latency_s", []string{"1", ""})
	for _, tt := range []struct {
		name string
		cols []Column
		want string
	}{
		{"no operators", []Column{time}, "op and latency_s are missing"},
		{"no times", []Column{op}, "op and latency_s are missing"},
		{"of different length", []Column{op, time, col("macs", nil)}, "column macs has 0 cells"},
		{"not a number", []Column{op, time, col("macs", []string{"1", "x"})}, "column macs, layer 1"},
	} {
		err := Write(io.Discard, &profile.Profile{}, tt.cols)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	many := make([]string, workbook.MaxRows)
	if err := Write(io.Discard, &profile.Profile{}, []Column{col("op", many), col("latency_s", many)}); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("more layers than rows: %v", err)
	}
}

// TestUnknown demands that what is not known is an empty cell, in sums too, and
// that operators are told apart whatever their names.
func TestUnknown(t *testing.T) {
	t.Parallel()
	cols := []Column{
		col("op", []string{"Add", "ADD", "A*", "=1", "Add"}),
		col("latency_s", []string{"0.5", "", "0.25", "", "0.25"}),
		col("share", []string{"", "", "", "", ""}),
		col("macs", []string{"", "", "", "", ""}),
		col("ops", []string{"10", "", "0", "", "30"}),
	}
	var b bytes.Buffer
	if err := Write(&b, &profile.Profile{}, cols); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for sheet, want := range map[string][][]string{
		"Layers": {
			{"op", "latency_s", "share", "cumulative", "macs", "ops", "op_no"},
			{"Add", "0.5", "0.5", "0.5", "", "10", "1"},
			{"ADD", "", "", "0.5", "", "", "2"},
			{"A*", "0.25", "0.25", "0.75", "", "0", "3"},
			{"=1", "", "", "0.75", "", "", "4"},
			{"Add", "0.25", "0.25", "1", "", "30", "1"},
		},
		"By operator": {
			{"op_no", "op", "layers", "latency_s", "share", "cumulative", "ops", "ops_per_s"},
			{"1", "Add", "2", "0.75", "0.75", "0.75", "40", "53.333333333333336"},
			{"3", "A*", "1", "0.25", "0.25", "1", "0"},
			{"2", "ADD", "1", "", "", "1"},
			{"4", "=1", "1", "", "", "1"},
			{"", "all", "5", "1", "", "", "40"},
		},
	} {
		got, err := f.GetRows(sheet, excelize.Options{RawCellValue: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%s has %d rows, want %d: %q", sheet, len(got), len(want), got)
		}
		for i := range want {
			if g, w := strings.Join(got[i], "|"), strings.Join(want[i], "|"); g != w {
				t.Errorf("%s row %d: %s, want %s", sheet, i+1, g, w)
			}
		}
	}
	if v, err := f.GetColVisible("Layers", "E"); err != nil || v {
		t.Errorf("a column without figures is shown (%v)", err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for col, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"} {
		if got := workbook.ColumnName(col); got != want {
			t.Errorf("column %d is %s, want %s", col, got, want)
		}
	}
	if got, want := span(1, 2, 9), "$B$2:$B$9"; got != want {
		t.Errorf("span is %s, want %s", got, want)
	}
	v := func(x float64) *float64 { return &x }
	for _, tt := range []struct {
		times []*float64
		want  int
	}{{nil, 3}, {[]*float64{v(12345)}, 3}, {[]*float64{v(1.35e-3), nil, v(0)}, 7}, {[]*float64{v(0.06), v(3.1e-7)}, 8}, {[]*float64{v(1e-12)}, 10}} {
		if got := len(seconds(tt.times)) - len("0."); got != tt.want {
			t.Errorf("%d decimals, want %d", got, tt.want)
		}
	}
}

// Sheets with many columns print on as many pages side by side as can be read, each with
// the headings; and the what-if of sparse weights promises nothing at first, whatever the
// weights are.
func TestPrintAndPromise(t *testing.T) {
	t.Parallel()
	cols := []Column{col("index", []string{"0"}), col("op", []string{"FULLY_CONNECTED"}), col("latency_s", []string{"0.5"}), col("share", []string{""}), col("macs", []string{"1024"}), col("ops", []string{"2048"})}
	for i := range 30 {
		cols = append(cols, col("note_"+strings.Repeat("x", i), []string{strings.Repeat("text ", 8)}))
	}
	p := &profile.Profile{Layers: []profile.Layer{{
		Op: "FULLY_CONNECTED", State: profile.Ran, Latency: profile.Value(profile.Measured, 0.5, ""),
		Inputs: []profile.Tensor{{DType: "float32", Shape: []int64{1, 64}}, {DType: "float32", Shape: []int64{16, 64}, Constant: true}},
	}}}
	var b bytes.Buffer
	if err := Write(&b, p, cols); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	layout, err := f.GetPageLayout(layersSheet)
	if err != nil {
		t.Fatal(err)
	}
	// 30 columns of 40 characters and some of numbers, at 150 a page.
	if n := *layout.FitToWidth; n < 8 || n > 10 {
		t.Errorf("the layers print on %d pages side by side, want 8 to 10", n)
	}
	titles := ""
	for _, n := range f.GetDefinedName() {
		if n.Name == "_xlnm.Print_Titles" {
			titles = n.RefersTo
		}
	}
	if titles != "Layers!$A:$B,Layers!$1:$1" {
		t.Errorf("titles in print: %q", titles)
	}
	rows, err := f.GetRows(sparseSheet)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range rows {
		for i, c := range r {
			if c == "sparse improve" {
				found = true
				if r[i+1] != "1.000" {
					t.Errorf("sparse improve is %s before anybody put in a ratio", r[i+1])
				}
			}
		}
	}
	if !found {
		t.Error("no sparse improve")
	}
}

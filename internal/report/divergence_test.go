package report_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/divergence"
)

// diverging is a report in which a convolution has a wrong scale.
func diverging() *divergence.Report {
	d := func(snr float64) *profile.Difference {
		return &profile.Difference{With: "a", State: profile.Differs, SNR: &snr, MaxAbsolute: new(0.25), Same: new(0.5), Steps: new(3.5), Limit: new(20.0), DType: "float32"}
	}
	layers := func(op, name string, at int64) []divergence.Layer {
		return []divergence.Layer{{Index: at - 1, Op: "QuantizeLinear", Name: "q"}, {Index: at, Op: op, Name: name}}
	}
	r := &divergence.Report{
		Schema: divergence.SchemaV1, Inputs: "random", Seed: 7, LimitBytes: 1 << 20, Passes: 2,
		Sides: [2]divergence.Side{{Name: "float", Model: "float", Engine: "opmeter", EngineVersion: "1"}, {Name: "int8", Model: "int8", Engine: "opmeter", EngineVersion: "1"}},
		Rows: []divergence.Row{
			{A: layers("Conv", "conv1", 1), B: layers("Conv", "conv1", 4), Kind: align.Quantised, Certain: true, Own: d(38), OwnFrom: divergence.Computed, Output: d(38)},
			{A: layers("Conv", "=conv|2", 2), B: layers("Conv", "conv2", 6), Kind: align.Quantised, Own: d(12), OwnFrom: divergence.Accumulated, Output: d(12), Input: new(38.0)},
			{A: layers("Relu", "relu", 3), Kind: align.Removed},
			{A: layers("Add", "sum", 5), B: layers("Add", "sum", 8), Kind: align.Same, Certain: true, Cause: &profile.Cause{Code: profile.ByInput, Text: "it was not computed"}},
		},
		Outputs: []profile.Difference{*d(11)},
		Notes:   []string{"A note."},
	}
	r.Outputs[0].Name = "y"
	r.Judge()
	return r
}

func TestDivergenceTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.WriteDivergence(&b, diverging(), "table", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Outputs part at #2 Conv "=conv|2": SNR 12 dB, at most 0.25, outputs before it have at least 38 dB; other rows add errors of 38 dB (median)` + "\n",
		"It is not certain that these layers are partners",
		`Outputs of the model: "y" 11 dB, up to 3.5 steps` + "\n",
		"int8 in opmeter 1 against float in opmeter 1, random inputs of seed 7; errors relative to float; at most 1.00 MiB of outputs held for each side, 2 passes\n",
		"12 dB *", "quantised ?", "removed", "#3 Relu +1", "#5 Add +1", "it was not computed", "! A note.\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

func TestDivergenceOrder(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := report.VersusOptions{Sort: "difference", Top: 1, Width: 80}
	if err := report.WriteDivergence(&b, diverging(), "table", o); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Contains(s, "#1 Conv") || !strings.Contains(s, "#2 Conv +1") || !strings.Contains(s, "1 of 4 rows") {
		t.Errorf("the first row of the largest error:\n%s", s)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	o.Sort = "time"
	if err := report.WriteDivergence(&b, diverging(), "table", o); err == nil {
		t.Error("sorts by time")
	}
	if err := report.WriteDivergence(&b, diverging(), "html", report.VersusOptions{}); err == nil {
		t.Error("writes a page")
	}
}

func TestDivergenceCSV(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.WriteDivergence(&b, diverging(), "csv", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	at := map[string]int{}
	for i, h := range rows[0] {
		at[h] = i
	}
	for _, c := range []struct {
		row        int
		head, want string
	}{
		{1, "a", "0 1"},
		{1, "a_op", "QuantizeLinear Conv"},
		{1, "own_snr_db", "38"},
		{1, "own_from", "computed"},
		{1, "certain", "true"},
		{1, "steps", "3.5"},
		{1, "equal_share", "0.5"},
		{2, "own_from", "accumulated"},
		{2, "input_snr_db", "38"},
		{2, "certain", "false"},
		{3, "b", ""},
		{3, "own_snr_db", ""},
		{3, "pair", "removed"},
		{4, "cause", "it was not computed"},
	} {
		if got := rows[c.row][at[c.head]]; got != c.want {
			t.Errorf("row %d, %s: %q, want %q", c.row, c.head, got, c.want)
		}
	}
}

func TestDivergenceMarkdown(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.WriteDivergence(&b, diverging(), "markdown", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	heads := 0
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "|") {
			if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 12 {
				t.Errorf("%d cell borders: %s", n, line)
			}
			heads++
		}
	}
	if heads != 6 || !strings.HasPrefix(b.String(), "**Outputs part at ") {
		t.Errorf("%d lines of the table:\n%s", heads, b.String())
	}
}

// TestDivergenceAnswers has the first line for each verdict.
func TestDivergenceAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(r *divergence.Report)
		want   string
	}{
		{"equal", func(r *divergence.Report) { r.Verdict = divergence.Verdict{Code: divergence.Equal, Compared: 1} }, "Outputs of all layers are equal, bit by bit (1 row)"},
		{"unknown", func(r *divergence.Report) { r.Verdict = divergence.Verdict{Code: divergence.Unknown} }, "No outputs of layers could be compared: the notes of the rows say why"},
		{"quantised", func(r *divergence.Report) { r.Verdict.Code = divergence.Rounding }, `Outputs differ by no more than quantisation explains: the largest error is added at #2 Conv "=conv|2", SNR 12 dB`},
		{"gradual", func(r *divergence.Report) { r.Verdict.Code = divergence.Gradual }, `Outputs do not part at one layer: 2 rows add errors, the largest is that of #2 Conv "=conv|2", SNR 12 dB; the median of the others is 38 dB`},
		{"amplified", func(r *divergence.Report) { r.Verdict.Code, r.Verdict.Amplified = divergence.Gradual, true }, `Outputs differ, but no layer adds more than quantisation explains: the largest error is that of #2 Conv "=conv|2", SNR 12 dB, and layers behind it amplify errors`},
		{"unlike", func(r *divergence.Report) { r.Verdict.Code, r.Unlike = divergence.Gradual, true }, "Outputs of the models differ, but an engine computes others when the outputs of layers are outputs, too: the notes below the table name them"},
	} {
		r := diverging()
		c.change(r)
		if got := report.DivergenceAnswer(r)[0]; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestDivergenceNarrow: at any width, a column is shown or named as not shown, and what a row says
// of itself is in the table or below it.
func TestDivergenceNarrow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("an engine that returns none, ", 5)
	for _, width := range []int{40, 60, 80, 100, 120, 200, 0} {
		r := diverging()
		var b bytes.Buffer
		r.Rows[2].Cause = &profile.Cause{Code: profile.ByInput, Text: long[:50]}
		if err := report.WriteDivergence(&b, r, "table", report.VersusOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), long[:50]) {
			t.Errorf("%d columns: cuts a note:\n%s", width, b.String())
		}
		r = diverging()
		b.Reset()
		if err := report.WriteDivergence(&b, r, "table", report.VersusOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		s := strings.Join(strings.Fields(b.String()), " ")
		for _, column := range []string{"layers", "name", "pair", "own error", "accumulated", "inputs", "max diff", "differ", "steps"} {
			if !strings.Contains(s, column+" ") && !strings.Contains(s, column+",") {
				t.Errorf("%d columns: %q is neither shown nor missed:\n%s", width, column, b.String())
			}
		}
		if named := strings.Contains(s, "not shown (terminal too narrow): "); named != (width > 0 && width < 120) {
			t.Errorf("%d columns: says that columns are missing %v:\n%s", width, named, b.String())
		}
		if !strings.Contains(s, "it was not computed") {
			t.Errorf("%d columns: lacks the note of a row:\n%s", width, b.String())
		}
		if strings.Contains(s, "note,") && width > 0 && width < 60 {
			t.Errorf("%d columns: notes below the table are a missing column:\n%s", width, b.String())
		}
	}
}

// TestDivergenceTop: outputs without an equal top class have no percentage.
func TestDivergenceTop(t *testing.T) {
	t.Parallel()
	for top, want := range map[float64]string{0: ", top class equal in no row", 0.5: ", top class equal in 50.0 % of the rows", 1: "steps"} {
		r := diverging()
		r.Outputs[0].Top = &top
		if all := report.DivergenceAnswer(r); !strings.HasSuffix(all[len(all)-1], want) {
			t.Errorf("%v: %q, want %q", top, all, want)
		}
	}
}

// TestDivergenceExplained: errors of a quantised model are not called rounding, however its
// operators return their results.
func TestDivergenceExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind align.Kind
		d    profile.Difference
		want string
	}{
		{"quantised values", align.Quantised, profile.Difference{Steps: new(1.0), Limit: new(1.0)}, "quantisation explains"},
		{"dynamic quantisation", align.Quantised, profile.Difference{Limit: new(20.0)}, "quantisation explains"},
		{"half precision", align.Quantised, profile.Difference{Limit: new(40.0)}, "rounding"},
		{"bfloat16", align.Quantised, profile.Difference{Limit: new(22.0)}, "rounding"},
		{"another engine", align.Same, profile.Difference{Limit: new(20.0)}, "rounding"},
		{"no limit", align.Quantised, profile.Difference{}, "rounding"},
	} {
		r := diverging()
		c.d.State, c.d.SNR = profile.Rounding, new(42.0)
		r.Rows = []divergence.Row{{A: r.Rows[0].A, B: r.Rows[0].B, Kind: c.kind, Certain: true, Own: &c.d, Output: &c.d}}
		r.Verdict = divergence.Verdict{Code: divergence.Rounding}
		if got := report.DivergenceAnswer(r)[0]; got != "Outputs differ by no more than "+c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/measure/ab"
)

// compared is a result with one comparison.
func compared(c ab.Comparison) *ab.Result {
	c.B, c.Allowance = 1, 0.01
	return &ab.Result{
		Schema: ab.Schema, Comparisons: []ab.Comparison{c}, Stop: ab.Settled, Margin: 0.01, BudgetS: 60, TookS: 38.2,
		Alternatives: []ab.Measured{
			{Alternative: ab.Alternative{Name: "float.onnx"}, Seconds: 1.24e-3, Processes: [][]float64{{1.2e-3, 1.3e-3, 1.25e-3}, {1.24e-3, 1.23e-3}}, Disturbed: 3},
			{Alternative: ab.Alternative{Name: "int8 |\x1b[31m.onnx"}, Seconds: 1.2e-3, Processes: [][]float64{{1.1e-3, 1.2e-3, 1.19e-3}, {1.21e-3, 1.2e-3}}},
		},
	}
}

// TestABAnswer writes the answer of each verdict.
func TestABAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		c    ab.Comparison
		want string
	}{
		{ab.Comparison{Ratio: 0.969, Low: 0.961, High: 0.976, Verdict: ab.Better}, "B is 3.1 % faster than A (95 % interval 2.4 to 3.9 %)"},
		{ab.Comparison{Ratio: 1.31, Low: 1.25, High: 1.38, Verdict: ab.Worse}, "B is 31 % slower than A (95 % interval 25 to 38 %)"},
		{ab.Comparison{Ratio: 0.25, Low: 0.2, High: 0.5, Verdict: ab.Better}, "B is 4.00 times as fast as A (95 % interval 2.00 to 5.00)"},
		{ab.Comparison{Ratio: 4, Low: 3.9, High: 4.1, Verdict: ab.Worse}, "B takes 4.00 times as long as A (95 % interval 3.90 to 4.10)"},
		{ab.Comparison{Ratio: 1.002, Low: 0.997, High: 1.006, Verdict: ab.Equivalent}, "B and A are equivalent within ±1.0 % (difference +0.20 %, 95 % interval −0.30 % to +0.60 %)"},
		{ab.Comparison{Ratio: 1.009, Low: 0.988, High: 1.03, Verdict: ab.Undecided}, "Undecided: B may be up to 1.2 % faster or 3.0 % slower than A (measured +0.90 %)"},
	} {
		r := compared(c.c)
		r.Alternatives[0].Name, r.Alternatives[1].Name = "A", "B"
		if got := ABAnswer(r, &r.Comparisons[0]); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestWriteAB writes all formats, and nothing of a name reaches a terminal raw.
func TestWriteAB(t *testing.T) {
	t.Parallel()
	undecided := compared(ab.Comparison{Ratio: 1.009, Low: 0.988, High: 1.03, Detectable: 0.03, Verdict: ab.Undecided})
	undecided.Stop, undecided.TookS, undecided.PausedS = ab.BudgetOver, 60, 5
	hopeless := compared(ab.Comparison{Ratio: 1.009, Low: 0.5, High: 2, Detectable: 1, Verdict: ab.Undecided})
	hopeless.Stop = ab.BudgetOver
	early := compared(ab.Comparison{})
	early.Comparisons, early.Stop = []ab.Comparison{}, ab.Cancelled
	short := compared(ab.Comparison{})
	short.Comparisons, short.Stop, short.TookS = []ab.Comparison{}, ab.BudgetOver, 40
	better := compared(ab.Comparison{Ratio: 0.969, Low: 0.961, High: 0.976, Detectable: 0.011, Verdict: ab.Better})
	for _, c := range []struct {
		name, format string
		r            *ab.Result
		want         []string
	}{
		{"table", "table", better, []string{
			"is 3.1 % faster than float.onnx", "\nalternative ", "1.24 ms", " 0.969 ", "0.961 to 0.976", " better ", "\nMeasured for 38.2 s of 60.0 s: settled.\n",
			"95 of 100 measurements: 1.1 %.",
		}},
		{"undecided", "table", undecided, []string{"Undecided: ", "the budget is used", "Waited for 5.00 s", "up to 3.0 % could still hide", "To show one of 1.0 %, try --budget 10m"}},
		{"hopeless", "table", hopeless, []string{"up to 100 % could still hide. Measure on a quieter machine"}},
		{"early", "table", early, []string{"Undecided: 2 processes of each alternative, and an answer needs 5", "stopped: this is what was measured"}},
		{"short", "table", short, []string{"One process of each took 20.0 s. Try --budget 3m."}},
		{"markdown", "markdown", better, []string{"**", "| alternative | time |", "| --- | ---: |", `int8 \|`}},
		{"bench", "bench", better, []string{
			"goos: plan9\n", "cpu: The CPU\n", "benchstat -col /alternative FILE", "\nBenchmarkInference/alternative=float.onnx 3 1250000 ns/op\nBenchmarkInference/alternative=float.onnx 2 1235000 ns/op\n",
		}},
		{"json", "json", better, []string{`"schema": "opmeter/ab/v1"`, `"verdict": "better"`, `"processes": [`}},
	} {
		var b bytes.Buffer
		if err := WriteAB(&b, c.r, c.format, ABOptions{OS: "plan9", Arch: "x", CPU: "The\n CPU"}); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s lacks %q:\n%s", c.name, w, b.String())
			}
		}
		if strings.Contains(b.String(), "\x1b") {
			t.Errorf("%s has a control character:\n%q", c.name, b.String())
		}
	}
	if err := WriteAB(&bytes.Buffer{}, better, "html", ABOptions{}); err == nil {
		t.Error("an unknown format")
	}
	var narrow bytes.Buffer
	if err := WriteAB(&narrow, better, "table", ABOptions{Width: 60}); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(narrow.String(), "\n"); Columns(first) > 60 {
		t.Errorf("%q is wider than 60 columns", first)
	}
}

// TestABFormat finds formats by the longest ending.
func TestABFormat(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"a.txt": "table", "a.bench.txt": "bench", "A.JSON": "json", "a.md": "markdown", "a.csv": "", "a": ""} {
		if got, err := ABFormat(path); got != want || (err == nil) == (want == "") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// TestABPlan says what a budget can show.
func TestABPlan(t *testing.T) {
	t.Parallel()
	want := "a budget of 1m shows differences from about 1.4 % on: 45 processes of each alternative, 1 block in each"
	if got := ABPlan(ab.Plan{Processes: 45, Blocks: 1, Detectable: 0.0141}, time.Minute); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A table is never wider than the terminal: what counts the measurement is a sentence there.
func TestABNarrow(t *testing.T) {
	t.Parallel()
	r := compared(ab.Comparison{Ratio: 1.009, Low: 0.988, High: 1.03, Detectable: 0.03, Verdict: ab.Undecided})
	r.Alternatives[1].Name = "a long name of a model that fills the terminal.onnx --threads 2"
	for _, width := range []int{60, 80, 100} {
		var b strings.Builder
		if err := WriteAB(&b, r, "table", ABOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(b.String()) {
			if n := Columns(strings.TrimSuffix(l, "\n")); n > width {
				t.Errorf("%d columns: %q has %d", width, l, n)
			}
		}
		if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, "2 processes, 5 blocks, 3 disturbed") {
			t.Errorf("%d columns: no counts:\n%s", width, b.String())
		}
	}
	r.Alternatives[1].Name = "short.onnx"
	var b strings.Builder
	if err := WriteAB(&b, r, "table", ABOptions{Width: 100}); err != nil || !strings.Contains(b.String(), "processes") || strings.Contains(b.String(), "Of the alternatives") {
		t.Errorf("wide enough:\n%s", b.String())
	}
}

// TestFlagTime writes times as people type them.
func TestFlagTime(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{11 * time.Hour: "11h", 10 * time.Minute: "10m", 90 * time.Second: "1m30s", 30 * time.Second: "30s", 10 * time.Second: "10s", 90 * time.Minute: "1h30m", 20 * time.Hour: "20h"} {
		got := flagTime(d)
		if back, err := time.ParseDuration(got); got != want || back != d || err != nil {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestABNotes names repeated blocks, and why times and ratios differ.
func TestABNotes(t *testing.T) {
	t.Parallel()
	r := &ab.Result{
		Alternatives: []ab.Measured{{Seconds: 1e-3, Processes: [][]float64{{1e-3}}}, {Seconds: 1.2e-3, Processes: [][]float64{{1.2e-3}}}},
		Comparisons:  []ab.Comparison{{A: 0, B: 1, Ratio: 1.01, Low: 1, High: 1.02}},
	}
	const drift = "ratios compare neighbouring blocks"
	if s := strings.Join(abFacts(r), "\n"); !strings.Contains(s, drift) || strings.Contains(s, "again") {
		t.Errorf("drift: %s", s)
	}
	r.Comparisons[0].Ratio, r.Repeated = 1.19, 1
	if s := strings.Join(abFacts(r), "\n"); strings.Contains(s, drift) || !strings.Contains(s, "Measured 1 row of blocks again") {
		t.Errorf("no drift: %s", s)
	}
	r.Alternatives[0].Inputs, r.Alternatives[1].Inputs = []string{"1x3"}, []string{"4x3"}
	if s := strings.Join(abFacts(r), "\n"); !strings.Contains(s, " takes 1x3, ") || !strings.Contains(s, "the time of an item has the ratio 0.297 (") {
		t.Errorf("other batch: %s", s)
	}
	r.Alternatives[1].Inputs = []string{"1x9"}
	if s := strings.Join(abFacts(r), "\n"); !strings.Contains(s, " takes 1x9. Times and ratios are those of an inference.") {
		t.Errorf("other shape: %s", s)
	}
	if s := abCounts(r); s != "Of each alternative: 1 process, 1 block, 0 disturbed." {
		t.Errorf("%q", s)
	}
}

package gate

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/opmeter/opmeter/profile"
)

// example is a result with every verdict and hostile names.
func example() *Result {
	row := func(key string, base, fresh float64, v Verdict, required bool) Row {
		q, _ := Lookup(key)
		return Row{Figure: key, Name: q.Name, Unit: q.Unit, Kind: profile.Counted, Base: &base, New: &fresh, Better: Lower, Required: required, Verdict: v}
	}
	time := Measured(&Rule{Figure: Latency, Margin: 0.05, Required: true}, 1e-3, 1.02e-3, Interval{1.02, 0.99, 1.06, 0.03})
	ignored := row("weights_bytes", 10, 20, Worse, true)
	ignored.Ignored = &Ignore{Figure: "weights_bytes", Until: "2030-12-31", Reason: "a|b"}
	r := &Result{
		Schema: SchemaV1, Created: "2030-01-02T03:04:05Z", Base: Base{Kind: MergeBase, Commit: strings.Repeat("a", 40), Ref: "main"},
		Policy: "gate.yaml", PolicySHA256: strings.Repeat("b", 64), Tests: 2,
		Jobs: []Job{
			{
				Model: "m/<x>|`y`\x1b[1m.onnx", Target: Host, Figures: []Row{
					row("macs", 10_000, 10_001, Worse, true), row("params", 5, 9, Worse, false), row("layers", 3, 3, Equal, true),
					row("file_bytes", 0, 4096, Within, true), ignored, time,
					{Figure: "ram_bytes", Name: "RAM", Required: true, Verdict: New, New: new(5.0)},
				},
				Layers: []LayerChange{{Name: "conv", Op: "Conv", Figure: "macs", Kind: "inserted", New: new(7.0)}},
			},
			{Model: "b", Target: "stm32l4r5", Error: "b: not a model"},
		},
		Notes: []string{"index.jsonl:3: left out"},
	}
	r.Decide()
	return r
}

func written(t *testing.T, r *Result, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, format, false, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// On a narrow terminal no line is wider, and nothing is lost.
func TestNarrow(t *testing.T) {
	t.Parallel()
	r := example()
	r.Jobs[0].Notes = []string{strings.Repeat("long words ", 20)}
	r.Jobs = append(r.Jobs, Job{Model: "models/gone.onnx", Target: Host, Removed: true})
	r.Decide()
	var b bytes.Buffer
	if err := r.Write(&b, "table", true, 80); err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(l, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"interval of the change: −1.0 % to +6.0 %", "ignored until 2030-12-31: a|b", "up to +6.0 % cannot be excluded", "optional", "models/gone.onnx on host is gone"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	got := written(t, example(), "table")
	for _, want := range []string{
		"Worse: Multiply-accumulates of m/<x>|`y`\\x1b[1m.onnx on host +1. Not judged: b on stm32l4r5: b: not a model.\n",
		"base    merge base with main, commit aaaaaaaaaa\n",
		"policy  gate.yaml, sha256 bbbbbbbbbbbb\n",
		"tests   2 measured comparisons, one 95 % level for all\n",
		"  10,000   10,001                         +1 ",
		"worse, ignored until 2030-12-31: a|b",
		"worse, optional",
		"+2.0 % (−1.0 % to +6.0 %)",
		"undecided: up to +6.0 % cannot be excluded",
		"  1 more figure is equal\n",
		"  layers: conv Conv inserted 7 MACs\n",
		"b on stm32l4r5: undecided\n  b: not a model\n",
		"note: index.jsonl:3: left out\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.ContainsRune(got, '\x1b') {
		t.Error("an escape reaches the terminal")
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	got := written(t, example(), "markdown")
	for _, want := range []string{"**Worse: ", "### m/&lt;x&gt;\\|\\`y\\`", "| **worse** |", "ignored until 2030-12-31: a\\|b |", "<details><summary>1 more figure is equal</summary>"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 7 {
			t.Errorf("columns of %q", line)
		}
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	var got junitSuites
	if err := xml.Unmarshal([]byte(written(t, example(), "junit")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 8 || got.Failures != 1 || got.Errors != 2 || got.Skipped != 2 || len(got.Suites) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestBMF(t *testing.T) {
	t.Parallel()
	var got map[string]map[string]struct {
		Value float64  `json:"value"`
		Lower *float64 `json:"lower_value"`
		Upper *float64 `json:"upper_value"`
	}
	if err := json.Unmarshal([]byte(written(t, example(), "bmf")), &got); err != nil {
		t.Fatal(err)
	}
	for name, measures := range got {
		if !strings.HasSuffix(name, " on host") {
			continue
		}
		if m := measures["latency"]; m.Value < 1.0199e6 || m.Value > 1.0201e6 || m.Lower == nil || *m.Lower > m.Value || m.Upper == nil || *m.Upper < m.Value {
			t.Errorf("latency %+v", m)
		}
		if measures["macs"].Value != 10_001 {
			t.Errorf("%+v", measures)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a.bmf.json": "bmf", "a.json": "json", "a.XML": "junit", "a.md": "markdown", "a.txt": "table", "a.pdf": "", "json": ""} {
		if got, err := FormatOf(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	r := example()
	path := filepath.Join(t.TempDir(), "x.json")
	if err := r.File(path); err != nil {
		t.Error(err)
	}
	if err := r.Write(&bytes.Buffer{}, "pdf", false, 0); err == nil {
		t.Error("PDF is written")
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	ints := func(v ...byte) Outputs {
		return Outputs{{Name: "y", DType: "int8", Shape: []int{len(v)}, Data: v, Scale: 0.1}}
	}
	a := ints(1, 2, 3)
	if v, what, ok := a.Difference(ints(1, 2, 3)); v != 0 || what != "" || !ok {
		t.Errorf("equal: %v, %q, %v", v, what, ok)
	}
	if v, _, ok := a.Difference(ints(1, 4, 3)); v != 2 || !ok {
		t.Errorf("two steps: %v, %v", v, ok)
	}
	if _, what, ok := a.Difference(ints(1, 2)); ok || !strings.Contains(what, "does not compare") {
		t.Errorf("another shape: %q, %v", what, ok)
	}
	if a.Hash() != ints(1, 2, 3).Hash() || a.Hash() == ints(1, 2, 4).Hash() || len(a.Hash()) != 64 {
		t.Error("hashes")
	}
}

// A figure that is not known for one version has no allowance: nothing was judged.
func TestUnknownAllowance(t *testing.T) {
	t.Parallel()
	r := Row{Base: new(1.0), Unit: "B", Verdict: Undecided}
	if got := r.cells()[4]; got != "" {
		t.Errorf("allowed %q", got)
	}
	if r.New, r.Allowed = new(1.0), 1024; r.cells()[4] != "1,024 B" {
		t.Errorf("allowed %q", r.cells()[4])
	}
}

// Layers are listed by the size of their change, with those that only one version has.
func TestChanges(t *testing.T) {
	t.Parallel()
	model := func(macs ...int64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}}
		before := "x"
		for i, m := range macs {
			name := string(rune('a' + i))
			p.Layers = append(p.Layers, profile.Layer{
				Index: int64(i), Name: name, Op: "CONV_2D", MACs: new(m),
				Inputs:  []profile.Tensor{{Name: before, DType: "int8", Shape: []int64{1, 8, 8, 4}}},
				Outputs: []profile.Tensor{{Name: name, DType: "int8", Shape: []int64{1, 8, 8, 4}}},
			})
			before = name
		}
		return p
	}
	got := Changes(model(10, 20, 30), model(10, 25, 90), "macs")
	if len(got) != 2 || got[0].Name != "c" || *got[0].Base != 30 || *got[0].New != 90 || got[1].Name != "b" {
		t.Errorf("%+v", got)
	}
	// A layer is named by its leading operator: weights that are dequantised come before it.
	fused := func(macs int64) *profile.Profile {
		return &profile.Profile{Layers: []profile.Layer{
			{Index: 0, Name: "w_DequantizeLinear", Op: "DequantizeLinear", State: profile.Ran, Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: 0}}}},
			{Index: 1, Name: "conv", Op: "Conv", MACs: &macs, State: profile.Ran, Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: 0}}}},
		}}
	}
	if got := Changes(fused(1), fused(2), "macs"); len(got) != 1 || got[0].Name != "conv" || got[0].Op != "Conv" {
		t.Errorf("%+v", got)
	}
	if got := Changes(model(10, 20), model(10, 20), "macs"); len(got) > 0 {
		t.Errorf("equal models: %+v", got)
	}
}

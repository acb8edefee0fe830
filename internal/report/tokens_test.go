package report_test

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

func tokens(name string) *profile.Profile {
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: name, Format: "llama-bench"},
		Target: profile.Target{ID: "imported", Kind: profile.TargetImport, Engine: "llama.cpp"}, Layers: []profile.Layer{},
		Quantities: []profile.Quantity{{Key: "prompt_tokens", Name: "Prompt tokens", Group: "Language model", Model: true}},
	}
	p.Totals.Figures = map[string]*profile.Metric{
		"prefill_tokens_per_s": {Kind: profile.Imported, N: new(int64(5)), Median: new(128.0), Mean: new(127.0), CI95: &[2]float64{125, 131}},
		"ttft_s":               {Kind: profile.Imported, Mean: new(4.0), StdDev: new(0.1), P99: new(4.5)},
		"tpot_s":               profile.Value(profile.Imported, 0.05, ""),
		"prompt_tokens":        profile.Value(profile.Imported, 512, ""),
	}
	return p
}

// TestTokens: figures of language models have a line each, with estimator and interval, and columns
// in a list.
func TestTokens(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := report.Write(&b, tokens("tiny"), "table", report.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Prefill rate           128 tokens/s (median of 5, 95 % CI 125 to 131 tokens/s)\n",
		"Time to first token    4.00 s (mean, standard deviation 100 ms, 99 % 4.50 s)\n",
		"Time per output token  50.0 ms\n",
		"Tokens                 prompt 512\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := report.WriteList(&b, []report.ListRow{{TargetRow: report.TargetRow{Profile: tokens("tiny, pp512")}}, {TargetRow: report.TargetRow{Profile: tokens("tiny, pp128")}}}, "table", 0); err != nil {
		t.Fatal(err)
	}
	both := tokens("tiny, pp512+tg128")
	both.Quantities = append(both.Quantities, profile.Quantity{Key: "tokens_per_s", Unit: "/s", Name: "Tokens per second, prompt and output", Group: "Language model", Better: 1})
	both.Totals.Figures = map[string]*profile.Metric{"tokens_per_s": profile.Value(profile.Imported, 61.5, "")}
	lines := strings.Split(b.String(), "\n")
	b.Reset()
	if err := report.WriteList(&b, []report.ListRow{{TargetRow: report.TargetRow{Profile: both}}}, "table", 0); err != nil || !strings.Contains(b.String(), "tokens per second, prompt and output: 61.5 tokens/s\n") {
		t.Errorf("a figure without a column: %v\n%s", err, b.String())
	}
	if strings.Join(strings.Fields(lines[0]), " ") != "model format size params prefill/s decode/s first token per token note" || strings.Join(strings.Fields(lines[1]), " ") != "tiny, pp512 llama-bench 128 4.00 s 50.0 ms" {
		t.Errorf("list:\n%s", strings.Join(lines, "\n"))
	}
}

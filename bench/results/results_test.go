package results

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const page = "../../docs/performance.md"

func TestPage(t *testing.T) {
	t.Parallel()
	tables, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Render(tables) {
		t.Errorf("%s differs from the results: run go run ./bench/performance", page)
	}
	if n := strings.Count(string(got), "\n"); n > 200 {
		t.Errorf("%s has %d lines, expected at most 200", page, n)
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	const run = `"runs":[{"command":"c","date":"2026-11-26","machine":"m","isa":"i"}]`
	for _, c := range []struct{ text, want string }{
		{`{`, "unexpected EOF"},
		{`{"titel":"t"}`, "unknown field"},
		{`{"title":"t"}`, "meaning"},
		{`{"title":"t","meaning":"m"}`, "runs is empty"},
		{`{"title":"t","meaning":"m",` + run + `}`, "rows is empty"},
		{`{"title":"t","meaning":"m",` + run + `,"columns":["a","b"],"rows":[["1"]]}`, "row 0 has 1 values, expected 2"},
		{`{"title":"t","meaning":"m",` + run + `,"columns":["a"],"rows":[["1|2"]]}`, "breaks a Markdown table"},
		{`{"title":"t","meaning":"m",` + run + `,"columns":["a"],"rows":[["1"]],"shown":2}`, "shown is 2, expected 0 to 1"},
		{`{"title":"t","meaning":"m",` + strings.Replace(run, "-26", "-31", 1) + `,"columns":["a"],"rows":[["1"]]}`, "out of range"},
		{`{"title":"t","meaning":"m",` + strings.Replace(run, `"i"`, `""`, 1) + `,"columns":["a"],"rows":[["1"]]}`, "isa is missing"},
	} {
		_, err := load(fstest.MapFS{"x.json": {Data: []byte(c.text)}})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "x.json: ") {
			t.Errorf("%s: %v, expected %q", c.text, err, c.want)
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 30)
	got := Render([]Table{{
		File: "x.json", Title: "Times", Meaning: long,
		Runs:    []Run{{"go run ./bench/x", "2026-11-06", "machine", "AVX2"}},
		Columns: []string{"name", "ms"}, Rows: [][]string{{"a", "1"}, {"b", "2"}, {"c", ""}}, Shown: 1, Note: "Note.",
	}})
	got, ok := strings.CutPrefix(got, head)
	want := "\n## Times\n\n" + strings.Repeat("word ", 19) + "word\n" + strings.Repeat("word ", 9) + `word
- **AVX2**: machine, 2026-11-06, ` + "`go run ./bench/x`" + `

| name | ms |
| --- | ---: |
| a | 1 |

Note. The other 2 rows: [x.json](../bench/results/x.json).
`
	if !ok || got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

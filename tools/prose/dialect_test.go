package main

import (
	"slices"
	"strings"
	"testing"
)

func TestDialect(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"The engines take turns.":                        "take turns",
		"The two ran in\nturns of one call.":             "in\nturns",
		"Each in turn is measured.":                      "",
		"A text that is no number.":                      "is no number",
		"It is no longer than that.":                     "",
		"There is no file.":                              "",
		"There is none.":                                 "There is none",
		"Is there one? None is there.":                   "",
		"The answer is. No file is read.":                "",
		"Results are equal to the bit.":                  "to the bit",
		"It is added to the bit width.":                  "",
		"do not use":                                     "do not use",
		"Do not use this option.":                        "",
		"To quote 238 µs, the median.":                   "To quote 238",
		"To quote a string, add marks.":                  "",
		"numbers of 8 bits":                              "numbers of 8 bits",
		"rooms":                                          "rooms",
		"There is room for two.":                         "",
		"the big picture":                                "",
		"A picture of the net.":                          "picture",
		"It is of no use.":                               "",
		"1-bit and 8-bit codes; error codes":             "8-bit codes",
		"What is alive, at reference speed, handed over": "What is alive|at reference speed|handed over",
	} {
		var got []string
		for _, f := range dialect("x.md", []passage{{1, text}}) {
			got = append(got, strings.Split(f.what, `"`)[1])
		}
		if w := strings.ReplaceAll(want, "\n", " "); strings.Join(got, "|") != w {
			t.Errorf("%q: %q, want %q", text, got, w)
		}
	}
}

// Every term is well formed: in lower case, with a replacement, and matched by its own phrase.
func TestTerms(t *testing.T) {
	t.Parallel()
	for _, r := range terms {
		if r.write == "" || r.phrase != strings.ToLower(r.phrase) {
			t.Errorf("%q", r.phrase)
		}
		var words []string
		for w := range strings.FieldsSeq(r.phrase) {
			w, _, _ = strings.Cut(w, "/")
			words = append(words, map[string]string{"*": "word", "#": "8"}[w])
			if words[len(words)-1] == "" {
				words[len(words)-1] = w
			}
		}
		if text := strings.Join(words, " "); len(dialect("x", []passage{{1, text}})) == 0 {
			t.Errorf("%q is not found in %q", r.phrase, text)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	goFile := "package x\n\n// A takes what\n// is alive.\nfunc Rooms() { f(\"in one go\", `rooms`, \"a\\x00 few bits\") }\n\ntype alive struct {\n\tGuest int `json:\"few bits\"`\n}\n"
	svelte := "<script>\n  // in turns\n  const a = \"few bits\";\n</script>\n<p title=\"few bits\" class=\"few bits\">Texts\nin one go {a ? 'few bits' : b}</p>\n<style>\n/* rooms */\n</style>\n"
	c := "// what\n// is alive\nint rooms; /* in\nturns */\nchar *s = \"few bits\", t = '\"';\n"
	for _, tt := range []struct {
		name, content string
		want          []int
	}{
		{"x.go", goFile, []int{3, 5, 5, 5, 8}},
		{"x.svelte", svelte, []int{2, 3, 5, 6, 6, 8}},
		{"x.c", c, []int{1, 3, 5}},
		{"x.md", "Text `rooms` [rooms](rooms.md).\n\n```\nrooms\n```\n\n| rooms |\n", []int{1, 7}},
	} {
		found, err := checkFile(tt.name, kindOf(tt.name), tt.content, true, false)
		if err != nil {
			t.Fatal(err)
		}
		var lines []int
		for _, f := range found {
			lines = append(lines, f.line)
		}
		slices.Sort(lines)
		if !slices.Equal(lines, tt.want) {
			t.Errorf("%s: lines %v, want %v: %v", tt.name, lines, tt.want, found)
		}
	}
}

package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "conv_1/日本語 ✓", "conv_1/日本語 ✓"},
		{"escape sequence", "\x1b[31mred", `\x1b[31mred`},
		{"line feed and tab", "a\nb\tc", `a\nb\tc`},
		{"del", "a\x7fb", `a\x7fb`},
		{"c1 control", "a\u009bb", `a\u009bb`},
		{"bidi override", "\u202eexe", `\u202eexe`},
		{"zero width", "a\u200bb\u200d\ufeff", `a\u200bb\u200d\ufeff`},
		{"invisible letter", "a\u3164b\u034f\ufe0f", `a\u3164b\u034f\ufe0f`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"not utf-8", "a\xffb", "a\ufffdb"},
		{"long", strings.Repeat("x", Max+1), strings.Repeat("x", Max) + "…"},
	} {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	// 10,000 control characters would be 40,000 as escapes.
	if n := utf8.RuneCountInString(Clean(strings.Repeat("\x01", 10000))); n > Max+1 {
		t.Errorf("escapes: %d characters, more than %d", n, Max+1)
	}
}

func TestCell(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"conv":                      "conv",
		"a=b":                       "a=b",
		`=HYPERLINK("http://x")`:    `'=HYPERLINK("http://x")`,
		"+cmd":                      "'+cmd",
		"-1+1":                      "'-1+1",
		"@SUM(A1)":                  "'@SUM(A1)",
		"  =1+1":                    "'  =1+1",
		"＝1+1":                      "'＝1+1",
		"\t=1":                      `\t=1`,
		"'=already with apostrophe": "'=already with apostrophe",
	} {
		if got := Cell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<img src=x>":          "&lt;img src=x&gt;",
		"[a](javascript:x)":    `\[a\](javascript:x)`,
		"see http://a.invalid": `see http:\//a.invalid`,
		"www.a.invalid":        `www\.a.invalid`,
		"a|b_c":                `a\|b\_c`,
		"me@a.invalid $x$ ~~y": `me\@a.invalid \$x\$ \~\~y`,
	} {
		if got := Markdown(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

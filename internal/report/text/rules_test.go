package text

import (
	"strings"
	"testing"
)

// A text of the most characters is whole, whatever its characters take in bytes; one
// more is cut, and the mark of the cut is beyond the most.
func TestLongest(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"x", "é", "語"} {
		whole := strings.Repeat(c, Max)
		if got := Clean(whole); got != whole {
			t.Errorf("%s: %d bytes of %d are left", c, len(got), len(whole))
		}
		if got := Clean(whole + c); got != whole+"…" {
			t.Errorf("%s: one character more gives %d bytes, want %d", c, len(got), len(whole)+len("…"))
		}
	}
	// An escape is never cut in two.
	if got, want := Clean(strings.Repeat("x", Max-1)+"\x01"), strings.Repeat("x", Max-1)+"…"; got != want {
		t.Errorf("an escape at the end: %q", got[Max-5:])
	}
}

// Of ASCII only the control characters are hidden.
func TestHidden(t *testing.T) {
	t.Parallel()
	for r := range rune(0x80) {
		if got, want := Hidden(r), r < 0x20 || r == 0x7f; got != want {
			t.Errorf("%q: hidden %t", r, got)
		}
	}
}

// Every sign that begins a formula, wide or not, behind blanks or not; nothing else.
func TestFormula(t *testing.T) {
	t.Parallel()
	for _, sign := range "=+-@＝＋－＠" {
		for _, before := range []string{"", " ", "   "} {
			in := before + string(sign) + "1"
			if got := Cell(in); got != "'"+in {
				t.Errorf("%q: %q", in, got)
			}
		}
		if in := "1" + string(sign); Cell(in) != in {
			t.Errorf("%q: %q", in, Cell(in))
		}
	}
	if got := Cell("   "); got != "   " {
		t.Errorf("blanks: %q", got)
	}
}

// Every character of Markdown's own is escaped: by a backslash or, what HTML would
// read, by its name.
func TestMarkup(t *testing.T) {
	t.Parallel()
	for _, r := range "\\|*_`[]~$@" {
		if got, want := Markdown("a"+string(r)+"b"), "a\\"+string(r)+"b"; got != want {
			t.Errorf("%q: %q, want %q", r, got, want)
		}
	}
	for in, want := range map[string]string{
		"a&b": "a&amp;b", "&lt;": "&amp;lt;", "a>b": "a&gt;b", "WWW.a": `WWW\.a`, "ftp://a": `ftp:\//a`, "a\nb": `a\\nb`, "a/b: c.d": "a/b: c.d",
	} {
		if got := Markdown(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

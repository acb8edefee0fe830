// Package text makes text from model files and other programs' records safe to
// show. Names are data: a terminal must not obey them, a spreadsheet must not
// compute them, a page must not render them. Every report package uses these
// functions, so that a name reads the same everywhere.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Max bounds a text that is shown to people, in characters.
const Max = 10000

// Clean makes text safe to print: control and formatting characters (which could
// move the cursor or turn the direction of a line), invisible ones, and bytes that
// are not UTF-8 become escapes or U+FFFD. Text longer than [Max] is cut, with "…"
// at its end.
func Clean(s string) string {
	if len(s) <= Max && utf8.ValidString(s) && !strings.ContainsFunc(s, Hidden) {
		return s
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		out := string(r)
		if Hidden(r) {
			out = strconv.QuoteRuneToASCII(r)
			out = out[1 : len(out)-1]
		}
		// An escape is longer than what it stands for: what comes out is bounded.
		if n += utf8.RuneCountInString(out); n > Max {
			b.WriteRune('…')
			break
		}
		b.WriteString(out)
	}
	return b.String()
}

// Hidden reports whether a character shows nothing of its own or changes how
// others show.
func Hidden(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Cell is [Clean] for comma-separated values: what a spreadsheet would take for a
// formula gets an apostrophe before it. Blanks before the sign and its wide forms
// (U+FF1D and others) count, since some spreadsheets pass over these.
func Cell(s string) string {
	s = Clean(s)
	if t := strings.TrimLeft(s, " "); t != "" && strings.ContainsRune("=+-@＝＋－＠", first(t)) {
		return "'" + s
	}
	return s
}

func first(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

var markdown = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`,
	"~", `\~`, "$", `\$`, "@", `\@`,
	// GitHub and others make links of bare addresses.
	"://", `:\//`, "www.", `www\.`, "WWW.", `WWW\.`,
)

// Markdown is [Clean] for a line of Markdown: nothing in it is markup, and bare
// addresses do not become links.
func Markdown(s string) string { return markdown.Replace(Clean(s)) }

// TableCell is Markdown on one line, for a cell of a table. Markup in it stays.
func TableCell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

package report

import (
	"strings"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/report/text"
)

// Wrap breaks text at blanks into lines of at most width columns.
func Wrap(s string, width int) []string { return wrap(s, width) }

// leastWrap is the width below which text is not broken: nobody reads such columns.
const leastWrap = 20

// wrap breaks text at blanks into lines of at most width columns; below [leastWrap]
// there is no limit. A number stays with the word behind it, which is its unit or what
// it counts. A word longer than a line is cut.
func wrap(s string, width int) []string {
	if width < leastWrap || text.Width(s) <= width {
		return []string{s}
	}
	var lines []string
	line, used := "", 0
	for _, word := range pieces(s) {
		n := text.Width(word)
		if used > 0 && used+1+n > width {
			lines = append(lines, line)
			line, used = "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		for n > width {
			head := fitting(word, width)
			lines = append(lines, head)
			word = word[len(head):]
			n = text.Width(word)
		}
		line, used = line+word, used+n
	}
	return append(lines, line)
}

// pieces splits text at the blanks where a line may end.
func pieces(s string) []string {
	var out []string
	glue := false
	for _, word := range strings.Fields(s) {
		number := isNumber(word)
		if glue && !number {
			out[len(out)-1] += " " + word
		} else {
			out = append(out, word)
		}
		glue = number
	}
	return out
}

// isNumber reports whether a word is a number behind which a unit may come: "18.1",
// "(2.4", "±3".
func isNumber(word string) bool {
	word = strings.TrimLeft(word, "([±+-−<>≈")
	if word == "" {
		return false
	}
	digit := func(b byte) bool { return '0' <= b && b <= '9' }
	return digit(word[0]) && digit(word[len(word)-1])
}

// fitting is the longest beginning of at most width columns, at least a character.
func fitting(s string, width int) string {
	end := 0
	for i, r := range s {
		next := i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			next = i + 1
		}
		if end > 0 && text.Width(s[:next]) > width {
			break
		}
		end = next
	}
	return s[:end]
}

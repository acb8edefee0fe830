package study

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// WriteRuntime puts a runtime into the text of a target file that is otherwise written
// by hand: in the place of the one of that name, or after the last.
func WriteRuntime(text string, r *chip.Runtime) string {
	own := string(fit.EncodeRuntime(r))
	head, _, _ := strings.Cut(own, "\n")
	head += "\n"
	lines := strings.SplitAfter(text, "\n")
	in := func(l string) bool { return strings.HasPrefix(l, "   ") }
	at := slices.Index(lines, head)
	end := at + 1
	if at < 0 {
		at = slices.Index(lines, "runtimes:\n") + 1
		for at < len(lines) && strings.HasPrefix(lines[at], " ") {
			at++
		}
		end = at
	}
	for end > at && end < len(lines) && in(lines[end]) {
		end++
	}
	return strings.Join(lines[:at], "") + own + strings.Join(lines[end:], "")
}

// Comment heads the shipped target files.
const Comment = `Made by go generate ./tools/chips from published measurements.
Energy and cycle figures are fitted; do not edit them by hand.`

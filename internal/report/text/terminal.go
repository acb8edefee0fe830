package text

import "github.com/clipperhouse/displaywidth"

// Width is how many columns of a terminal a line takes. Styles take none.
func Width(line string) int {
	return displaywidth.Options{ControlSequences: true}.String(line)
}

// Style is how a terminal shows a line: the parameters of the sequence Select Graphic Rendition of
// ECMA-48.
type Style string

// The styles of tables.
const (
	Bold       Style = "1"
	Faint      Style = "2"
	Red        Style = "31"
	Green      Style = "32"
	BoldRed    Style = "1;31"
	BoldYellow Style = "1;33"
)

// Render returns a line in this style. An empty line stays empty.
func (s Style) Render(line string) string {
	if line == "" {
		return ""
	}
	return "\x1b[" + string(s) + "m" + line + "\x1b[m"
}

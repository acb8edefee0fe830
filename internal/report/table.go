package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

const gap = "  "

// writeTable writes summary, table and findings for a terminal.
func writeTable(w io.Writer, p *profile.Profile, o Options) error {
	var b strings.Builder
	facts := summary(p)
	label := 0
	for _, f := range facts {
		label = max(label, lipgloss.Width(f.label))
	}
	for _, f := range facts {
		b.WriteString(pad(f.label, label, true))
		for i, l := range wrap(f.value, o.Width-label-2) {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", label))
			}
			b.WriteString(gap + l + "\n")
		}
	}
	rs, err := rows(p, o)
	if err != nil {
		return err
	}
	b.WriteByte('\n')
	grid(&b, p, rs, o)
	if o.Memory {
		writeMemory(&b, p, o)
	}
	if fs := p.Findings; len(fs) > 0 {
		b.WriteByte('\n')
		for _, f := range fs {
			mark := map[profile.Severity]string{profile.Info: "·", profile.Warning: "!", profile.Problem: "✗"}[f.Severity]
			for i, l := range wrap(text.Clean(f.Text), o.Width-2) {
				if i > 0 {
					mark = " "
				}
				fmt.Fprintf(&b, "%s %s\n", mark, l)
			}
		}
	}
	if len(p.Incomplete) > 0 {
		fmt.Fprintf(&b, "\nIncomplete: %s\n", text.Clean(words.Incomplete(p)))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// drawn is a column with its cells.
type drawn struct {
	column
	at    int // position among all columns
	cells []string
	width int
}

// leastText is the width below which a column of text is not worth its room.
const leastText = 12

// fit drops the columns that matter least until the table is at most width wide,
// and gives the room that is then left to those that fit, texts cut shorter.
func fit(cols *[]drawn, width int) {
	if width <= 0 {
		return
	}
	total := -len(gap)
	for _, c := range *cols {
		total += c.width + len(gap)
	}
	var dropped []drawn
	for total > width && len(*cols) > 2 {
		least := 0
		for i, c := range *cols {
			if c.keep < (*cols)[least].keep {
				least = i
			}
		}
		c := (*cols)[least]
		total -= c.width + len(gap)
		dropped = append(dropped, c)
		*cols = slices.Delete(*cols, least, least+1)
	}
	for _, c := range slices.Backward(dropped) {
		room := width - total - len(gap)
		switch {
		case c.width <= room:
		case c.left && room >= leastText && lipgloss.Width(c.head) <= room:
			c.cut(room)
		default:
			continue
		}
		total += c.width + len(gap)
		*cols = append(*cols, c)
	}
	slices.SortFunc(*cols, func(x, y drawn) int { return x.at - y.at })
	// What is still too wide has only its first columns left.
	if over := total - width; over > 0 {
		for i := range *cols {
			if c := &(*cols)[i]; c.left && c.width-over >= leastText {
				c.cut(c.width - over)
				break
			}
		}
	}
}

// cut shortens the column's texts.
func (c *drawn) cut(width int) {
	c.width = width
	for i, s := range c.cells {
		c.cells[i] = shorten(s, width)
	}
}

// grid writes the rows with the columns that have something to show and fit.
func grid(b *strings.Builder, p *profile.Profile, rs []row, o Options) {
	hidden := 0
	if o.Top > 0 && len(rs) > o.Top {
		hidden = len(rs) - o.Top
		rs = rs[:o.Top]
	}
	var cols []drawn
	for at, c := range columnsFor(p, o) {
		if c.keep < 0 {
			continue
		}
		d := drawn{column: c, at: at, width: lipgloss.Width(c.head)}
		empty := true
		for i := range rs {
			s := c.human(&rs[i])
			if c.wide > 0 {
				s = shorten(s, c.wide)
			}
			empty = empty && s == ""
			d.cells = append(d.cells, s)
			d.width = max(d.width, lipgloss.Width(s))
		}
		if !empty {
			cols = append(cols, d)
		}
	}
	fit(&cols, o.Width)
	line := func(cell func(c drawn) string) string {
		cells := make([]string, len(cols))
		for i, c := range cols {
			cells[i] = pad(cell(c), c.width, c.left)
		}
		return strings.TrimRight(strings.Join(cells, gap), " ")
	}
	h := line(func(c drawn) string { return c.head })
	if o.Color {
		h = lipgloss.NewStyle().Bold(true).Render(h)
	}
	b.WriteString(h + "\n")
	for i := range rs {
		b.WriteString(line(func(c drawn) string { return c.cells[i] }) + "\n")
	}
	if hidden > 0 {
		fmt.Fprintf(b, "… and %d more: --top 0 shows all\n", hidden)
	}
}

func pad(s string, width int, left bool) string {
	fill := strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
	if left {
		return s + fill
	}
	return fill + s
}

// shorten cuts text in the middle, where long names differ least.
func shorten(s string, width int) string {
	if lipgloss.Width(s) <= width {
		return s
	}
	r := []rune(s)
	head, tail := width/2, width-width/2-1
	for head+tail > 2 && (head+tail+1 > len(r) || lipgloss.Width(string(r[:head])+"…"+string(r[len(r)-tail:])) > width) {
		if head >= tail {
			head--
		} else {
			tail--
		}
	}
	return string(r[:head]) + "…" + string(r[len(r)-tail:])
}

// wrap breaks text at blanks into lines of at most width columns; 0 or less
// means no limit.
func wrap(s string, width int) []string {
	if width < 20 || lipgloss.Width(s) <= width {
		return []string{s}
	}
	return strings.Split(lipgloss.Wrap(s, width, " "), "\n")
}

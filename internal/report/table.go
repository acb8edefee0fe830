package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

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
	grid(&b, rs, o)
	if fs := p.Findings; len(fs) > 0 {
		b.WriteByte('\n')
		for _, f := range fs {
			mark := map[profile.Severity]string{profile.Info: "·", profile.Warning: "!", profile.Problem: "✗"}[f.Severity]
			for i, l := range wrap(Clean(f.Text), o.Width-2) {
				if i > 0 {
					mark = " "
				}
				fmt.Fprintf(&b, "%s %s\n", mark, l)
			}
		}
	}
	if p.Incomplete != "" {
		fmt.Fprintf(&b, "\nIncomplete: %s\n", Clean(p.Incomplete))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// grid writes the rows with the columns that have something to show and fit.
func grid(b *strings.Builder, rs []row, o Options) {
	hidden := 0
	if o.Top > 0 && len(rs) > o.Top {
		hidden = len(rs) - o.Top
		rs = rs[:o.Top]
	}
	type drawn struct {
		column
		cells []string
		width int
	}
	var cols []drawn
	for _, c := range columns() {
		if c.keep < 0 || o.By != "" && !c.group || o.By == "" && c.key == "layers" {
			continue
		}
		if c.key == "op" && o.By == "scope" {
			c.head, c.wide = "scope", 60
		}
		d := drawn{column: c, width: lipgloss.Width(c.head)}
		empty := true
		for _, r := range rs {
			s := c.human(r)
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
	total := func() int {
		n := 0
		for _, c := range cols {
			n += c.width + len(gap)
		}
		return n - len(gap)
	}
	for o.Width > 0 && total() > o.Width && len(cols) > 3 {
		least := 0
		for i, c := range cols {
			if c.keep < cols[least].keep {
				least = i
			}
		}
		cols = slices.Delete(cols, least, least+1)
	}
	line := func(cell func(c drawn) string) {
		var l strings.Builder
		for i, c := range cols {
			if i > 0 {
				l.WriteString(gap)
			}
			l.WriteString(pad(cell(c), c.width, c.left))
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	var head strings.Builder
	for i, c := range cols {
		if i > 0 {
			head.WriteString(gap)
		}
		head.WriteString(pad(c.head, c.width, c.left))
	}
	h := strings.TrimRight(head.String(), " ")
	if o.Color {
		h = lipgloss.NewStyle().Bold(true).Render(h)
	}
	b.WriteString(h + "\n")
	for i := range rs {
		line(func(c drawn) string { return c.cells[i] })
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

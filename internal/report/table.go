package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

const gap = "  "

// writeTable writes summary, table and findings for a terminal.
func writeTable(w io.Writer, p *profile.Profile, o Options) error {
	var b strings.Builder
	writeFacts(&b, p, o)
	o.Sort = o.order(p)
	rs, err := rows(p, o)
	if err != nil {
		return err
	}
	if len(rs) > 0 {
		b.WriteByte('\n')
		grid(&b, p, rs, o)
	}
	if o.Memory {
		writeMemory(&b, p, o)
	}
	writeFindings(&b, p, o)
	_, err = io.WriteString(w, b.String())
	return err
}

// Brief writes what the table says beside its rows, summary and findings, for those who
// have the rows in a file.
func Brief(w io.Writer, p *profile.Profile, o Options) error {
	var b strings.Builder
	writeFacts(&b, p, o)
	writeFindings(&b, p, o)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFacts writes the headline and, with details or without a headline, all figures of the model.
func writeFacts(b *strings.Builder, p *profile.Profile, o Options) {
	title, brief := headline(p)
	if len(brief) > 0 {
		lines := wrap(title, o.Width)
		if o.Color {
			for i := range lines {
				lines[i] = text.Bold.Render(lines[i])
			}
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
		writeLabelled(b, brief, o)
		if !o.Details {
			return
		}
		b.WriteByte('\n')
	}
	writeLabelled(b, summary(p), o)
}

// writeLabelled writes labels and values in two columns.
func writeLabelled(b *strings.Builder, facts []fact, o Options) {
	label := 0
	for _, f := range facts {
		label = max(label, text.Width(f.label))
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
}

// marks stand before findings, with the colour of a terminal.
var marks = map[profile.Severity]struct {
	mark  string
	style text.Style
}{
	profile.Info:    {"·", text.Faint},
	profile.Warning: {"!", text.BoldYellow},
	profile.Problem: {"✗", text.BoldRed},
}

// writeFindings writes the findings, and what the profile lacks.
func writeFindings(b *strings.Builder, p *profile.Profile, o Options) {
	if len(p.Findings) > 0 {
		b.WriteByte('\n')
	}
	for _, f := range p.Findings {
		m := marks[f.Severity]
		mark := m.mark
		if o.Color {
			mark = m.style.Render(mark)
		}
		for i, l := range wrap(text.Clean(f.Text), o.Width-2) {
			if i > 0 {
				mark = " "
			}
			fmt.Fprintf(b, "%s %s\n", mark, l)
		}
	}
	if len(p.Incomplete) > 0 {
		b.WriteByte('\n')
		for _, l := range wrap("Incomplete: "+text.Clean(words.Incomplete(p)), o.Width) {
			b.WriteString(l + "\n")
		}
	}
}

// order is the order of the rows: where only the first are shown and no order was asked
// for, these are to be the slowest, or those with the most work where no time is known.
func (o *Options) order(p *profile.Profile) string {
	switch {
	case o.Top <= 0 || o.Sort != "":
		return o.Sort
	case known(p, "latency_s"):
		return "time"
	case known(p, "macs"):
		return "macs"
	}
	return ""
}

// known reports whether a layer has a figure.
func known(p *profile.Profile, key string) bool {
	return slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { _, ok := l.Figure(key).Best(); return ok })
}

// drawn is a column with its cells.
type drawn struct {
	column
	at    int // position among all columns
	cells []string
	width int // of the widest cell
	shown int // that the column gets, 0 for none
}

// least is the width below which the column is not worth its width.
func (c *drawn) least() int {
	if c.flex > 0 {
		return min(c.width, max(c.flex, text.Width(c.head)))
	}
	return c.width
}

// fit gives the columns that matter most their width in width columns, 0 for no limit,
// and to texts what is left, cut shorter. Those without room are left with none.
func fit(cols []drawn, width int) {
	if width <= 0 {
		for i := range cols {
			cols[i].shown = cols[i].width
		}
		return
	}
	order := make([]*drawn, len(cols))
	for i := range cols {
		order[i] = &cols[i]
	}
	sorting.Stable(order, func(x, y *drawn) int { return y.keep - x.keep })
	room := width + len(gap)
	for i, c := range order {
		if need := c.least() + len(gap); need <= room {
			c.shown, room = c.least(), room-need
		} else if i < 2 { // which row it is must be seen
			c.shown = max(1, min(c.least(), room-len(gap)))
			room = max(0, room-c.shown-len(gap))
		}
	}
	for _, c := range order {
		if c.shown > 0 {
			more := min(room, c.width-c.shown)
			c.shown, room = c.shown+more, room-more
		}
	}
}

// noteKey is the column of notes, which follow below a table that has no room for them.
const noteKey = "note"

// grid writes the rows with the columns that have something to show and fit.
func grid(b *strings.Builder, p *profile.Profile, rs []row, o Options) {
	all := len(rs)
	if o.Top > 0 && all > o.Top {
		rs = rs[:o.Top]
	}
	cols := draw(p, rs, o)
	fit(cols, o.Width)
	var notes []string
	i := slices.IndexFunc(cols, func(c drawn) bool { return c.key == noteKey })
	// What says which layer it is goes before what is said of it.
	named := func(c drawn) bool { return c.shown == 0 && c.keep >= nameKeep && c.key != noteKey }
	if i >= 0 && (cols[i].shown < cols[i].width || cols[i].width > cols[i].wide || slices.ContainsFunc(cols, named)) {
		notes = notesBelow(rs, cols[i])
		cols = slices.Delete(cols, i, i+1)
		for k := range cols {
			cols[k].shown = 0
		}
		fit(cols, o.Width)
	}
	line := func(cell func(c *drawn) string) string {
		var cells []string
		for i := range cols {
			if c := &cols[i]; c.shown > 0 {
				cells = append(cells, pad(c.shorten(cell(c), c.shown), c.shown, c.left))
			}
		}
		return strings.TrimRight(strings.Join(cells, gap), " ")
	}
	h := line(func(c *drawn) string { return c.head })
	if o.Color {
		h = text.Bold.Render(h)
	}
	b.WriteString(h + "\n")
	for i := range rs {
		b.WriteString(line(func(c *drawn) string { return c.cells[i] }) + "\n")
	}
	if len(rs) < all {
		b.WriteString(topLine(len(rs), all, o) + "\n")
	}
	if g := groupingOf(o.By); g != nil && slices.ContainsFunc(rs, func(r row) bool { return r.inner() }) {
		note := g.note
		if slices.ContainsFunc(rs, func(r row) bool { return r.block != nil && r.block.figures["latency_s"] != nil }) {
			note += " " + g.times
		}
		notes = append(notes, note)
	}
	var lacking []string
	for _, c := range cols {
		if c.shown == 0 && c.head != "" {
			lacking = append(lacking, c.head)
		}
	}
	if len(lacking) > 0 {
		notes = append(notes, noRoom(lacking))
	}
	for i, n := range notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		for _, l := range wrap(n, o.Width) {
			b.WriteString(l + "\n")
		}
	}
}

// noRoom names the columns that the terminal is too narrow for.
func noRoom(heads []string) string {
	return "not shown (terminal too narrow): " + strings.Join(heads, ", ")
}

// draw makes the columns that have something to show, with their cells.
func draw(p *profile.Profile, rs []row, o Options) []drawn {
	var cols []drawn
	for at, c := range columnsFor(p, o) {
		if c.keep < 0 || c.terminal && o.Width <= 0 {
			continue
		}
		d := drawn{column: c, at: at, width: text.Width(c.head)}
		empty := true
		for i := range rs {
			s := c.human(&rs[i])
			if c.wide > 0 && c.key != noteKey {
				s = c.shorten(s, c.wide)
			}
			empty = empty && s == ""
			d.cells = append(d.cells, s)
			d.width = max(d.width, text.Width(s))
		}
		if !empty {
			cols = append(cols, d)
		}
	}
	return cols
}

// notesBelow are the notes of the rows as lines of their own, alike ones together.
func notesBelow(rs []row, c drawn) []string {
	const most = 8 // rows that are named for a note
	var order []string
	of := map[string][]string{}
	for i := range rs {
		l := rs[i].layer()
		if c.cells[i] == "" || l == nil {
			continue
		}
		if of[c.cells[i]] == nil {
			order = append(order, c.cells[i])
		}
		of[c.cells[i]] = append(of[c.cells[i]], "#"+strconv.FormatInt(l.Index, 10))
	}
	var out []string
	for _, note := range order {
		who := of[note]
		rest := ""
		if len(who) > most {
			rest = " and " + words.Plural(int64(len(who)-most), "more layer")
			who = who[:most]
		}
		out = append(out, strings.Join(who, ", ")+rest+": "+note)
	}
	return out
}

// topLine says which rows of how many a table has.
func topLine(n, all int, o Options) string {
	what := "layers"
	if g := groupingOf(o.By); g != nil {
		what = g.many
	}
	order := o.groupOrder()
	switch order {
	case "", "index":
		return fmt.Sprintf("the first %d of %d %s: leave out --top for all", n, all, what)
	case "time":
		return fmt.Sprintf("the slowest %d of %d %s: leave out --top for all", n, all, what)
	}
	return fmt.Sprintf("the first %d of %d %s by %s: leave out --top for all", n, all, what, order)
}

// Column is a text that fills as many columns of a terminal: with spaces behind it, or cut in the
// middle.
func Column(s string, width int) string { return pad(shorten(s, width), width, true) }

// Columns is how many columns of a terminal a text takes.
func Columns(s string) int { return text.Width(s) }

func pad(s string, width int, left bool) string {
	fill := strings.Repeat(" ", max(0, width-text.Width(s)))
	if left {
		return s + fill
	}
	return fill + s
}

// ending is the end of a text, at most width columns wide.
func ending(s string, width int) string {
	return cut(s, width, func(r []rune, n int) string { return "…" + string(r[len(r)-n:]) })
}

// beginning is the beginning of a text, at most width columns wide.
func beginning(s string, width int) string {
	return cut(s, width, func(r []rune, n int) string { return string(r[:n]) + "…" })
}

// cut returns the longest part of a text, of n runes, that fits; one rune at least.
func cut(s string, width int, part func(r []rune, n int) string) string {
	if text.Width(s) <= width {
		return s
	}
	r := []rune(s)
	n := min(len(r), max(1, width-1))
	for n > 1 && text.Width(part(r, n)) > width {
		n--
	}
	return part(r, n)
}

// shorten cuts text in the middle, where long names differ least.
func shorten(s string, width int) string {
	if text.Width(s) <= width {
		return s
	}
	r := []rune(s)
	head, tail := width/2, width-width/2-1
	for head+tail > 2 && (head+tail+1 > len(r) || text.Width(string(r[:head])+"…"+string(r[len(r)-tail:])) > width) {
		if head >= tail {
			head--
		} else {
			tail--
		}
	}
	return string(r[:head]) + "…" + string(r[len(r)-tail:])
}

// shortenApart shortens texts so that those that differ still do: where they are cut to the same
// text, they keep what comes after their common beginning, or get a number.
func shortenApart(all []string, widths []int) []string {
	out := make([]string, len(all))
	groups := map[string][]int{}
	const least = 5 // columns in which names can be told apart
	for i := range all {
		if widths[i] == 0 {
			continue
		}
		if out[i] = shorten(text.Clean(all[i]), widths[i]); widths[i] < least {
			continue
		}
		groups[out[i]] = append(groups[out[i]], i)
	}
	for _, same := range groups {
		first := []rune(text.Clean(all[same[0]]))
		common := len(first)
		for _, i := range same {
			n := 0
			for _, r := range text.Clean(all[i]) {
				if n >= common || first[n] != r {
					break
				}
				n++
			}
			common = n
		}
		if common == len(first) && !slices.ContainsFunc(same, func(i int) bool { return all[i] != all[same[0]] }) {
			continue
		}
		taken := map[string]string{} // the text that a short one stands for
		for _, i := range same {
			full := text.Clean(all[i])
			rest := []rune(full)[common:]
			s := shorten("…"+string(rest), widths[i])
			for n := 2; taken[s] != "" && taken[s] != full && n < 1000; n++ {
				number := "~" + strconv.Itoa(n)
				s = shorten(full, max(widths[i]-len(number), 1)) + number
			}
			taken[s], out[i] = full, s
		}
	}
	return out
}

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// TargetRow is a profile for a target beside what the target has, in bytes; nil is not
// known. This computer is a target whose memory nobody asks for.
type TargetRow struct {
	Profile *profile.Profile
	// RAM and Flash are the largest internal memories, ExternalFlash the largest
	// outside, where chips without internal flash keep the model.
	RAM, Flash, ExternalFlash *int64
	// Over says which limits of the user's the profile exceeds, Near which it may exceed.
	Over, Near []string
}

// missing is the number of layers without an estimate.
func (r TargetRow) missing() (n int64) {
	for i := range r.Profile.Layers {
		if l := &r.Profile.Layers[i]; l.State.Blank() && !l.Constant {
			n++
		}
	}
	return n
}

// Incomplete reports whether layers lack an estimate, so that the latency is only
// a part.
func (r TargetRow) Incomplete() bool { return r.missing() > 0 }

// found reports whether the estimate has a finding of that severity.
func (r TargetRow) found(id string, s profile.Severity) bool {
	return slices.ContainsFunc(r.Profile.Findings, func(f profile.Finding) bool { return f.ID == id && f.Severity == s })
}

// Fits is "yes", "no", "perhaps" where a limit lies inside the uncertainty, "?" where a size is not
// known, "" for this computer.
func (r TargetRow) Fits() string {
	ok, _ := r.fits()
	return ok
}

// fits says with the reason whether the target holds the model.
func (r TargetRow) fits() (ok, why string) {
	switch {
	case r.Profile.Target.Kind == profile.TargetHost:
		return "", "measured here"
	case r.found("target.refused", profile.Problem):
		return "no", "the runtime does not load this model"
	}
	ok = "yes"
	var unknown []string
	no, near := slices.Clone(r.Over), slices.Clone(r.Near)
	flash, where := r.Flash, "flash"
	if flash == nil && r.ExternalFlash != nil {
		flash, where = r.ExternalFlash, "external flash"
	}
	ram, least := r.Profile.Totals.RAMBytes, false
	if m := r.Profile.Memory; ram == nil && m != nil && m.PeakBytes != nil {
		ram, least = m.PeakBytes, true
	}
	for _, x := range []struct {
		name       string
		need, have *int64
		least      bool
	}{{"RAM", ram, r.RAM, least}, {where, r.Profile.Totals.FlashBytes, flash, false}} {
		switch {
		case x.have == nil:
			unknown = append(unknown, "no size of "+x.name)
		case x.need == nil:
			unknown = append(unknown, "need of "+x.name+" not known")
		case *x.need <= *x.have && x.name == where && r.found("target.flash", profile.Problem):
			no = append(no, "too little "+x.name+" for the program code")
		case *x.need <= *x.have && x.name == where && r.found("target.flash", profile.Warning):
			near = append(near, "program code may not fit in "+x.name)
		case *x.need > *x.have:
			no = append(no, fmt.Sprintf("%s short of %s", Bytes(*x.need-*x.have), x.name))
		case x.least:
			unknown = append(unknown, fmt.Sprintf("needs more than %s of RAM (activations alone)", Bytes(*x.need)))
		}
	}
	switch {
	case len(no) > 0:
		return "no", strings.Join(no, ", ")
	case r.RAM == nil && flash == nil:
		return "?", "unknown memory size"
	case len(unknown) > 0:
		return "?", strings.Join(slices.Concat(unknown, near), ", ")
	case len(near) > 0:
		return "perhaps", strings.Join(near, ", ")
	case where != "flash":
		return ok, "model in external flash"
	}
	return ok, ""
}

// Targets writes a table with a line for every row. width is that of the terminal, 0 for
// no limit: where it is too narrow, notes follow below the table, and bands and columns
// of less weight are left out.
func Targets(w io.Writer, rs []TargetRow, width int) error {
	cols, notes := targetColumns(rs)
	below := fitTargets(cols, width)
	cols, lacking := shownTargets(cols)
	var b strings.Builder
	for k := -1; k < len(rs); k++ {
		var cells []string
		for _, c := range cols {
			cells = append(cells, pad(c.cell(k), c.width(), c.left))
		}
		s := strings.TrimRight(strings.Join(cells, gap), " ")
		if width > leastWrap {
			s = shorten(s, width)
		}
		b.WriteString(s + "\n")
	}
	if below {
		lines := notesOf(rs, notes)
		if lacking != nil {
			lines = append(lines, noRoom(lacking))
		}
		writeLines(&b, lines, width)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Reasons writes why the rows' targets do not hold the model, or what their figures
// lack, without the figures.
func Reasons(w io.Writer, rs []TargetRow, width int) error {
	notes := make([]string, len(rs))
	for i := range rs {
		if _, notes[i] = rs[i].fits(); notes[i] == "" {
			notes[i] = rs[i].note()
		}
	}
	var b strings.Builder
	writeLines(&b, notesOf(rs, notes), width)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeLines(b *strings.Builder, lines []string, width int) {
	for _, n := range lines {
		for _, l := range wrap(n, width) {
			b.WriteString(l + "\n")
		}
	}
}

// fitTargets hides columns, and bands in them, until the table fits the width, and shows
// again those for which there is room after all. Notes are hidden first: below says that
// they have to follow the table.
func fitTargets(cols []targetColumn, width int) (below bool) {
	at := func(head string) *targetColumn {
		i := slices.IndexFunc(cols, func(c targetColumn) bool { return c.head == head })
		if i < 0 {
			return &targetColumn{hidden: true}
		}
		return &cols[i]
	}
	narrow := func(c *targetColumn) {
		for k := range c.cells {
			c.cells[k], _, _ = strings.Cut(c.cells[k], " (")
		}
	}
	for _, give := range []func(){
		func() { at(noteKey).hidden = true },
		func() { narrow(at("energy")) },
		func() { at("energy").hidden = true },
		func() { at("flash").hidden = true },
		func() { narrow(at("latency")) },
	} {
		if width <= leastWrap || targetsWidth(cols) <= width {
			break
		}
		below = true
		give()
	}
	for _, head := range []string{"flash", "energy"} {
		if c := at(head); c.hidden && below {
			c.hidden = false
			c.hidden = targetsWidth(cols) > width
		}
	}
	return below
}

// shownTargets parts the columns that are shown from the headings of the others.
func shownTargets(cols []targetColumn) (shown []targetColumn, lacking []string) {
	for _, c := range cols {
		switch {
		case !c.hidden:
			shown = append(shown, c)
		case c.head != noteKey:
			lacking = append(lacking, c.head)
		}
	}
	return shown, lacking
}

// notesOf are notes with whom they are about, alike ones together.
func notesOf(rs []TargetRow, notes []string) []string {
	several := severalModels(rs)
	var order []string
	of := map[string][]string{}
	for i, n := range notes {
		if n == "" {
			continue
		}
		who := text.Clean(rs[i].Profile.Target.ID)
		if several {
			who = text.Clean(rs[i].Profile.Model.Name) + " on " + who
		}
		if of[n] == nil {
			order = append(order, n)
		}
		of[n] = append(of[n], who)
	}
	for i, n := range order {
		order[i] = strings.Join(of[n], ", ") + ": " + n
	}
	return order
}

// targetColumn is a column of the table of targets.
type targetColumn struct {
	head   string
	left   bool
	hidden bool
	cells  []string
}

// cell is the k-th cell, -1 the heading.
func (c *targetColumn) cell(k int) string {
	if k < 0 {
		return c.head
	}
	return c.cells[k]
}

func (c *targetColumn) width() int {
	n := text.Width(c.head)
	for _, s := range c.cells {
		n = max(n, text.Width(s))
	}
	return n
}

// targetColumns are the columns that have something to show, and the notes.
func targetColumns(rs []TargetRow) (cols []targetColumn, notes []string) {
	add := func(head string, left bool, cell func(r *TargetRow) string) {
		c := targetColumn{head: head, left: left}
		empty := true
		for i := range rs {
			s := cell(&rs[i])
			empty = empty && s == ""
			c.cells = append(c.cells, s)
		}
		if !empty || head == noteKey {
			cols = append(cols, c)
		}
	}
	if severalModels(rs) {
		add("model", true, func(r *TargetRow) string { return shorten(text.Clean(r.Profile.Model.Name), 30) })
	}
	add("target", true, func(r *TargetRow) string { return text.Clean(r.Profile.Target.ID) })
	add("latency", false, func(r *TargetRow) string { return band(r.Profile.Totals.Latency, Duration) })
	add("RAM", false, func(r *TargetRow) string { return bytesOf(r.Profile.Totals.RAMBytes) })
	add("flash", false, func(r *TargetRow) string {
		s := bytesOf(r.Profile.Totals.FlashBytes)
		if s != "" && r.Profile.Totals.CodeBytes != nil {
			s += " + code"
		}
		return s
	})
	add("energy", false, func(r *TargetRow) string {
		return band(r.Profile.Totals.Energy, func(v float64) string { return Quantity(v, "J") })
	})
	add("fits", true, func(r *TargetRow) string { return r.Fits() })
	for i := range rs {
		notes = append(notes, rs[i].note())
	}
	add(noteKey, true, func(r *TargetRow) string { return r.note() })
	return cols, notes
}

// note says what the target is short of, and what the figures lack.
func (r *TargetRow) note() string {
	_, note := r.fits()
	if n := r.missing(); n > 0 {
		if note != "" {
			note += "; "
		}
		what := "without an estimate"
		if r.Profile.Target.Kind == profile.TargetHost {
			what = "that did not run"
		}
		note += fmt.Sprintf("incomplete: %s %s", words.Plural(n, "layer"), what)
	}
	if r.Profile.Target.Kind == profile.TargetHost {
		return note
	}
	for _, f := range r.Profile.Findings {
		// Sizes are in the column before, and layers without an estimate were told.
		if sizes := f.ID == "target.ram" || f.ID == "target.flash"; f.Severity == profile.Info || sizes || f.ID == "target.incomplete" || f.ID == "target.refused" {
			continue
		}
		if note != "" {
			note += "; "
		}
		note += uncapital(strings.TrimSuffix(text.Clean(f.Text), "."))
	}
	return note
}

// uncapital lowers the first letter of a sentence, unless its first word is a name such as MVP.
func uncapital(s string) string {
	if word, _, _ := strings.Cut(s, " "); len(word) < 2 || strings.ToLower(word[1:]) != word[1:] {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// severalModels reports whether the rows are of more than one model.
func severalModels(rs []TargetRow) bool {
	return slices.ContainsFunc(rs, func(r TargetRow) bool { return r.Profile.Model.Name != rs[0].Profile.Model.Name })
}

func targetsWidth(cols []targetColumn) int {
	total := -len(gap)
	for _, c := range cols {
		if !c.hidden {
			total += c.width() + len(gap)
		}
	}
	return total
}

func bytesOf(v *int64) string {
	if v == nil {
		return ""
	}
	return Bytes(*v)
}

// band writes "23.1 ms (20.4 ms to 26.0 ms)".
func band(m *profile.Metric, show func(float64) string) string {
	v, ok := m.Best()
	if !ok {
		return ""
	}
	if m.Band == nil {
		return show(v)
	}
	return fmt.Sprintf("%s (%s to %s)", show(v), show(m.Band[0]), show(m.Band[1]))
}

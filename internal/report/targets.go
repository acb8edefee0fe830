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

// TargetRow is an estimate beside what its target has, in bytes; nil is not known.
type TargetRow struct {
	Profile *profile.Profile
	// RAM and Flash are the largest internal memories, ExternalFlash the largest
	// outside, where chips without internal flash keep the model.
	RAM, Flash, ExternalFlash *int64
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

// Fits is "yes", "no" or "?" where a size is not known.
func (r TargetRow) Fits() string {
	ok, _ := r.fits()
	return ok
}

// fits says with the reason whether the target holds the model.
func (r TargetRow) fits() (ok, why string) {
	if r.found("target.refused", profile.Problem) {
		return "no", "the runtime does not load this model"
	}
	ok = "yes"
	var no, unknown []string
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
			unknown = append(unknown, "program code may not fit the "+x.name)
		case *x.need > *x.have:
			no = append(no, fmt.Sprintf("%s short of %s", Bytes(*x.need-*x.have), x.name))
		case x.least:
			unknown = append(unknown, fmt.Sprintf("needs more than %s of RAM for activations, how much more is not known", Bytes(*x.need)))
		}
	}
	switch {
	case len(no) > 0:
		return "no", strings.Join(no, ", ")
	case r.RAM == nil && flash == nil:
		return "?", "target has no memory sizes: cannot say"
	case len(unknown) > 0:
		return "?", strings.Join(unknown, ", ")
	case where != "flash":
		return ok, "model in external flash"
	}
	return ok, ""
}

// Targets writes a table with a line for every target. width is that of the
// terminal, 0 for no limit: where it is too narrow, notes follow below the table, and
// bands and columns of less weight are left out.
func Targets(w io.Writer, rs []TargetRow, width int) error {
	lines, notes := targetLines(rs)
	plain := make([][]string, len(lines))
	for i, l := range lines {
		plain[i] = slices.Clone(l)
	}
	// What is given up, one after the other: the column, or its band alone.
	const latency, flash, energy, note = 1, 3, 4, 6
	below := false
	for _, c := range []struct {
		column int
		band   bool
	}{{note, false}, {energy, true}, {energy, false}, {flash, false}, {latency, true}} {
		if width <= 20 || tableWidth(plain) <= width {
			break
		}
		below = true
		for _, l := range plain {
			if c.band {
				l[c.column], _, _ = strings.Cut(l[c.column], " (")
			} else {
				l[c.column] = left
			}
		}
	}
	if err := writeTargets(w, plain, width); err != nil || !below {
		return err
	}
	for i, n := range notes {
		if n == "" {
			continue
		}
		for _, l := range wrap(text.Clean(rs[i].Profile.Target.ID)+": "+n, width) {
			if _, err := fmt.Fprintln(w, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// left marks the cells of a column that is left out.
const left = "\x00"

// targetLines are the cells of the table, heading first, and the notes.
func targetLines(rs []TargetRow) (lines [][]string, notes []string) {
	lines = [][]string{{"target", "latency", "RAM", "flash", "energy", "fits", "note"}}
	for _, r := range rs {
		t := r.Profile.Totals
		fits, note := r.fits()
		if n := r.missing(); n > 0 {
			if note != "" {
				note += "; "
			}
			note += fmt.Sprintf("incomplete: %s without an estimate", words.Plural(n, "layer"))
		}
		for _, f := range r.Profile.Findings {
			// Sizes are in the column before, and layers without an estimate were told.
			if sizes := f.ID == "target.ram" || f.ID == "target.flash"; f.Severity == profile.Info || sizes || f.ID == "target.incomplete" || f.ID == "target.refused" {
				continue
			}
			if note != "" {
				note += "; "
			}
			note += strings.TrimSuffix(text.Clean(f.Text), ".")
		}
		notes = append(notes, note)
		lines = append(lines, []string{
			text.Clean(r.Profile.Target.ID), band(t.Latency, Duration), bytesOf(t.RAMBytes), bytesOf(t.FlashBytes),
			band(t.Energy, func(v float64) string { return Quantity(v, "J") }), fits, note,
		})
	}
	return lines, notes
}

// columnWidths is the widest cell of each column, -1 for those left out.
func columnWidths(lines [][]string) []int {
	widths := make([]int, len(lines[0]))
	for i := range widths {
		widths[i] = -1
		for _, l := range lines {
			if l[i] != left {
				widths[i] = max(widths[i], lipgloss.Width(l[i]))
			}
		}
	}
	return widths
}

func tableWidth(lines [][]string) int {
	total := -len(gap)
	for _, n := range columnWidths(lines) {
		if n >= 0 {
			total += n + len(gap)
		}
	}
	return total
}

func writeTargets(w io.Writer, lines [][]string, width int) error {
	widths := columnWidths(lines)
	for _, l := range lines {
		var cells []string
		for i, s := range l {
			if s != left {
				cells = append(cells, pad(s, widths[i], i == 0 || i >= 5))
			}
		}
		s := strings.TrimRight(strings.Join(cells, gap), " ")
		if width > 20 {
			s = shorten(s, width)
		}
		if _, err := fmt.Fprintln(w, s); err != nil {
			return err
		}
	}
	return nil
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

package report

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/opmeter/opmeter/profile"
)

// TargetRow is an estimate beside what its target has, in bytes; nil is not known.
type TargetRow struct {
	Profile    *profile.Profile
	RAM, Flash *int64
}

// missing is the number of layers without an estimate.
func (r TargetRow) missing() (n int64) {
	for i := range r.Profile.Layers {
		if r.Profile.Layers[i].Latency == nil {
			n++
		}
	}
	return n
}

// Incomplete reports whether layers lack an estimate, so that the latency is only
// a part.
func (r TargetRow) Incomplete() bool { return r.missing() > 0 }

// Fits is "yes", "no" or "?" where a size is not known.
func (r TargetRow) Fits() string {
	t, ok := r.Profile.Totals, "yes"
	for _, x := range []struct{ need, have *int64 }{{t.RAMBytes, r.RAM}, {t.FlashBytes, r.Flash}} {
		switch {
		case x.need == nil || x.have == nil:
			ok = "?"
		case *x.need > *x.have:
			return "no"
		}
	}
	return ok
}

// Targets writes a table with a line for every target. width is that of the
// terminal, 0 for no limit.
func Targets(w io.Writer, rs []TargetRow, width int) error {
	lines := [][]string{{"target", "latency", "RAM", "flash", "energy", "fits", "note"}}
	for _, r := range rs {
		t := r.Profile.Totals
		note := ""
		if n := r.missing(); n > 0 {
			note = fmt.Sprintf("incomplete: %s without an estimate", plural(n, "layer"))
		}
		lines = append(lines, []string{
			Clean(r.Profile.Target.ID), band(t.Latency, Duration), bytesOf(t.RAMBytes), bytesOf(t.FlashBytes),
			band(t.Energy, func(v float64) string { return Quantity(v, "J") }), r.Fits(), note,
		})
	}
	widths := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, s := range l {
			widths[i] = max(widths[i], lipgloss.Width(s))
		}
	}
	for _, l := range lines {
		var b strings.Builder
		for i, s := range l {
			if i > 0 {
				b.WriteString(gap)
			}
			b.WriteString(pad(s, widths[i], i == 0 || i >= 5))
		}
		s := strings.TrimRight(b.String(), " ")
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

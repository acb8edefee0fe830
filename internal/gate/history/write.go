package history

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
)

// Formats are the formats of a history, with the endings of their files.
var Formats = []string{"table", "csv", "json", "html"}

var endings = map[string]string{".txt": "table", ".csv": "csv", ".json": "json", ".html": "html"}

// FormatOf is the format of a file by its ending.
func FormatOf(path string) (string, error) {
	if f := endings[strings.ToLower(filepath.Ext(path))]; f != "" {
		return f, nil
	}
	return "", fmt.Errorf("%s: the ending does not name a format of histories: use one of .txt .csv .json .html", path)
}

// Write writes the history in a format. all shows series without a change in a table, too, and
// width is that of the terminal, 0 for none.
func (h *History) Write(w io.Writer, format string, all bool, width int) error {
	switch format {
	case "table":
		return h.text(w, all, width)
	case "csv":
		return h.csv(w)
	case "json":
		return jsonx.MarshalWrite(w, h)
	case "html":
		return h.page(w)
	}
	return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(Formats, ", "))
}

// File writes the history to a file in the format of its ending.
func (h *History) File(path string) error {
	format, err := FormatOf(path)
	if err != nil {
		return err
	}
	return atomicfile.Stream(path, func(w io.Writer) error { return h.Write(w, format, true, 0) })
}

// short is a commit or a date for people.
func (p *Point) short() string {
	s := p.Time.UTC().Format(time.DateOnly)
	if p.Commit != "" {
		s += " " + text.Clean(p.Commit[:min(len(p.Commit), 10)])
		if p.Dirty {
			s += "+"
		}
	}
	return s
}

// line says what a change is.
func (s *Series) line(c *Change) string {
	out := fmt.Sprintf("%s: %s → %s", s.Points[c.At].short(), gate.Amount(c.Before, s.Unit), gate.Amount(c.After, s.Unit))
	if c.Before != 0 {
		out += " (" + report.Change(c.After/c.Before-1, 1) + ")"
	}
	if c.P != nil {
		out += fmt.Sprintf(", p = %.3f", *c.P)
	}
	if r := s.Points[c.At].Accepted; r != "" {
		out += ", accepted: " + text.Clean(r)
	}
	return out
}

// leftOut says which points are left out of changes, and why.
func (s *Series) leftOut() (out []string) {
	for i := range s.Points {
		p := &s.Points[i]
		if p.LeftOut != "" {
			out = append(out, fmt.Sprintf("%s: %s, %s", p.short(), gate.Amount(p.Value, s.Unit), cmp.Or(leftOutWords[p.LeftOut], p.LeftOut)))
		}
	}
	return out
}

var leftOutWords = map[string]string{gate.Replaced: "replaced by a merge", gate.OtherBranch: "on another branch"}

// line says what a mark is.
func (m *Mark) line(s *Series) string {
	return fmt.Sprintf("%s: %s %s → %s", s.Points[m.At].short(), m.What, unknown(m.From), unknown(m.To))
}

func unknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return text.Clean(s)
}

// title names a series without its figure.
func (s *Series) title() string {
	t := text.Clean(s.Model) + " on " + text.Clean(s.Target)
	if s.Settings != "" {
		t += ", " + text.Clean(s.Settings)
	}
	return t
}

func (h *History) text(w io.Writer, all bool, width int) error {
	var b strings.Builder
	put := func(label, format string, args ...any) {
		for i, l := range report.Wrap(fmt.Sprintf(format, args...), max(width-len(label), 0)) {
			if i > 0 {
				label = strings.Repeat(" ", len(label))
			}
			b.WriteString(label + l + "\n")
		}
	}
	changed := 0
	for i := range h.Series {
		if len(h.Series[i].Changes) > 0 {
			changed++
		}
	}
	more := ""
	if changed < len(h.Series) && !all {
		more = " --all shows the others."
	}
	put("", "%d of %d figures changed.%s", changed, len(h.Series), more)
	put("order  ", "%s", text.Clean(h.Order))
	last := ""
	for i := range h.Series {
		s := &h.Series[i]
		if len(s.Changes) == 0 && !all {
			continue
		}
		if t := s.title(); t != last {
			b.WriteByte('\n')
			put("", "%s", t)
			last = t
		}
		if kept := s.kept(); len(kept) > 0 {
			first, end := &s.Points[kept[0]], &s.Points[kept[len(kept)-1]]
			put("  ", "%s: %s → %s, %s, %s to %s", s.Name, gate.Amount(first.Value, s.Unit), gate.Amount(end.Value, s.Unit),
				words.Plural(int64(len(kept)), "point"), first.Time.UTC().Format(time.DateOnly), end.Time.UTC().Format(time.DateOnly))
		} else {
			put("  ", "%s: no point of this branch", s.Name)
		}
		if s.Left > 0 {
			put("    ", "%s left out", words.Plural(int64(s.Left), "older point"))
		}
		for k := range s.Changes {
			put("    changed  ", "%s", s.line(&s.Changes[k]))
		}
		for k := range s.Marks {
			put("    other    ", "%s", s.Marks[k].line(s))
		}
		const most = 5
		out := s.leftOut()
		for _, l := range out[:min(len(out), most)] {
			put("    left out ", "%s", l)
		}
		if n := len(out) - most; n > 0 {
			put("    left out ", "%s", words.Plural(int64(n), "more point"))
		}
	}
	if len(h.Notes) > 0 {
		b.WriteByte('\n')
	}
	for _, n := range h.Notes {
		put("note: ", "%s", text.Clean(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (h *History) csv(w io.Writer) error {
	c := csv.NewWriter(w)
	// errors stay until Flush
	_ = c.Write([]string{"model", "target", "figure", "unit", "time", "commit", "value", "machine", "settings", "version", "change", "p", "left_out"})
	for i := range h.Series {
		s := &h.Series[i]
		at := map[int]*Change{}
		for k := range s.Changes {
			at[s.Changes[k].At] = &s.Changes[k]
		}
		for k := range s.Points {
			p := &s.Points[k]
			change, sure := "", ""
			if x := at[k]; x != nil {
				change = "yes"
				if x.P != nil {
					sure = strconv.FormatFloat(*x.P, 'g', -1, 64)
				}
			}
			_ = c.Write([]string{
				text.Cell(s.Model), text.Cell(s.Target), s.Figure, s.Unit, p.Time.UTC().Format(time.RFC3339), text.Cell(p.Commit),
				report.PlainNumber(p.Value), text.Cell(p.Machine), text.Cell(p.Settings), text.Cell(p.Version), change, sure, p.LeftOut,
			})
		}
	}
	c.Flush()
	return c.Error()
}

package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// Models writes a table of models, one line each, as they come, and at its end
// the reasons for which files were refused, alike ones together.
type Models struct {
	w       io.Writer
	csv     *csv.Writer
	width   int
	n, bad  int
	reasons map[string]*reason
}

// reason is why one or more files were refused.
type reason struct {
	class   string
	count   int
	example string // file of the first
}

// NewModels starts a table in format "table" (or "") or "csv". width is that of
// the terminal, 0 for no limit.
func NewModels(w io.Writer, format string, width int) *Models {
	m := &Models{w: w, width: width, reasons: map[string]*reason{}}
	if format == "csv" {
		m.csv = csv.NewWriter(w)
	}
	return m
}

// Add writes the line of a model, or why it could not be profiled.
func (m *Models) Add(path string, p *profile.Profile, err error) error {
	if m.n++; m.n == 1 {
		if werr := m.line("model", "format", "layers", "MACs", "params", "latency", "trust", "note", true); werr != nil {
			return werr
		}
	}
	name := filepath.Base(path)
	if err != nil {
		m.bad++
		why := strings.TrimPrefix(strings.TrimPrefix(err.Error(), path), ": ")
		m.note(why, name)
		if m.csv != nil {
			return m.line(name, "", "", "", "", "", "", "refused: "+why, false)
		}
		return m.print(fmt.Sprintf("%s  refused: %s", m.name(name), text.Clean(why)))
	}
	num := func(v *int64) string {
		switch {
		case v == nil:
			return ""
		case m.csv != nil:
			return strconv.FormatInt(*v, 10)
		}
		return Count(*v)
	}
	time := ""
	if v, ok := p.Totals.Latency.Best(); ok {
		time = Duration(v)
		if m.csv != nil {
			time = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	trust := ""
	if p.Trust != nil {
		trust = words.Verdict(p.Trust.Verdict)
	}
	notes := words.Blanks(p)
	if len(p.Incomplete) > 0 {
		notes = append(notes, words.Incomplete(p))
	}
	return m.line(name, p.Model.Format, num(p.Totals.Layers), num(p.Totals.MACs), num(p.Totals.Params), time, trust, strings.Join(notes, ", "), false)
}

// What differs between files that are refused for one reason.
var (
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	hexText    = regexp.MustCompile(`\b(?:0x[0-9a-f]+|[0-9a-f]{2}(?: [0-9a-f]{2})+)\b`)
	numberText = regexp.MustCompile(`-?\d+(?:[x.]\d+)*`)
)

// reasonClass takes names and figures out of an error's text, so that alike
// errors fall together.
func reasonClass(why string) string {
	why, _, _ = strings.Cut(why, "\n")
	why = quotedText.ReplaceAllString(why, `"…"`)
	why = hexText.ReplaceAllString(why, "…")
	why = numberText.ReplaceAllString(why, "N")
	// The place in the file comes first and differs every time.
	if place, what, ok := strings.Cut(why, " at byte N: "); ok && !strings.Contains(place, " ") {
		why = what
	}
	return text.Clean(why)
}

// note counts a refusal under its reason.
func (m *Models) note(text, file string) {
	class := reasonClass(text)
	r := m.reasons[class]
	if r == nil {
		r = &reason{class: class, example: file}
		m.reasons[class] = r
	}
	r.count++
}

// nameWidth is the room for a model's name.
const nameWidth = 44

func (m *Models) line(name, format, layers, macs, params, time, trust, note string, head bool) error {
	if m.csv != nil {
		if head {
			time = "latency_s"
		}
		return m.csv.Write([]string{text.Cell(name), format, layers, strings.ToLower(macs), params, time, trust, text.Cell(note)})
	}
	// In a line for people there is room for a verdict where there is one.
	if trust != "" && !head {
		note = strings.TrimSuffix(trust+"; "+note, "; ")
	}
	return m.print(fmt.Sprintf("%s  %-6s  %6s  %7s  %7s  %8s  %s", m.name(name), format, layers, macs, params, time, text.Clean(note)))
}

func (m *Models) name(s string) string {
	return pad(shorten(text.Clean(s), nameWidth), nameWidth, true)
}

// print writes a line, cut at the terminal's edge.
func (m *Models) print(l string) error {
	_, err := fmt.Fprintln(m.w, m.clip(strings.TrimRight(l, " ")))
	return err
}

// clip cuts a line at the terminal's edge.
func (m *Models) clip(l string) string {
	if m.width <= nameWidth {
		return l
	}
	return clip(l, m.width)
}

// clip cuts a line to a width, 0 for no limit.
func clip(l string, width int) string {
	if width <= 0 || lipgloss.Width(l) <= width {
		return l
	}
	r := []rune(l)
	n := min(len(r), width-1)
	for lipgloss.Width(string(r[:n])) > width-1 {
		n--
	}
	return string(r[:n]) + "…"
}

// reasonRows bounds the table of reasons.
const reasonRows = 20

// Close ends the table.
func (m *Models) Close() error {
	if m.csv != nil {
		m.csv.Flush()
		return m.csv.Error()
	}
	var b strings.Builder
	b.WriteString(words.Plural(int64(m.n), "model"))
	if m.bad > 0 {
		fmt.Fprintf(&b, ", %d refused:\n\n%5s  %s  reason", m.bad, "count", pad("example", nameWidth, true))
		list := slices.SortedFunc(maps.Values(m.reasons), func(x, y *reason) int {
			return cmp.Or(cmp.Compare(y.count, x.count), cmp.Compare(x.class, y.class))
		})
		for i, r := range list {
			if i == reasonRows && len(list) > reasonRows+1 {
				fmt.Fprintf(&b, "\n%5s  and %d more reasons", "", len(list)-i)
				break
			}
			b.WriteString("\n" + m.clip(fmt.Sprintf("%5d  %s  %s", r.count, m.name(r.example), r.class)))
		}
	}
	_, err := io.WriteString(m.w, b.String()+"\n")
	return err
}

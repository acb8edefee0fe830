package history

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/report/text"
)

// pageHead is the page to the begin of its content, with TITLE in place of its title.
//
//go:embed page.html
var pageHead string

// Size of a chart in its own units; it is scaled to the width of the page.
const (
	chartWidth, chartHeight = 640, 180
	edge                    = 10
)

// chart is a series as the page draws it.
type chart struct {
	Title, Name, Label, First, Last, Low, High string
	Line                                       string
	Dots                                       []dot
	Changes, Marks                             []line
	ChangeTexts, MarkTexts, LeftOut            []string
	Rows                                       []pageRow
}

type dot struct {
	X, Y  float64
	Class string
	Text  string
}

type line struct {
	X    float64
	Text string
}

type pageRow struct{ Time, Commit, Value, Machine, Settings, Version, LeftOut string }

// markup is a page being written.
type markup struct{ bytes.Buffer }

// add appends a format with its arguments, texts escaped.
func (m *markup) add(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = html.EscapeString(s)
		}
	}
	fmt.Fprintf(m, format, args...)
}

// list appends texts as a list below a heading, nothing without texts.
func (m *markup) list(head string, texts []string) {
	if len(texts) == 0 {
		return
	}
	m.add("<p>%s</p><ul>", head)
	for _, t := range texts {
		m.add("<li>%s</li>", t)
	}
	m.add("</ul>\n")
}

// page writes a page that needs nothing else: it works without a network.
func (h *History) page(w io.Writer) error {
	title := "History of " + text.Clean(h.Dir)
	m := &markup{}
	m.WriteString(strings.ReplaceAll(pageHead, "TITLE", html.EscapeString(title)))
	m.add("<h1>%s</h1>\n<p>Solid vertical lines: the level changes. Dashed lines: another machine, settings or version.\nHollow points are left out of changes. Order: %s.</p>", title, text.Clean(h.Order))
	var changed, rest []*Series
	for i := range h.Series {
		if s := &h.Series[i]; len(s.Changes) > 0 {
			changed = append(changed, s)
		} else {
			rest = append(rest, s)
		}
	}
	m.add("<p>%d of %d figures changed.</p>", len(changed), len(h.Series))
	for _, s := range changed {
		c := s.chart()
		m.add("\n<section>\n<h2>%s: %s</h2>\n", c.Name, c.Title)
		c.write(m)
		m.add("\n</section>")
	}
	if len(rest) > 0 {
		m.add("\n<section>\n<h2>Without a change</h2>\n")
		for _, s := range rest {
			c := s.chart()
			m.add("<details><summary>%s: %s: %s</summary>\n", c.Name, c.Title, c.span())
			c.write(m)
			m.add("\n</details>")
		}
		m.add("\n</section>")
	}
	for _, n := range h.Notes {
		m.add("<p>Note: %s</p>", text.Clean(n))
	}
	m.add("\n</main>\n</body>\n</html>\n")
	_, err := m.WriteTo(w)
	return err
}

// span says which values a series has: one, or the lowest and the highest.
func (c *chart) span() string {
	if c.Low == c.High {
		return c.Low
	}
	return c.Low + " to " + c.High
}

// write appends a chart and its texts.
func (c *chart) write(m *markup) {
	m.add(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s"><line class="axis" x1="0" x2="%d" y1="%d" y2="%d"/>`, chartWidth, chartHeight, c.Label, chartWidth, chartHeight-1, chartHeight-1)
	for _, l := range []struct {
		class string
		lines []line
	}{{"mark", c.Marks}, {"change", c.Changes}} {
		for _, x := range l.lines {
			m.add(`<line class="%s" x1="%.1f" x2="%.1f" y1="0" y2="%d"><title>%s</title></line>`, l.class, x.X, x.X, chartHeight, x.Text)
		}
	}
	m.add(`<polyline points="%s"/>`, c.Line)
	for _, d := range c.Dots {
		m.add(`<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, d.Class, d.X, d.Y, d.Text)
	}
	// The text at either end of the axis says which value it stands for.
	m.add(`<text x="2" y="%d">%s</text>`, chartHeight-4, c.Low)
	if c.Low != c.High {
		m.add(`<text x="2" y="12">%s</text>`, c.High)
	}
	m.add("</svg>\n<p>%s, %s to %s</p>\n", c.span(), c.First, c.Last)
	m.list("Changes:", c.ChangeTexts)
	m.list("Other machine, settings or version:", c.MarkTexts)
	m.list("Left out of changes:", c.LeftOut)
	m.add(`<details><summary>Points</summary><div class="table" tabindex="0" role="region" aria-label="Points of %s"><table><thead><tr>`, c.Name)
	for _, head := range []string{"time", "commit", "value", "machine", "settings", "version", "left out"} {
		m.add(`<th scope="col">%s</th>`, head)
	}
	m.add("</tr></thead>\n<tbody>")
	for _, r := range c.Rows {
		m.add("<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>", r.Time, r.Commit, r.Value, r.Machine, r.Settings, r.Version, r.LeftOut)
	}
	m.add("</tbody></table></div></details>")
}

// chart places the points of a series.
func (s *Series) chart() chart {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range s.Points {
		low, high = min(low, s.Points[i].Value), max(high, s.Points[i].Value)
	}
	c := chart{
		Title: s.title(), Name: s.Name,
		First: s.Points[0].Time.UTC().Format(time.DateOnly), Last: s.Points[len(s.Points)-1].Time.UTC().Format(time.DateOnly),
		Low: gate.Amount(low, s.Unit), High: gate.Amount(high, s.Unit),
	}
	c.Label = fmt.Sprintf("%s of %s: %d points from %s to %s, %d changes", s.Name, c.Title, len(s.kept()), c.Low, c.High, len(s.Changes))
	x := func(i int) float64 {
		if len(s.Points) == 1 {
			return chartWidth / 2
		}
		return edge + float64(i)*(chartWidth-2*edge)/float64(len(s.Points)-1)
	}
	y := func(v float64) float64 {
		if !(high > low) {
			return chartHeight / 2
		}
		return edge + (high-v)/(high-low)*(chartHeight-2*edge)
	}
	var path strings.Builder
	for i := range s.Points {
		p := &s.Points[i]
		value := gate.Amount(p.Value, s.Unit)
		class, why := "", leftOutWords[p.LeftOut]
		if p.LeftOut == "" {
			if path.Len() > 0 {
				path.WriteByte(' ')
			}
			fmt.Fprintf(&path, "%.1f,%.1f", x(i), y(p.Value))
		} else {
			class = "out"
		}
		c.Dots = append(c.Dots, dot{x(i), y(p.Value), class, strings.TrimSuffix(p.short()+": "+value+", "+why, ", ")})
		c.Rows = append(c.Rows, pageRow{
			p.Time.UTC().Format(time.RFC3339), text.Clean(p.Commit), value, text.Clean(p.Machine), text.Clean(p.Settings), text.Clean(p.Version), why,
		})
	}
	c.Line, c.LeftOut = path.String(), s.leftOut()
	between := func(i int) float64 { return (x(i-1) + x(i)) / 2 }
	for i := range s.Changes {
		t := s.line(&s.Changes[i])
		c.Changes = append(c.Changes, line{between(s.Changes[i].At), t})
		c.ChangeTexts = append(c.ChangeTexts, t)
	}
	for i := range s.Marks {
		t := s.Marks[i].line(s)
		c.Marks = append(c.Marks, line{between(s.Marks[i].At), t})
		c.MarkTexts = append(c.MarkTexts, t)
	}
	return c
}

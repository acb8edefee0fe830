package history

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/report/text"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("history").Parse(pageText))

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
	ChangeTexts, MarkTexts                     []string
	Rows                                       []pageRow
	Wide, Tall, Base                           int
}

type dot struct {
	X, Y float64
	Text string
}

type line struct {
	X    float64
	Text string
}

type pageRow struct{ Time, Commit, Value, Machine, Settings, Version string }

// page writes a page that needs nothing else: it works without a network.
func (h *History) page(w io.Writer) error {
	data := struct {
		Dir    string
		Order  string
		Charts []chart
		Notes  []string
		Height int
	}{Dir: text.Clean(h.Dir), Order: text.Clean(h.Order), Height: chartHeight}
	for i := range h.Series {
		data.Charts = append(data.Charts, h.Series[i].chart())
	}
	for _, n := range h.Notes {
		data.Notes = append(data.Notes, text.Clean(n))
	}
	return pageTemplate.Execute(w, data)
}

// chart places the points of a series.
func (s *Series) chart() chart {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range s.Points {
		low, high = min(low, s.Points[i].Value), max(high, s.Points[i].Value)
	}
	c := chart{
		Title: s.title(), Name: s.Name, Wide: chartWidth, Tall: chartHeight, Base: chartHeight - 1,
		First: s.Points[0].Time.UTC().Format(time.DateOnly), Last: s.Points[len(s.Points)-1].Time.UTC().Format(time.DateOnly),
		Low: gate.Amount(low, s.Unit), High: gate.Amount(high, s.Unit),
	}
	c.Label = fmt.Sprintf("%s of %s: %d points from %s to %s, %d changes", s.Name, c.Title, len(s.Points), c.Low, c.High, len(s.Changes))
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
		if i > 0 {
			path.WriteByte(' ')
		}
		fmt.Fprintf(&path, "%.1f,%.1f", x(i), y(p.Value))
		c.Dots = append(c.Dots, dot{x(i), y(p.Value), p.short() + ": " + value})
		c.Rows = append(c.Rows, pageRow{
			p.Time.UTC().Format(time.RFC3339), text.Clean(p.Commit), value, text.Clean(p.Machine), text.Clean(p.Settings), text.Clean(p.Version),
		})
	}
	c.Line = path.String()
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

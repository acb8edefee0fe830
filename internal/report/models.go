package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Models writes a table of models, one line each, as they come.
type Models struct {
	w      io.Writer
	csv    *csv.Writer
	width  int
	n, bad int
}

// NewModels starts a table in format "table" (or "") or "csv". width is that of
// the terminal, 0 for no limit.
func NewModels(w io.Writer, format string, width int) *Models {
	m := &Models{w: w, width: width}
	if format == "csv" {
		m.csv = csv.NewWriter(w)
	}
	return m
}

// Add writes the line of a model, or why it could not be profiled.
func (m *Models) Add(path string, p *profile.Profile, err error) error {
	if m.n++; m.n == 1 {
		if werr := m.line("model", "format", "layers", "MACs", "params", "latency", "note", true); werr != nil {
			return werr
		}
	}
	name := filepath.Base(path)
	if err != nil {
		m.bad++
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), path), ": ")
		return m.line(name, "", "", "", "", "", "refused: "+text, false)
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
	var notes []string
	if n := p.Totals.UnsupportedLayers; n != nil && *n > 0 {
		notes = append(notes, fmt.Sprintf("%s not supported", plural(*n, "layer")))
	}
	if p.Incomplete != "" {
		notes = append(notes, p.Incomplete)
	}
	return m.line(name, p.Model.Format, num(p.Totals.Layers), num(p.Totals.MACs), num(p.Totals.Params), time, strings.Join(notes, "; "), false)
}

func (m *Models) line(name, format, layers, macs, params, time, note string, head bool) error {
	if m.csv != nil {
		if head {
			time = "latency_s"
		}
		return m.csv.Write([]string{Cell(name), format, layers, strings.ToLower(macs), params, time, Cell(note)})
	}
	const nameWidth = 44
	l := fmt.Sprintf("%s  %-6s  %6s  %7s  %7s  %8s  %s", pad(shorten(Clean(name), nameWidth), nameWidth, true), format, layers, macs, params, time, Clean(note))
	l = strings.TrimRight(l, " ")
	if m.width > 20 {
		l = shorten(l, m.width)
	}
	_, err := fmt.Fprintln(m.w, l)
	return err
}

// Close ends the table.
func (m *Models) Close() error {
	if m.csv != nil {
		m.csv.Flush()
		return m.csv.Error()
	}
	_, err := fmt.Fprintf(m.w, "%d models, %d refused\n", m.n, m.bad)
	return err
}

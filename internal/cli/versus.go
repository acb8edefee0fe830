package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile/compare"
)

// holds reports whether a file of -o is about all profiles: of engines that were interleaved their
// comparison, of others all that fit one file.
func (s *several) holds(path string) bool {
	if s.engines {
		return inFormat(path, report.VersusPages)
	}
	return together(path)
}

// shows reports whether standard output gets the comparison of engines.
func (s *several) shows() bool {
	return s.engines && (s.o.format == "" || slices.Contains(report.VersusPages, s.o.format))
}

// compared is the comparison of the engines that were measured; nil if absent, and then
// apart has the reason.
func (s *several) compared() *compare.Table {
	if s.table != nil || s.apart != nil {
		return s.table
	}
	var runs []compare.Named
	for i, r := range s.rows {
		if s.usable(&r) {
			runs = append(runs, compare.Named{Name: s.called[i], Profile: r.Profile, Interleaved: true})
		}
	}
	var err error
	switch len(runs) {
	case 0:
		err = errors.New("none was measured")
	case 1:
		err = fmt.Errorf("only %s was measured", runs[0].Name)
	default:
		s.table, err = compare.New(runs)
	}
	if err != nil {
		s.apart = fmt.Errorf("no comparison of engines: %w", err)
	}
	return s.table
}

// show writes the comparison to standard output.
func (s *several) show() error {
	format := s.o.format
	if format == "" {
		format = "table"
	}
	return report.WriteVersus(s.a.out, s.table, format, s.versusOptions())
}

// versusOptions are those of a profile's table, as far as a comparison has them. The first rows are
// the slowest ones, as there.
func (s *several) versusOptions() report.VersusOptions {
	o := report.VersusOptions{Top: s.o.top, Width: s.a.width, Color: s.a.color}
	switch {
	case slices.Contains(report.VersusSorts, s.o.sort):
		o.Sort = s.o.sort
	case o.Top > 0:
		o.Sort = "time"
	}
	return o
}

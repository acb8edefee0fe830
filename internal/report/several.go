package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/profile"
)

// Together are the formats in which one file holds several profiles; of the others each
// profile has a file of its own.
var Together = []string{"table", "markdown", "csv"}

// Streamed are the formats in which standard output takes several profiles.
var Streamed = []string{"table", "markdown", "csv", "json", "yaml", "bench"}

// Ending is the ending of a file name that names its format, as it is written there; ""
// where none does.
func Ending(path string) string {
	base := filepath.Base(path)
	best := 0
	for _, f := range formats() {
		for _, e := range f.endings {
			if strings.HasSuffix(strings.ToLower(base), e) {
				best = max(best, len(e))
			}
		}
	}
	return base[len(base)-best:]
}

// WriteAll writes several profiles in a format of [Streamed]: JSON as an array, YAML as a
// stream of documents, benchmark text one after the other. Of table and Markdown it is
// the list with every profile behind it, of comma-separated values the layers of all,
// with columns for model and target.
func WriteAll(w io.Writer, rs []ListRow, format string, o Options) error {
	rs = slices.DeleteFunc(slices.Clone(rs), func(r ListRow) bool { return r.Profile == nil || r.Err != nil })
	if format == "csv" {
		ps := make([]*profile.Profile, len(rs))
		for i, r := range rs {
			ps[i] = r.Profile
		}
		return writeLayers(w, ps, o)
	}
	before, between, after := "", "\n", ""
	switch format {
	case "table", "markdown":
		if err := WriteList(w, rs, format, o.Width); err != nil {
			return err
		}
		before = "\n"
	case "json":
		before, between, after = "[\n", ",\n", "]\n"
	case "yaml":
		before, between = "---\n", "---\n"
	case "bench":
	default:
		return fmt.Errorf("format %q holds one profile: use one of %s for several", format, strings.Join(Streamed, ", "))
	}
	if _, err := io.WriteString(w, before); err != nil {
		return err
	}
	for i, r := range rs {
		if i > 0 {
			if _, err := io.WriteString(w, between); err != nil {
				return err
			}
		}
		if err := Write(w, r.Profile, format, o); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, after)
	return err
}

// WriteList writes several profiles in a format of [ListFormats], a line each.
func WriteList(w io.Writer, rs []ListRow, format string, width int) error {
	if targets := targetRows(rs); format == "table" && targets != nil {
		return Targets(w, targets, width)
	}
	files := make([]string, len(rs))
	var formats []string
	for i, r := range rs {
		if r.Profile != nil {
			formats = append(formats, r.Profile.Model.Format)
		}
		files[i] = r.Path
		if r.Profile != nil && r.Path == "" {
			files[i] = r.Profile.Model.Name
		}
	}
	timed := func(r ListRow) bool { return r.Profile != nil && r.Profile.Totals.Latency != nil }
	l := NewList(w, ListOptions{Format: format, Width: width, Measured: slices.ContainsFunc(rs, timed), Tokens: slices.ContainsFunc(rs, hasTokens), Files: files, Formats: formats})
	for _, r := range rs {
		if err := l.Add(r); err != nil {
			return err
		}
	}
	return l.Close()
}

// targetRows are the rows where targets are compared, nil where it is models.
func targetRows(rs []ListRow) []TargetRow {
	var out []TargetRow
	other := false
	for _, r := range rs {
		if r.Profile == nil || r.Err != nil {
			continue
		}
		other = other || r.Profile.Target.Kind == profile.TargetSimulator
		out = append(out, r.TargetRow)
	}
	if !other {
		return nil
	}
	return out
}

// FileAll writes several profiles into one file, in a format of [Together] that the
// ending names. The file appears whole or not at all.
func FileAll(path string, rs []ListRow, o Options) error {
	name, err := FormatOf(path)
	if err != nil {
		return err
	}
	o.Width, o.Top, o.Color = 0, 0, false
	return atomicfile.Stream(path, func(w io.Writer) error { return WriteAll(w, rs, name, o) })
}

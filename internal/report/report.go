package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/atomicfile"
	"github.com/opmeter/opmeter/profile"
)

// Options sets what a report shows.
type Options struct {
	Sort  string // one of [Sorts]; "" keeps the order of execution (groups: by time)
	By    string // one of [Groups], or "" for single layers
	Top   int    // number of rows of the table, 0 for all; files always have all
	All   bool   // list layers that take no time of their own: folded, fused
	Width int    // columns of the terminal, 0 for no limit
	Color bool   // bold headings
}

// Formats are the names that [Write] takes.
var Formats = []string{"table", "json", "csv", "yaml", "markdown", "profile"}

var endings = map[string]string{
	".txt": "table", ".json": "json", ".csv": "csv", ".yaml": "yaml", ".yml": "yaml",
	".md": "markdown", ".opmeter": "profile",
}

// FormatOf returns the format for a file name's ending, or an error that lists
// the endings.
func FormatOf(path string) (string, error) {
	if f, ok := endings[strings.ToLower(filepath.Ext(path))]; ok {
		return f, nil
	}
	var known []string
	for e := range endings {
		known = append(known, e)
	}
	slices.Sort(known)
	return "", fmt.Errorf("%s: the ending does not name a format: use one of %s", path, strings.Join(known, " "))
}

// Write writes the profile in a format of [Formats].
func Write(w io.Writer, p *profile.Profile, format string, o Options) error {
	switch format {
	case "table":
		return writeTable(w, p, o)
	case "json":
		return p.Encode(w)
	case "csv":
		return writeCSV(w, p, o)
	case "yaml":
		return writeYAML(w, p)
	case "markdown":
		return writeMarkdown(w, p, o)
	case "profile":
		b, err := profile.Marshal(p)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(Formats, ", "))
}

// File writes the profile to a file in the format that the ending names. The
// file appears whole or not at all.
func File(path string, p *profile.Profile, o Options) error {
	format, err := FormatOf(path)
	if err != nil {
		return err
	}
	o.Width, o.Top, o.Color = 0, 0, false
	var b bytes.Buffer
	if err := Write(&b, p, format, o); err != nil {
		return err
	}
	return atomicfile.Write(path, b.Bytes())
}

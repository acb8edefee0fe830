package report

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/opmeter/opmeter/internal/atomicfile"
	"github.com/opmeter/opmeter/internal/buildinfo"
	"github.com/opmeter/opmeter/internal/report/chrome"
	"github.com/opmeter/opmeter/internal/report/firefox"
	"github.com/opmeter/opmeter/internal/report/gobench"
	"github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/internal/report/modelexplorer"
	"github.com/opmeter/opmeter/internal/report/page"
	"github.com/opmeter/opmeter/internal/report/perfetto"
	"github.com/opmeter/opmeter/internal/report/pprof"
	"github.com/opmeter/opmeter/internal/report/speedscope"
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

	Memory bool // add the memory plan to table and Markdown

	MLTK mltk.Options // of the MLTK profiler's layouts
}

// format is one way to write a profile.
type format struct {
	name    string
	endings []string // of file names, in lower case; the longest that fits counts
	text    bool     // fit for a terminal, so that --format takes it
	events  bool     // shows single runs, so that every measured time is wanted
	what    string   // for people, a few words
	write   func(io.Writer, *profile.Profile, Options) error
}

// formats lists every format. A new one is a file or package beside this one and
// a line here.
func formats() []format {
	return []format{
		{"table", []string{".txt"}, true, false, "table for people", writeTable},
		{"json", []string{".json"}, true, false, "all figures, schema in docs/profile.schema.json", plain(func(w io.Writer, p *profile.Profile) error { return p.Encode(w) })},
		{"csv", []string{".csv"}, true, false, "a row a layer, base units", writeCSV},
		{"yaml", []string{".yaml", ".yml"}, true, false, "the same data as JSON", writeYAML},
		{"markdown", []string{".md"}, true, false, "summary, table and findings", writeMarkdown},
		{"trace", []string{".trace.json"}, false, true, "Chrome trace events, for ui.perfetto.dev and chrome://tracing", plain(chrome.Write)},
		{"trace.gz", []string{".trace.json.gz"}, false, true, "the same, compressed", zipped(chrome.Write)},
		{"xlsx", []string{".xlsx"}, false, false, "workbook with live formulas and a sparse what-if, see docs/xlsx.md", writeXLSX},
		{"neural-engine", []string{".ne.csv"}, true, false, "the CSV of Intel's Neural Engine profiler, see docs/xlsx.md", writeNeuralEngine},
		{"html", []string{".html"}, false, true, "page for the browser, one file", writePage},
		{"perfetto", []string{".pftrace"}, false, true, "Perfetto trace, for ui.perfetto.dev and trace_processor", plain(perfetto.Write)},
		{"pprof", []string{".pb.gz", ".pprof"}, false, false, "call graph of layers, for go tool pprof", plain(pprof.Write)},
		{"firefox", []string{".firefox.json"}, false, true, "for profiler.firefox.com", plain(firefox.Write)},
		{"firefox.gz", []string{".firefox.json.gz"}, false, true, "the same, compressed", zipped(firefox.Write)},
		{"speedscope", []string{".speedscope.json"}, false, true, "median run and flame graph, for speedscope.app", plain(speedscope.Write)},
		{"bench", []string{".bench.txt"}, true, true, "Go benchmark text, for benchstat", plain(gobench.Write)},
		{"nodes", []string{".nodes.json"}, false, false, "latency of the nodes, for Model Explorer", plain(modelexplorer.Write)},
		{"profile", []string{".opmeter"}, false, true, "saved profile, for opmeter report", plain(func(w io.Writer, p *profile.Profile) error { return p.Save(w) })},
		{"mltk", []string{".mltk.txt"}, true, false, "text of the MLTK profiler", writeMLTK},
		{"mltk-json", []string{".mltk.json"}, true, false, "JSON of the MLTK profiler", writeMLTKJSON},
		{"mltk-csv", []string{".mltk.csv"}, true, false, "CSV of the MLTK profiler: summary, empty line, layers", writeMLTKCSV},
	}
}

// plain makes a writer of one that takes no options.
func plain(write func(io.Writer, *profile.Profile) error) func(io.Writer, *profile.Profile, Options) error {
	return func(w io.Writer, p *profile.Profile, _ Options) error { return write(w, p) }
}

// zipped is plain with gzip around it.
func zipped(write func(io.Writer, *profile.Profile) error) func(io.Writer, *profile.Profile, Options) error {
	return func(w io.Writer, p *profile.Profile, _ Options) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		return errors.Join(write(z, p), z.Close())
	}
}

func writePage(w io.Writer, p *profile.Profile, _ Options) error {
	return page.Write(w, p, buildinfo.Version())
}

// Formats are the names that [Write] takes, those for a terminal only or all.
func Formats(text bool) []string {
	var names []string
	for _, f := range formats() {
		if f.text || !text {
			names = append(names, f.name)
		}
	}
	return names
}

// Endings lists the endings of file names with what is written under them, two
// columns.
func Endings() [][2]string {
	var out [][2]string
	for _, f := range formats() {
		out = append(out, [2]string{strings.Join(f.endings, " "), f.what})
	}
	return out
}

// FormatOf returns the format for a file name's ending, or an error that lists
// the endings.
func FormatOf(path string) (string, error) {
	base := strings.ToLower(filepath.Base(path))
	best, name := "", ""
	var known []string
	for _, f := range formats() {
		for _, e := range f.endings {
			known = append(known, e)
			if strings.HasSuffix(base, e) && len(e) > len(best) {
				best, name = e, f.name
			}
		}
	}
	if name != "" {
		return name, nil
	}
	slices.Sort(known)
	return "", fmt.Errorf("%s: the ending does not name a format: use one of %s", path, strings.Join(known, " "))
}

// WantsEvents reports whether the format of a file shows single runs: a profile
// for it is to be made with every sample and a timeline.
func WantsEvents(path string) bool {
	name, err := FormatOf(path)
	return err == nil && slices.ContainsFunc(formats(), func(f format) bool { return f.name == name && f.events })
}

// Write writes the profile in a format of [Formats].
func Write(w io.Writer, p *profile.Profile, name string, o Options) error {
	for _, f := range formats() {
		if f.name == name {
			return f.write(w, p, o)
		}
	}
	return fmt.Errorf("unknown format %q: use one of %s", name, strings.Join(Formats(false), ", "))
}

// File writes the profile to a file in the format that the ending names. The
// file appears whole or not at all.
func File(path string, p *profile.Profile, o Options) error {
	name, err := FormatOf(path)
	if err != nil {
		return err
	}
	o.Width, o.Top, o.Color = 0, 0, false
	return atomicfile.Stream(path, func(w io.Writer) error { return Write(w, p, name, o) })
}

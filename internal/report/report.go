package report

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/report/chrome"
	"github.com/opmeter/opmeter/internal/report/firefox"
	"github.com/opmeter/opmeter/internal/report/gobench"
	"github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/internal/report/modelexplorer"
	"github.com/opmeter/opmeter/internal/report/neuralengine"
	"github.com/opmeter/opmeter/internal/report/page"
	"github.com/opmeter/opmeter/internal/report/perfetto"
	"github.com/opmeter/opmeter/internal/report/pprof"
	"github.com/opmeter/opmeter/internal/report/speedscope"
	"github.com/opmeter/opmeter/internal/report/words"
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

	Memory  bool // add the memory plan to table and Markdown
	Details bool // show all figures of the model below the headline

	MLTK mltk.Options // of the MLTK profiler's layouts

	file string // that is written, "" for standard output
}

// format is one way to write a profile.
type format struct {
	name    string
	endings []string // of file names, in lower case; the longest that fits counts
	text    bool     // fit for a terminal, so that --format takes it
	events  bool     // shows single runs, so that every measured time is wanted
	what    string   // for people, a few words; none where those of the format before hold for both
	write   func(io.Writer, *profile.Profile, Options) error
}

// formats lists every format. A new one is a file or package beside this one and
// a line here.
func formats() []format {
	return []format{
		{name: "table", endings: []string{".txt"}, text: true, what: "table for people", write: writeTable},
		{name: "json", endings: []string{".json"}, text: true, what: "all figures, schema in docs/profile.schema.json", write: func(w io.Writer, p *profile.Profile, o Options) error { return o.grouped(p).Encode(w) }},
		{name: "csv", endings: []string{".csv"}, text: true, what: "a row a layer, base units", write: writeCSV},
		{name: "yaml", endings: []string{".yaml", ".yml"}, text: true, what: "the same data as JSON", write: writeYAML},
		{name: "markdown", endings: []string{".md"}, text: true, what: "summary, table and findings", write: writeMarkdown},
		{name: "trace", endings: []string{".trace.json"}, events: true, what: "Chrome trace, for ui.perfetto.dev and chrome://tracing", write: plain(chrome.Write)},
		{name: "trace.gz", endings: []string{".trace.json.gz"}, events: true, what: "the same, compressed", write: zipped(chrome.Write)},
		{name: "xlsx", endings: []string{".xlsx"}, what: "workbook with live formulas and a sparse what-if", write: writeXLSX},
		{name: "neural-engine", endings: []string{".ne.csv"}, text: true, what: "table and trace of Intel's Neural Engine profiler", write: plain(neuralengine.CSV)},
		{name: "neural-engine-trace", endings: []string{".ne.json"}, events: true, write: plain(neuralengine.Trace)},
		{name: "html", endings: []string{".html"}, events: true, what: "page for the browser, one file", write: writePage},
		{name: "perfetto", endings: []string{".pftrace"}, events: true, what: "Perfetto trace, for ui.perfetto.dev and trace_processor", write: plain(perfetto.Write)},
		{name: "pprof", endings: []string{".pb.gz", ".pprof"}, what: "call graph of layers, for go tool pprof", write: plain(pprof.Write)},
		{name: "firefox", endings: []string{".firefox.json"}, events: true, what: "for profiler.firefox.com", write: plain(firefox.Write)},
		{name: "firefox.gz", endings: []string{".firefox.json.gz"}, events: true, what: "the same, compressed", write: zipped(firefox.Write)},
		{name: "speedscope", endings: []string{".speedscope.json"}, events: true, what: "median run and flame graph, for speedscope.app", write: plain(speedscope.Write)},
		{name: "bench", endings: []string{".bench.txt"}, text: true, events: true, what: "Go benchmark text, for benchstat", write: plain(gobench.Write)},
		{name: "nodes", endings: []string{".nodes.json"}, what: "latency of the nodes, for Model Explorer", write: plain(modelexplorer.Write)},
		{name: "onnx", endings: []string{".onnx"}, what: "ONNX model with the figures of its nodes, for Netron", write: writeAnnotated},
		{name: "profile", endings: []string{".opmeter"}, events: true, what: "saved profile, for opmeter report", write: plain(func(w io.Writer, p *profile.Profile) error { return p.Save(w) })},
		{name: "mltk", endings: []string{".mltk.txt"}, text: true, what: "text of the MLTK profiler", write: writeMLTK},
		{name: "mltk-json", endings: []string{".mltk.json"}, text: true, what: "JSON of the MLTK profiler", write: writeMLTKJSON},
		{name: "mltk-csv", endings: []string{".mltk.csv"}, text: true, what: "CSV of the MLTK profiler", write: writeMLTKCSV},
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
	a := page.Answers{Fits: fitsLine(p), Bound: capital(engineBound(p))}
	a.Fit = words.Fit(p.Trust)
	a.Reason, _ = words.Reason(p.Trust)
	if why := words.SharesDoubt(p.Trust); why != "" {
		a.Lines = append(a.Lines, page.Line{Label: "Share quality", Text: "unsettled: " + why})
	}
	for _, f := range append(phaseLines(p), answerLines(p)...) {
		switch {
		case f.label == "Next step" && p.Target.Kind == profile.TargetImport: // that is the page
		case f.label == "Bottleneck" && a.Bound != "": // is next to the latency
		default:
			a.Lines = append(a.Lines, page.Line{Label: f.label, Text: f.value})
		}
	}
	return page.Write(w, withBlocks(p), buildinfo.Version(), a)
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

// OutputFormat describes a format for documents.
type OutputFormat struct {
	Name     string   // for --format
	Endings  []string // of file names for -o
	Terminal bool     // --format takes it
	Runs     bool     // it shows single runs, so that samples and a timeline are kept
	What     string   // what the file holds, a few words
}

// OutputFormats lists all formats of profiles. One that shares its description with the
// one before has it, too.
func OutputFormats() []OutputFormat {
	var out []OutputFormat
	what := ""
	for _, f := range formats() {
		if f.what != "" {
			what = f.what
		}
		out = append(out, OutputFormat{f.name, f.endings, f.text, f.events, what})
	}
	return out
}

// Endings lists the endings of file names with what is written under them, two
// columns.
func Endings() [][2]string {
	var out [][2]string
	for _, f := range formats() {
		if ends := strings.Join(f.endings, " "); f.what == "" {
			out[len(out)-1][0] += " " + ends
		} else {
			out = append(out, [2]string{ends, f.what})
		}
	}
	return out
}

// LeftOut says what a file of a profile leaves out, "" for nothing.
func LeftOut(path string, p *profile.Profile) string {
	if format, err := FormatOf(path); err != nil || format != "nodes" {
		return ""
	}
	return modelexplorer.LeftOut(p)
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
	o.Width, o.Top, o.Color, o.file = 0, 0, false, path
	return atomicfile.Stream(path, func(w io.Writer) error { return Write(w, p, name, o) })
}

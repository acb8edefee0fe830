package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
)

// catalogue is what the command about engines knows of this computer.
type catalogue struct {
	env *find.Env
	// about opens a library in a process of its own and asks what it is.
	about func(ctx context.Context, helper, engine, library string) (external.About, error)
}

func newEngines(a *app) *cobra.Command {
	var (
		format string
		quiet  bool
	)
	c := &cobra.Command{
		Use:   "engines [NAME]",
		Short: "List the engines for --engine and their locations",
		Long: `Engines searches for libraries of other engines: environment variables (OPMETER_ONNXRUNTIME
and so on), Python environments, node_modules, the system. Each library is loaded in a process
of its own to read its version and abilities; --no-open skips that. With the name of an engine,
show all about it and the options for --engine-option; NAME@VERSION and NAME=LIBRARY select one
of several. TensorFlow Lite Micro must be given as tflm=PROGRAM. docs/reference/engines.md has the details.`,
		Example: `  opmeter engines
  opmeter engines onnxruntime
  opmeter engines onnxruntime@1.20 --format json`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(engineFormats, format) {
				return useError("--format %q: use table, json or csv", format)
			}
			k := catalogue{find.Here(), external.Probe}
			if len(args) == 1 {
				return a.engine(c.Context(), k, args[0], format, quiet)
			}
			return a.engines(c.Context(), k, format, quiet)
		},
	}
	c.Flags().StringVar(&format, "format", "table", "`NAME`: table, json or csv")
	c.Flags().BoolVar(&quiet, "no-open", false, "only list files, load no library")
	return c
}

// engineFormats are those of the list.
var engineFormats = []string{"table", "json", "csv"}

// engineRow is a library with what it says of itself.
type engineRow struct {
	find.Found
	// About is what the library says, nil where nobody asked or it has no answer.
	About *external.About `json:"about,omitzero"`
	// Error says why it has none.
	Error *external.Error `json:"error,omitzero"`
}

// absent is the problem of an engine of which nothing was found.
const absent find.Problem = "absent"

// builtIn is where opmeter's own engine is.
const builtIn find.Where = "built-in"

// own is opmeter's engine.
func own() engineRow {
	return engineRow{
		Found: find.Found{Engine: find.Native, Version: buildinfo.Version(), Where: builtIn},
		About: &external.About{
			Engine: find.Native, Title: "opmeter", Version: buildinfo.Version(), Formats: []string{"onnx", "tflite"},
			Gives: []string{"latency_s", "memory", "shapes", "options", "samples", "phases", "machine", "timeline"},
		},
	}
}

// version is that of the library where it tells one, else what its file or package is named after.
func (r *engineRow) version() string {
	if r.About != nil && r.About.Version != "" {
		return r.About.Version
	}
	return r.Version
}

func (r *engineRow) formats() []string {
	if r.About != nil {
		return r.About.Formats
	}
	e, _ := find.About(r.Engine)
	return e.Formats
}

func (r *engineRow) providers() []string {
	if r.About == nil {
		return nil
	}
	return r.About.Providers
}

func (r *engineRow) title() string {
	if r.About != nil && r.About.Title != "" {
		return r.About.Title
	}
	e, _ := find.About(r.Engine)
	return e.Title
}

// trouble is what is wrong with it in a line, "" for nothing.
func (r *engineRow) trouble() string {
	if r.Error != nil {
		return r.Error.Text
	}
	return r.Help
}

// engines lists all of them. helperless is why none could be opened, nil where they were.
func (a *app) engines(ctx context.Context, k catalogue, format string, quiet bool) error {
	rows := []engineRow{own()}
	for i := range find.Engines {
		e := &find.Engines[i]
		list := k.env.All(e.Name)
		for _, f := range list {
			rows = append(rows, engineRow{Found: f})
		}
		if len(list) == 0 {
			rows = append(rows, engineRow{Found: find.Found{Engine: e.Name, Problem: absent, Help: e.Absent(k.env.OS)}})
		}
	}
	helperless, err := k.ask(ctx, rows, quiet)
	if err != nil {
		return err
	}
	return a.writeEngines(rows, format, helperless)
}

// ask has each library that may be opened say what it is, two at a time.
func (k *catalogue) ask(ctx context.Context, rows []engineRow, quiet bool) (helperless *external.Error, err error) {
	if quiet || !slices.ContainsFunc(rows, func(r engineRow) bool { return r.usable() }) {
		return nil, nil
	}
	helper, err := k.env.Helper()
	if err != nil {
		e, ok := errors.AsType[*external.Error](err)
		if !ok {
			e = external.Errorf(external.NoHelper, "%v", err)
		}
		return e, nil
	}
	// A program other than opmeter-engine opens none of them.
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	var once sync.Once
	free := make(chan struct{}, 2)
	for i := range rows {
		r := &rows[i]
		if !r.usable() {
			continue
		}
		wait.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			if asking.Err() != nil {
				return
			}
			about, err := k.about(asking, helper, r.Engine, r.Path)
			e, ok := errors.AsType[*external.Error](err)
			switch {
			case err == nil:
				r.About = &about
			case ok && e.Code == external.NoHelper:
				once.Do(func() { helperless = e })
				stop()
			case asking.Err() != nil:
			case ok:
				r.Error = e
			default:
				r.Error = external.Errorf(external.Failed, "%v", err)
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil, errStopped
	}
	return helperless, nil
}

// usable reports whether a row has a library that may be opened; programs are not started.
func (r *engineRow) usable() bool { return r.Problem == "" && r.Path != "" && r.Command == "" }

func (a *app) writeEngines(rows []engineRow, format string, helperless *external.Error) error {
	switch format {
	case "json":
		return jsonx.MarshalWrite(a.out, struct {
			Engines []engineRow     `json:"engines"`
			Error   *external.Error `json:"error,omitzero"`
		}{rows, helperless})
	case "csv":
		return a.enginesCSV(rows)
	}
	a.enginesTable(rows, helperless)
	return nil
}

func (a *app) enginesCSV(rows []engineRow) error {
	w := csv.NewWriter(a.out)
	_ = w.Write([]string{"engine", "version", "where", "package", "library", "formats", "providers", "gives", "problem", "help"})
	for i := range rows {
		r := &rows[i]
		var gives []string
		if r.About != nil {
			gives = r.About.Gives
		}
		problem := string(r.Problem)
		if r.Error != nil {
			problem = string(r.Error.Code)
		}
		_ = w.Write([]string{
			r.Engine, r.version(), string(r.Where), r.Package, r.Path, strings.Join(r.formats(), " "), strings.Join(r.providers(), " "),
			strings.Join(gives, " "), problem, r.trouble(),
		})
	}
	w.Flush()
	return w.Error()
}

// enginesTable prints a line a library, and a note below for each that has one.
func (a *app) enginesTable(rows []engineRow, helperless *external.Error) {
	table := [][]string{{"engine", "version", "where", "formats", "providers", "library"}}
	var notes []string
	for i := range rows {
		r := &rows[i]
		if s := r.trouble(); s != "" {
			if r.Error != nil && !strings.Contains(s, r.Path) {
				s = r.Path + ": " + s
			}
			notes = append(notes, s)
		}
		if r.Problem == absent {
			continue
		}
		line := []string{r.Engine, r.version(), string(r.Where), strings.Join(r.formats(), " "), brief(r.providers()), r.Path}
		switch {
		case r.Problem != "":
			line[3], line[4] = "", string(r.Problem)
		case r.Error != nil:
			line[3], line[4] = "", string(r.Error.Code)
		}
		table = append(table, line)
	}
	if helperless != nil {
		notes = append([]string{helperless.Text}, notes...)
	}
	last := len(table[0]) - 1
	width := make([]int, last)
	for _, r := range table {
		for k := range last {
			r[k] = text.Clean(r[k])
			width[k] = min(max(width[k], report.Columns(r[k])), 40)
		}
	}
	for _, r := range table {
		var b strings.Builder
		for k, w := range width {
			b.WriteString(report.Column(r[k], w) + "  ")
		}
		fmt.Fprintln(a.out, strings.TrimRight(b.String()+text.Clean(r[last]), " "))
	}
	for i, n := range notes {
		if i == 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintln(a.out, text.Clean(n)) // a line each: commands in them are to be copied
	}
}

// brief puts providers in few words: ONNX Runtime says ExecutionProvider behind each.
func brief(providers []string) string {
	short := make([]string, len(providers))
	for i, p := range providers {
		short[i] = strings.TrimSuffix(p, "ExecutionProvider")
	}
	return strings.Join(short, " ")
}

// engine tells all of one engine.
func (a *app) engine(ctx context.Context, k catalogue, name, format string, quiet bool) error {
	specs, err := find.Parse(name)
	if err == nil && len(specs) > 1 {
		err = errors.New("one engine at a time")
	}
	if err != nil {
		return useError("%v", err)
	}
	s := specs[0]
	rows := []engineRow{own()}
	if s.Engine != find.Native {
		f, err := s.Pick(k.env)
		if err != nil {
			return withStatus(statusSource, err)
		}
		rows = []engineRow{{Found: f}}
	}
	helperless, err := k.ask(ctx, rows, quiet || s.Engine == find.Native)
	if err != nil {
		return err
	}
	r := &rows[0]
	if r.About != nil {
		if err := s.Accept(r.About.Version); err != nil {
			return withStatus(statusSource, err)
		}
	}
	if format != "table" {
		return a.writeEngines(rows, format, helperless)
	}
	a.oneEngine(r)
	if helperless != nil {
		fmt.Fprintln(a.out, "\n"+text.Clean(helperless.Text))
	}
	if r.Error != nil {
		return withStatus(statusSource, r.Error)
	}
	if s.Engine == find.Native || s.Library != "" {
		return nil
	}
	var others []string
	for _, f := range k.env.All(s.Engine) {
		if f.Path != r.Path {
			others = append(others, strings.TrimSpace(text.Clean(f.Version+"  "+f.Path)))
		}
	}
	if len(others) > 0 {
		fmt.Fprintln(a.out, "\nThere is also:")
		for _, o := range others {
			fmt.Fprintln(a.out, "  "+o)
		}
	}
	return nil
}

// oneEngine prints what is known about an engine.
func (a *app) oneEngine(r *engineRow) {
	fmt.Fprintln(a.out, text.Clean(strings.TrimSpace(r.Engine+"  "+r.title()+" "+r.version())))
	add := func(name, s string) {
		for i, l := range report.Wrap(text.Clean(s), 66) {
			if i > 0 {
				name = ""
			}
			if l != "" {
				fmt.Fprintf(a.out, "  %-10s %s\n", name, l)
			}
		}
	}
	switch { // whole, to be copied
	case r.Command != "":
		fmt.Fprintf(a.out, "  %-10s %s\n", "program", text.Clean(r.Path))
		fmt.Fprintf(a.out, "  %-10s %s\n", "command", text.Clean(r.Command))
	case r.Path != "":
		fmt.Fprintf(a.out, "  %-10s %s\n", "library", text.Clean(r.Path))
	}
	add("where", string(r.Where))
	add("package", r.Package)
	add("formats", strings.Join(r.formats(), ", "))
	if r.About == nil {
		return
	}
	add("build", r.About.Build)
	add("providers", strings.Join(r.About.Providers, ", "))
	add("says", strings.Join(says(r.About.Gives), ", "))
	if len(r.About.Options) == 0 {
		return
	}
	fmt.Fprintln(a.out, "\nOptions, each as --engine-option KEY=VALUE:")
	for _, o := range r.About.Options {
		fmt.Fprintln(a.out, "  "+text.Clean(o.Key+"="+o.Values))
		for _, l := range report.Wrap(text.Clean(o.Doc), 72) {
			if l != "" {
				fmt.Fprintln(a.out, "      "+l)
			}
		}
	}
}

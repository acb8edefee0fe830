package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/host"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/mltk"
)

// modelFlags say in which shapes and with which data a model runs.
type modelFlags struct {
	shapes, files []string
	batch         int
	seed          uint64
	zeros         bool
	carry         []string
}

func (f *modelFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.shapes, "shape", nil, "shape of an input, NAME=1x3x224x224 (may be repeated)")
	c.Flags().IntVar(&f.batch, "batch", 0, "first dimension of every input")
}

func (f *modelFlags) addData(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.files, "input", nil, "data of an input, NAME=FILE.npy (may be repeated)")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of random inputs")
	c.Flags().StringArrayVar(&f.carry, "carry", nil, "feed an output back as an input of the next inference, OUTPUT=INPUT (may be repeated)")
	c.Flags().BoolVar(&f.zeros, "zeros", false, "feed zeros instead of random inputs")
}

// parse checks the flags and gathers them.
func (f *modelFlags) parse() (feed.Options, error) {
	o := feed.Options{Seed: f.seed, Zeros: f.zeros, Batch: f.batch, Shapes: map[string][]int{}, Files: map[string]string{}}
	if f.batch < 0 {
		return o, useError("--batch %d: a batch has at least 1", f.batch)
	}
	for _, s := range f.shapes {
		name, v, ok := cutLast(s)
		if !ok {
			return o, useError("--shape %q: write NAME=1x3x224x224", s)
		}
		d, err := feed.ParseShape(v)
		if err != nil {
			return o, useError("--shape: %w", err)
		}
		o.Shapes[name] = d
	}
	for _, s := range f.files {
		name, v, ok := cutLast(s)
		if !ok {
			return o, useError("--input %q: write NAME=FILE.npy", s)
		}
		o.Files[name] = v
	}
	return o, nil
}

// options turns the flags into options of the library.
func (f *modelFlags) options() ([]opmeter.Option, error) {
	o, err := f.parse()
	if err != nil {
		return nil, err
	}
	out := []opmeter.Option{opmeter.Seed(o.Seed)}
	if o.Batch > 0 {
		out = append(out, opmeter.Batch(o.Batch))
	}
	if o.Zeros {
		out = append(out, opmeter.Zeros())
	}
	for name, d := range o.Shapes {
		out = append(out, opmeter.Shape(name, d...))
	}
	for name, file := range o.Files {
		out = append(out, opmeter.InputFile(name, file))
	}
	carry, err := f.carries()
	if err != nil {
		return nil, err
	}
	for _, c := range carry {
		out = append(out, opmeter.Carry(c.Output, c.Input))
	}
	return out, nil
}

// carries reads the --carry flags.
func (f *modelFlags) carries() ([]host.Carry, error) {
	var out []host.Carry
	for _, s := range f.carry {
		from, to, ok := cutLast(s)
		if !ok {
			return nil, useError("--carry %q: write OUTPUT=INPUT", s)
		}
		out = append(out, host.Carry{Output: from, Input: to})
	}
	return out, nil
}

// cutLast splits NAME=VALUE at the last "=": names of tensors may hold one.
func cutLast(s string) (name, value string, ok bool) {
	i := strings.LastIndexByte(s, '=')
	if i <= 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// outputFlags say what is shown and written.
type outputFlags struct {
	format string
	files  []string
	sort   string
	by     string
	top    int
	all    bool
	memory bool
	open   bool

	mltk        mltk.Options // of the MLTK profiler's layouts
	accelerator string       // as --accelerator had it
}

func (f *outputFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.format, "format", "", "format for standard output: "+strings.Join(report.Formats(true), ", ")+" (default table)")
	c.Flags().StringArrayVarP(&f.files, "output", "o", nil, "write to a file; the ending names the format:\n"+endings()+"(may be repeated)")
	c.Flags().StringVar(&f.sort, "sort", "", "order of the table: "+strings.Join(report.Sorts, ", ")+" (default: order of execution)")
	c.Flags().StringVar(&f.by, "by", "", "group the table by op or scope")
	c.Flags().IntVar(&f.top, "top", 0, "rows of the table on standard output, 0 for all")
	c.Flags().BoolVar(&f.all, "all", false, "also list layers that take no time of their own (folded, fused)")
	c.Flags().BoolVar(&f.memory, "memory", false, "add the memory plan to the table or Markdown (JSON always has it)")
	c.Flags().BoolVar(&f.open, "open", true, "show a page that -o wrote in the browser, at a desktop")
	f.addLayout(c)
}

// endings lists the endings that -o takes.
func endings() string {
	var b strings.Builder
	for _, e := range report.Endings() {
		fmt.Fprintf(&b, "  %-30s %s\n", e[0], e[1])
	}
	return b.String()
}

// check refuses bad values before any work is done.
func (f *outputFlags) check() error {
	in := func(flag, v string, list []string) error {
		for _, s := range list {
			if s == v {
				return nil
			}
		}
		return useError("--%s %q: use one of %s", flag, v, strings.Join(list, ", "))
	}
	if f.format != "" {
		if err := in("format", f.format, report.Formats(true)); err != nil {
			return err
		}
	}
	if f.sort != "" {
		if err := in("sort", f.sort, report.Sorts); err != nil {
			return err
		}
	}
	if f.by != "" {
		if err := in("by", f.by, report.Groups); err != nil {
			return err
		}
	}
	if f.memory && f.format == "csv" {
		return useError("--memory does not fit a CSV file, which holds one table: use table, markdown or json")
	}
	formats := []string{f.format}
	for _, p := range f.files {
		if isFolder(p) {
			formats = append(formats, "mltk")
			continue
		}
		name, err := report.FormatOf(p)
		if err != nil && filepath.Ext(p) == "" {
			return useError("%w (or %s/ for a folder with the MLTK profiler's report)", err, p)
		}
		if err != nil {
			return withStatus(statusUse, err)
		}
		// A measurement may take minutes: what cannot be written is to be known before.
		if dir := filepath.Dir(p); !isFolder(dir + "/.") {
			return useError("%s: there is no folder %s", p, dir)
		}
		formats = append(formats, name)
	}
	return f.checkLayout(formats)
}

func (f *outputFlags) options(a *app) report.Options {
	m := f.mltk
	if f.accelerator != "none" {
		m.Accelerator = f.accelerator
	}
	return report.Options{MLTK: m, Sort: f.sort, By: f.by, Top: f.top, All: f.all, Width: a.width, Color: a.width > 0, Memory: f.memory}
}

// runFlags say how to measure.
type runFlags struct {
	threads, runs int
	pin           bool
	time, warmup  time.Duration
	samples       bool
}

func (f *runFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.threads, "threads", 1, "threads that compute")
	c.Flags().IntVar(&f.runs, "runs", 0, "measured inferences of each pass (default: as many as fit --time)")
	c.Flags().DurationVar(&f.time, "time", 2*time.Second, "time for the measured inferences")
	c.Flags().DurationVar(&f.warmup, "warmup", 500*time.Millisecond, "least time to warm up")
	c.Flags().BoolVar(&f.pin, "pin", false, "bind every thread to a processor of its own")
	c.Flags().BoolVar(&f.samples, "samples", false, "keep every measured time in the profile, and a timeline (files that show them have them without this)")
}

func (f *runFlags) options() ([]opmeter.Option, error) {
	switch {
	case f.threads < 1 || f.threads > 1024:
		return nil, useError("--threads %d: use 1 to 1024", f.threads)
	case f.runs < 0:
		return nil, useError("--runs %d: use 0 or more", f.runs)
	case f.time <= 0:
		return nil, useError("--time %v: use a time such as 2s", f.time)
	}
	out := []opmeter.Option{opmeter.Threads(f.threads), opmeter.For(f.time), opmeter.Warmup(f.warmup, 3)}
	if f.warmup <= 0 {
		out[2] = opmeter.Warmup(-1, -1)
	}
	if f.runs > 0 {
		out[1] = opmeter.Runs(f.runs)
	}
	if f.pin {
		out = append(out, opmeter.Pin())
	}
	if f.samples {
		out = append(out, opmeter.KeepSamples())
	}
	return out, nil
}

// progress shows a line on the terminal for work that takes over a second. stop
// takes it away again.
func (a *app) progress() (show func(phase string, f float64), stop func()) {
	if !a.tty {
		return nil, func() {}
	}
	start, shown := time.Now(), false
	return func(phase string, f float64) {
			if time.Since(start) < time.Second {
				return
			}
			shown = true
			const width = 24
			n := min(width, max(0, int(f*width)))
			fmt.Fprintf(a.err, "\r\x1b[K%s [%s%s] %3.0f %%", phase, strings.Repeat("=", n), strings.Repeat(" ", width-n), 100*f)
		}, func() {
			if shown {
				fmt.Fprint(a.err, "\r\x1b[K")
			}
		}
}

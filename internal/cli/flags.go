package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/profile"
)

// modelFlags say in which shapes and with which data a model runs.
type modelFlags struct {
	shapes, files []string
	batch         int
	seed          uint64
	zeros         bool
	exact         bool
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
	c.Flags().BoolVar(&f.exact, "exact", false, "compute quantised ONNX patterns in floating point, as the file says, not in integers")
}

// inputs turns the flags into options of the library.
func (f *modelFlags) inputs() (opmeter.Inputs, error) {
	in := opmeter.Inputs{Seed: f.seed, Zeros: f.zeros, Batch: f.batch, Shapes: map[string][]int{}, Files: map[string]string{}}
	for _, s := range f.shapes {
		name, v, ok := cutLast(s)
		if !ok {
			return in, useError("--shape %q: write NAME=1x3x224x224", s)
		}
		d, ok := parseShape(v)
		if !ok {
			return in, useError("--shape %s: %q is not a shape such as 1x3x224x224", s, v)
		}
		in.Shapes[name] = d
	}
	for _, s := range f.files {
		name, v, ok := cutLast(s)
		if !ok {
			return in, useError("--input %q: write NAME=FILE.npy", s)
		}
		in.Files[name] = v
	}
	return in, told(in.Validate())
}

// parseShape reads "1x3x224x224", also with commas; "scalar" has no dimensions.
func parseShape(s string) ([]int, bool) {
	if s == "scalar" {
		return []int{}, true
	}
	var out []int
	for _, p := range strings.Split(strings.ReplaceAll(s, ",", "x"), "x") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

// carries reads the --carry flags.
func (f *modelFlags) carries() (map[string]string, error) {
	out := map[string]string{}
	for _, s := range f.carry {
		from, to, ok := cutLast(s)
		if !ok {
			return nil, useError("--carry %q: write OUTPUT=INPUT", s)
		}
		out[from] = to
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
	strict        string
}

func (f *runFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.threads, "threads", 1, "threads that compute")
	c.Flags().IntVar(&f.runs, "runs", 0, "measured inferences of each pass (default: as many as fit --time)")
	c.Flags().DurationVar(&f.time, "time", 2*time.Second, "time for the measured inferences")
	c.Flags().DurationVar(&f.warmup, "warmup", 500*time.Millisecond, "least time to warm up")
	c.Flags().BoolVar(&f.pin, "pin", false, "bind every thread to a processor of its own")
	c.Flags().StringVar(&f.strict, "strict", "", "end with status 1 where the verdict on the latency is worse: good, or fair (default where --strict stands alone)")
	c.Flags().Lookup("strict").NoOptDefVal = string(profile.Fair)
	c.Flags().BoolVar(&f.samples, "samples", false, "keep every measured time in the profile, and a timeline (files that show them have them without this)")
}

// set adds the flags to the options of the library. What the library takes for its
// default is no value that anybody means on a command line.
func (f *runFlags) set(o *opmeter.Options) error {
	switch {
	case f.threads == 0:
		return useError("--threads: use 1 to 1024, not 0")
	case f.time == 0:
		return useError("--time: use a time such as 2s, not 0s")
	}
	if s := profile.Verdict(f.strict); f.strict != "" && s != profile.Fair && s != profile.Good {
		return useError("--strict %q: use good or fair", f.strict)
	}
	o.Threads, o.Runs, o.Time, o.Warmup, o.Pin, o.KeepSamples = f.threads, f.runs, f.time, f.warmup, f.pin, f.samples
	if f.warmup <= 0 {
		o.Warmup = -1
	}
	return told(o.Validate())
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

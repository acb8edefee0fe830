package cli

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/profile"
)

// modelFlags say in which shapes and with which data a model runs.
type modelFlags struct {
	shapes, files []string
	dims          []string
	iterations    []string
	batch         int
	lists         *opmeter.Lists // sizes of which each is measured, nil for commands that take one
	seed          uint64
	zeros         bool
	exact         bool
	carry         []string
	maxLoop       time.Duration
	maxMemory     string
}

func (f *modelFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.shapes, "shape", nil, "`NAME=DIMS`: shape of an input, such as image=1x3x224x224")
	c.Flags().StringArrayVar(&f.dims, "dim", nil, "`NAME=N`: size of a named dimension of ONNX inputs")
	wholeVar(c, &f.batch, "batch", 0, 1, most, "batch size: first dimension of every input", "")
}

// addLists makes --dim and --batch take lists, of which each size is measured.
func (f *modelFlags) addLists(c *cobra.Command) {
	f.lists = &opmeter.Lists{Dims: map[string][]int{}}
	batch, dim := c.Flags().Lookup("batch"), c.Flags().Lookup("dim")
	batch.Value, batch.DefValue, batch.Usage = &wholes{&f.lists.Batches, 1, most}, "", "`N,…`: batch sizes, the first dimension of every input"
	dim.Usage = "`NAME=N[,N]`: sizes of a named dimension of ONNX inputs"
}

// several returns the lists of sizes that inputs read, nil for one size each.
func (f *modelFlags) several() *opmeter.Lists {
	if f.lists == nil || len(f.lists.Batches) < 2 && len(f.lists.Dims) == 0 {
		return nil
	}
	l := &opmeter.Lists{Dims: f.lists.Dims}
	if len(f.lists.Batches) > 1 {
		l.Batches = f.lists.Batches
	}
	return l
}

// addIterations is for commands that count or estimate: a run determines iterations itself.
func (f *modelFlags) addIterations(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.iterations, "iterations", nil, "`NAME=N`: iterations of a loop, in counts and estimates")
}

func (f *modelFlags) addData(c *cobra.Command) {
	f.addOnce(c)
	c.Flags().StringArrayVar(&f.carry, "carry", nil, "`OUT=IN`: feed an output back to an input of the next inference")
}

// addOnce adds the flags of a single inference.
func (f *modelFlags) addOnce(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.files, "input", nil, "`NAME=FILE`: data of an input, a .npy file")
	c.Flags().Var(&natural{&f.seed}, "seed", "seed of random inputs")
	c.Flags().BoolVar(&f.zeros, "zeros", false, "feed zeros instead of random inputs")
	spanVar(c, &f.maxLoop, "max-loop", 3*time.Second, 0, "time limit of a loop of unknown length, 0s for none", "a time of zero or more, such as 10s")
	c.Flags().StringVar(&f.maxMemory, "max-memory", "", "`SIZE`: memory limit for tensors, such as 4GiB")
	c.Flags().BoolVar(&f.exact, "exact", false, "compute QDQ patterns and MatMulNBits in floating point; round float16 after each operator")
}

// inputs turns the flags into options of the library.
func (f *modelFlags) inputs() (opmeter.Inputs, error) {
	in := opmeter.Inputs{Seed: f.seed, Zeros: f.zeros, Batch: f.batch, Shapes: map[string][]int{}, Dims: map[string]int{}, Files: map[string]string{}, Iterations: map[string]int64{}}
	for _, s := range f.shapes {
		name, v, ok := cutLast(s)
		if !ok {
			return in, useError("--shape %q: write NAME=1x3x224x224", s)
		}
		d, ok := parseShape(v)
		if !ok {
			return in, useError("--shape %s: %q is not a shape such as 1x3x224x224, or scalar", s, v)
		}
		in.Shapes[name] = d
	}
	if f.lists != nil && len(f.lists.Batches) == 1 {
		in.Batch = f.lists.Batches[0]
	}
	for _, s := range f.dims {
		name, v, ok := cutLast(s)
		if f.lists != nil && strings.Contains(v, ",") && ok {
			var sizes []int
			if err := (&wholes{&sizes, 0, most}).Set(v); err != nil {
				return in, useError("--dim %s: %v", s, err)
			}
			f.lists.Dims[name] = sizes
			continue
		}
		n, err := strconv.Atoi(v)
		if !ok || err != nil || n < 0 {
			return in, useError("--dim %q: write NAME=N with an integer", s)
		}
		in.Dims[name] = n
	}
	for _, s := range f.iterations {
		name, v, ok := cutLast(s)
		n, err := strconv.ParseInt(v, 10, 64)
		if !ok || err != nil || n < 0 {
			return in, useError("--iterations %q: write NAME=N with an integer, such as while=25", s)
		}
		in.Iterations[name] = n
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

// loops is the limit for loops as the library takes it.
func (f *modelFlags) loops() time.Duration {
	if f.maxLoop <= 0 {
		return -1
	}
	return f.maxLoop
}

// memory is the limit of memory as the library takes it.
func (f *modelFlags) memory() (int64, error) {
	if f.maxMemory == "" {
		return 0, nil
	}
	n, err := quantity("max-memory", f.maxMemory, "a size such as 4GiB or 512MiB", sizes)
	return int64(n), err
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
	format  string
	files   []string
	sort    string
	by      string
	top     int
	all     bool
	memory  bool
	details bool
	open    bool

	mltk        mltk.Options // of the MLTK profiler's layouts
	accelerator string       // as --accelerator had it
}

func (f *outputFlags) add(c *cobra.Command) {
	f.addFiles(c)
	c.Flags().StringVar(&f.sort, "sort", "", "`KEY`: sort by: "+strings.Join(report.Sorts, " "))
	c.Flags().StringVar(&f.by, "by", "", "`KEY`: group the table by op, scope or repeated block")
	wholeVar(c, &f.top, "top", 0, 0, most, "show the slowest N rows, or the first N of --sort", "")
	c.Flags().BoolVar(&f.all, "all", false, "also list folded and fused layers")
	c.Flags().BoolVar(&f.memory, "memory", false, "add the memory plan to table and Markdown")
	c.Flags().BoolVar(&f.details, "details", false, "show all figures of the model above the table")
	f.addLayout(c)
}

// addFiles adds where profiles go.
func (f *outputFlags) addFiles(c *cobra.Command) {
	c.Flags().StringVar(&f.format, "format", "", "`NAME`: format on standard output: table, json, csv, …")
	c.Flags().StringArrayVarP(&f.files, "output", "o", nil, "`FILE`: write a file; the ending selects the format")
	c.Flags().BoolVar(&f.open, "open", true, "open the page of -o in the browser (--open=false: do not)")
}

// ready tells before the work which of the files cannot be written, or would replace what
// the work reads. Names in folders are made later.
func ready(files []string, inputs ...string) error {
	for i, p := range files {
		if slices.ContainsFunc(files[:i], func(f string) bool { return filepath.Clean(f) == filepath.Clean(p) }) {
			return useError("%s: is named twice: write each file once", p)
		}
		if isFolder(p) {
			continue
		}
		if err := writable(p, inputs...); err != nil {
			return err
		}
	}
	return nil
}

// writable is [ready] for a file that cannot be a folder.
func writable(file string, inputs ...string) error {
	if err := inFolder(file); err != nil {
		return err
	}
	return withStatus(statusUse, plainPath(atomicfile.Check(file, inputs...)))
}

// inFolder refuses a file whose folder is absent.
func inFolder(file string) error {
	if dir := filepath.Dir(file); !isFolder(dir + "/.") {
		return useError("%s: no such folder: %s", file, dir)
	}
	return nil
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
		return useError("--memory is not possible in CSV (one table): use table, markdown or json")
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
		if err := inFolder(p); err != nil {
			return err
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
	return report.Options{MLTK: m, Sort: f.sort, By: f.by, Top: f.top, All: f.all, Width: a.width, Color: a.color, Memory: f.memory, Details: f.details}
}

// runFlags say how to measure.
type runFlags struct {
	threads, runs int
	streams       int
	rate          float64
	cold          string
	pin           bool
	time, warmup  time.Duration
	timeline      string
	strict        string
}

func (f *runFlags) add(c *cobra.Command) {
	wholeVar(c, &f.threads, "threads", 1, 1, 1024, "number of threads", "")
	wholeVar(c, &f.runs, "runs", 0, 1, most, "inferences per pass (default: as many as fit --time)", "leave it out for as many as fit --time")
	spanVar(c, &f.time, "time", 2*time.Second, 1, "duration of the measurement", "a time above zero, such as 2s")
	spanVar(c, &f.warmup, "warmup", 500*time.Millisecond, 0, "minimum warm-up", "a time of zero or more, such as 1s")
	c.Flags().BoolVar(&f.pin, "pin", false, "pin every thread to a CPU of its own")
	c.Flags().StringVar(&f.strict, "strict", "", "`FIT`: exit status 1 unless fit for it: comparing, shares, or comparing at a tolerance such as 5% (default comparing)")
	c.Flags().Lookup("strict").NoOptDefVal = string(profile.FitComparing)
	c.Flags().StringVar(&f.timeline, "timeline", "sample", "`WHAT`: keep a sample of the inferences, or all and every measured time")
	wholeVar(c, &f.streams, "streams", 1, 1, 1024, "also measure N sessions at the same time", "")
	c.Flags().Var(&perSecond{&f.rate}, "rate", "`RATE`: also measure at a fixed rate, such as 100/s")
	c.Flags().StringVar(&f.cold, "cold", "", "`WHAT`: also measure cold: caches or start (default caches)")
	c.Flags().Lookup("cold").NoOptDefVal = string(profile.ColdCaches)
}

// set adds the flags to the options of the library.
func (f *runFlags) set(o *opmeter.Options) error {
	if _, err := strictOf(f.strict); err != nil {
		return err
	}
	if f.timeline != "sample" && f.timeline != "all" {
		return useError("--timeline %q: use sample or all", f.timeline)
	}
	switch profile.Cold(f.cold) {
	case "", profile.ColdCaches, profile.ColdStart:
	default:
		return useError("--cold %q: use caches or start", f.cold)
	}
	o.Threads, o.Runs, o.Time, o.Warmup, o.Pin, o.KeepSamples = f.threads, f.runs, f.time, f.warmup, f.pin, f.timeline == "all"
	o.Streams, o.Rate, o.Cold = f.streams, f.rate, profile.Cold(f.cold)
	if f.warmup == 0 {
		o.Warmup = -1
	}
	return told(o.Validate())
}

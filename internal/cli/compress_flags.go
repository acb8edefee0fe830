package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/study"
)

// shares is a list of shares of 1.
type shares struct{ p *[]float64 }

func (n *shares) String() string {
	if n.p == nil {
		return ""
	}
	s := make([]string, len(*n.p))
	for i, v := range *n.p {
		s[i] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strings.Join(s, ",")
}
func (n *shares) Type() string { return "X,…" }

func (n *shares) Set(s string) error {
	var out []float64
	for _, f := range strings.Split(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(f), 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return fmt.Errorf("write levels from 0 to 1 with commas between them, such as 0.5,0.8,0.95, not %q", s)
		}
		if slices.Contains(out, v) {
			return fmt.Errorf("has %v twice", v)
		}
		out = append(out, v)
	}
	*n.p = out
	return nil
}

// listed is a list of words that are known; "none" is an empty one.
type listed[T ~string] struct {
	p   *[]T
	all []T
}

func (n *listed[T]) String() string {
	if n.p == nil {
		return ""
	}
	s := make([]string, len(*n.p))
	for i, v := range *n.p {
		s[i] = string(v)
	}
	return strings.Join(s, ",")
}
func (n *listed[T]) Type() string { return "NAME,…" }

func (n *listed[T]) Set(s string) error {
	out := []T{}
	if s != "none" {
		for _, f := range strings.Split(s, ",") {
			v := T(strings.TrimSpace(f))
			if !slices.Contains(n.all, v) {
				all := make([]string, len(n.all))
				for i, x := range n.all {
					all[i] = string(x)
				}
				return fmt.Errorf("use some of %s, or none, not %q", strings.Join(all, ", "), f)
			}
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	*n.p = out
	return nil
}

// reals is a list of numbers.
type reals struct{ p *[]float32 }

func (n *reals) String() string {
	if n.p == nil || len(*n.p) == 0 {
		return ""
	}
	return fmt.Sprint(*n.p)
}
func (n *reals) Type() string { return "X,…" }

func (n *reals) Set(s string) error {
	var out []float32
	for _, f := range strings.Split(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(f), 32)
		if err != nil || v-v != 0 {
			return fmt.Errorf("write numbers with commas between them, such as 0.485,0.456,0.406, not %q", s)
		}
		out = append(out, float32(v))
	}
	*n.p = out
	return nil
}

// compressCommand has the flags of the verbs of compress.
type compressCommand struct {
	a       *app
	m       modelFlags
	target  targetFlags
	engines engineFlags
	study   string
	name    string
	threads int
	levels  []float64
	shapes  []study.Structure
	numbers []study.Format
	flops   bool
	time    time.Duration
	loss    lossFlags
	plan    planFlags

	format string
	files  []string
	top    int
}

// addStudy adds what says which study is meant.
func (x *compressCommand) addStudy(c *cobra.Command) {
	x.addStudyOnly(c)
	wholeVar(c, &x.m.batch, "batch", 0, 1, most, "first dimension of every input (default: that of the file)", "")
}

// addStudyOnly is addStudy for verbs that take several batches.
func (x *compressCommand) addStudyOnly(c *cobra.Command) {
	c.Flags().StringVar(&x.study, "study", "", "`FILE` with all results (default: NAME.study here)")
	c.Flags().StringArrayVar(&x.m.shapes, "shape", nil, "`NAME=DIMS`: shape of an input, such as image=1x3x224x224")
	c.Flags().StringArrayVar(&x.m.dims, "dim", nil, "`NAME=N`: size of a named dimension of ONNX inputs")
	c.Flags().Var(&natural{&x.m.seed}, "seed", "seed of random inputs and choices")
	c.Flags().StringVar(&x.m.maxMemory, "max-memory", "", "`SIZE`: most memory for the model's values, such as 4GiB")
}

// addOut adds what is shown and written.
func (x *compressCommand) addOut(c *cobra.Command) {
	c.Flags().StringVar(&x.format, "format", "", "`NAME`: format on standard output: "+strings.Join(report.StudyFormats, ", "))
	c.Flags().StringArrayVarP(&x.files, "output", "o", nil, "`FILE`: write it: .txt, .csv, .json, .xlsx, .html")
}

// addSpeed adds what a performance profile is of.
func (x *compressCommand) addSpeed(c *cobra.Command) {
	wholeVar(c, &x.threads, "threads", 1, 1, 1024, "threads that compute", "")
	x.target.on = []string{"host"}
	c.Flags().StringArrayVar(&x.target.on, "on", []string{"host"}, "`TARGET`: host, or a target's id for estimates")
	x.target.addDir(c)
	x.addChanges(c)
	spanVar(c, &x.time, "time", 400*time.Millisecond, 1, "time of each comparison", "a time above zero, such as 1s")
	c.Flags().BoolVar(&x.flops, "flops", false, "count operations in place of measuring")
	x.engines.addEngines(c)
}

// engine is the engine that measures, nil for opmeter's own.
func (x *compressCommand) engine() (*engine.Engine, error) {
	list, err := x.engines.find()
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, useError("--engine: one engine per profile; compress bench compares several")
	}
	if list[0].engine != nil {
		if list[0].engine.Command != "" {
			return nil, useError("--engine %s: its times belong to another device; use onnxruntime, litert, tflite or openvino", list[0].name)
		}
		x.a.measures(longPatience)
	}
	return list[0].engine, nil
}

// addChanges adds what is tried.
func (x *compressCommand) addChanges(c *cobra.Command) {
	c.Flags().Var(&shares{&x.levels}, "levels", "`X,…`: levels of sparsity, from 0 to 1")
	c.Flags().Var(&listed[study.Structure]{&x.shapes, study.Structures()}, "structure", "`NAME,…`: "+joined(study.Structures()))
	c.Flags().Var(&listed[study.Format]{&x.numbers, study.Formats()}, "precision", "`NAME,…`: numbers of weights: "+joined(study.Formats()))
}

func joined[T ~string](list []T) string {
	s := make([]string, len(list))
	for i, v := range list {
		s[i] = string(v)
	}
	return strings.Join(s, ", ")
}

// check refuses what cannot be shown or written, before any work.
func (x *compressCommand) check() error {
	if x.format != "" && !slices.Contains(report.StudyFormats, x.format) {
		return useError("--format %q: use one of %s", x.format, strings.Join(report.StudyFormats, ", "))
	}
	for _, f := range x.files {
		if _, err := report.StudyFormat(f); err != nil {
			return withStatus(statusUse, err)
		}
	}
	return nil
}

// studyName is the file of a model's study where nobody names one: beside nothing else, in the
// folder where people work.
func studyName(model string) string { return baseName(model) + study.Extension }

// file is the study of a model.
func (x *compressCommand) file(model string) string {
	if x.study != "" {
		return x.study
	}
	return studyName(model)
}

// with opens model and study for work.
func (x *compressCommand) with(model string, do func(c *compress.Job) error) error {
	path, err := findModel(model)
	if err != nil {
		return err
	}
	name := x.file(path)
	if err := inFolder(name); err != nil {
		return err
	}
	if err := ready(x.files, path, name); err != nil {
		return err
	}
	in, err := x.m.inputs()
	if err != nil {
		return err
	}
	in.Batch = 0 // profiles have batches of their own
	memory, err := x.m.memory()
	if err != nil {
		return err
	}
	x.a.measures(longPatience)
	return x.a.withModel(path, func(m *opmeter.Model) error {
		show, stop := x.a.progressLines(time.Now)
		defer stop()
		c, err := compress.Open(m, compress.Options{Study: name, Inputs: in, MaxMemory: memory, Progress: show})
		if err != nil {
			return told(err)
		}
		defer func() { _ = c.Close() }()
		stop2 := x.a.keepsStudy(name)
		defer stop2()
		for _, d := range c.Damage() {
			fmt.Fprintf(x.a.err, "opmeter: %s: %s\n", text.Clean(name), d)
		}
		err = do(c)
		stop()
		return x.a.stoppedStudy(told(err), name)
	})
}

// deliver shows a study and writes it.
func (x *compressCommand) deliver(s *study.Study, o report.StudyOptions) error {
	o.Top, o.Width = x.top, x.a.width
	format := x.format
	if format == "" {
		format = "table"
	}
	if err := report.WriteStudy(x.a.out, s, format, o); err != nil {
		return withStatus(statusUse, err)
	}
	for _, f := range x.files {
		if err := report.StudyFile(f, s, o); err != nil {
			return withStatus(statusUse, plainPath(err))
		}
	}
	x.a.sayWrote(x.files, format == "table")
	x.a.open(x.files)
	return nil
}

// isStudy reports whether an argument names a study and no model.
func isStudy(path string) bool { return strings.EqualFold(filepath.Ext(path), study.Extension) }

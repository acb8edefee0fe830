package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/advise"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/target"
)

type adviseCommand struct {
	a       *app
	m       modelFlags
	on      string
	dir     string
	threads int
	time    time.Duration
	try     bool
	budget  time.Duration
	only    []string
	format  string
	files   []string

	options []string // flags of the inputs, as commands repeat them
}

func newAdvise(a *app) *cobra.Command {
	x := &adviseCommand{a: a}
	c := &cobra.Command{
		Use:   "advise MODEL|PROFILE",
		Short: "Say what to change about a model, and what that gains",
		Long: `Measure a model here, or estimate it with --on, and list what would make it faster or smaller:
the expected gain with its band, the figures behind it, and a command that tries it. A saved
profile is read in place of a measurement. --try applies each change and measures it interleaved
with the unchanged model; -o NAME.onnx writes the changed model. The exit status is 0 also
without advice.`,
		Example: `  opmeter advise model.onnx
  opmeter advise model.tflite --on stm32l4r5
  opmeter advise model.onnx --try --only int8-static,transposes
  opmeter advise measured.opmeter --format markdown`,
		Args: one("a model file or a saved profile"),
		RunE: func(c *cobra.Command, args []string) error { return x.run(c, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&x.on, "on", "host", "`TARGET`: host, or a target's id or file for an estimate")
	f.StringVar(&x.dir, "targets", "", "`DIR`: folder with target files of your own (.yaml)")
	f.BoolVar(&x.try, "try", false, "apply the advice that can be applied at once, and measure it")
	spanVar(c, &x.budget, "budget", 20*time.Second, time.Second, "time to measure each change with --try", "a time of at least 1s")
	f.StringSliceVar(&x.only, "only", nil, "`RULE,…`: apply these rules only")
	f.StringVar(&x.format, "format", "table", "`NAME`: "+strings.Join(advise.Formats, ", "))
	f.StringArrayVarP(&x.files, "output", "o", nil, "`FILE`: write it: .txt, .md, .json; .onnx or .tflite: the changed model")
	wholeVar(c, &x.threads, "threads", 1, 1, 1024, "number of threads", "")
	spanVar(c, &x.time, "time", 2*time.Second, 1, "duration of the measurement", "a time above zero, such as 2s")
	x.m.add(c)
	return c
}

// modelFiles are the endings of files that hold a changed model.
var modelFiles = []string{".onnx", ".tflite"}

// adviceFormats are the formats of the other files of -o.
var adviceFormats = map[string]string{".txt": "table", ".md": "markdown", ".json": "json"}

// changedFile is the file of -o for a changed model, "" without one.
func (x *adviseCommand) changedFile() string {
	for _, f := range x.files {
		if slices.Contains(modelFiles, strings.ToLower(filepath.Ext(f))) {
			return f
		}
	}
	return ""
}

// check refuses bad values before any work is done.
func (x *adviseCommand) check(c *cobra.Command, path string) error {
	if !slices.Contains(advise.Formats, x.format) {
		return useError("--format %q: use one of %s", x.format, strings.Join(advise.Formats, ", "))
	}
	for _, code := range x.only {
		if advise.RuleOf(code) == nil {
			return useError("--only %q: no such rule; use one of %s", code, strings.Join(codes(), ", "))
		}
	}
	models := 0
	for _, f := range x.files {
		ext := strings.ToLower(filepath.Ext(f))
		isModel := slices.Contains(modelFiles, ext)
		if !isModel && adviceFormats[ext] == "" {
			return useError("%s: the ending names the format: .txt, .md or .json; .onnx or .tflite for the changed model", f)
		}
		if !isModel {
			continue
		}
		if models++; models > 1 {
			return useError("-o: one changed model can be written, %d are named", models)
		}
		if _, err := os.Lstat(f); err == nil {
			return useError("%s: the file exists; a changed model is only written to a new file", f)
		}
	}
	if c.Flags().Changed("budget") && !x.try {
		return useError("--budget is for --try")
	}
	switch kindOf(x.on) {
	case onBoard:
		return useError("--on %s: boards are measured with opmeter profile -o FILE; advise reads that file", x.on)
	case onChip:
		for _, name := range []string{"threads", "time", "budget"} {
			if c.Flags().Changed(name) {
				return useError("--%s is for this computer: leave it out with --on %s", name, x.on)
			}
		}
	case onComputer:
	}
	return ready(x.files, path)
}

// codes lists the codes of all rules.
func codes() (out []string) {
	for i := range advise.Rules {
		out = append(out, advise.Rules[i].Code)
	}
	return out
}

// repeated returns the flags of the inputs as the user gave them.
func (x *adviseCommand) repeated() (out []string) {
	for _, s := range x.m.shapes {
		out = append(out, "--shape", s)
	}
	for _, s := range x.m.dims {
		out = append(out, "--dim", s)
	}
	if x.m.batch > 0 {
		out = append(out, "--batch", fmt.Sprint(x.m.batch))
	}
	return out
}

func (x *adviseCommand) run(c *cobra.Command, path string) error {
	if err := x.check(c, path); err != nil {
		return err
	}
	x.options = x.repeated()
	in, err := x.m.inputs()
	if err != nil {
		return err
	}
	if isSaved(path) {
		for _, name := range []string{"on", "threads", "time", "shape", "dim", "batch"} {
			if c.Flags().Changed(name) {
				return useError("--%s is for models: the saved profile has its own", name)
			}
		}
		return x.profile(c.Context(), path)
	}
	return x.a.withModel(path, func(m *opmeter.Model) error {
		f := &advise.Facts{Path: m.Name(), Options: x.options}
		if kindOf(x.on) == onChip {
			err = x.estimate(f, m, in)
		} else {
			err = x.measure(c.Context(), f, m, in)
		}
		if err != nil {
			return err
		}
		return x.advise(c.Context(), f, m, in)
	})
}

// isSaved reports whether a file is a saved profile by its ending or content.
func isSaved(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".opmeter", ".opmeter-journal", ".json":
		return true
	}
	return false
}

// measure profiles the model here.
func (x *adviseCommand) measure(ctx context.Context, f *advise.Facts, m *opmeter.Model, in opmeter.Inputs) error {
	show, stop := x.a.progress()
	defer stop()
	x.a.measures(longPatience)
	o := opmeter.Options{Inputs: in, Threads: x.threads, Time: x.time, Progress: show}
	began := time.Now()
	p, err := opmeter.Profile(ctx, m, o)
	if err == nil && p != nil {
		err = x.a.beside(ctx, m, p, o, time.Since(began))
	}
	if err != nil {
		return told(err)
	}
	if p == nil || !costs(p) {
		return errUnmeasured
	}
	f.Profile = p
	f.Probe = func(v *advise.Variant) (*advise.Measured, error) { return advise.Here(ctx, f, v, advise.ProbeTime) }
	f.Beside = func(engine string) (*advise.Measured, error) { return x.engines(ctx, f.Path, engine) }
	return nil
}

// engines measures another engine interleaved with opmeter's: processes that answer in turn.
func (x *adviseCommand) engines(ctx context.Context, file, engine string) (*advise.Measured, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	list := []ab.Alternative{{Name: "opmeter"}, {Name: engine}}
	for i := range list {
		list[i].Command = append([]string{self, workerVerb, file, "--engine=" + list[i].Name, fmt.Sprintf("--threads=%d", x.threads)}, x.options...)
	}
	source := &worker.Processes{Alternatives: list, CPUs: machine.PickCPUs(x.threads)}
	return ab.Run(ctx, list, source, ab.Options{Budget: advise.EnginesTime, Margin: 0.005, Seed: 1, Quiet: machine.NewOthers().Wait})
}

// estimate estimates the model on the target, and prepares further estimates.
func (x *adviseCommand) estimate(f *advise.Facts, m *opmeter.Model, in opmeter.Inputs) error {
	flags := targetFlags{dir: x.dir, on: []string{x.on}}
	set, faults, err := flags.load()
	if err != nil {
		return err
	}
	t, err := set.Find(x.on)
	if err != nil {
		return told(err)
	}
	o := opmeter.EstimateOptions{Inputs: in}
	if f.Profile, err = t.Estimate(m, o); err != nil {
		return told(err)
	}
	x.a.leftOut(faults)
	estimates(f, m, t, set, o)
	return nil
}

// estimates lets rules estimate changed models, and the model on other targets.
func estimates(f *advise.Facts, m *opmeter.Model, t target.Target, set *target.Set, o opmeter.EstimateOptions) {
	f.Estimate = func(g *graph.Model) (*profile.Profile, error) {
		b, err := rewrite.Encode(g)
		if err != nil {
			return nil, err
		}
		changed, err := opmeter.OpenBytes("changed."+g.Format, b)
		if err != nil {
			return nil, err
		}
		defer func() { _ = changed.Close() }()
		return t.Estimate(changed, o)
	}
	f.Fits = func() ([]*profile.Profile, error) {
		var fit []*profile.Profile
		for _, other := range set.List() {
			p, err := other.Estimate(m, opmeter.EstimateOptions{Inputs: o.Inputs})
			if err != nil {
				return nil, err
			}
			row := onTarget(other, o).row(p)
			if row.Fits() == "yes" && !row.Incomplete() {
				fit = append(fit, p)
			}
		}
		sorting.Stable(fit, func(a, b *profile.Profile) int { return compareSeconds(a, b) })
		return fit, nil
	}
}

// compareSeconds orders profiles by latency.
func compareSeconds(a, b *profile.Profile) int {
	switch x, y := seconds(a), seconds(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// profile advises on a saved profile. Its model is opened where the file is still the same.
func (x *adviseCommand) profile(ctx context.Context, path string) error {
	p, err := readProfile(path)
	if err != nil {
		return err
	}
	f := &advise.Facts{Profile: p, Path: p.Model.Path}
	if f.Path == "" {
		f.Path = p.Model.Name
	}
	in := opmeter.Inputs{Shapes: map[string][]int{}}
	for i := range p.Model.Inputs {
		t := &p.Model.Inputs[i]
		if t.Declared == nil {
			continue
		}
		var dims []int
		for _, d := range t.Shape {
			dims = append(dims, int(d))
		}
		in.Shapes[t.Name] = dims
		f.Options = append(f.Options, "--shape", t.Name+"="+strings.Trim(strings.ReplaceAll(fmt.Sprint(dims), " ", "x"), "[]"))
	}
	m, err := opmeter.Open(f.Path)
	if err != nil {
		return x.advise(ctx, f, nil, in) // advice that needs the graph says so
	}
	defer func() { _ = m.Close() }()
	id, err := bridge.Of(m).Identity()
	if err != nil || id.File != p.Model.SHA256 || id.Structure != p.Model.StructureSHA256 || id.Weights != p.Model.WeightsSHA256 {
		return x.advise(ctx, f, nil, in)
	}
	if p.Target.Kind == profile.TargetSimulator {
		if err := x.again(f, m, in); err != nil {
			return err
		}
	}
	return x.advise(ctx, f, m, in)
}

// again prepares estimates on the target of a saved profile, if it still has the same estimate.
func (x *adviseCommand) again(f *advise.Facts, m *opmeter.Model, in opmeter.Inputs) error {
	flags := targetFlags{dir: x.dir}
	set, _, err := flags.load()
	if err != nil {
		return err
	}
	t, err := set.Find(f.Profile.Target.ID)
	if err != nil {
		return nil //nolint:nilerr // a target of another machine: rules that need it say so
	}
	o := opmeter.EstimateOptions{Inputs: in}
	p, err := t.Estimate(m, o)
	if err == nil && seconds(p) == seconds(f.Profile) {
		estimates(f, m, t, set, o)
	}
	return nil
}

// advise applies the rules, tries them if asked, and writes the result. m is nil where the model is
// not known.
func (x *adviseCommand) advise(ctx context.Context, f *advise.Facts, m *opmeter.Model, in opmeter.Inputs) error {
	work := func() error { return x.rules(ctx, f) }
	if m == nil {
		if x.changedFile() != "" {
			return withStatus(statusInput, fmt.Errorf("%s: the model of the profile is absent or has changed: no changed model can be written", f.Path))
		}
		return work()
	}
	b := bridge.Of(m)
	var err error
	if f.Feed, err = bridge.Feed(&in, b); err != nil {
		return told(err)
	}
	if f.Feed.MaxBytes, err = b.MemoryLimit(0); err != nil {
		return told(bridge.Failed(m.Name(), err))
	}
	f.Model = b.Graph
	return b.Reading(work)
}

func (x *adviseCommand) rules(ctx context.Context, f *advise.Facts) error {
	r := advise.About(f, x.only...)
	changed := map[string]*advise.Variant{}
	var stopped error
	if x.try {
		changed, stopped = x.tryAll(ctx, f, r)
		x.a.sayUntried(r)
	}
	wrote := x.files
	var unwritten error // the advice itself is shown all the same
	if file := x.changedFile(); file != "" && stopped == nil {
		if unwritten = x.writeChanged(ctx, f, r, changed, file); unwritten != nil {
			wrote = slices.DeleteFunc(slices.Clone(wrote), func(f string) bool { return f == file })
		}
	}
	for _, file := range x.files {
		format := adviceFormats[strings.ToLower(filepath.Ext(file))]
		if format == "" {
			continue
		}
		var b bytes.Buffer
		if err := advise.Write(&b, r, format, 0); err != nil {
			return err
		}
		if err := atomicfile.Write(file, b.Bytes()); err != nil {
			return withStatus(statusUse, plainPath(err))
		}
	}
	if err := advise.Write(x.a.out, r, x.format, x.a.width); err != nil {
		return err
	}
	if stopped != nil {
		return told(stopped)
	}
	x.a.sayWrote(wrote, x.format == "table")
	return unwritten
}

// sayUntried says what --try left out.
func (a *app) sayUntried(r *advise.Result) {
	var list []string
	if !slices.ContainsFunc(r.Advice, func(a *advise.Advice) bool { return a.Tried != nil }) {
		list = append(list, "no advice has a change to try")
	}
	if open := r.Unchecked(); len(open) > 0 {
		list = append(list, "not checked: "+strings.Join(open, ", "))
	}
	if len(list) == 0 {
		return
	}
	for _, l := range report.Wrap("opmeter: --try: "+strings.Join(list, "; "), a.width) {
		fmt.Fprintln(a.err, l)
	}
}

// tryAll measures what can be applied.
func (x *adviseCommand) tryAll(ctx context.Context, f *advise.Facts, r *advise.Result) (map[string]*advise.Variant, error) {
	show, stop := x.a.progress()
	defer stop()
	done := 0
	measure := func(ctx context.Context, f *advise.Facts, v *advise.Variant, budget time.Duration) (*advise.Measured, error) {
		if show != nil {
			show("measuring the changes", float64(done)/float64(max(len(r.Advice), 1)))
		}
		done++
		return advise.Here(ctx, f, v, budget)
	}
	return advise.Try(ctx, f, r, measure, x.budget)
}

// writeChanged writes the model of the first advice that has one.
func (x *adviseCommand) writeChanged(ctx context.Context, f *advise.Facts, r *advise.Result, changed map[string]*advise.Variant, file string) error {
	for _, a := range r.Advice {
		v := changed[a.Rule]
		if v == nil {
			var err error
			if v, err = a.Change(ctx, f); err != nil {
				return withStatus(statusSource, fmt.Errorf("%s: %w", a.Rule, err))
			}
		}
		if v == nil || v.Model == nil {
			continue
		}
		if ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), "."); ext != v.Model.Format {
			return useError("%s: the changed model is a .%s file", file, v.Model.Format)
		}
		return withStatus(statusUse, plainPath(rewrite.Write(v.Model, file)))
	}
	what := "no advice changes the model: the list above says why each rule is silent"
	if len(r.Advice) > 0 {
		what = "no advice changes the file of the model; the advice is about how it runs"
	}
	return withStatus(statusGate, fmt.Errorf("%s: not written: %s", file, what))
}

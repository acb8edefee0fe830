package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/report"
)

// abFlags are the flags of ab.
type abFlags struct {
	w         workerFlags
	command   bool
	binaries  string
	names     []string
	precision percentage
	margin    percentage
	floor     time.Duration
	budget    time.Duration
	processes int
	cpus      int
	failOn    string
	format    string
	files     []string
}

func newAB(a *app) *cobra.Command {
	f := &abFlags{}
	c := &cobra.Command{
		Use:   "ab ALTERNATIVE ALTERNATIVE...",
		Short: "Measure alternatives interleaved: which is faster, how certain",
		Long: `Measure two or more alternatives interleaved, in many processes, until the difference
is settled. An alternative is a model, or a model with options in quotes. The first line answers
which is faster, with a 95 % interval; all are compared with the first. The smallest difference
that the budget can show is printed before. Ctrl-C keeps what was measured.`,
		Example: `  opmeter ab float.onnx int8.onnx
  opmeter ab "kws.tflite --threads 1" "kws.tflite --threads 2"
  opmeter ab model.onnx --engine opmeter,onnxruntime --budget 2m
  opmeter ab model.onnx --binary ./opmeter-old,./opmeter-new --margin 2%
  opmeter ab --command './bench-old' './bench-new' -o ab.json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return useError("name two or more alternatives: opmeter %s", usageOf(c))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			l, err := f.alternatives(a, c, args)
			if err != nil {
				return err
			}
			return f.run(c.Context(), a, &l)
		},
	}
	f.add(a, c)
	return c
}

func (f *abFlags) add(a *app, c *cobra.Command) {
	c.Flags().BoolVar(&f.command, "command", false, "time commands, each as a whole, without a shell")
	c.Flags().StringVar(&f.binaries, "binary", "", "`OLD,NEW`: opmeter programs that run the model")
	c.Flags().StringArrayVar(&f.names, "name", nil, "`TEXT`: what an alternative is called, one for each")
	spanVar(c, &f.budget, "budget", ab.DefaultBudget, time.Second, "time that the measurement may take", "a time of a second or more, such as 2m")
	c.Flags().Var(&f.precision, "precision", "`PERCENT`: measure until the interval is ± this (default 1%, or a tenth of the difference)")
	f.margin = ab.DefaultMargin
	c.Flags().Var(&f.margin, "margin", "`PERCENT`: differences up to this count as equal")
	spanVar(c, &f.floor, "floor", 0, 0, "`TIME`: differences up to this count as equal, too", "a time of zero or more, such as 10us")
	wholeVar(c, &f.processes, "processes", ab.MinProcesses, ab.MinProcesses, 10_000, "least number of processes of each alternative", "")
	wholeVar(c, &f.cpus, "cpus", 0, 0, 1024, "bind each process to N processors (default: as many as threads)", "0 binds none")
	c.Flags().StringVar(&f.failOn, "fail-on", "", "`WHAT`: worse: exit status 1 if an alternative is worse than the first, 5 if that is undecided")
	c.Flags().StringVar(&f.format, "format", "table", "`NAME`: format on standard output: "+strings.Join(report.ABFormats, ", "))
	c.Flags().StringArrayVarP(&f.files, "output", "o", nil, "`FILE`: write it; the ending names the format (.txt .md .json .bench.txt)")
	f.w.add(a, c)
	c.Flags().Lookup("seed").Usage = "seed of random inputs, of the order of blocks and of the bootstrap"
}

// check refuses bad values before any work is done.
func (f *abFlags) check(c *cobra.Command) error {
	if !slices.Contains(report.ABFormats, f.format) {
		return useError("--format %q: use one of %s", f.format, strings.Join(report.ABFormats, ", "))
	}
	if f.failOn != "" && f.failOn != string(ab.Worse) {
		return useError("--fail-on %q: use worse", f.failOn)
	}
	for _, p := range f.files {
		if _, err := report.ABFormat(p); err != nil {
			return withStatus(statusUse, err)
		}
	}
	if f.cpus > 0 && machine.PickCPUs(f.cpus) == nil {
		if n := len(machine.Affinity()); n > 0 {
			return useError("--cpus %d: this process may use %d", f.cpus, n)
		}
		return useError("--cpus: %w", machine.ErrNoPinning)
	}
	if c.Flags().Changed("precision") && f.precision == 0 {
		return useError("--precision: write a percentage above zero, such as 0.5%%")
	}
	if f.margin == 0 {
		return useError("--margin: write a percentage above zero, such as 0.1%%")
	}
	return ready(f.files)
}

func (f *abFlags) alternatives(a *app, c *cobra.Command, args []string) (l alternatives, err error) {
	if f.command {
		l, err = f.commands(c, args)
	} else {
		l, err = f.models(a, c, args)
	}
	if err != nil {
		return l, err
	}
	if !c.Flags().Changed("cpus") {
		f.cpus = l.threads
	}
	return l, l.call(f.names)
}

// source starts the processes of alternatives. They are bound to processors if there are enough.
func (f *abFlags) source(l *alternatives) ab.Blocks {
	cpus := machine.PickCPUs(f.cpus)
	if f.command {
		return &worker.Commands{Alternatives: l.list, CPUs: cpus}
	}
	return &worker.Processes{Alternatives: l.list, CPUs: cpus, Silent: f.w.e.silent}
}

// run measures and reports.
func (f *abFlags) run(ctx context.Context, a *app, l *alternatives) error {
	a.measures(longPatience)
	show, stop := a.progress()
	defer stop()
	o := ab.Options{
		Precision: float64(f.precision), Margin: float64(f.margin), Floor: f.floor, Budget: f.budget, Processes: f.processes, Seed: f.w.m.seed, Single: f.command,
		Quiet: machine.NewOthers().Wait,
	}
	o.Planned = func(p ab.Plan) {
		if a.tty {
			fmt.Fprint(a.err, "\r\x1b[K")
		}
		for _, l := range report.Wrap("opmeter: "+report.ABPlan(p, f.budget), a.width) {
			fmt.Fprintln(a.err, l)
		}
	}
	if show != nil {
		o.Progress = func(done float64, processes int) {
			show(fmt.Sprintf("measuring, process %d", processes+1), done)
		}
	}
	res, err := ab.Run(ctx, l.list, f.source(l), o)
	stop()
	if res == nil {
		return abError(err)
	}
	return errors.Join(f.deliver(a, res), abError(err), f.status(res))
}

// abError gives an error of a process the exit status that its worker asked for.
func abError(err error) error {
	if e, ok := errors.AsType[*ab.UnfinishedError](err); ok {
		return withStatus(statusSource, fmt.Errorf("%w, and was ended: find out why it hangs, or use a larger --budget", e))
	}
	if e, ok := errors.AsType[*worker.Error](err); ok && e.Status != 0 {
		return withStatus(e.Status, err)
	}
	return told(err)
}

// deliver writes a result to standard output and to files.
func (f *abFlags) deliver(a *app, res *ab.Result) error {
	o := report.ABOptions{Width: a.width, Color: a.color, OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: machine.NewWatch().End().CPUModel}
	done := a.writing()
	defer done()
	failed := report.WriteAB(a.out, res, f.format, o)
	for _, path := range f.files {
		format, err := report.ABFormat(path)
		if err == nil {
			plain := o
			plain.Color, plain.Width = false, 0
			err = atomicfile.Stream(path, func(w io.Writer) error { return report.WriteAB(w, res, format, plain) })
		}
		if err != nil {
			failed = errors.Join(failed, withStatus(statusUse, plainPath(err)))
		}
	}
	if failed == nil {
		a.sayWrote(f.files, false)
	}
	return failed
}

// status is the exit status that --fail-on asks for.
func (f *abFlags) status(res *ab.Result) error {
	if f.failOn == "" {
		return nil
	}
	if len(res.Comparisons) == 0 {
		return withStatus(statusUndecided, errors.New("--fail-on: undecided, because fewer than five processes of each alternative were measured"))
	}
	name := func(i int) string { return res.Alternatives[i].Name }
	for _, want := range []struct {
		verdict ab.Verdict
		status  int
	}{{ab.Worse, statusGate}, {ab.Undecided, statusUndecided}} {
		for _, c := range res.Comparisons {
			if c.Verdict == want.verdict {
				return withStatus(want.status, fmt.Errorf("--fail-on: %s compared with %s: %s", name(c.B), name(c.A), c.Verdict))
			}
		}
	}
	return nil
}

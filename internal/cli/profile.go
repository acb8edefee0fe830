package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

func newProfile(a *app) *cobra.Command {
	var (
		m      modelFlags
		r      runFlags
		o      outputFlags
		t      targetFlags
		x      mltkFlags
		engine string
	)
	c := &cobra.Command{
		Use:   "profile MODEL...",
		Short: "Run a model here and measure every operator",
		Long: `Profile runs a model on this computer and shows where its time goes, operator by
operator. Totals come from plain runs; shares come from instrumented runs that
take turns with them, and the cost of the instruments is shown. With several
models, or a folder, it prints one line a model.

While a model runs, a journal beside the first file of -o keeps what was measured,
should the process be killed: opmeter report opens it. Ctrl-C ends the runs early and
writes what there is.

A verdict stands beside the latency: good, fair or do not use, with its reasons and,
where others disturbed the runs, the figure to quote instead. --strict makes a gate of
it: exit status 1.

With --on it estimates the model on hardware that is not there, with a band that
holds the true value in 9 of 10 cases; several targets are compared in one table.

Scripts of the Silicon Labs MLTK profiler may pass their options: -a (--accelerator)
mvp, cmsis or none, --estimates, --no-format, --full-summary, -o DIR/ for its pair of
report files, and the name of a model. --format mltk, mltk-json and mltk-csv are its
layouts; docs/mltk.md has the details.`,
		Example: `  opmeter profile model.tflite
  opmeter profile model.onnx --threads 2 --by op
  opmeter profile model.onnx --shape input=1x3x320x320 --sort time --top 20
  opmeter profile model.onnx -o profile.opmeter -o layers.csv
  opmeter profile model.tflite --on efr32xg24-mvp
  opmeter profile model -a mvp --estimates --format mltk
  opmeter profile model.tflite --on stm32l4r5 --on nrf52840 --on esp32-s3
  opmeter profile models/ --runs 5`,
		Args: needModel,
		RunE: func(c *cobra.Command, args []string) error {
			if engine != "opmeter" {
				return useError("--engine %q: opmeter engines lists the engines", engine)
			}
			if err := x.apply(c, &t, &o); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			if !t.host() {
				if len(args) != 1 {
					return useError("estimates take one model at a time")
				}
				return a.estimate(c, args[0], &t, &m, &o)
			}
			for _, name := range estimateOnly {
				if c.Flags().Changed(name) {
					return useError("--%s is for estimates: name a target with --on, or leave it out", name)
				}
			}
			opts, err := hostOptions(&m, &r)
			if err != nil {
				return err
			}
			a.measures()
			opts.KeepSamples = opts.KeepSamples || slices.ContainsFunc(o.files, report.WantsEvents)
			var gates []error
			run := func(ctx context.Context, m *opmeter.Model, b bounds) (*profile.Profile, error) {
				opts := opts
				opts.Progress, opts.MaxMACs = b.progress, b.macs
				p, err := a.kept(ctx, m, opts, o.files)
				gates = append(gates, r.gate(p))
				return p, err
			}
			err = a.each(c.Context(), args, &o, run)
			return errors.Join(err, errors.Join(gates...))
		},
	}
	t.add(c)
	x.add(c)
	c.Flags().StringVar(&engine, "engine", "opmeter", "engine that runs the model")
	m.add(c)
	m.addData(c)
	r.add(c)
	o.add(c)
	return c
}

// hostOptions gathers the flags of a run here.
func hostOptions(m *modelFlags, r *runFlags) (o opmeter.Options, err error) {
	if o.Inputs, err = m.inputs(); err != nil {
		return o, err
	}
	if o.Carry, err = m.carries(); err != nil {
		return o, err
	}
	o.Exact = m.exact
	err = r.set(&o)
	return o, err
}

func newSummary(a *app) *cobra.Command {
	var (
		m modelFlags
		o outputFlags
	)
	c := &cobra.Command{
		Use:   "summary MODEL...",
		Short: "Show what follows from the model alone: operators, shapes, work, memory",
		Long: `Summary counts without measuring: operators, shapes, operations, multiply-
accumulates, parameters and the memory plan. With several models, or a folder,
it prints one line a model and says why a file was refused.`,
		Example: `  opmeter summary model.tflite
  opmeter summary model.onnx --shape input=1x3x320x320 --format json
  opmeter summary models/`,
		Args: needModel,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			in, err := m.inputs()
			if err != nil {
				return err
			}
			run := func(_ context.Context, m *opmeter.Model, _ bounds) (*profile.Profile, error) {
				return opmeter.Count(m, in)
			}
			return a.each(c.Context(), args, &o, run)
		},
	}
	m.add(c)
	o.add(c)
	return c
}

func needModel(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return useError("name a model file: .tflite, .onnx or .mltk.zip")
	}
	return nil
}

// bounds is what the command line adds to the options of each model.
type bounds struct {
	progress func(phase string, fraction float64)
	macs     int64
}

type profiler func(ctx context.Context, m *opmeter.Model, b bounds) (*profile.Profile, error)

// each profiles one model in full, or several in a line each.
func (a *app) each(ctx context.Context, args []string, o *outputFlags, run profiler) error {
	files, many, err := expand(args)
	if err != nil {
		return err
	}
	if many {
		return a.list(ctx, files, o, run)
	}
	p, err := a.one(ctx, files[0], 0, run)
	if p == nil || err != nil && p.Totals.Latency == nil {
		a.settle(p, true) // nothing was measured
		return err
	}
	if p.Totals.Latency == nil && slices.ContainsFunc(p.Incomplete, cancelled) {
		err = errUnmeasured
	}
	return errors.Join(err, a.deliver(p, o)) // what was measured before it failed, too
}

// cancelled reports whether a profile ends where it was stopped.
func cancelled(m profile.Missing) bool { return m.Cause == profile.ByCancel }

// one opens a model and profiles it, with at most macs multiply-accumulates where
// that is not 0. With an error the profile holds what was known before it, if anything.
func (a *app) one(ctx context.Context, path string, macs int64, run profiler) (p *profile.Profile, err error) {
	m, err := opmeter.Open(path)
	if err != nil {
		return nil, told(err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	show, stop := a.progress()
	p, err = run(ctx, m, bounds{show, macs})
	stop()
	return p, told(err)
}

// expand replaces folders by the files in them, sorted. many is true when the
// result is to be shown as a list.
func expand(args []string) (files []string, many bool, err error) {
	for _, arg := range args {
		if arg, err = findModel(arg); err != nil {
			return nil, false, err
		}
		st, err := os.Stat(arg)
		if err != nil {
			return nil, false, withStatus(statusInput, plainPath(err))
		}
		if !st.IsDir() {
			files = append(files, arg)
			continue
		}
		many = true
		err = filepath.WalkDir(arg, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && isModel(p) {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return nil, false, withStatus(statusInput, err)
		}
	}
	if many && len(files) == 0 {
		return nil, false, withStatus(statusInput, fmt.Errorf("%s: no .tflite, .onnx or .mltk.zip file inside", strings.Join(args, " ")))
	}
	return files, many || len(files) > 1, nil
}

// plainPath says of a file what is wrong with it, and not which call of the system
// found out.
func plainPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return err
}

func isModel(p string) bool {
	for _, e := range []string{".tflite", ".onnx", ".mltk.zip"} {
		if strings.HasSuffix(strings.ToLower(p), e) {
			return true
		}
	}
	return false
}

// Bounds for each model of a list, where nobody looked at the models before.
const (
	listTime = time.Minute
	listMACs = 50e9 // about a minute of one inference on a slow computer
)

// brief is one for a list: bounded in time and work, and the memory goes back
// before the next model.
func (a *app) brief(ctx context.Context, path string, run profiler) (*profile.Profile, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("stopped after %v", listTime))
	defer cancel()
	defer debug.FreeOSMemory()
	return a.one(ctx, path, listMACs, run)
}

// list prints one line a model and, for those that could not be done, why.
func (a *app) list(ctx context.Context, files []string, o *outputFlags, run profiler) error {
	if o.format != "" && o.format != "table" && o.format != "csv" || len(o.files) > 0 || o.memory {
		return useError("several models give one table: --format table or csv, without -o and --memory")
	}
	t := report.NewModels(a.out, o.format, a.width)
	refused, stopped := 0, error(nil)
	for i, f := range files {
		p, err := a.brief(ctx, f, run)
		if err != nil {
			refused++
		}
		if err := t.Add(f, p, err); err != nil {
			return err
		}
		if ctx.Err() != nil {
			stopped = withStatus(statusStopped, fmt.Errorf("stopped after %d of %d models", i, len(files)))
			break
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	if stopped != nil {
		return stopped
	}
	if refused > 0 {
		return withStatus(statusInput, fmt.Errorf("%d of %s refused", refused, plural(len(files), "model")))
	}
	return nil
}

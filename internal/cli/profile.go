package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/netspec"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

func newProfile(a *app) *cobra.Command {
	var (
		m modelFlags
		r runFlags
		o outputFlags
		t targetFlags
		x mltkFlags
		d deviceFlags
		e engineFlags
		p phaseFlags
	)
	c := &cobra.Command{
		Use:   "profile MODEL...",
		Short: "Measure a model, operator by operator",
		Long: `Measure a model here, operator by operator; with --on, estimate it for a chip or measure
it on a board. Several models or targets print a line each.`,
		Example: `  opmeter profile model.tflite --by op
  opmeter profile model.onnx --shape input=1x3x320x320 -o page.html
  opmeter profile model.tflite --on stm32l4r5 --on device:/dev/ttyACM0`,
		Args: needModel,
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.apply(c, &t, &o); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			e.set(c)
			if err := p.set(c); err != nil {
				return err
			}
			if err := e.reads(args); err != nil {
				return err
			}
			engines, err := e.find()
			if err != nil {
				return err
			}
			if p.asked && len(engines) > 1 {
				return useError("--engine: phases run in one engine: name one, or add --phases=false")
			}
			if len(t.on) > 1 {
				engines[0].auto = false
			}
			if _, err := m.inputs(); err != nil {
				return err
			}
			if m.several() != nil && (len(engines) > 1 || e.check || len(t.on) != 1 || !t.host()) {
				return useError("--batch and --dim take lists for one engine on this computer, without --check: use one size, or leave out --engine, --check and --on")
			}
			t.ticking = programs(engines)
			if err := t.fits(c); err != nil {
				return err
			}
			there, faults, err := a.estimates(&t, &m)
			if err != nil {
				return err
			}
			var rs []runner
			var gates []error
			if a.signature != "" && slices.ContainsFunc(engines, func(e chosen) bool { return e.engine != nil }) {
				return useError("--signature %s: other engines run the first graph of the file: leave --engine out", a.signature)
			}
			for i, id := range t.on {
				if port, ok := devicePort(id); ok {
					if a.signature != "" {
						return useError("--signature %s: devices run the first graph of the file", a.signature)
					}
					if strings.TrimSpace(port) == "" {
						return useError("--on %s: name the port: --on device:/dev/ttyACM0; opmeter devices lists those connected", id)
					}
					opts, err := d.options(a, port, &r, &t, &m)
					if err != nil {
						return err
					}
					rs = append(rs, a.onDevice(id, opts, &d, func(p *profile.Profile) { gates = append(gates, r.gate(p)) }))
					continue
				}
				if id != "host" {
					rs = append(rs, there[i])
					continue
				}
				opts, err := hostOptions(&m, &r)
				if err != nil {
					return err
				}
				if err := fit(engines, opts, &t); err != nil {
					return err
				}
				if !opts.KeepSamples && (c.Flags().Changed("timeline") || slices.ContainsFunc(o.files, report.WantsEvents)) {
					opts.MaxEvents = sampledEvents
				}
				rs = append(rs, a.byEngines(engines, opts, &p, func(p *profile.Profile) { gates = append(gates, r.gate(p)) })...)
			}
			if t.host() {
				a.measures(longPatience)
			}
			a.leftOut(faults)
			if len(engines) == 1 && !programs(engines) && len(t.on) == 1 && t.host() {
				if a.parts, err = p.parts(args); err != nil {
					return err
				}
			}
			err = a.each(c.Context(), args, &o, rs, true)
			return errors.Join(err, errors.Join(gates...))
		},
	}
	t.add(c)
	x.add(c)
	d.add(c)
	e.add(c)
	p.add(c)
	m.add(c)
	m.addLists(c)
	m.addIterations(c)
	a.addSignature(c)
	m.addData(c)
	r.add(c)
	o.add(c)
	return c
}

// sampledEvents bounds the timeline of a file without --timeline all: a trace in JSON takes about a
// kilobyte for each operator.
const sampledEvents = 4000

// hostOptions gathers the flags of a run here.
func hostOptions(m *modelFlags, r *runFlags) (o opmeter.Options, err error) {
	if o.Inputs, err = m.inputs(); err != nil {
		return o, err
	}
	if o.Carry, err = m.carries(); err != nil {
		return o, err
	}
	if o.MaxMemory, err = m.memory(); err != nil {
		return o, err
	}
	o.Exact, o.MaxLoop, o.Lists = m.exact, m.loops(), m.several()
	err = r.set(&o)
	return o, err
}

func newSummary(a *app) *cobra.Command {
	var (
		m       modelFlags
		o       outputFlags
		p       phaseFlags
		threads int
	)
	c := &cobra.Command{
		Use:   "summary MODEL...",
		Short: "Count without measuring: shapes, operations, parameters, memory",
		Long: `Count without measuring: operators, shapes, operations, multiply-accumulates, parameters and
the memory plan. Several models or a folder print a line each, with the reason for those that
could not be read. With --prompt or --context, the speed of a language model is estimated from
the rates of memory and arithmetic, which are measured.`,
		Example: `  opmeter summary model.tflite
  opmeter summary model.onnx --shape input=1x3x320x320 --format json
  opmeter summary llm.onnx --context 0,1024
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
			run, err := p.counted(c, in, threads)
			if err != nil {
				return err
			}
			r := onHost(run)
			if r.phases = p.asked; p.asked {
				if a.parts, err = p.parts(args); err != nil {
					return err
				}
			}
			for i, key := range a.signatures(args, &o) {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				a.signature = key
				if err := a.each(c.Context(), args, &o, []runner{r}, p.asked); err != nil {
					return err
				}
			}
			return nil
		},
	}
	m.add(c)
	m.addIterations(c)
	p.addSizes(c)
	wholeVar(c, &threads, "threads", 1, 1, 1024, "threads of the estimate of phases", "")
	a.addSignature(c)
	o.add(c)
	return c
}

// signatures lists what a summary on the terminal shows: all signatures of a single file, unless
// one is given.
func (a *app) signatures(args []string, o *outputFlags) []string {
	if a.signature != "" || len(args) != 1 || len(o.files) > 0 || o.format != "" && o.format != "table" {
		return []string{a.signature}
	}
	m, err := opmeter.Open(args[0])
	if err != nil {
		return []string{""} // a folder, or what the summary reports
	}
	defer m.Close()
	if keys := m.Signatures(); len(keys) > 1 {
		return keys
	}
	return []string{""}
}

func needModel(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return useError("name a model file: %s", strings.Join(modelfile.Endings, ", "))
	}
	return nil
}

// bounds is what the command line adds to the options of each model.
type bounds struct {
	progress func(phase string, fraction float64)
	macs     int64
	files    []string             // that the profile is written to
	turns    *opmeter.Interleaver // of those that are interleaved, nil for none
}

type profiler func(ctx context.Context, m *opmeter.Model, b bounds) (*profile.Profile, error)

// each profiles one model for one target in full, and more of them in a line each; timed
// says that their profiles have times.
func (a *app) each(ctx context.Context, args []string, o *outputFlags, rs []runner, timed bool) error {
	files, many, err := expand(args)
	if a.parts != nil {
		files, many, err = a.parts[:1], false, nil
	}
	if err != nil {
		return err
	}
	if many || len(rs) > 1 {
		return a.all(ctx, files, o, rs, timed)
	}
	if err := ready(o.files, files[0]); err != nil {
		return err
	}
	p, err := a.one(ctx, files[0], rs[0].whole, bounds{files: o.files})
	if p == nil || err != nil && !costs(p) {
		a.settle(p, o.files, true) // nothing was measured
		return err
	}
	if !costs(p) && slices.ContainsFunc(p.Incomplete, cancelled) {
		err = errUnmeasured
	}
	return errors.Join(err, a.deliver(p, o), unrun(p)) // what was measured before it failed, too
}

// costs reports whether a profile says what an inference costs, or of a device that went away a
// part of one.
func costs(p *profile.Profile) bool {
	if _, m := p.Cost(); m != nil {
		return true
	}
	return p.Target.Kind == profile.TargetDevice && slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { return l.Share != nil })
}

// unrun is the error of a run without a latency, because most of the work did not run or a layer
// had no memory, nil for others.
func unrun(p *profile.Profile) error {
	if p.Settings.Passes == "" { // nothing was to run
		return nil
	}
	layers, most := p.Unrun()
	if starved := p.Starved(); !most {
		if starved == nil {
			return nil
		}
		layers = starved
	}
	return withStatus(statusSource, fmt.Errorf("%d of %s did not run: no latency for the model", len(layers), plural(len(p.Layers), "layer")))
}

// cancelled reports whether a profile ends where it was stopped.
func cancelled(m profile.Missing) bool { return m.Cause == profile.ByCancel }

// one opens a model and profiles it. With an error the profile holds what was known before
// it, if anything.
func (a *app) one(ctx context.Context, path string, run profiler, b bounds) (p *profile.Profile, err error) {
	show, stop := a.progress()
	defer stop()
	m, err := a.openModel(path)
	if err != nil {
		return nil, told(err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	// Said before the measurement, not after it.
	for _, file := range b.files {
		if format, err := report.FormatOf(file); err == nil && format == "onnx" && m.Format() != "onnx" {
			if isDescriptionName(path) {
				return nil, useError("-o %s: only .onnx models can be written with the figures of their nodes: first: opmeter build %s -o %s", file, shellword.Quote(path), shellword.Quote(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))+".onnx"))
			}
			return nil, useError("-o %s: only .onnx models can be written with the figures of their nodes: %s is a %s model", file, baseName(path), m.Format())
		}
	}
	b.progress = show
	p, err = run(ctx, m, b)
	return p, told(err)
}

// expand replaces folders by the files in them, sorted. many is true when the
// result is to be shown as a list.
func expand(args []string) (files []string, many bool, err error) {
	for _, arg := range args {
		if arg, err = findModel(arg); err != nil {
			return nil, false, err
		}
		st, err := os.Stat(modelfile.File(arg))
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
			return nil, false, withStatus(statusInput, plainPath(err))
		}
	}
	if many && len(files) == 0 {
		return nil, false, withStatus(statusInput, fmt.Errorf("%s: no model (%s) and no network description (.yaml) inside", strings.Join(args, " "), strings.Join(modelfile.Endings, ", ")))
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

// isDescriptionName reports whether a file has the ending of a description of a network. Files of
// other kinds have it, too.
func isDescriptionName(p string) bool {
	e := filepath.Ext(strings.ToLower(p))
	return e == ".yaml" || e == ".yml"
}

// isModel reports whether a file of a folder is a model, or describes one: files of other
// kinds have endings of descriptions, too.
func isModel(p string) bool {
	if modelfile.HasEnding(p) {
		return true
	}
	if !isDescriptionName(p) {
		return false
	}
	f, err := os.Open(p)
	if err != nil {
		return false
	}
	defer f.Close()
	return netspec.Describes(f)
}

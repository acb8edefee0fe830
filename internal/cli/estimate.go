package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/units"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/target"
)

// targetFlags say for which hardware to estimate.
type targetFlags struct {
	on                         []string
	dir, runtime, build, clock string
	settings                   []string // NAME=VALUE
	ticking                    bool     // an engine is a program that counts by a clock of its own
}

func (f *targetFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.on, "on", []string{"host"}, "`TARGET`: host, target id or file, device:PORT")
	f.addDir(c)
	c.Flags().StringVar(&f.runtime, "runtime", "", "`NAME`: runtime of the target (default: its first)")
	c.Flags().StringVar(&f.build, "runtime-build", "", "`BUILD`: build of the runtime: size (-Os), no-fpu, no-cache")
	c.Flags().StringArrayVar(&f.settings, "option", nil, "`NAME=VALUE`: flash=ram or flash=external: where the model lies")
	c.Flags().StringVar(&f.clock, "clock", "", "`HERTZ`: CPU clock of the target, such as 64MHz")
}

func (f *targetFlags) addDir(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "targets", "", "`DIR`: folder with target files of your own (.yaml)")
}

// host reports whether the model is to run here, other whether it is to be estimated.
func (f *targetFlags) host() bool { return slices.Contains(f.on, "host") }

// other reports whether the model is to be estimated, device whether it is to be measured on
// a device.
func (f *targetFlags) other() bool {
	return slices.ContainsFunc(f.on, func(id string) bool { return kindOf(id) == onChip })
}

func (f *targetFlags) device() bool {
	return slices.ContainsFunc(f.on, func(id string) bool { return kindOf(id) == onBoard })
}

// onWhat says what kind of target an id of --on is.
type onWhat int

const (
	onComputer onWhat = iota
	onChip
	onBoard
)

func kindOf(id string) onWhat {
	if _, ok := devicePort(id); ok {
		return onBoard
	}
	if id == "host" {
		return onComputer
	}
	return onChip
}

// targetFile reports whether a target is named by its file.
func targetFile(id string) bool {
	ext := filepath.Ext(id)
	return ext == ".yaml" || ext == ".yml"
}

// fits refuses flags that say something about targets that were not asked for.
func (f *targetFlags) fits(c *cobra.Command) error {
	for i, id := range f.on {
		if slices.Contains(f.on[:i], id) {
			return useError("--on %s is given twice", id)
		}
	}
	for _, x := range []struct {
		flags []string
		has   bool
		what  string
	}{
		{hostOnly, f.host(), "says how to run a model on this computer: leave it out with --on " + strings.Join(f.on, " --on ")},
		{[]string{"runs", "strict"}, f.host() || f.device(), "says how to measure: leave it out with --on " + strings.Join(f.on, " --on ")},
		{estimateOnly, f.other(), "is for estimates: name a target with --on, or leave it out"},
		{[]string{"clock"}, f.other() || f.device() || f.ticking, "is for estimates, devices and tflm=PROGRAM: name one with --on or --engine, or leave it out"},
		{deviceOnly, f.device(), "is for devices: name one with --on device:PORT, or leave it out"},
	} {
		for _, name := range x.flags {
			if c.Flags().Changed(name) && !x.has {
				return useError("--%s %s", name, x.what)
			}
		}
	}
	return nil
}

// load reads the targets. Faulty files of the user are left out and told: what was asked
// for may be among the others.
func (f *targetFlags) load() (set *target.Set, faults, err error) {
	// What follows lasts some milliseconds and leaves some megabytes: the collector
	// would take a quarter of the time.
	collectAt(400)
	set, err = target.Load(f.dir)
	if set == nil {
		return nil, nil, withStatus(statusInput, err)
	}
	return set, err, nil
}

// leftOut tells of faulty target files that no one asked for.
func (a *app) leftOut(faults error) {
	if faults != nil {
		fmt.Fprintf(a.err, "opmeter: left out: %s\n", oneLine(faults.Error()))
	}
}

// withFaults adds faults of target files to whatever else went wrong, where they make an
// answer incomplete.
func withFaults(err, faults error) error {
	if faults == nil {
		return err
	}
	return withStatus(statusInput, errors.Join(err, faults))
}

// options turns the flags into options of the library.
func (f *targetFlags) options() (o opmeter.EstimateOptions, err error) {
	o.Runtime, o.Build = f.runtime, f.build
	for _, s := range f.settings {
		name, value, _ := strings.Cut(s, "=")
		if name != "flash" || value == "" {
			return o, useError("--option %q: expected flash=ram or flash=external", s)
		}
		if o.Flash != "" {
			return o, useError("--option flash is given twice")
		}
		o.Flash = value
	}
	o.ClockHz, err = f.hertz()
	return o, err
}

// hertz is --clock, 0 where it was not given.
func (f *targetFlags) hertz() (float64, error) {
	if f.clock == "" {
		return 0, nil
	}
	return quantity("clock", f.clock, "a frequency such as 64MHz, in Hz, kHz, MHz or GHz", units.Hertz)
}

// hostOnly are flags that say how to run a model here.
var hostOnly = []string{"input", "seed", "zeros", "carry", "exact", "max-loop", "max-memory", "threads", "time", "warmup", "pin", "timeline", "engine", "phases", "prompt", "context"}

// measuring are flags that say how to measure, here or on a device.
var measuring = slices.Concat(hostOnly, deviceOnly, []string{"runs", "strict"})

// estimateOnly are flags that say for what to estimate.
var estimateOnly = []string{"runtime", "runtime-build", "option", "targets"}

// estimates are runners for the targets that are absent, at their places among those
// asked for, with the faults of target files that were not.
func (a *app) estimates(f *targetFlags, m *modelFlags) (rs []runner, faults, err error) {
	rs = make([]runner, len(f.on))
	if !f.other() {
		return rs, nil, nil
	}
	opts, err := f.options()
	if err != nil {
		return nil, nil, err
	}
	if f.dir != "" && !slices.ContainsFunc(f.on, func(id string) bool { return kindOf(id) == onChip && !targetFile(id) }) {
		return nil, nil, useError("--targets is for ids of targets: leave it out with --on %s", strings.Join(f.on, " --on "))
	}
	if opts.Inputs, err = m.inputs(); err != nil {
		return nil, nil, err
	}
	set, faults, err := f.load()
	if err != nil {
		return nil, nil, err
	}
	for i, id := range f.on {
		if kindOf(id) != onChip {
			continue
		}
		t, err := set.Find(id)
		if err != nil {
			return nil, nil, told(err)
		}
		rs[i] = onTarget(t, opts)
	}
	return rs, faults, nil
}

func (a *app) withModel(path string, do func(m *opmeter.Model) error) (err error) {
	if path, err = findModel(path); err != nil {
		return err
	}
	m, err := a.openModel(path)
	if err != nil {
		return told(err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return do(m)
}

// openModel opens a model with the signature of the command line.
func (a *app) openModel(path string) (*opmeter.Model, error) {
	if a.parts != nil {
		return opmeter.OpenParts(a.parts...)
	}
	m, err := opmeter.Open(path)
	if err != nil || a.signature == "" {
		return m, err
	}
	if err := m.Select(a.signature); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// addSignature adds the flag that selects a signature.
func (a *app) addSignature(c *cobra.Command) {
	c.Flags().StringVar(&a.signature, "signature", "", "`NAME`: signature of a TFLite file with several; --input takes its names")
}

func newTargets(a *app) *cobra.Command {
	var f targetFlags
	c := &cobra.Command{
		Use:   "targets [ID]",
		Short: "List the targets for --on, or show the data behind one",
		Long: `List the targets for --on: this computer, which is measured, and the chips and cores that
models are estimated for. With the ID of a target, show its memories, the measurements behind
each runtime, and the errors of its estimates. docs/reference/target-files.md explains target files.`,
		Example: `  opmeter targets
  opmeter targets stm32l4r5
  opmeter targets --targets my-boards/`,
		Args: atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			s, faults, err := f.load()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				t, err := s.Find(args[0])
				if e, ok := errors.AsType[*opmeter.OptionError](err); ok { // no flag is at fault
					return withFaults(useError("%s; opmeter targets lists them", e.Text), faults)
				}
				if err != nil {
					return withFaults(told(err), faults)
				}
				return withFaults(a.target(&t), faults)
			}
			list := s.List()
			width := len("host")
			for _, t := range list {
				width = max(width, len(t.ID))
			}
			fmt.Fprintf(a.out, "%-*s  this computer, measured\n", width, "host")
			for _, t := range list {
				fmt.Fprintf(a.out, "%-*s  %s, %s; %s\n", width, t.ID, computes(&t), report.Quantity(t.ClockHz, "Hz"), strings.Join(t.Runtimes, ", "))
			}
			return withFaults(nil, faults)
		},
	}
	f.addDir(c)
	return c
}

// computes names a target's core, and its accelerator where it has one.
func computes(t *target.Target) string {
	if t.Accelerator == "" {
		return t.Core
	}
	return t.Core + " with " + t.Accelerator
}

// target tells what is known about one target.
func (a *app) target(t *target.Target) error {
	lines := []string{t.ID + "  " + t.Name, fmt.Sprintf("core     %s, %s", computes(t), report.Quantity(t.ClockHz, "Hz"))}
	for _, m := range t.Memories {
		l := fmt.Sprintf("memory   %s (%s), %s", m.Name, m.Role, report.Bytes(m.Bytes))
		if m.WaitStates != nil && *m.WaitStates > 0 {
			l += ", " + plural(int(*m.WaitStates), "wait state")
		}
		if m.CacheBytes != nil {
			l += ", cache of " + report.Bytes(*m.CacheBytes)
		}
		lines = append(lines, l)
	}
	for i := range t.Figures {
		lines = append(lines, figures(&t.Figures[i])...)
	}
	_, err := fmt.Fprintln(a.out, strings.Join(lines, "\n"))
	return err
}

// figures are the lines of one runtime.
func figures(f *target.Figures) []string {
	lines := []string{"", "runtime  " + f.Runtime, "  of     " + strings.TrimSuffix(f.Title+", "+f.Versions, ", ")}
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("  %-6s %s", name, text))
		}
	}
	add("types", strings.Join(f.Types, ", "))
	add("builds", strings.Join(f.Builds, ", "))
	add("from", f.From)
	if f.Rows > 0 {
		add("rows", fmt.Sprintf("%s of %s", plural(int(f.Rows), "measurement"), plural(int(f.Sources), "source")))
	}
	for _, on := range f.On {
		add("", on)
	}
	if f.MedianError != nil && f.P90Error != nil {
		add("errors", fmt.Sprintf("%.1f %% in the middle, %.1f %% at 90 %%, of measurements that were left out", 100**f.MedianError, 100**f.P90Error))
	}
	if f.UnfamiliarMedian != nil {
		add("boards", fmt.Sprintf("%.1f %% in the middle, %.1f %% at 90 %%, of unfamiliar boards: each left out with all its measurements", 100**f.UnfamiliarMedian, 100**f.UnfamiliarP90))
	}
	if f.Band != nil {
		add("band", fmt.Sprintf("%.2f to %.2f times the estimate holds nine of ten", f.Band[0], f.Band[1]))
	}
	if f.CodeBytes != nil {
		add("code", fmt.Sprintf("%s to %s of flash beside the model", report.Bytes(f.CodeBytes[0]), report.Bytes(f.CodeBytes[1])))
	}
	return lines
}

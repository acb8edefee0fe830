package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

// targetFlags say for which hardware to estimate.
type targetFlags struct {
	on           []string
	dir, runtime string
}

func (f *targetFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.on, "on", []string{"host"}, "target: host, or one of opmeter targets (may be repeated)")
	f.addDir(c)
	c.Flags().StringVar(&f.runtime, "runtime", "", "runtime family of the target (default: its first)")
}

func (f *targetFlags) addDir(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "targets", "", "folder with target files of your own (.yaml)")
}

// host reports whether the model is to run here.
func (f *targetFlags) host() bool { return len(f.on) == 1 && f.on[0] == "host" }

// load reads the targets; faulty files of the user are an error.
func (f *targetFlags) load() (*opmeter.Targets, error) {
	// What follows lasts some milliseconds and leaves some megabytes: the collector
	// would take a quarter of the time.
	collectAt(400)
	s, err := opmeter.LoadTargets(f.dir)
	if err != nil {
		return nil, withStatus(statusInput, err)
	}
	return s, nil
}

// hostOnly are flags that say how to run a model here.
var hostOnly = []string{"shape", "batch", "input", "seed", "zeros", "carry", "threads", "runs", "time", "warmup", "pin", "samples", "engine"}

// estimate profiles a model for targets that are not there.
func (a *app) estimate(c *cobra.Command, path string, f *targetFlags, o *outputFlags) error {
	for _, name := range hostOnly {
		if c.Flags().Changed(name) {
			return useError("--%s says how to run a model on this computer: leave it out with --on %s", name, strings.Join(f.on, " --on "))
		}
	}
	set, err := f.load()
	if err != nil {
		return err
	}
	var ts []opmeter.Target
	for _, id := range f.on {
		if id == "host" {
			return useError("--on host measures here and cannot be compared with estimates in one command")
		}
		t, err := set.Find(id)
		if err != nil {
			return useError("--on: %w; opmeter targets lists them", err)
		}
		ts = append(ts, t)
	}
	return a.withModel(path, func(m *opmeter.Model) error {
		ps := make([]*profile.Profile, len(ts))
		for i, t := range ts {
			if ps[i], err = estimateOn(set, m, t.ID, f.runtime); err != nil {
				return err
			}
		}
		if len(ps) == 1 {
			return a.deliver(ps[0], o)
		}
		if len(o.files) > 0 || o.memory || o.format != "" && o.format != "table" {
			return useError("several targets give one table: leave out --format, --memory and -o")
		}
		return report.Targets(a.out, rows(ts, ps), a.width)
	})
}

func (a *app) withModel(path string, do func(m *opmeter.Model) error) (err error) {
	if path, err = findModel(path); err != nil {
		return err
	}
	m, err := opmeter.Open(path)
	if err != nil {
		return withStatus(statusInput, prefixed(path, err))
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return do(m)
}

func estimateOn(set *opmeter.Targets, m *opmeter.Model, id, runtime string) (*profile.Profile, error) {
	p, err := set.Estimate(m, id, opmeter.Runtime(runtime))
	var use *estimate.UseError
	if errors.As(err, &use) {
		return nil, withStatus(statusUse, err)
	}
	return p, withStatus(statusInput, err)
}

// rows puts estimates beside what the targets have.
func rows(ts []opmeter.Target, ps []*profile.Profile) []report.TargetRow {
	out := make([]report.TargetRow, len(ps))
	for i, p := range ps {
		out[i] = report.TargetRow{Profile: p, RAM: ts[i].RAMBytes, Flash: ts[i].FlashBytes, ExternalFlash: ts[i].ExternalFlashBytes}
	}
	return out
}

func newTargets(a *app) *cobra.Command {
	var f targetFlags
	c := &cobra.Command{
		Use:   "targets",
		Short: "List the targets for --on",
		Long: `Targets lists what --on takes: this computer, which measures, and chips and cores
for which a model is estimated. docs/targets.md explains target files.`,
		Example: `  opmeter targets
  opmeter targets --targets my-boards/`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := f.load()
			if err != nil {
				return err
			}
			list := s.List()
			width := len("host")
			for _, t := range list {
				width = max(width, len(t.ID))
			}
			fmt.Fprintf(a.out, "%-*s  this computer, measured\n", width, "host")
			for _, t := range list {
				what := t.Core
				if t.Accelerator != "" {
					what += " with " + t.Accelerator
				}
				fmt.Fprintf(a.out, "%-*s  %s, %s; %s\n", width, t.ID, what, report.Quantity(t.ClockHz, "Hz"), strings.Join(t.Runtimes, ", "))
			}
			return nil
		},
	}
	f.addDir(c)
	return c
}

func newFit(a *app) *cobra.Command {
	var (
		f       targetFlags
		latency time.Duration
		ram     string
		flash   string
	)
	c := &cobra.Command{
		Use:   "fit MODEL",
		Short: "List the targets that can hold a model, and how fast they are",
		Long: `Fit estimates a model on every target and lists those that hold it in memory and
meet the limits, fastest first. A target whose estimate is incomplete is listed
last with the reason, and targets of which memory sizes or needs are not known in
a table of their own.`,
		Example: `  opmeter fit model.tflite
  opmeter fit model.tflite --latency 50ms --ram 256KiB`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("latency") && latency <= 0 {
				return useError("--latency %s: write a time above zero, such as 50ms", latency)
			}
			limits := map[string]int64{}
			for _, l := range []struct{ name, text string }{{"ram", ram}, {"flash", flash}} {
				if !c.Flags().Changed(l.name) {
					continue
				}
				b, ok := chip.ParseBytes(l.text)
				if !ok || b <= 0 {
					return useError("--%s %q: write a size such as 256KiB, in B, KiB, MiB, kB or MB", l.name, l.text)
				}
				limits[l.name] = int64(b)
			}
			set, err := f.load()
			if err != nil {
				return err
			}
			return a.withModel(args[0], func(m *opmeter.Model) error {
				var fit, open []report.TargetRow
				list := set.List()
				for _, t := range list {
					p, err := estimateOn(set, m, t.ID, "")
					if err != nil {
						return err
					}
					r := rows([]opmeter.Target{t}, []*profile.Profile{p})[0]
					if r.Fits() == "no" || over(p.Totals.RAMBytes, limits["ram"]) || over(p.Totals.FlashBytes, limits["flash"]) {
						continue
					}
					if v, ok := p.Totals.Latency.Best(); latency > 0 && (!ok || r.Incomplete() || v > latency.Seconds()) {
						continue
					}
					if r.Fits() == "?" {
						open = append(open, r)
					} else {
						fit = append(fit, r)
					}
				}
				if len(fit)+len(open) == 0 {
					return withStatus(statusGate, fmt.Errorf("none of the %d targets holds the model within these limits", len(list)))
				}
				for _, rs := range [][]report.TargetRow{fit, open} {
					slices.SortStableFunc(rs, func(x, y report.TargetRow) int {
						return cmp.Or(compareBool(x.Incomplete(), y.Incomplete()), cmp.Compare(seconds(x.Profile), seconds(y.Profile)))
					})
				}
				if len(fit) > 0 {
					if err := report.Targets(a.out, fit, a.width); err != nil {
						return err
					}
				}
				if len(open) == 0 {
					return nil
				}
				if len(fit) > 0 {
					fmt.Fprintln(a.out)
				}
				fmt.Fprintf(a.out, "Whether the model fits cannot be said of %d targets:\n", len(open))
				return report.Targets(a.out, open, a.width)
			})
		},
	}
	f.addDir(c)
	c.Flags().DurationVar(&latency, "latency", 0, "longest inference, such as 50ms")
	c.Flags().StringVar(&ram, "ram", "", "most working memory, such as 256KiB")
	c.Flags().StringVar(&flash, "flash", "", "most storage, such as 1MiB")
	return c
}

func over(v *int64, limit int64) bool { return limit > 0 && (v == nil || *v > limit) }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func seconds(p *profile.Profile) float64 {
	v, ok := p.Totals.Latency.Best()
	if !ok {
		return 1e300
	}
	return v
}

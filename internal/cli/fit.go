package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

// fitFlags are the limits that a target has to keep.
type fitFlags struct {
	latency    time.Duration
	ram, flash string
	limits     map[string]float64 // bytes
}

func newFit(a *app) *cobra.Command {
	var (
		f targetFlags
		m modelFlags
		l fitFlags
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
			if err := l.parse(c); err != nil {
				return err
			}
			in, err := m.inputs()
			if err != nil {
				return err
			}
			set, faults, err := f.load()
			if err != nil {
				return err
			}
			return withFaults(a.withModel(args[0], func(m *opmeter.Model) error {
				return a.fit(m, set.List(), opmeter.EstimateOptions{Inputs: in}, &l)
			}), faults)
		},
	}
	f.addDir(c)
	m.add(c)
	c.Flags().DurationVar(&l.latency, "latency", 0, "longest inference, such as 50ms")
	c.Flags().StringVar(&l.ram, "ram", "", "most working memory, such as 256KiB")
	c.Flags().StringVar(&l.flash, "flash", "", "most storage, such as 1MiB")
	return c
}

// parse checks the limits.
func (f *fitFlags) parse(c *cobra.Command) error {
	if c.Flags().Changed("latency") && f.latency <= 0 {
		return useError("--latency %s: write a time above zero, such as 50ms", f.latency)
	}
	f.limits = map[string]float64{}
	for _, l := range []struct{ name, text string }{{"ram", f.ram}, {"flash", f.flash}} {
		if !c.Flags().Changed(l.name) {
			continue
		}
		b, err := quantity(l.name, l.text, "a size such as 256KiB, in B, KiB, MiB, kB or MB", sizes)
		if err != nil {
			return err
		}
		f.limits[l.name] = b
	}
	return nil
}

// keeps reports whether an estimate is within the limits.
func (f *fitFlags) keeps(r report.TargetRow) bool {
	t := &r.Profile.Totals
	if r.Fits() == "no" || over(t.RAMBytes, f.limits["ram"]) || over(t.FlashBytes, f.limits["flash"]) {
		return false
	}
	v, ok := t.Latency.Best()
	return f.latency == 0 || ok && !r.Incomplete() && v <= f.latency.Seconds()
}

func over(v *int64, limit float64) bool { return limit > 0 && (v == nil || float64(*v) > limit) }

// fit lists the targets that hold the model.
func (a *app) fit(m *opmeter.Model, list []opmeter.Target, o opmeter.EstimateOptions, f *fitFlags) error {
	var fit, open []report.TargetRow
	for _, t := range list {
		p, err := t.Estimate(m, o)
		if err != nil {
			return told(err)
		}
		r := rows([]opmeter.Target{t}, []*profile.Profile{p})[0]
		switch {
		case !f.keeps(r):
		case r.Fits() == "?":
			open = append(open, r)
		default:
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
	fmt.Fprintf(a.out, "Whether the model fits cannot be said of %s:\n", plural(len(open), "target"))
	return report.Targets(a.out, open, a.width)
}

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

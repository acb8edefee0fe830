package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/target"
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
		o outputFlags
	)
	c := &cobra.Command{
		Use:   "fit MODEL",
		Short: "Find the targets that a model fits, fastest first",
		Long: `Estimate a model on every target. Fit lists the targets whose memory holds it and that meet
the limits, fastest first; incomplete estimates come last. Targets of unknown memory size have
a table of their own. Targets that do not fit follow, each with the reason.`,
		Example: `  opmeter fit model.tflite
  opmeter fit model.tflite --latency 50ms --ram 256KiB
  opmeter fit model.tflite --format csv`,
		Args: one("a model file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := l.parse(c); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := o.checkSeveral(); err != nil {
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
				return a.fit(m, set.List(), opmeter.EstimateOptions{Inputs: in}, &l, &o)
			}), faults)
		},
	}
	f.addDir(c)
	m.add(c)
	m.addIterations(c)
	o.addFiles(c)
	spanVar(c, &l.latency, "latency", 0, 1, "maximum latency, such as 50ms", "a time above zero, such as 50ms")
	c.Flags().StringVar(&l.ram, "ram", "", "`SIZE`: maximum working memory, such as 256KiB")
	c.Flags().StringVar(&l.flash, "flash", "", "`SIZE`: maximum storage, such as 1MiB")
	return c
}

// parse checks the limits.
func (f *fitFlags) parse(c *cobra.Command) error {
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

// over says which limits an estimate does not keep.
func (f *fitFlags) over(p *profile.Profile, incomplete bool) []string {
	var out []string
	t := &p.Totals
	for _, x := range []struct {
		name, key string
		v         *int64
	}{{"RAM", "ram", t.RAMBytes}, {"flash", "flash", t.FlashBytes}} {
		switch limit := f.limits[x.key]; {
		case limit <= 0:
		case x.v == nil:
			out = append(out, "need of "+x.name+" not known")
		case float64(*x.v) > limit:
			out = append(out, fmt.Sprintf("needs %s of %s", report.Bytes(*x.v), x.name))
		}
	}
	if f.latency <= 0 {
		return out
	}
	switch v, ok := t.Latency.Best(); {
	case !ok || incomplete:
		out = append(out, "latency not known")
	case v > f.latency.Seconds():
		takes := "takes " + report.Duration(v)
		if b := t.Latency.Band; b != nil {
			takes += fmt.Sprintf(" (%s to %s)", report.Duration(b[0]), report.Duration(b[1]))
		}
		out = append(out, takes)
	}
	return out
}

// bare is a hint for limits of sizes without a unit.
func (f *fitFlags) bare() string {
	for _, l := range []struct{ name, text string }{{"ram", f.ram}, {"flash", f.flash}} {
		if b := f.limits[l.name]; b > 0 && strings.Trim(l.text, "0123456789.") == "" {
			return fmt.Sprintf("; --%s %s is %s: did you mean %sKiB?", l.name, l.text, report.Bytes(int64(b)), l.text)
		}
	}
	return ""
}

// fit lists the targets that hold the model, and why others do not.
func (a *app) fit(m *opmeter.Model, list []target.Target, o opmeter.EstimateOptions, f *fitFlags, out *outputFlags) error {
	var fit, open, fell []report.ListRow
	var rs []runner
	for _, t := range list {
		r := onTarget(t, o)
		p, err := r.run(context.Background(), m, bounds{})
		if err != nil {
			return told(err)
		}
		rs = append(rs, r)
		row := report.ListRow{Path: m.Name(), TargetRow: r.row(p)}
		row.Over = f.over(p, row.Incomplete())
		switch row.Fits() {
		case "no":
			fell = append(fell, row)
		case "?":
			open = append(open, row)
		default:
			fit = append(fit, row)
		}
	}
	for _, rows := range [][]report.ListRow{fit, open, fell} {
		slices.SortStableFunc(rows, func(x, y report.ListRow) int {
			return cmp.Or(compareBool(x.Incomplete(), y.Incomplete()), cmp.Compare(seconds(x.Profile), seconds(y.Profile)))
		})
	}
	s := a.newSeveral(out, []string{m.Name()}, rs, true)
	for _, r := range slices.Concat(fit, open) {
		if err := s.add(r, s.names(m.Name(), r.Profile.Target.ID)); err != nil {
			return err
		}
	}
	if err := a.showFit(s, fit, open, fell); err != nil {
		return err
	}
	if len(fit)+len(open) == 0 {
		return withStatus(statusGate, fmt.Errorf("the model fits none of the %d targets within these limits%s", len(list), f.bare()))
	}
	return s.files()
}

// showFit writes to standard output what fits, of what that cannot be said, and what
// fell out.
func (a *app) showFit(s *several, fit, open, fell []report.ListRow) error {
	switch s.o.format {
	case "", "table":
		return a.fitTables(fit, open, fell)
	case "csv", "markdown":
		return report.WriteList(a.out, slices.Concat(fit, open, fell), s.o.format, a.width)
	}
	return report.WriteAll(a.out, slices.Concat(fit, open), s.o.format, s.o.options(a))
}

func (a *app) fitTables(fit, open, fell []report.ListRow) error {
	fmt.Fprintln(a.out, fitAnswer(fit, len(fit)+len(open)+len(fell)))
	for i, part := range []struct {
		rows  []report.ListRow
		title string
	}{
		{fit, ""},
		{open, fmt.Sprintf("Unknown whether it fits (%s):", plural(len(open), "target"))},
		{fell, fmt.Sprintf("Does not fit, or misses a limit (%s):", plural(len(fell), "target"))},
	} {
		if len(part.rows) == 0 {
			continue
		}
		fmt.Fprintln(a.out)
		if part.title != "" {
			fmt.Fprintln(a.out, part.title)
		}
		var rows []report.TargetRow
		for _, r := range part.rows {
			rows = append(rows, r.TargetRow)
		}
		write := report.Targets
		if i == 2 {
			write = report.Reasons // their figures are beside the point
		}
		if err := write(a.out, rows, a.width); err != nil {
			return err
		}
	}
	return nil
}

// fitAnswer says how many of the targets hold the model within the limits, and which is fastest.
func fitAnswer(fit []report.ListRow, all int) string {
	s := fmt.Sprintf("%d of %s fit", len(fit), plural(all, "target"))
	if len(fit) == 1 {
		s += "s"
	}
	if len(fit) == 0 || fit[0].Incomplete() {
		return s
	}
	m := fit[0].Profile.Totals.Latency
	v, ok := m.Best()
	if !ok {
		return s
	}
	s += fmt.Sprintf("; fastest: %s, %s", fit[0].Profile.Target.ID, report.Duration(v))
	if m.Band != nil {
		s += " (90 % band " + report.Range(m.Band[0], m.Band[1], report.Duration) + ")"
	}
	return s
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

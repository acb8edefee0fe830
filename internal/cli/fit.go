package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/sorting"
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
the limits, fastest first; incomplete estimates come last. Further tables list targets that may
fit, because a limit lies inside the uncertainty, and targets of unknown memory size. The last
one has the reason why others do not fit. The exit status is 1 if no target is sure to fit.`,
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
	c.Flags().StringVar(&l.flash, "flash", "", "`SIZE`: maximum storage of model and program code, such as 1MiB")
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

// over says which limits an estimate exceeds, and which lie inside its uncertainty.
func (f *fitFlags) over(p *profile.Profile, incomplete bool) (over, near []string) {
	t := &p.Totals
	if limit := f.limits["ram"]; limit > 0 {
		switch v := t.RAMBytes; {
		case v == nil:
			over = append(over, "need of RAM not known")
		case float64(*v) > limit:
			over = append(over, fmt.Sprintf("needs %s of RAM", report.Bytes(*v)))
		}
	}
	if limit := f.limits["flash"]; limit > 0 {
		sure, text := f.flashNeed(t, limit)
		judge(sure, text, &over, &near)
	}
	if f.latency > 0 {
		sure, text := f.latencyNeed(p, incomplete)
		judge(sure, text, &over, &near)
	}
	return over, near
}

// judge appends a text to the limits that are exceeded, or that may be.
func judge(sure bool, text string, over, near *[]string) {
	switch {
	case text == "":
	case sure:
		*over = append(*over, text)
	default:
		*near = append(*near, text)
	}
}

// flashNeed says what the model needs of the flash with the program code, "" within the limit. sure
// is false if the limit lies inside the range of the code.
func (f *fitFlags) flashNeed(t *profile.Totals, limit float64) (sure bool, text string) {
	if t.FlashBytes == nil {
		return true, "need of flash not known"
	}
	model := report.Bytes(*t.FlashBytes)
	if t.CodeBytes == nil {
		return float64(*t.FlashBytes) > limit, "needs " + model + " of flash and program code of unknown size"
	}
	low, high := *t.FlashBytes+t.CodeBytes[0], *t.FlashBytes+t.CodeBytes[1]
	if float64(high) <= limit {
		return false, ""
	}
	return float64(low) > limit, fmt.Sprintf("needs %s of flash with program code", report.Range(float64(low), float64(high), func(v float64) string { return report.Bytes(int64(v)) }))
}

// latencyNeed says how long an inference takes, "" within the limit. sure is false if the limit
// lies inside the band, or if the estimate is of one iteration of a loop.
func (f *fitFlags) latencyNeed(p *profile.Profile, incomplete bool) (sure bool, text string) {
	m := p.Totals.Latency
	v, ok := m.Best()
	if !ok || incomplete {
		return true, "latency not known"
	}
	low, high := v, v
	text = "takes " + report.Duration(v)
	if m.Band != nil {
		low, high = m.Band[0], m.Band[1]
		text += fmt.Sprintf(" (%s)", report.Range(low, high, report.Duration))
	}
	limit := f.latency.Seconds()
	if slices.ContainsFunc(p.Incomplete, func(m profile.Missing) bool { return m.Cause == profile.ByData }) {
		return false, text + " with one iteration of loops that depend on data (set --iterations)"
	}
	if high <= limit {
		return false, ""
	}
	return low > limit, text
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
	var fit, near, open, fell []report.ListRow
	var rs []runner
	for _, t := range list {
		r := onTarget(t, o)
		p, err := r.run(context.Background(), m, bounds{})
		if err != nil {
			return told(err)
		}
		rs = append(rs, r)
		row := report.ListRow{Path: m.Name(), TargetRow: r.row(p)}
		row.Over, row.Near = f.over(p, row.Incomplete())
		switch row.Fits() {
		case "no":
			fell = append(fell, row)
		case "perhaps":
			near = append(near, row)
		case "?":
			open = append(open, row)
		default:
			fit = append(fit, row)
		}
	}
	groups := [][]report.ListRow{fit, near, open, fell}
	for _, rows := range groups {
		sorting.Stable(rows, func(x, y report.ListRow) int {
			return cmp.Or(compareBool(x.Incomplete(), y.Incomplete()), cmp.Compare(seconds(x.Profile), seconds(y.Profile)))
		})
	}
	s := a.newSeveral(out, []string{m.Name()}, rs, true)
	for _, r := range slices.Concat(fit, near, open) {
		if err := s.add(r, s.names(m.Name(), r.Profile.Target.ID)); err != nil {
			return err
		}
	}
	if err := a.showFit(s, groups); err != nil {
		return err
	}
	var err error
	if len(fit)+len(near)+len(open) > 0 {
		err = s.files()
	}
	switch {
	case len(fit) > 0:
		return err
	case len(near) > 0:
		return errors.Join(err, withStatus(statusGate, fmt.Errorf("the model is sure to fit none of the %d targets; it may fit %d", len(list), len(near))))
	case len(open) > 0:
		return errors.Join(err, withStatus(statusGate, fmt.Errorf("no target is known to hold the model: of %d the memory size is unknown", len(open))))
	}
	return withStatus(statusGate, fmt.Errorf("the model fits none of the %d targets within these limits%s", len(list), f.bare()))
}

// fitTitles are the headings of the groups of targets: those that fit have none.
var fitTitles = []string{"", "May fit, or may miss a limit", "Unknown whether it fits", "Does not fit, or misses a limit"}

// showFit writes the groups of targets to standard output; the last one does not fit.
func (a *app) showFit(s *several, groups [][]report.ListRow) error {
	switch s.o.format {
	case "", "table":
		return a.fitTables(groups)
	case "csv", "markdown":
		return report.WriteList(a.out, slices.Concat(groups...), s.o.format, a.width)
	}
	return report.WriteAll(a.out, slices.Concat(groups[:len(groups)-1]...), s.o.format, s.o.options(a))
}

func (a *app) fitTables(groups [][]report.ListRow) error {
	fmt.Fprintln(a.out, fitAnswer(groups[0], len(groups[1]), len(slices.Concat(groups...))))
	for i, part := range groups {
		if len(part) == 0 {
			continue
		}
		fmt.Fprintln(a.out)
		if fitTitles[i] != "" {
			fmt.Fprintf(a.out, "%s (%s):\n", fitTitles[i], plural(len(part), "target"))
		}
		var rows []report.TargetRow
		for _, r := range part {
			rows = append(rows, r.TargetRow)
		}
		write := report.Targets
		if i == len(groups)-1 {
			write = report.Reasons // their figures are beside the point
		}
		if err := write(a.out, rows, a.width); err != nil {
			return err
		}
	}
	return nil
}

// fitAnswer says how many of the targets hold the model within the limits, how many may, and which
// is fastest.
func fitAnswer(fit []report.ListRow, near, all int) string {
	s := fmt.Sprintf("%d of %s fit", len(fit), plural(all, "target"))
	if len(fit) == 1 {
		s += "s"
	}
	if near > 0 {
		s += fmt.Sprintf(", %d may", near)
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

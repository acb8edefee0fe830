package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/editdistance"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile/compare"
)

// compareFlags are those of compare.
type compareFlags struct {
	report.VersusOptions
	compare.Options
	format string
	files  []string
	names  []string
	by     string
	failOn string
	all    bool
}

// rowsShown is how many rows a terminal shows where nobody asks for a number.
const rowsShown = 20

func newCompare(a *app) *cobra.Command {
	var f compareFlags
	outputs := &outputsFlags{a: a}
	c := &cobra.Command{
		Use:     "compare FILE FILE...",
		Aliases: []string{"diff"},
		Short:   "Compare profiles: which is faster, where and why",
		Long: `Compare saved profiles, profiles of other tools, studies and model files. The first line
answers which is faster, with a 95 % confidence interval. Then come the whole model and the
operators, largest difference first, with the ratio to the first profile. Operators that one
engine fuses are one row. Model files are counted: they have no times.

Several profiles of a side, each of a process of its own, stand before and after --, and
options before the first file: opmeter compare --fail-on worse old-* -- new-*. --outputs runs
models and compares the outputs of all layers: opmeter help outputs.`,
		Example: `  opmeter compare one.opmeter two.opmeter -o compare.html
  opmeter compare old-1.opmeter old-2.opmeter -- new-1.opmeter new-2.opmeter
  opmeter compare profile.opmeter onnxruntime_profile.json --by op --sort time
  opmeter compare --outputs float.onnx int8.onnx`,
		Args: outputs.args(two),
		RunE: func(c *cobra.Command, args []string) error {
			if !outputs.on {
				return a.compare(c, args, &f)
			}
			for _, name := range []string{"by", "quantity", "fail-on", "all"} {
				if c.Flags().Changed(name) {
					return useError("--%s: not with --outputs, which compares values of layers and no figures", name)
				}
			}
			f.Width, f.Color = a.width, a.color
			return outputs.run(c.Context(), args, f.names, f.files, f.format, f.VersusOptions)
		},
	}
	c.Flags().StringVar(&f.format, "format", "", "`NAME`: format on standard output: "+strings.Join(report.VersusFormats, ", "))
	c.Flags().StringArrayVarP(&f.files, "output", "o", nil, "`FILE`: write it; the ending names the format ("+strings.Join(report.VersusEndings(), " ")+")")
	c.Flags().StringVar(&f.Sort, "sort", "", "`KEY`: order of the rows: "+strings.Join(report.VersusSorts, " "))
	c.Flags().StringVar(&f.by, "by", "", "`KEY`: gather rows by "+strings.Join(compare.Bys, ", "))
	c.Flags().StringVar(&f.Quantity, "quantity", "", "`KEY`: figure to compare, such as energy_j or macs")
	c.Flags().StringArrayVar(&f.names, "name", nil, "`TEXT`: what a profile is called in the table, one for each")
	wholeVar(c, &f.Top, "top", 0, 0, most, "the first N rows of --sort", fmt.Sprintf("%d on a terminal", rowsShown))
	c.Flags().BoolVar(&f.all, "all", false, "all rows")
	c.Flags().StringVar(&f.failOn, "fail-on", "", "`WHAT`: worse: exit status 1 if a run is worse, 5 if undecided")
	outputs.add(c)
	return c
}

// check refuses bad values before any work is done.
func (f *compareFlags) check() error {
	for _, x := range []struct {
		flag, value string
		list        []string
	}{
		{"format", f.format, report.VersusFormats},
		{"sort", f.Sort, report.VersusSorts},
		{"by", f.by, compare.Bys},
		{"fail-on", f.failOn, []string{"worse"}},
	} {
		if x.value != "" && !slices.Contains(x.list, x.value) {
			return useError("--%s %q: %suse one of %s", x.flag, x.value, editdistance.Suggest(x.value, x.list), strings.Join(x.list, ", "))
		}
	}
	f.By = compare.By(f.by)
	if f.all && f.Top > 0 {
		return useError("--all shows all rows: leave out --top")
	}
	for _, p := range f.files {
		if _, err := report.VersusFormat(p); err != nil {
			return withStatus(statusUse, err)
		}
	}
	return nil
}

// compare does the work of the command.
func (a *app) compare(c *cobra.Command, args []string, f *compareFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	sides, err := sides(args, c.ArgsLenAtDash())
	if err != nil {
		return err
	}
	named := slices.Concat(sides...)
	if err := ready(f.files, named...); err != nil {
		return err
	}
	if err := twice(named); err != nil {
		return err
	}
	runs, err := a.sources(c.Context(), sides)
	if err != nil {
		return err
	}
	if err := checkNames(f.names, len(runs), "profiles"); err != nil {
		return err
	}
	for i, n := range f.names {
		runs[i].Name = n
	}
	t, err := compare.With(runs, f.Options)
	if e, ok := errors.AsType[*compare.OptionError](err); ok {
		return useError("--%s: %s", strings.ToLower(e.Option), e.Text)
	}
	if err != nil {
		return withStatus(statusInput, err)
	}
	f.Width, f.Color = a.width, a.color
	if f.Top == 0 && !f.all && a.width > 0 {
		f.Top = rowsShown
	}
	if err := a.showCompared(t, f.format, f.files, f.VersusOptions); err != nil || f.failOn == "" {
		return err
	}
	return judged(t)
}

// checkNames checks the values of --name: one for each of n runs or none, and none empty.
func checkNames(names []string, n int, what string) error {
	switch {
	case len(names) > 0 && len(names) != n:
		return useError("--name: give one for each of the %d %s, or none", n, what)
	case slices.Contains(names, ""):
		return useError("--name: a name is empty: give a text for each of the %d %s", n, what)
	}
	return nil
}

// judged is the error of --fail-on worse.
func judged(t *compare.Table) error {
	var worse, undecided []string
	apart := words.VersusApart(t)
	for k := 1; k < len(t.Runs); k++ {
		switch t.Judge(k) {
		case compare.Worse:
			worse = append(worse, t.Runs[k].Name)
		case compare.Undecided:
			if words.VersusWhyNot(t, k, t.Topic) != "" {
				continue // told below
			}
			if t.OtherMachines(k) {
				apart = append(apart, fmt.Sprintf("%s is %s on another machine, whose times say nothing about the model", t.Runs[k].Name, t.Runs[0].Name))
				continue
			}
			undecided = append(undecided, t.Runs[k].Name)
		}
	}
	switch {
	case len(worse) > 0:
		return withStatus(statusGate, fmt.Errorf("%s: worse than %s", strings.Join(worse, ", "), t.Runs[0].Name))
	case len(apart) > 0:
		return withStatus(statusUndecided, fmt.Errorf("undecided: %s", strings.Join(apart, "; ")))
	case len(undecided) > 0:
		return withStatus(statusUndecided, fmt.Errorf("%s: undecided whether worse than %s: compare more profiles, interleaved, or use opmeter ab", strings.Join(undecided, ", "), t.Runs[0].Name))
	}
	return nil
}

// base is the last part of a path.
func base(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		return path[i+1:]
	}
	return path
}

// showCompared writes a comparison to files and to standard output.
func (a *app) showCompared(t *compare.Table, format string, files []string, o report.VersusOptions) error {
	var failed error
	var wrote []string
	for _, f := range files {
		if err := report.VersusFile(f, t, o); err != nil {
			failed = errors.Join(failed, withStatus(statusUse, err))
			continue
		}
		wrote = append(wrote, f)
	}
	if format == "" {
		format = "table"
	}
	if err := report.WriteVersus(a.out, t, format, o); err != nil {
		failed = errors.Join(failed, fmt.Errorf("standard output: %w", err))
	}
	a.sayWrote(wrote, false)
	return failed
}

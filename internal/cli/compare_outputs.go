package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile/divergence"
)

// outputsFlags say how outputs of layers are compared.
type outputsFlags struct {
	a       *app
	on      bool
	m       modelFlags
	e       engineFlags
	threads int
	limit   string
	own     *pflag.FlagSet // what belongs to --outputs alone
}

// add adds the flags. Those that say what runs are an error without --outputs.
func (f *outputsFlags) add(c *cobra.Command) {
	before := map[string]bool{}
	c.Flags().VisitAll(func(x *pflag.Flag) { before[x.Name] = true })
	f.m.add(c)
	f.m.addOnce(c)
	f.e.addEngines(c)
	wholeVar(c, &f.threads, "threads", 1, 1, 1024, "number of threads", "")
	c.Flags().StringVar(&f.limit, "buffer", "", "`SIZE`: buffer for the outputs of each side (default 256MiB)")
	f.own = pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags().VisitAll(func(x *pflag.Flag) {
		if !before[x.Name] {
			f.own.AddFlag(x)
		}
	})
	c.Flags().BoolVar(&f.on, "outputs", false, "run models, and compare the outputs of all layers")
}

// args checks the arguments: profiles, or models with --outputs.
func (f *outputsFlags) args(profiles cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if !f.on {
			var stray []string
			f.own.VisitAll(func(x *pflag.Flag) {
				if x.Changed {
					stray = append(stray, "--"+x.Name)
				}
			})
			if len(stray) > 0 {
				return useError("%s: only with --outputs, which runs models; saved profiles are compared as they are", strings.Join(stray, ", "))
			}
			return profiles(c, args)
		}
		if n := len(f.e.each()); len(args) == 0 || len(args) > 2 || n > 2 || len(args) == 1 && n != 2 {
			return useError("--outputs compares two models, or one model in two engines: opmeter compare --outputs A B, or opmeter compare --outputs MODEL --engine NAME,NAME")
		}
		return nil
	}
}

// run compares the outputs of models.
func (f *outputsFlags) run(ctx context.Context, args, names, files []string, format string, v report.VersusOptions) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	switch {
	case format != "" && !slices.Contains(report.DivergenceFormats, format):
		return useError("--format %q: use one of %s with --outputs", format, strings.Join(report.DivergenceFormats, ", "))
	case v.Sort != "" && !slices.Contains(report.DivergenceSorts, v.Sort):
		return useError("--sort %q: use one of %s with --outputs", v.Sort, strings.Join(report.DivergenceSorts, ", "))
	}
	if err := checkNames(names, 2, "sides"); err != nil {
		return err
	}
	copy(o.Names[:], names)
	for _, file := range files {
		if _, err := report.DivergenceFormat(file); err != nil {
			return withStatus(statusUse, err)
		}
	}
	if err := ready(files, args...); err != nil {
		return err
	}
	found, err := f.e.find()
	if err != nil {
		return err
	}
	for i := range o.Engines {
		o.Engines[i] = found[min(i, len(found)-1)].engine
	}
	if err := told(o.Validate()); err != nil {
		return err
	}
	var r *divergence.Report
	second := args[len(args)-1]
	err = f.a.withModel(args[0], func(m *opmeter.Model) error {
		return f.a.withModel(second, func(n *opmeter.Model) (err error) {
			r, err = opmeter.CompareOutputs(ctx, m, n, *o)
			return told(err)
		})
	})
	if err != nil {
		return err
	}
	return f.show(r, files, format, v)
}

// options turns the flags into options of the library.
func (f *outputsFlags) options() (*opmeter.OutputsOptions, error) {
	o := &opmeter.OutputsOptions{Threads: f.threads, Exact: f.m.exact, MaxLoop: f.m.loops()}
	var err error
	if o.Inputs, err = f.m.inputs(); err != nil {
		return nil, err
	}
	if o.MaxMemory, err = f.m.memory(); err != nil {
		return nil, err
	}
	if f.limit != "" {
		n, err := quantity("buffer", f.limit, "a size such as 64MiB", sizes)
		if err != nil {
			return nil, err
		}
		o.LimitBytes = int64(n)
	}
	return o, nil
}

// show writes a comparison to files and to standard output.
func (f *outputsFlags) show(r *divergence.Report, files []string, format string, v report.VersusOptions) error {
	var failed error
	var wrote []string
	for _, file := range files {
		if err := report.DivergenceFile(file, r, v); err != nil {
			failed = errors.Join(failed, withStatus(statusUse, err))
			continue
		}
		wrote = append(wrote, file)
	}
	if format == "" {
		format = "table"
	}
	if err := report.WriteDivergence(f.a.out, r, format, v); err != nil {
		failed = errors.Join(failed, fmt.Errorf("standard output: %w", err))
	}
	f.a.sayWrote(wrote, false)
	return failed
}

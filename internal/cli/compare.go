package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile/compare"
)

func newCompare(a *app) *cobra.Command {
	var format, sort string
	var files, names []string
	var top int
	c := &cobra.Command{
		Use:     "compare PROFILE PROFILE...",
		Aliases: []string{"diff"},
		Short:   "Compare saved profiles: which is faster, and where",
		Long: `Compare saved profiles: threads, engines, data types, before and after a change, this
computer and a board. The first line answers which is faster, with a 95 % confidence
interval; the table has the ratio to the first profile for each operator. Operators that one
engine fuses are one row. Differences in model, machine or inputs are listed below the table.`,
		Example: `  opmeter compare one.opmeter two.opmeter
  opmeter compare measured.opmeter profile.opmeter --sort difference --top 10
  opmeter compare measured.opmeter estimate.opmeter -o compare.html`,
		Args: two,
		RunE: func(_ *cobra.Command, args []string) error {
			o := report.VersusOptions{Sort: sort, Top: top, Width: a.width, Color: a.color}
			if format != "" && !slices.Contains(report.VersusFormats, format) {
				return useError("--format %q: use one of %s", format, strings.Join(report.VersusFormats, ", "))
			}
			if sort != "" && !slices.Contains(report.VersusSorts, sort) {
				return useError("--sort %q: use one of %s", sort, strings.Join(report.VersusSorts, ", "))
			}
			if len(names) > 0 && len(names) != len(args) {
				return useError("--name: give one for each of the %d profiles, or none", len(args))
			}
			for _, f := range files {
				if _, err := report.VersusFormat(f); err != nil {
					return withStatus(statusUse, err)
				}
			}
			if err := ready(files, args...); err != nil {
				return err
			}
			t, err := compareFiles(args, names)
			if err != nil {
				return err
			}
			return a.showCompared(t, format, files, o)
		},
	}
	c.Flags().StringVar(&format, "format", "", "`NAME`: format on standard output: "+strings.Join(report.VersusFormats, ", "))
	c.Flags().StringArrayVarP(&files, "output", "o", nil, "`FILE`: write it; the ending names the format (.txt .csv .json .md .html)")
	c.Flags().StringVar(&sort, "sort", "", "`KEY`: order of the rows: "+strings.Join(report.VersusSorts, " "))
	c.Flags().StringArrayVar(&names, "name", nil, "`TEXT`: what a profile is called in the table, one for each")
	wholeVar(c, &top, "top", 0, 0, most, "the first N rows of --sort", "")
	return c
}

// compareFiles reads profiles and compares them.
func compareFiles(files, names []string) (*compare.Table, error) {
	if len(files) > compare.MaxRuns {
		return nil, useError("%d profiles: at most %d are compared at once", len(files), compare.MaxRuns)
	}
	runs := make([]compare.Named, len(files))
	for i, f := range files {
		p, err := readProfile(f)
		if err != nil {
			return nil, err
		}
		runs[i].Profile = p
		if names != nil {
			runs[i].Name = names[i]
		}
	}
	t, err := compare.New(runs)
	if err != nil {
		return nil, withStatus(statusInput, err)
	}
	if names == nil {
		labels(t, files)
	}
	return t, nil
}

// labels names runs after their files, without the ending of saved profiles, where these differ.
func labels(t *compare.Table, files []string) {
	seen := map[string]bool{}
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = strings.TrimSuffix(base(f), ".opmeter")
		seen[out[i]] = true
	}
	if len(seen) < len(files) {
		return
	}
	for i := range t.Runs {
		t.Runs[i].Name = out[i]
	}
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

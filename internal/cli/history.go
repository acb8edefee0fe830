package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/gate/history"
)

func newHistory(a *app) *cobra.Command {
	var format, model, figure string
	var files []string
	var all bool
	c := &cobra.Command{
		Use:        "history DIR",
		SuggestFor: []string{"trend", "log"},
		Short:      "Show how figures change over commits",
		Long: `Show the trend of every figure over commits, and where it changes. The folder holds the index of
opmeter gate --record, or saved profiles. Exact figures change where their value does; measured
ones are tested for change points. Changes of machine, settings and version are marked: measured
figures do not compare across machines. Points follow the first-parent history of HEAD. Those of
other branches are marked and left out of changes.`,
		Example: `  opmeter history .opmeter
  opmeter history .opmeter --figure macs --all
  opmeter history nightly/ -o history.html`,
		Args: one("a folder, such as .opmeter"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(history.Formats, format) {
				return useError("--format %q: use one of %s", format, strings.Join(history.Formats, ", "))
			}
			for _, f := range files {
				if _, err := history.FormatOf(f); err != nil {
					return withStatus(statusUse, err)
				}
			}
			if _, ok := gate.Lookup(figure); figure != "" && !ok {
				return useError("--figure %q: no such figure%s; docs/ci.md lists them", figure, gate.Nearest(figure, gate.Keys()))
			}
			if all && format != "table" {
				return useError("--all is for --format table: %s has all figures", format)
			}
			if err := ready(files); err != nil {
				return err
			}
			h, err := history.Read(c.Context(), args[0])
			if c.Context().Err() != nil {
				return told(c.Context().Err())
			}
			if err != nil {
				return withStatus(statusInput, plainPath(err))
			}
			var models, figures []string
			for i := range h.Series {
				models, figures = append(models, h.Series[i].Model), append(figures, h.Series[i].Figure)
			}
			if model != "" && !slices.ContainsFunc(models, func(m string) bool { return gate.Matches(model, m) }) {
				return useError("--model %q: the history has no such model; it has %s", model, someOf(models))
			}
			if figure != "" && !slices.Contains(figures, figure) {
				return useError("--figure %s: the history does not have it; it has %s", figure, someOf(figures))
			}
			h.Series = slices.DeleteFunc(h.Series, func(s history.Series) bool {
				return figure != "" && s.Figure != figure || model != "" && !gate.Matches(model, s.Model)
			})
			return a.showHistory(h, format, files, all)
		},
	}
	c.Flags().StringVar(&figure, "figure", "", "`KEY`: one figure, such as macs or latency_s")
	c.Flags().StringVar(&model, "model", "", "`PATTERN`: models, such as 'kws*'")
	c.Flags().BoolVar(&all, "all", false, "show series without a change, too")
	c.Flags().StringVar(&format, "format", "table", "`NAME`: format on standard output: "+strings.Join(history.Formats, ", "))
	c.Flags().StringArrayVarP(&files, "output", "o", nil, "`FILE`: write it; the ending names the format (.txt .csv .json .html)")
	return c
}

// showHistory writes a history to files and to standard output.
func (a *app) showHistory(h *history.History, format string, files []string, all bool) error {
	var failed error
	var wrote []string
	for _, f := range files {
		if err := h.File(f); err != nil {
			failed = errors.Join(failed, withStatus(statusUse, plainPath(err)))
			continue
		}
		wrote = append(wrote, f)
	}
	if err := h.Write(a.out, format, all, a.width); err != nil {
		failed = errors.Join(failed, fmt.Errorf("standard output: %w", err))
	}
	a.sayWrote(wrote, false)
	return failed
}

// someOf lists the first of some names, each once.
func someOf(names []string) string {
	const most = 8
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		return "none"
	}
	s := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

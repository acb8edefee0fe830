package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

func newReport(a *app) *cobra.Command {
	var o outputFlags
	var expected string
	c := &cobra.Command{
		Use:   "report PROFILE",
		Short: "Show a saved profile, or write it in other formats",
		Example: `  opmeter report profile.opmeter --by op
  opmeter report profile.opmeter -o layers.csv -o profile.md
  opmeter report measured.opmeter --expected estimate.opmeter -o page.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			// Long profiles are numbers, which cost the collector nothing to look
			// at: collecting early saves half of the memory for little time.
			collectAt(15)
			p, err := profile.Read(args[0])
			if err != nil {
				return withStatus(statusInput, prefixed(args[0], err))
			}
			if expected != "" {
				from, err := profile.Read(expected)
				if err != nil {
					return withStatus(statusInput, prefixed(expected, err))
				}
				if err := report.Expect(p, from); err != nil {
					return withStatus(statusInput, fmt.Errorf("--expected %s: %w", expected, err))
				}
			}
			return a.deliver(p, &o)
		},
	}
	c.Flags().StringVar(&expected, "expected", "", "profile of the same model whose times are the expected ones, such as an estimate")
	o.add(c)
	return c
}

// collectAt sets by how many percent the heap may grow before it is collected. The
// user's own setting has precedence.
func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// deliver writes a profile to the files and to standard output as asked.
func (a *app) deliver(p *profile.Profile, o *outputFlags) error {
	for _, path := range o.files {
		if isFolder(path) {
			names, err := report.Folder(path, p, o.options(a))
			if err != nil {
				return withStatus(statusUse, err)
			}
			fmt.Fprintf(a.err, "wrote %s\n", strings.Join(names, " and "))
			continue
		}
		if err := report.File(path, p, o.options(a)); err != nil {
			return withStatus(statusUse, err)
		}
	}
	if o.open {
		a.open(o.files)
	}
	if o.format == "" && len(o.files) > 0 {
		return nil
	}
	format := o.format
	if format == "" {
		format = "table"
	}
	return report.Write(a.out, p, format, o.options(a))
}

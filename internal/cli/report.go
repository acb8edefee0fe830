package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/gcpolicy"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

func newReport(a *app) *cobra.Command {
	var o outputFlags
	var expected string
	c := &cobra.Command{
		Use:        "report PROFILE | DIR",
		SuggestFor: []string{"show", "view", "serve", "html"},
		Short:      "Show a saved profile, or convert it to other formats",
		Long: `Show a saved profile or write it in other formats. Report also opens the journal of a run that
was killed and says where it ends. For a folder it lists the saved profiles and journals
inside, one line each.`,
		Example: `  opmeter report profile.opmeter --by op
  opmeter report profile.opmeter -o layers.csv -o profile.md
  opmeter report measured.opmeter --expected estimate.opmeter -o page.html
  opmeter report results/`,
		Args: one("a saved profile or a folder of them"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			// Long profiles are numbers, which cost the collector nothing to look
			// at: collecting early saves half of the memory for little time.
			collectAt(15)
			if st, err := os.Stat(args[0]); err == nil && st.IsDir() {
				if expected != "" {
					return useError("--expected needs a profile, and %s is a folder", args[0])
				}
				return a.saved(args[0], &o)
			}
			if err := ready(o.files, args[0]); err != nil {
				return err
			}
			p, err := readProfile(args[0])
			if err != nil {
				return err
			}
			if expected != "" {
				from, err := readProfile(expected)
				if err != nil {
					return err
				}
				if err := report.Expect(p, from); err != nil {
					return withStatus(statusInput, fmt.Errorf("--expected %s: %w", expected, err))
				}
			}
			return a.deliver(p, &o)
		},
	}
	c.Flags().StringVar(&expected, "expected", "", "`FILE`: profile with the expected times, of this model")
	o.add(c)
	return c
}

// saved lists the profiles in a folder and those below it.
func (a *app) saved(dir string, o *outputFlags) error {
	if o.format != "" && o.format != "table" && o.format != "csv" || len(o.files) > 0 || o.memory || o.by != "" || o.sort != "" || o.top != 0 {
		return useError("a folder is shown as a list: use --format table or csv, without -o, --memory, --sort, --by and --top")
	}
	unread, err := report.Saved(a.out, dir, o.format, a.width)
	if err != nil {
		return withStatus(statusInput, err)
	}
	if unread > 0 {
		return withStatus(statusInput, fmt.Errorf("%s could not be read", plural(unread, "file")))
	}
	return nil
}

// collectAt sets by how many percent the heap may grow before it is collected. The
// user's own setting has precedence.
func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// manyLayers is the number of layers above which reports take much memory.
const manyLayers = 20_000

// deliver writes a profile to the files and to standard output as asked. With files and
// no format, standard output has what the files do not say at a glance: summary, findings,
// and which files there are. What cannot be written in one place is not a reason to lose it:
// the other files are written all the same, and the table is shown. The journal of a run
// goes when all its files are there, and stays where one is not.
func (a *app) deliver(p *profile.Profile, o *outputFlags) error {
	if len(p.Layers) > manyLayers {
		defer gcpolicy.Tight()()
	}
	var failed error
	var wrote []string
	written := a.writing()
	for _, path := range o.files {
		names, err := a.writeTo(path, p, o)
		wrote = append(wrote, names...)
		if err != nil {
			failed = errors.Join(failed, withStatus(statusUse, err))
		}
	}
	a.settle(p, o.files, failed == nil)
	written()
	if o.open {
		a.open(o.files)
	}
	format := o.format
	brief := format == "" && len(o.files) > 0 && failed == nil
	if brief {
		failed = report.Brief(a.out, p, o.options(a))
		fmt.Fprintln(a.out)
	} else {
		if format == "" {
			format = "table"
		}
		failed = errors.Join(failed, report.Write(a.out, p, format, o.options(a)))
	}
	a.sayWrote(wrote, brief)
	return failed
}

// sayWrote names the files that were written, with their sizes: on standard output where
// that has no report of its own.
func (a *app) sayWrote(names []string, out bool) {
	const most = 20
	w := a.err
	if out {
		w = a.out
	}
	var rest int64
	for i, name := range names {
		size := int64(0)
		if st, err := os.Stat(name); err == nil {
			size = st.Size()
		}
		switch {
		case i < most || len(names) == most+1:
			fmt.Fprintf(w, "wrote %s, %s\n", text.Clean(name), report.Bytes(size))
		default:
			rest += size
		}
	}
	if n := len(names) - most; n > 1 {
		fmt.Fprintf(w, "wrote %s, %s\n", plural(n, "more file"), report.Bytes(rest))
	}
}

// writeTo writes a profile to a file, or to a folder for the MLTK profiler's report, and
// returns the names of the files.
func (a *app) writeTo(path string, p *profile.Profile, o *outputFlags) ([]string, error) {
	if !isFolder(path) {
		if err := report.File(path, p, o.options(a)); err != nil {
			return nil, err
		}
		if left := report.LeftOut(path, p); left != "" {
			fmt.Fprintf(a.err, "opmeter: %s: %s\n", text.Clean(path), left)
		}
		return []string{path}, nil
	}
	names, err := report.Folder(path, p, o.options(a))
	if err != nil {
		return nil, err
	}
	return names, nil
}

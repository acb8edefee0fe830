package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/editdistance"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/profile"
)

// one demands exactly one argument; what names it, such as "a model file".
func one(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return useError("name %s: opmeter %s", what, usageOf(c))
		case len(args) > 1:
			return useError("%d arguments, expected one (%s): opmeter %s", len(args), what, usageOf(c))
		}
		return nil
	}
}

// atMostOne allows one argument.
func atMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return useError("%d arguments, expected at most one: opmeter %s", len(args), usageOf(c))
	}
	return nil
}

// none allows no argument.
func none(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return useError("%q is not expected here: opmeter %s takes flags only; see opmeter %[2]s --help", args[0], nameOf(c))
	}
	return nil
}

// two demands two or more files to compare, or one that may hold several runs.
func two(c *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) == 1 && strings.HasSuffix(args[0], ".opmeter") {
		return useError("name two or more profiles: opmeter %s", usageOf(c))
	}
	return nil
}

// nameOf is the name of a command without that of the program.
func nameOf(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), "opmeter ") }

// usageOf is the usage of a command without the name of the program.
func usageOf(c *cobra.Command) string {
	return strings.TrimSuffix(strings.TrimPrefix(c.UseLine(), "opmeter "), " [flags]")
}

// implied puts the verb before arguments that begin with a file: report for a saved profile,
// profile for a model and every other file. The name of a verb has precedence over a file of that
// name.
func implied(root *cobra.Command, args []string) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "-" {
		return args
	}
	file := args[0]
	if slices.Contains([]string{"help", "completion"}, file) || strings.HasPrefix(file, "__") || slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == file || c.HasAlias(file) }) {
		return args
	}
	low := strings.ToLower(file)
	ends := func(list ...string) bool {
		return slices.ContainsFunc(list, func(e string) bool { return strings.HasSuffix(low, e) })
	}
	st, err := os.Stat(file)
	switch isFile := err == nil && st.Mode().IsRegular(); {
	case ends(".opmeter", ".opmeter-journal"):
		return slices.Insert(slices.Clone(args), 0, "report")
	case isFile, file == "-", ends(modelfile.Endings...):
		return slices.Insert(slices.Clone(args), 0, "profile")
	}
	return args
}

// standardInput replaces the argument "-" of a verb that reads files by a file with what standard
// input holds.
func (a *app) standardInput(c *cobra.Command, args []string) error {
	if !slices.Contains([]string{"profile", "summary", "view", "run", "sweep", "fit", "report", "compare", "import", "compress", "advise"}, verbOf(c)) {
		return nil
	}
	for i, arg := range args {
		if arg != "-" {
			continue
		}
		if a.stdin != "" {
			return useError("standard input (-) is given twice")
		}
		dir, remove, err := subprocess.Folder("")
		if err != nil {
			return err
		}
		a.stdin, a.dropStdin = filepath.Join(dir, "stdin"), remove
		f, err := os.Create(a.stdin)
		if err != nil {
			return plainPath(err)
		}
		_, err = io.Copy(f, a.in)
		if err = errors.Join(err, f.Close()); err != nil {
			return withStatus(statusInput, fmt.Errorf("standard input: %w", plainPath(err)))
		}
		args[i] = a.stdin
	}
	return nil
}

// dropInput removes the file of [app.standardInput].
func (a *app) dropInput() {
	if a.stdin != "" {
		a.dropStdin()
	}
}

// readProfile reads a saved profile. The error for another kind of file says what it is.
func readProfile(path string) (*profile.Profile, error) {
	p, err := profile.Read(path)
	if err == nil {
		return p, nil
	}
	if errors.Is(err, profile.ErrNotProfile) {
		if what := modelfile.Describe(path); what != "" {
			err = fmt.Errorf("%s: is %s", path, what)
		}
	}
	return nil, withStatus(statusInput, plainPath(err))
}

// oldFlags lists former flags with the flag that replaces them, and how to use that.
var oldFlags = map[string]struct{ flag, use string }{
	"samples": {"timeline", "--timeline all"},
}

// unknownFlag is the error for a flag that a command lacks, with the nearest one that it has.
func unknownFlag(c *cobra.Command, e *pflag.NotExistError) error {
	name := e.GetSpecifiedName()
	if now, ok := oldFlags[name]; ok && c.Flags().Lookup(now.flag) != nil {
		return useError("--%s is now %s", name, now.use)
	}
	best, least := "", 3
	if len(name) > 1 {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			d := editdistance.Of(name, f.Name)
			if len(name) > 2 && (strings.HasPrefix(f.Name, name) || strings.HasPrefix(name, f.Name)) {
				d = min(d, 1)
			}
			if d < least && d < len(name) {
				best, least = f.Name, d
			}
		})
	}
	if best != "" {
		return useError("%w: did you mean --%s?", e, best)
	}
	return useError("%w: see %s --help", e, strings.TrimSpace(c.CommandPath()))
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of opmeter, with its commit and date",
		Example: `  opmeter version`,
		Args:    none,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "opmeter version %s\n", buildinfo.Read())
			return err
		},
	}
}

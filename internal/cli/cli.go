package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/advise"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/gate/history"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// app is what the commands share: where they read, write and show progress.
type app struct {
	in       io.Reader
	out, err io.Writer
	width    int  // columns of the terminal, 0 when output is not a terminal
	color    bool // output is a terminal that shows colours
	tty      bool // standard error is a terminal: progress may be shown
	pending

	signature string // of a TFLite file, "" for its first graph

	// parts are the files of the one language model to measure, nil for models in one file each.
	parts []string

	besides time.Duration // limit for an engine beside opmeter's own, 0 for the usual one

	stdin     string // file with what standard input held, where "-" named it
	dropStdin func() // removes it
}

// keeper is a writer that keeps the first error: nothing that was to be read may be lost
// without a word, whoever wrote it.
type keeper struct {
	io.Writer
	err error
}

func (k *keeper) Write(b []byte) (int, error) {
	n, err := k.Writer.Write(b)
	if k.err == nil {
		k.err = err
	}
	return n, err
}

// progressVariable is the environment variable that shows the line of progress on a pipe, too: for
// programs that start opmeter and draw it themselves, such as the Python package.
const progressVariable = "OPMETER_PROGRESS"

func newApp(in io.Reader, out, errw io.Writer) *app {
	a := &app{in: in, out: &keeper{Writer: out}, err: errw}
	if f, ok := out.(*os.File); ok && term.IsTerminal(f.Fd()) {
		if w, _, err := term.GetSize(f.Fd()); err == nil {
			a.width = w
		}
		a.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		a.width = n // also where the output is a pipe or a file
	}
	if f, ok := errw.(*os.File); ok {
		a.tty = term.IsTerminal(f.Fd()) || os.Getenv(progressVariable) != ""
	}
	return a
}

// run is the program in another one, under a context.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) (status int) {
	return newApp(in, out, errw).execute(ctx, args)
}

// execute does what the arguments say and returns the exit status.
func (a *app) execute(ctx context.Context, args []string) (status int) {
	defer func() {
		if e := recover(); e != nil {
			fmt.Fprintf(a.err, "opmeter: internal error: %v\nThis is a defect of opmeter: please report it with the command and the model.\n", e)
			if os.Getenv("OPMETER_DEBUG") != "" {
				fmt.Fprintf(a.err, "%s", debug.Stack())
			}
			status = statusSource
		}
	}()
	root := newRoot(a)
	root.SetArgs(implied(root, args))
	defer a.dropInput()
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if k, ok := a.out.(*keeper); ok && k.err != nil && !errors.Is(err, k.err) {
		err = errors.Join(err, withStatus(statusUse, fmt.Errorf("standard output: %w", plainPath(k.err))))
	}
	if err == nil {
		return statusDone
	}
	what := err.Error()
	if a.stdin != "" {
		what = strings.ReplaceAll(what, a.stdin, "standard input")
	}
	fmt.Fprintf(a.err, "opmeter: %s\n", oneLine(what))
	if diskFails(err) {
		return statusSource
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	return statusUse
}

// oneLine joins the lines of an error, and writes suggestions for a wrong command
// behind it. Names in it come from files: nothing in them reaches the terminal raw.
func oneLine(s string) string {
	s = strings.TrimSpace(s)
	s = strings.Replace(s, "\n\nDid you mean this?\n\t", "; did you mean ", 1)
	s = text.Clean(strings.NewReplacer("\n\t", ", ", "\n", "; ").Replace(s))
	// Names in files may have megabytes. What went wrong stands first, and often last.
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest*2/3]) + " … " + string(r[len(r)-longest/3:])
	}
	return s
}

// longest is the most characters of an error, but for the mark of what is left out.
const longest = 900

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:               "opmeter",
		Short:             "Profile neural-network models",
		Long:              "Show where a .tflite or .onnx model spends its time and memory, per operator.",
		Example:           `  opmeter profile model.tflite --on stm32l4r5 -o page.html`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           buildinfo.Version(),
		PersistentPreRunE: a.standardInput,
	}
	root.SetFlagErrorFunc(badFlag)
	root.AddCommand(newProfile(a), newRun(a), newSweep(a), newSummary(a), newView(a), newBuild(a), newReport(a), newCompare(a), newAdvise(a), newGate(a), newHistory(a), newAB(a), newWorker(a), newServe(a), newServerWorker(a), newPush(a), newCompress(a), newImport(a), newOps(a), newTargets(a), newFit(a), newCalibrate(a), newDevice(a), newDevices(a), newEngines(a), newMCP(a), newSchema(a), newTrace(a), newVersion(a))
	for i := range topics {
		root.AddCommand(topics[i].command(root))
	}
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND or TOPIC]",
		Short: "Explain a command or a topic",
		RunE: func(_ *cobra.Command, args []string) error {
			c, _, err := root.Find(args)
			if err != nil {
				return useError("%w", err)
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	})
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { help(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error { help(c.OutOrStderr(), c); return nil })
	complete(root)
	return root
}

// complete tells shells what flags and arguments may be.
func complete(root *cobra.Command) {
	words := map[string][]string{
		"cold": {string(profile.ColdCaches), string(profile.ColdStart)}, "by": report.Groups, "sort": report.Sorts, "on": {"host"}, "engine": {"opmeter"}, "accelerator": {"mvp", "cmsis", "none"}, "model": {"tflite", "onnx"}, "only": codes(),
	}
	models := []string{"tflite", "onnx", "gguf", "litertlm", "zip", "yaml"}
	files := map[string][]string{
		"profile": models, "summary": models, "view": models, "run": models,
		"ab":     models,
		"report": {"opmeter", "opmeter-journal", "json"}, "compare": {"opmeter", "opmeter-journal", "json"}, "gate": models, "build": {"yaml", "yml"},
		"advise": append(slices.Clone(models), "opmeter"),
	}
	for _, c := range root.Commands() {
		for flag, list := range words {
			completeFlag(c, flag, list)
		}
		if c.Name() == "ops" || c.Name() == "devices" {
			completeFlag(c, "format", []string{"table", "json"})
		} else if c.Name() == "advise" {
			completeFlag(c, "format", advise.Formats)
		} else if c.Name() == "engines" {
			completeFlag(c, "format", engineFormats)
		} else if c.Name() == "gate" {
			completeFlag(c, "format", gate.Formats)
		} else if c.Name() == "history" {
			completeFlag(c, "format", history.Formats)
		} else if c.Name() == "ab" {
			completeFlag(c, "format", report.ABFormats)
		} else {
			completeFlag(c, "format", report.Formats(true))
		}
		if ends := files[c.Name()]; ends != nil {
			c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return ends, cobra.ShellCompDirectiveFilterFileExt
			}
		}
	}
}

func completeFlag(c *cobra.Command, flag string, words []string) {
	if c.Flags().Lookup(flag) == nil {
		return
	}
	// The only error is that the flag is unknown or has been registered before.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// mltkFlags are the options of the MLTK profiler that scripts may pass to the
// profile command. They are hidden from the list of flags; the text of the help
// names them.
type mltkFlags struct {
	accelerator string
	verbose     bool
}

// accelerators are the values of --accelerator in lower case with the targets
// that they stand for.
var accelerators = map[string]string{"mvp": "efr32xg24-mvp", "none": "efr32xg24", "cmsis": "efr32xg24"}

// refused are options of the MLTK profiler for things that opmeter does not do,
// with what to do instead.
var refused = []struct{ name, short, instead string }{
	{"device", "d", "opmeter device mltk MODEL --port PORT flashes a board and measures on it; --accelerator mvp estimates the chip without one"},
	{"port", "", "opmeter device mltk MODEL --port PORT flashes a board and measures on it; --on device:PORT measures on one that runs"},
	{"app", "", "opmeter estimates chips by itself; a program that prints the profiler's text is measured with --on 'device:exec:PROGRAM --model MODEL'"},
	{"build", "", "opmeter does not train: give a .tflite or .mltk.zip file, or describe the network for opmeter build"},
	{"post", "", "opmeter calls no hooks: write a file with -o and process that"},
}

func (f *mltkFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.accelerator, "accelerator", "a", "", "`NAME`: mvp, cmsis or none, other names of the targets efr32xg24-mvp and efr32xg24")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "no effect")
	hide := []string{"accelerator", "verbose"}
	for _, r := range refused {
		fs.StringP(r.name, r.short, "", r.instead)
		fs.Lookup(r.name).NoOptDefVal = "true" // most have no value
		hide = append(hide, r.name)
	}
	for _, name := range hide {
		_ = fs.MarkHidden(name) // fails for unknown flags only
	}
}

// apply turns the flags into those of opmeter.
func (f *mltkFlags) apply(c *cobra.Command, t *targetFlags, o *outputFlags) error {
	for _, r := range refused {
		if c.Flags().Changed(r.name) {
			return useError("--%s: %s", r.name, r.instead)
		}
	}
	if !c.Flags().Changed("accelerator") {
		here := func(name string) bool { return c.Flags().Changed(name) }
		if o.mltk.Estimates && !here("on") && !slices.ContainsFunc(measuring, here) {
			// Without an accelerator the profiler estimates the chip's processor.
			t.on = []string{accelerators["none"]}
		}
		return nil
	}
	name := strings.ToLower(f.accelerator)
	id, ok := accelerators[name]
	switch {
	case !ok:
		return useError("--accelerator %q: use mvp, cmsis or none, or --on with one of opmeter targets", f.accelerator)
	case c.Flags().Changed("on"):
		return useError("--accelerator %s means --on %s: use one of them", name, id)
	}
	t.on = []string{id}
	o.accelerator = name
	return nil
}

// addLayout adds the options of the MLTK profiler's layouts.
func (f *outputFlags) addLayout(c *cobra.Command) {
	fs := c.Flags()
	fs.BoolVar(&f.mltk.Estimates, "estimates", false, "show estimated cycles, time and energy, too")
	fs.BoolVar(&f.mltk.Raw, "no-format", false, "plain numbers in text and report folder")
	fs.BoolVar(&f.mltk.Full, "full-summary", false, "counts of the accelerator and the memory plan")
	for _, name := range []string{"estimates", "no-format", "full-summary"} {
		_ = fs.MarkHidden(name) // fails for unknown flags only
	}
}

// checkLayout refuses layout options where no such layout is written. Estimates
// are in every other format anyway.
func (f *outputFlags) checkLayout(formats []string) error {
	if slices.ContainsFunc(formats, func(s string) bool { return strings.HasPrefix(s, "mltk") }) {
		return nil
	}
	name := "no-format"
	switch {
	case f.mltk.Full:
		name = "full-summary"
	case !f.mltk.Raw:
		return nil
	}
	return useError("--%s needs an MLTK layout: add --format mltk, or -o with a folder or .mltk.txt file", name)
}

// isFolder reports whether an output is a folder for the MLTK profiler's report:
// it exists as one or its name ends like one.
func isFolder(path string) bool {
	if path != "" && os.IsPathSeparator(path[len(path)-1]) {
		return true
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// modelName is what the MLTK takes for the name of a model, not a file.
var modelName = lazyregexp.New(`^[A-Za-z0-9_]+(-test)?$`)

// modelPaths is the environment variable with the MLTK's folders of models.
const modelPaths = "MLTK_MODEL_PATHS"

// findModel returns the file for an argument: a file or folder of that name, or
// the model of that name in the current folder or below those of
// MLTK_MODEL_PATHS, as the MLTK looks for models.
func findModel(arg string) (string, error) {
	_, err := os.Stat(arg)
	if !errors.Is(err, fs.ErrNotExist) || !modelName.MatchString(arg) {
		return arg, nil // whoever opens it tells what is wrong
	}
	files := []string{arg + ".tflite", arg + ".mltk.zip"}
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			return f, nil
		}
	}
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv(modelPaths)), func(d string) bool { return d == "" })
	for _, d := range dirs {
		found := ""
		_ = filepath.WalkDir(d, func(path string, e fs.DirEntry, err error) error {
			if err == nil && slices.Contains(files, e.Name()) && !e.IsDir() {
				found = path
				return filepath.SkipAll
			}
			if err != nil && e != nil && e.IsDir() {
				return filepath.SkipDir // a folder that may not be read holds no model
			}
			return nil
		})
		if found != "" {
			return found, nil
		}
	}
	where := "the current folder"
	if len(dirs) > 0 {
		where += " and below " + strings.Join(dirs, ", ")
	} else {
		where += " (" + modelPaths + " names no others)"
	}
	return "", withStatus(statusInput, fmt.Errorf("%s: no such file, and no %s in %s", arg, strings.Join(files, " or "), where))
}

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/measure/ab"
)

// workerVerb is the hidden command that answers blocks of inferences.
const workerVerb = "ab-worker"

// workerFlags say how an alternative runs its model: the same for all, or for one of them.
type workerFlags struct {
	m       modelFlags
	e       engineFlags
	threads int
	// signature is that of the application, which opens models with it.
	signature *string
}

func (f *workerFlags) add(a *app, c *cobra.Command) {
	f.m.add(c)
	f.m.addData(c)
	f.e.addEngines(c)
	wholeVar(c, &f.threads, "threads", 1, 1, 1024, "number of threads", "")
	a.addSignature(c)
	f.signature = &a.signature
}

// options gathers the flags for one engine.
func (f *workerFlags) options(c *cobra.Command) (o opmeter.Options, err error) {
	if o.Inputs, err = f.m.inputs(); err != nil {
		return o, err
	}
	if o.Carry, err = f.m.carries(); err != nil {
		return o, err
	}
	if o.MaxMemory, err = f.m.memory(); err != nil {
		return o, err
	}
	o.Exact, o.MaxLoop, o.Threads = f.m.exact, f.m.loops(), f.threads
	engines, err := f.e.find()
	if err != nil {
		return o, err
	}
	if len(engines) > 1 {
		return o, useError("--engine %s: an alternative has one engine", f.e.list)
	}
	if o.Engine = engines[0].engine; o.Engine != nil {
		if o.Engine.Command != "" {
			return o, useError("--engine %s: its runs cannot be divided into blocks: compare programs with --command", f.e.list)
		}
		for _, name := range []string{"exact", "max-loop", "signature"} {
			if c.Flags().Changed(name) {
				return o, useError("--%s: %s would ignore it: leave it out, or give it to one alternative", name, engines[0].name)
			}
		}
	}
	return o, told(o.Validate())
}

// alternatives are what the arguments name.
type alternatives struct {
	list []ab.Alternative
	// files are the models by alternative that names begin with, "" where they do not; options are
	// what follows in such names.
	files, options []string
	// threads is the number of processors that each of them uses, 0 if unknown.
	threads int
}

// shellSigns are characters that a shell takes for more than themselves, and those of them that it
// does within double quotes.
const shellSigns, quotedSigns = ";&|<>()*$`", "$`"

// commandWords splits a command line at blanks, but not within quotes; a backslash takes the next
// character as it is. sign is the first of [shellSigns] that is neither quoted nor escaped, or else
// a variable that is set before the command.
func commandWords(s string) (out []string, sign string, err error) {
	var now strings.Builder
	quote, escaped, open := rune(0), false, false
	for _, r := range s {
		if signs := map[rune]string{0: shellSigns, '"': quotedSigns}[quote]; sign == "" && !escaped && strings.ContainsRune(signs, r) {
			sign = string(r)
		}
		switch {
		case escaped:
			now.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'' && filepath.Separator == '/':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				out = append(out, now.String())
			}
			now.Reset()
			open = false
		default:
			now.WriteRune(r)
			open = true
		}
	}
	if quote != 0 || escaped {
		return nil, "", useError("%q: a quote is not closed", s)
	}
	if open {
		out = append(out, now.String())
	}
	if name, _, ok := strings.Cut(s, "="); ok && sign == "" && strings.Trim(name, nameCharacters) == "" && name != "" {
		sign = name + "="
	}
	return out, sign, nil
}

// nameCharacters are those of a variable of the environment.
const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

// changed lists the flags of a worker that a command line sets, as arguments.
func changed(c *cobra.Command, worker *pflag.FlagSet) []string {
	var out []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if worker.Lookup(f.Name) != nil {
			out = append(out, arguments(f)...)
		}
	})
	return out
}

// arguments are what sets a flag to its value.
func arguments(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		var out []string
		for _, v := range list.GetSlice() {
			out = append(out, "--"+f.Name+"="+v)
		}
		return out
	}
	return []string{"--" + f.Name + "=" + f.Value.String()}
}

// models reads alternatives that opmeter runs itself.
func (f *abFlags) models(a *app, c *cobra.Command, args []string) (alternatives, error) {
	var out alternatives
	programs, err := f.programs()
	if err != nil {
		return out, err
	}
	common := changed(c, workerSet())
	engines := f.w.e.each()
	found := make([]chosen, len(engines)) // with the names of those that are given by their files
	if len(engines) > 1 {
		if found, err = f.w.e.find(); err != nil {
			return out, err
		}
	}
	if len(engines) > 1 && len(args) > 1 {
		return out, useError("--engine %s: several engines need one model; or write each alternative in quotes: \"%s --engine %s\"", f.w.e.list, args[0], engines[0])
	}
	if len(programs) > 1 && len(args)*len(engines) > 1 {
		return out, useError("--binary: several programs need one model and one engine")
	}
	for _, arg := range args {
		for i, e := range engines {
			for _, program := range programs {
				x, file, options, threads, err := alternative(program, arg, common, e)
				if err != nil {
					return out, err
				}
				switch {
				case len(engines) > 1:
					x.Name, file = found[i].name, ""
				case len(programs) > 1:
					x.Name, file = program, ""
				}
				out.list, out.threads = append(out.list, x), max(out.threads, threads)
				out.files, out.options = append(out.files, file), append(out.options, options)
			}
		}
	}
	if len(out.list) < 2 {
		return out, useError("name two or more alternatives: models, one model with options in quotes (\"model.onnx --threads 2\"), --engine A,B, --binary OLD,NEW, or commands with --command")
	}
	return out, nil
}

// programs are the opmeter programs that run the models.
func (f *abFlags) programs() ([]string, error) {
	if f.binaries != "" {
		list := strings.Split(f.binaries, ",")
		if len(list) < 2 || slices.Contains(list, "") {
			return nil, useError("--binary %q: write two or more programs with commas between them: --binary OLD,NEW", f.binaries)
		}
		return list, nil
	}
	self, err := os.Executable()
	return []string{self}, err
}

// workerSet are the flags of a worker.
func workerSet() *pflag.FlagSet { return newWorker(&app{}).Flags() }

// alternative reads one argument: a model, or a model with options, which it returns as they are
// shown. It checks what can be checked without running it. The engine that it names itself replaces
// engine, which is one of those in common.
func alternative(program, arg string, common []string, engine string) (x ab.Alternative, file, options string, threads int, err error) {
	own := []string{arg}
	if st, err := os.Stat(arg); err != nil || st.IsDir() {
		if own, _, err = commandWords(arg); err != nil {
			return x, "", "", 0, err
		}
	}
	if len(own) == 0 {
		return x, "", "", 0, useError("%q names no model", arg)
	}
	other := &app{}
	var w workerFlags
	c := &cobra.Command{Use: "ab"}
	(&cobra.Command{Use: "opmeter"}).AddCommand(c)
	w.add(other, c)
	err = c.Flags().Parse(common)
	if w.e.list, w.e.listed = engine, false; err == nil {
		err = c.Flags().Parse(own)
	}
	if err != nil {
		return x, "", "", 0, withStatus(statusUse, fmt.Errorf("%q: %w", arg, badFlag(c, err)))
	}
	files := c.Flags().Args()
	if len(files) != 1 {
		return x, "", "", 0, useError("%q: an alternative has one model, not %d", arg, len(files))
	}
	file, err = findModel(files[0])
	if err != nil {
		return x, "", "", 0, err
	}
	if st, err := os.Stat(file); err != nil {
		return x, "", "", 0, withStatus(statusInput, plainPath(err))
	} else if st.IsDir() {
		return x, "", "", 0, useError("%s is a folder: name a model file", file)
	}
	if _, err := w.options(c); err != nil {
		return x, "", "", 0, err
	}
	x.Options = changed(c, c.Flags())
	if len(own) > 1 {
		for _, word := range own {
			if word != files[0] {
				options += " " + withoutFolder(word)
			}
		}
	}
	x.Command = append([]string{program, workerVerb, file}, x.Options...)
	return x, file, options, w.threads, nil
}

// withoutFolder shortens a file in a name, such as the library of an engine, to its last part.
func withoutFolder(word string) string {
	before, file, ok := strings.Cut(word, "=")
	if !ok {
		before, file = "", word
	} else {
		before += "="
	}
	if !strings.ContainsRune(file, filepath.Separator) {
		return word
	}
	return before + filepath.Base(file)
}

// commands reads alternatives that are timed as a whole.
func (f *abFlags) commands(c *cobra.Command, args []string) (alternatives, error) {
	var out alternatives
	if f.binaries != "" {
		return out, useError("--binary and --command: use one of them")
	}
	if given := changed(c, workerSet()); len(given) > 0 {
		name, _, _ := strings.Cut(given[0], "=")
		if name != "--seed" {
			return out, useError("%s: a command would ignore it: write it into the command", name)
		}
	}
	for _, arg := range args {
		line, sign, err := commandWords(arg)
		switch {
		case err != nil:
			return out, err
		case sign != "":
			return out, useError("%q: no shell runs a command, so that %q would be an argument: write sh -c '...', or quote it", arg, sign)
		}
		if len(line) == 0 {
			return out, useError("%q is not a command", arg)
		}
		out.list = append(out.list, ab.Alternative{Name: arg, Command: line})
		out.files, out.options = append(out.files, ""), append(out.options, "")
	}
	if len(out.list) < 2 {
		return out, useError("name two or more commands, each in quotes")
	}
	return out, nil
}

// call names the alternatives as the user does: models by their files, with folders where these
// tell them apart. It numbers those of one name.
func (l *alternatives) call(names []string) error {
	if err := checkNames(names, len(l.list), "alternatives"); err != nil {
		return err
	}
	for i, name := range named(l.files, filepath.Base) {
		if name != "" {
			l.list[i].Name = name + l.options[i]
		}
	}
	for i := range l.list {
		x := &l.list[i]
		if len(names) > 0 {
			x.Name = names[i]
		}
		first := x.Name
		for n := 2; slices.ContainsFunc(l.list[:i], func(o ab.Alternative) bool { return o.Name == x.Name }); n++ {
			x.Name = fmt.Sprintf("%s (%d)", first, n)
		}
	}
	return nil
}

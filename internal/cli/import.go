package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/units"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/record"
)

// importFlags say what the user knows about a record.
type importFlags struct {
	model, from, arch string
	clocks            []string
	list, force       bool
	compat            string
	commands, check   bool
}

func newImport(a *app) *cobra.Command {
	var (
		f importFlags
		m modelFlags
		o outputFlags
	)
	c := &cobra.Command{
		Use:   "import PATH",
		Short: "Show a profile or trace of another tool: ONNX Runtime, TensorRT, …",
		Long: `Import reads profiles and traces of other tools: a file, a folder or an archive. The format is
detected by content; --list names all formats. With --model, recorded operators are matched
to the model, which adds shapes, work, weights and the graph.`,
		Example: `  opmeter import onnxruntime_profile.json --model model.onnx -o page.html
  opmeter import bmprofile_data-1/ --compat profile_out
  opmeter import board.log --clock 64MHz
  opmeter import --list`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.list && len(args) > 0:
				return useError("--list reads no file: leave out %s", args[0])
			case !f.list && len(args) != 1:
				return useError("name one file, folder or archive to import, or use --list")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if f.list {
				return a.recordFormats(o.format)
			}
			if err := o.check(); err != nil {
				return err
			}
			opts, err := f.options()
			if err != nil {
				return err
			}
			if opts.Inputs, err = m.inputs(); err != nil {
				return err
			}
			if alone, err := f.alone(c); err != nil {
				return err
			} else if alone {
				return a.recordTool(c.Context(), args[0], opts, &f)
			}
			if err := ready(o.files, args[0]); err != nil {
				return err
			}
			if f.model == "" {
				return a.imports(c.Context(), args[0], opts, &o)
			}
			return a.withModel(f.model, func(m *opmeter.Model) error {
				opts.Model = m
				return a.imports(c.Context(), args[0], opts, &o)
			})
		},
	}
	c.Flags().StringVar(&f.model, "model", "", "`FILE`: the model that was recorded")
	c.Flags().StringVar(&f.from, "from", "", "`NAME`: read as this format of --list, skip detection")
	c.Flags().StringVar(&f.arch, "arch", "", "`NAME`: chip, where the record does not name it")
	c.Flags().BoolVar(&f.force, "force", false, "use --arch although the record names another chip")
	c.Flags().StringArrayVar(&f.clocks, "clock", nil, "`[UNIT=]HERTZ`: clock of ticks, or of units: tiu=900MHz,dma=750MHz")
	c.Flags().BoolVar(&f.list, "list", false, "list the formats and what each contains")
	c.Flags().StringVar(&f.compat, "compat", "", "`DIR`: write the files of the original tool, with its figures")
	c.Flags().BoolVar(&f.commands, "commands", false, "list the hardware commands of the record")
	c.Flags().BoolVar(&f.check, "check", false, "check for commands that overlap in memory (exit status 1)")
	m.add(c)
	o.add(c)
	return c
}

// alone reports whether a flag makes something else than a profile, which goes with none
// that is about profiles.
func (f *importFlags) alone(c *cobra.Command) (bool, error) {
	var one string
	for _, name := range []string{"compat", "commands", "check", "model", "output", "format", "by", "sort", "top", "all", "memory"} {
		switch {
		case !c.Flags().Changed(name):
		case one != "":
			return false, useError("--%s goes without --%s", one, name)
		case name == "compat" || name == "commands" || name == "check":
			one = name
		}
	}
	return one != "", nil
}

// recordTool does what is about a record itself and makes no profile.
func (a *app) recordTool(ctx context.Context, path string, opts record.Options, f *importFlags) error {
	switch {
	case f.commands:
		return told(record.WriteCommands(ctx, path, opts, a.out))
	case f.check:
		n, err := record.CheckCommands(ctx, path, opts, a.out)
		if err == nil && n > 0 {
			return withStatus(statusGate, fmt.Errorf("%s", plural(n, "overlap")+" of accesses"))
		}
		return told(err)
	}
	files, err := record.VendorFiles(ctx, path, opts)
	if len(files) == 0 && err != nil {
		return told(err)
	}
	if err := os.MkdirAll(f.compat, 0o777); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	folders := map[string]bool{}
	for _, x := range files {
		folders[x.Folder] = true
	}
	var wrote []string
	for _, x := range files {
		dir := f.compat
		if len(folders) > 1 {
			dir = filepath.Join(dir, filepath.Base(x.Folder))
		}
		name := filepath.Join(dir, x.Name)
		if e := os.MkdirAll(dir, 0o777); e != nil {
			return withStatus(statusUse, plainPath(e))
		}
		if e := writable(name, path); e != nil {
			return e
		}
		if e := atomicfile.Write(name, x.Data); e != nil {
			return withStatus(statusUse, plainPath(e))
		}
		wrote = append(wrote, name)
	}
	a.sayWrote(wrote, true)
	return told(err)
}

// options turns the flags into options of the library.
func (f *importFlags) options() (o record.Options, err error) {
	if f.force && f.arch == "" {
		return o, useError("--force goes with --arch: name the chip")
	}
	o.Format, o.Arch, o.ForceArch = f.from, f.arch, f.force
	for _, s := range f.clocks {
		for _, part := range strings.Split(s, ",") {
			unit, value, ok := cutLast(part)
			if !ok {
				unit, value = "", part
			}
			hz, err := quantity("clock", value, "a frequency such as 64MHz, or tiu=900MHz,dma=750MHz", units.Hertz)
			if err != nil {
				return o, err
			}
			if o.ClocksHz == nil {
				o.ClocksHz = map[string]float64{}
			}
			o.ClocksHz[strings.ToLower(strings.TrimSpace(unit))] = hz
		}
	}
	return o, nil
}

// imports shows and writes what is found at a path.
func (a *app) imports(ctx context.Context, path string, opts record.Options, o *outputFlags) error {
	// Records are large and short-lived: collecting early keeps them so.
	collectAt(50)
	show, stop := a.progress()
	defer stop()
	if show != nil {
		total, read := pathBytes(path), int64(0)
		opts.Progress = func(n int64) {
			read += n
			show("reading", min(0.99, float64(read)/float64(max(total, 1))))
		}
	}
	got, err := record.Import(ctx, path, opts)
	stop()
	if errors.Is(err, context.Canceled) && (got == nil || len(got.Profiles) == 0) {
		return errStopped
	}
	var problem error
	if err != nil {
		problem = told(err)
	}
	if got == nil || len(got.Profiles) == 0 {
		if problem == nil {
			problem = withStatus(statusInput, fmt.Errorf("%s: holds no run", path))
		}
		return problem
	}
	a.skipped(got.Skipped)
	if len(got.Profiles) == 1 {
		return errors.Join(a.deliver(got.Profiles[0], o), problem)
	}
	if err := o.checkSeveral(); err != nil {
		return err
	}
	s := &several{a: a, o: o, models: true, used: map[string]bool{}}
	for _, p := range got.Profiles {
		if err := s.add(report.ListRow{TargetRow: report.TargetRow{Profile: p}, Path: p.Model.Path}, s.names(p.Model.Name, p.Target.ID)); err != nil {
			return err
		}
	}
	return errors.Join(s.end(), problem)
}

// pathBytes is the size of a file, 0 for anything else.
func pathBytes(path string) int64 {
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		return st.Size()
	}
	return 0
}

// skipped tells of files that were not records.
func (a *app) skipped(names []string) {
	switch n := len(names); {
	case n == 0:
	case n <= 3:
		fmt.Fprintf(a.err, "opmeter: no record, left out: %s\n", text.Clean(strings.Join(names, ", ")))
	default:
		fmt.Fprintf(a.err, "opmeter: %s are not records and were left out, %s first\n", plural(n, "file"), text.Clean(names[0]))
	}
}

// recordFormats lists what import reads.
func (a *app) recordFormats(format string) error {
	list := record.Formats()
	if format != "" && format != "table" && format != "json" {
		return useError("--list --format %q: use table or json", format)
	}
	if format == "json" {
		return jsonx.MarshalWrite(a.out, list)
	}
	fmt.Fprintln(a.out, "The content of a file decides its format; --from NAME skips the detection.")
	for _, f := range list {
		fmt.Fprintf(a.out, "\n%s: %s\n", f.Name, f.Title)
		for _, l := range []struct{ name, text string }{{"files", f.Files}, {"holds", strings.Join(says(f.Gives), ", ")}} {
			for k, line := range report.Wrap(l.text, 88) {
				name := l.name
				if k > 0 {
					name = ""
				}
				fmt.Fprintf(a.out, "  %-6s %s\n", name, line)
			}
		}
	}
	return nil
}

// says puts what a format gives in words.
func says(gives []string) []string {
	out := slices.Clone(gives)
	for i, g := range out {
		if q, ok := profile.Lookup(g); ok {
			out[i] = q.Name
			if len(q.Name) > 1 && q.Name[1] >= 'a' { // not of abbreviations
				out[i] = strings.ToLower(q.Name[:1]) + q.Name[1:]
			}
		} else {
			out[i] = strings.ReplaceAll(strings.TrimSuffix(g, "_s"), "_", " ")
		}
	}
	return out
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	internaldevice "github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/agent"
	"github.com/opmeter/opmeter/internal/device/firmware/board"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// boardFlags say for which board a program is made, and of what.
type boardFlags struct {
	m     modelFlags
	board string
	gcc   string
}

func (f *boardFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.board, "board", "", "`NAME`: a board, or its description FILE.yaml")
	c.Flags().StringVar(&f.gcc, "gcc", "", "`FILE`: compiler (default: arm-none-eabi-gcc)")
	c.Flags().StringArrayVar(&f.m.shapes, "shape", nil, "`NAME=DIMS`: shape of an input")
	wholeVar(c, &f.m.batch, "batch", 0, 1, most, "first dimension of every input", "")
	c.Flags().StringArrayVar(&f.m.files, "input", nil, "`NAME=FILE`: data of an input, a .npy file")
	c.Flags().Var(&natural{&f.m.seed}, "seed", "seed of random inputs")
	c.Flags().BoolVar(&f.m.zeros, "zeros", false, "feed zeros instead of random inputs")
	c.Flags().StringVar(&f.m.maxMemory, "max-memory", "", "`SIZE`: memory limit while planning, such as 4GiB")
}

// find returns the board.
func (f *boardFlags) find() (*board.Board, error) {
	if f.board == "" {
		return nil, useError("name the board with --board: opmeter device firmware --list lists them")
	}
	b, err := board.Find(f.board)
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, board.ErrUnknown):
		return nil, useError("--board %w", err)
	}
	return nil, withStatus(statusInput, plainPath(err))
}

// program makes the files of a model's program for a board.
func (f *boardFlags) program(m *opmeter.Model, b *board.Board) (*device.Program, map[string][]byte, error) {
	var o device.ProgramOptions
	var err error
	if o.MaxMemory, err = f.m.memory(); err != nil {
		return nil, nil, err
	}
	if o.Inputs, err = f.m.inputs(); err != nil {
		return nil, nil, err
	}
	p, err := device.NewProgram(m, o)
	if e, ok := errors.AsType[*device.UnsupportedError](err); ok {
		return nil, nil, withStatus(statusInput, e)
	}
	if err != nil {
		return nil, nil, told(err)
	}
	if err := b.Fits(p.WeightBytes+p.InputBytes, p.ArenaBytes); err != nil {
		return nil, nil, withStatus(statusInput, err)
	}
	files, err := board.Project(p.Files, b)
	return p, files, err
}

// build writes a program's files into a folder and builds it.
func (f *boardFlags) build(ctx context.Context, b *board.Board, dir string, files map[string][]byte) (*board.Built, error) {
	if err := writeAll(dir, files); err != nil {
		return nil, err
	}
	built, err := board.Build(ctx, b, dir, files, board.Options{GCC: f.gcc})
	if err != nil && ctx.Err() == nil {
		err = withStatus(statusSource, err)
	}
	return built, told(err)
}

// writeAll writes files into a folder, which is made if absent. A folder with other
// files is left alone.
func writeAll(dir string, files map[string][]byte) error {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return withStatus(statusUse, plainPath(err))
	}
	own := func(name string) bool {
		return slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	if len(list) > 0 && !(own("board.h") && own("board.ld") && own("model.h")) {
		return useError("%s: the folder has files that opmeter did not write: name another folder with -o", text.Clean(dir))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	for name, data := range files {
		if err := atomicfile.Write(filepath.Join(dir, name), data); err != nil {
			return withStatus(statusUse, plainPath(err))
		}
	}
	return nil
}

func newDeviceFirmware(a *app) *cobra.Command {
	var (
		f           boardFlags
		out         string
		build, list bool
	)
	c := &cobra.Command{
		Use:   "firmware MODEL --board BOARD",
		Short: "Write a C program that runs a model on a board and profiles itself",
		Long: `Write a quantised .tflite model as a C program for a Cortex-M board. It has portable integer kernels,
the opmeter agent, start-up code, a linker script and a Makefile. The flag --build compiles it with
arm-none-eabi-gcc. The program sends the time of each operator over the UART of the board.
docs/reference/board-files.md explains how to describe a board.`,
		Example: `  opmeter device firmware --list
  opmeter device firmware model.tflite --board mps2-an505 --build
  opmeter device firmware model.tflite --board my-board.yaml -o firmware`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if list {
				return a.listBoards()
			}
			if err := needModel(c, args); err != nil {
				return err
			}
			b, err := f.find()
			if err != nil {
				return err
			}
			return a.withModel(args[0], func(m *opmeter.Model) error {
				dir := out
				if dir == "" {
					dir = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0])) + "-" + b.Name
				}
				return a.writeFirmware(c.Context(), m, b, &f, dir, build)
			})
		},
	}
	f.add(c)
	c.Flags().StringVarP(&out, "output", "o", "", "`DIR`: folder for the program (default: by model and board)")
	c.Flags().BoolVar(&build, "build", false, "build it")
	c.Flags().BoolVar(&list, "list", false, "list the boards")
	return c
}

// listBoards shows the boards that the program carries.
func (a *app) listBoards() error {
	all, err := board.Shipped()
	if err != nil {
		return err
	}
	for _, b := range all {
		how := "to be flashed"
		switch {
		case b.Emulator != nil:
			how = "emulated by QEMU"
		case b.Untested:
			how = "an example, not tried on a board yet"
		}
		names := b.Name
		if len(b.Aliases) > 0 {
			names += " (" + strings.Join(b.Aliases, ", ") + ")"
		}
		fmt.Fprintf(a.out, "%-26s %-36s %s\n", names, b.Title, how)
	}
	return nil
}

// writeFirmware writes a program and says what to do with it.
func (a *app) writeFirmware(ctx context.Context, m *opmeter.Model, b *board.Board, f *boardFlags, dir string, build bool) error {
	p, files, err := f.program(m, b)
	if err != nil {
		return err
	}
	if !build {
		if err := writeAll(dir, files); err != nil {
			return err
		}
	}
	var built *board.Built
	if build {
		if built, err = f.build(ctx, b, dir, files); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "wrote %s: %s for %s; %s run, %s of weights, %s of memory\n", dir, plural(len(files), "file"), b.Title,
		plural(len(p.Layers), "operator"), report.Bytes(p.WeightBytes), report.Bytes(p.ArenaBytes))
	if b.Untested {
		fmt.Fprintf(a.out, "the description of %s has not been tried on a board yet\n", b.Name)
	}
	elf := filepath.Join(dir, "model.elf")
	if built == nil {
		fmt.Fprintf(a.out, "build it: make -C %s\n", dir)
	} else {
		for _, u := range built.Uses {
			fmt.Fprintf(a.out, "  %-8s %s of %s\n", u.Memory, report.Bytes(u.Used), report.Bytes(u.Size))
		}
		i, err := board.ReadImage(built.ELF)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "  %-8s %s\n", "image", imageText(i))
	}
	if b.Emulator != nil {
		fmt.Fprintf(a.out, "run it: opmeter device run %s --board %s --emulate\n", elf, b.Name)
	} else {
		fmt.Fprintf(a.out, "flash %s, then: opmeter profile %s --on device:PORT --speed %d\n", elf, m.Name(), b.UART.Speed)
	}
	return nil
}

func newDeviceRun(a *app) *cobra.Command {
	var (
		f       boardFlags
		d       deviceFlags
		r       runFlags
		o       outputFlags
		emulate bool
		path    string
	)
	c := &cobra.Command{
		Use:   "run MODEL|ELF --board BOARD --emulate",
		Short: "Run a model on an emulated board and profile it over its UART",
		Long: `Build the firmware of a model, run it in QEMU and profile it over its UART, as on a real board. The
outputs are compared with those of the host engine, bit-exact. Figures are instructions, not
cycles. An ELF file of opmeter device firmware runs as it is.`,
		Example: `  opmeter device run model.tflite --board mps2-an505 --emulate
  opmeter device run fw/model.elf --board mps2-an385 --emulate --model m.tflite`,
		Args: one("a program or model"),
		RunE: func(c *cobra.Command, args []string) error {
			if !emulate {
				return useError("use --emulate; flash a real board with its own tool and measure it with opmeter profile MODEL --on device:PORT")
			}
			if err := o.check(); err != nil {
				return err
			}
			b, err := f.find()
			if err != nil {
				return err
			}
			e := &emulation{a: a, b: b, f: &f, d: &d, r: &r, o: &o}
			if strings.EqualFold(filepath.Ext(args[0]), ".elf") {
				return e.elf(c.Context(), args[0], path)
			}
			if path != "" {
				return useError("--model is for an ELF file")
			}
			return e.model(c.Context(), args[0])
		},
	}
	f.add(c)
	c.Flags().BoolVar(&emulate, "emulate", false, "run it in QEMU")
	c.Flags().StringVar(&path, "model", "", "`FILE`: the model of an ELF file")
	wholeVar(c, &r.runs, "runs", 10, 1, most, "inferences", "")
	d.addDiscard(c)
	d.addRecord(c)
	d.addTimeout(c, internaldevice.DefaultTimeout)
	o.add(c)
	return c
}

// emulation runs a program on an emulated board.
type emulation struct {
	a *app
	b *board.Board
	f *boardFlags
	d *deviceFlags
	r *runFlags
	o *outputFlags
}

// model makes the program of a model, runs it and compares outputs.
func (e *emulation) model(ctx context.Context, path string) error {
	if err := ready(e.o.files, path); err != nil {
		return err
	}
	return e.a.withModel(path, func(m *opmeter.Model) error {
		return e.built(ctx, m, func(elf string) error { return e.run(ctx, m, elf) })
	})
}

// built makes the program of a model, which exists while do runs.
func (e *emulation) built(ctx context.Context, m *opmeter.Model, do func(elf string) error) error {
	if _, err := e.b.Emulate(""); err != nil {
		return withStatus(statusSource, err)
	}
	_, files, err := e.f.program(m, e.b)
	if err != nil {
		return err
	}
	dir, remove, err := subprocess.Folder("firmware")
	if err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	defer remove()
	built, err := e.f.build(ctx, e.b, filepath.Join(dir, "program"), files)
	if err != nil {
		return err
	}
	return do(built.ELF)
}

// elf runs a program that is there; path is its model, "" unknown.
func (e *emulation) elf(ctx context.Context, elf, path string) error {
	if err := ready(e.o.files, elf); err != nil {
		return err
	}
	if err := e.b.Checked(elf); err != nil {
		return withStatus(statusInput, plainPath(err))
	}
	if path == "" {
		return e.run(ctx, nil, elf)
	}
	return e.a.withModel(path, func(m *opmeter.Model) error { return e.run(ctx, m, elf) })
}

// run profiles a program and shows what came of it. m is nil where the model is unknown.
func (e *emulation) run(ctx context.Context, m *opmeter.Model, elf string) error {
	p, differ, err := e.profiled(ctx, m, elf)
	if p == nil {
		return err
	}
	return errors.Join(err, e.a.deliver(p, e.o), differ)
}

// profiled profiles a program. differ says that its outputs are not those of the engine here.
func (e *emulation) profiled(ctx context.Context, m *opmeter.Model, elf string) (p *profile.Profile, differ, err error) {
	args, err := e.b.Emulate(elf)
	if err != nil {
		return nil, nil, withStatus(statusSource, err)
	}
	o, err := e.d.options(e.a, "exec:"+board.Command(args), e.r, &targetFlags{}, &e.f.m)
	if err != nil {
		return nil, nil, err
	}
	o.Protocol = agent.Name
	var want []opmeter.Tensor
	if m != nil {
		s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: o.Inputs})
		if err != nil {
			return nil, nil, told(err)
		}
		defer s.Close()
		if err := s.Run(ctx); err != nil {
			return nil, nil, told(err)
		}
		want = s.Outputs()
	}
	got := map[int][]byte{}
	o.Output = func(_ string, index int, data []byte) { got[index] = data }
	p, err = e.a.measured(ctx, m, o, e.d.record, e.o.files)
	if p == nil {
		return nil, nil, err
	}
	if err := measuredImage(p, elf); err != nil {
		return nil, nil, err
	}
	return p, compared(p, want, got), err
}

// imageText says how large a program is.
func imageText(i *board.Image) string {
	return fmt.Sprintf("text %s, data %s, bss %s, stack %s", report.Bytes(i.Text), report.Bytes(i.Data), report.Bytes(i.BSS), report.Bytes(i.Stack))
}

// measuredImage says in a profile how large the program is that ran.
func measuredImage(p *profile.Profile, path string) error {
	i, err := board.ReadImage(path)
	if err != nil {
		return withStatus(statusInput, plainPath(err))
	}
	p.Findings = append(p.Findings, profile.Finding{ID: "device.image", Severity: profile.Info, Text: fmt.Sprintf(
		"The program takes %s of flash and %s of RAM: %s. The sizes at the top are those of the model alone.",
		report.Bytes(i.Flash()), report.Bytes(i.RAM()), imageText(i))})
	return nil
}

// compared says in a profile how the outputs of a device compare with those of the
// engine here, and returns an error where they differ.
func compared(p *profile.Profile, want []opmeter.Tensor, got map[int][]byte) error {
	if len(want) == 0 {
		return nil
	}
	var missing, differ []string
	for i := range want {
		w := &want[i]
		g, ok := got[w.Place]
		switch {
		case !ok:
			missing = append(missing, text.Clean(w.Name))
		case !bytes.Equal(g, w.Data):
			differ = append(differ, difference(text.Clean(w.Name), g, w.Data))
		}
	}
	add := func(s profile.Severity, format string, args ...any) string {
		f := profile.Finding{ID: "device.outputs", Severity: s, Text: fmt.Sprintf(format, args...)}
		p.Findings = append(p.Findings, f)
		return f.Text
	}
	switch {
	case len(differ) > 0:
		return withStatus(statusGate, errors.New(add(profile.Problem, "The device's outputs differ from the host engine's: %s.", strings.Join(differ, "; "))))
	case len(missing) > 0:
		return withStatus(statusGate, errors.New(add(profile.Warning, "The device sent no output %s: nothing can be said of its correctness.", strings.Join(missing, ", "))))
	}
	add(profile.Info, "The outputs equal the host engine's bit for bit.")
	return nil
}

// difference says how two tensors differ.
func difference(name string, got, want []byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%s has %d bytes instead of %d", name, len(got), len(want))
	}
	n, first := 0, -1
	for i := range got {
		if got[i] != want[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Sprintf("%s in %d of %d bytes, the first at %d", name, n, len(want), first)
}

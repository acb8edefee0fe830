package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/marks/native"
	"github.com/opmeter/opmeter/record"
)

// traceFlags say what becomes of a program's marks.
type traceFlags struct {
	model, keep, native string
}

func newTrace(a *app) *cobra.Command {
	var (
		f traceFlags
		o outputFlags
	)
	c := &cobra.Command{
		Use:   "trace [flags] -- PROGRAM [ARGUMENT ...]",
		Short: "Profile the stages of your own program",
		Long: `Run your own program, which marks its stages, such as decode, preprocess and infer. Show the time of
each stage per frame and thread, and the time outside of stages. The program keeps its
input and output; the table goes to standard error.

Marks are calls of the Go package github.com/opmeter/opmeter/marks, or of two C files that --native
writes. A mark costs less than 100 ns, and nothing without trace.

  frame := lane.BeginFrame(camera)      frame = opmeter_frame_begin(camera);
  lane.Begin(decode)                    opmeter_stage_begin(decode);
  lane.End(decode)                      opmeter_stage_end(decode);
  lane.EndFrame(frame)                  opmeter_frame_end(frame);

The exit status is that of the program where it is not 0, or 128 plus the number of the signal
that ended it.`,
		Example: `  opmeter trace -- ./application --camera 0
  opmeter trace -o page.html --model model.tflite -- ./application
  opmeter trace --native src/`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.native != "" && len(args) > 0:
				return useError("--native only writes the C files: leave out %s", args[0])
			case f.native == "" && len(args) == 0:
				return useError("name a program behind --, such as opmeter trace -- ./application")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if f.native != "" {
				return a.writeNative(f.native)
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := ready(o.files, f.keep); err != nil {
				return err
			}
			var opts record.Options
			opts.Format = "marks"
			if f.model == "" {
				return a.trace(c.Context(), args, opts, &f, &o)
			}
			return a.withModel(f.model, func(m *opmeter.Model) error {
				opts.Model = m
				return a.trace(c.Context(), args, opts, &f, &o)
			})
		},
	}
	c.Flags().SetInterspersed(false) // what follows the program is the program's
	c.Flags().StringVar(&f.model, "model", "", "`FILE`: the model that one of the stages runs")
	c.Flags().StringVar(&f.keep, "keep", "", "`FILE`: keep the marks, for opmeter import")
	c.Flags().StringVar(&f.native, "native", "", "`DIR`: write the C header and source of the marks there")
	o.addFiles(c)
	return c
}

// writeNative writes the C files.
func (a *app) writeNative(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	for _, name := range []string{"opmeter_marks.h", "opmeter_marks.c"} {
		data, err := fs.ReadFile(native.Files, "c/"+name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if err := atomicfile.Write(path, data); err != nil {
			return withStatus(statusUse, plainPath(err))
		}
		fmt.Fprintln(a.out, path)
	}
	return nil
}

// trace runs a program and shows what it marked.
func (a *app) trace(ctx context.Context, args []string, opts record.Options, f *traceFlags, o *outputFlags) error {
	dir, remove, err := subprocess.Folder("trace")
	if err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	defer remove()
	file := filepath.Join(dir, "marks")
	if f.keep != "" {
		k, err := newRecording("--keep", f.keep)
		if err != nil {
			return err
		}
		k.Close()
		if file, err = filepath.Abs(f.keep); err != nil {
			return withStatus(statusUse, err)
		}
	}
	a.measures(longPatience)
	ran := a.runMarked(ctx, args, file)
	if e, ok := errors.AsType[*exec.Error](ran); ok {
		return withStatus(statusUse, fmt.Errorf("%s: cannot run: %w", text.Clean(args[0]), e.Err))
	}
	if st, err := os.Stat(file); err != nil || st.Size() == 0 {
		if f.keep != "" {
			os.Remove(file)
		}
		return errors.Join(ran, withStatus(statusInput, fmt.Errorf("%s made no marks: call marks.Open or opmeter_marks_open in it and mark its stages (opmeter help trace)", text.Clean(args[0]))))
	}
	// Standard output is the program's.
	shown := &app{in: a.in, out: &keeper{Writer: a.err}, err: a.err}
	// The program has ended, and so what stopped it: the marks are read in any case.
	return errors.Join(ran, shown.imports(context.WithoutCancel(ctx), file, opts, o))
}

// grace is how long a program has to end by itself when the user stops it.
const grace = 100 * time.Millisecond

// runMarked runs a program with this program's input and output. An error says how it ended where
// that was not well, with the status to end with.
func (a *app) runMarked(ctx context.Context, args []string, file string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "OPMETER_MARKS="+file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
	if k, ok := a.out.(*keeper); ok {
		cmd.Stdout = k.Writer // the file itself, and not a copy through this program
	}
	if _, ok := a.in.(*os.File); !ok {
		cmd.Stdin = nil
		if a.in != nil {
			cmd.Stdin = io.MultiReader(a.in)
		}
		cmd.WaitDelay = grace
	}
	if err := cmd.Start(); err != nil {
		if e, ok := errors.AsType[*exec.Error](err); ok {
			return e
		}
		return &exec.Error{Name: args[0], Err: err}
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		// Ctrl-C at the terminal has reached it, too. A signal to this program alone has not.
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case err = <-done:
		case <-late.C:
			if runtime.GOOS == "windows" {
				_ = cmd.Process.Kill()
			} else {
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			late.Reset(grace)
			select {
			case err = <-done:
			case <-late.C:
				return nil // it takes its time; its marks until now are there
			}
		}
	}
	if ctx.Err() != nil {
		return nil // the user stopped it, however it takes that
	}
	e, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok && e.ExitCode() >= 0:
		return withStatus(e.ExitCode(), fmt.Errorf("%s: exit status %d", text.Clean(args[0]), e.ExitCode()))
	case ok:
		n, name := signalNumber(e)
		return withStatus(128+n, fmt.Errorf("%s: ended by %s", text.Clean(args[0]), name))
	case errors.Is(err, exec.ErrWaitDelay):
		return nil
	}
	return err
}

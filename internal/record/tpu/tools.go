package tpu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compat"
)

// original returns the files of the vendor's converter.
func original(ctx context.Context, in *record.Input) ([]record.Output, error) {
	c, err := compat.Read(ctx, in)
	if err != nil {
		return nil, at(in, err)
	}
	files, err := compat.Write(c)
	if err != nil {
		return nil, at(in, err)
	}
	out := make([]record.Output, len(files))
	for i, f := range files {
		out[i] = record.Output(f)
	}
	return out, nil
}

// at adds the folder to an error without a place of its own.
func at(in *record.Input, err error) error {
	if _, ok := errors.AsType[*record.FileError](err); ok || len(in.Files) == 0 {
		return err
	}
	return &record.FileError{Path: in.Files[0].Dir, Err: err}
}

// commands lists the commands of every stream.
func commands(ctx context.Context, in *record.Input, w io.Writer) error {
	return streams(ctx, in, w, func(out io.Writer, name string, _ *command.Chip, engines []*capture.Engine) error {
		for _, e := range engines {
			fmt.Fprintf(out, "# %s, %s: %d commands\n", name, e.Kind, len(e.Program.Commands))
			if err := command.List(out, e.Program.Commands); err != nil {
				return err
			}
			if e.Program.Stop != nil {
				fmt.Fprintf(out, "# stopped: %v\n", e.Program.Stop)
			}
		}
		return nil
	})
}

// check looks for memory that one engine writes and another reads without a defined order.
func check(ctx context.Context, in *record.Input, w io.Writer) (found int, err error) {
	err = streams(ctx, in, w, func(out io.Writer, name string, chip *command.Chip, engines []*capture.Engine) error {
		lists := map[command.Engine][]command.Command{}
		for _, e := range engines {
			lists[e.Kind] = e.Program.Commands
		}
		r := command.Check(chip, lists[command.TIU], lists[command.GDMA])
		for i := range r.Hazards {
			if !r.Hazards[i].Equal { // commands may work in place on the same bytes
				found++
				fmt.Fprintf(out, "%s: %s\n", name, r.Hazards[i].String())
			}
		}
		more := ""
		if r.Cut {
			more = "; there was more than could be compared"
		}
		fmt.Fprintf(out, "# %s: %d commands, %d pairs compared%s\n", name, r.Commands, r.Pairs, more)
		return nil
	})
	return found, err
}

// streams calls do for each core of each subnet's first run. Errors of the writer come from its
// Flush at the end.
func streams(ctx context.Context, in *record.Input, w io.Writer, do func(out io.Writer, name string, chip *command.Chip, engines []*capture.Engine) error) error {
	r, faults, err := capture.Read(ctx, in)
	if err != nil {
		return at(in, err)
	}
	if r == nil || r.Chip == nil {
		return errors.Join(append(faults, at(in, errors.New("holds nothing that a tensor processor recorded")))...)
	}
	out := bufio.NewWriter(w)
	n := 0
	seen := map[uint32]bool{}
	for _, s := range r.Steps {
		if s.HasInfo && seen[s.Info.Subnet] {
			continue
		}
		seen[s.Info.Subnet] = true
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				n += len(e.Program.Commands)
			}
			if err := do(out, fmt.Sprintf("subnet %d, core %d", s.Info.Subnet, c.Number), r.Chip, c.Engines); err != nil {
				return errors.Join(err, out.Flush())
			}
		}
	}
	err = errors.Join(faults...)
	if err == nil && n == 0 {
		err = at(in, errors.New("holds no command streams (cmd_ADDRESS_CORE_ENGINE.dat)"))
	}
	return errors.Join(err, out.Flush())
}

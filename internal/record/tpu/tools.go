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

// original makes the files of the vendor's converter.
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

// at gives an error the folder that it is about, where it has no place of its own.
func at(in *record.Input, err error) error {
	if _, ok := errors.AsType[*record.FileError](err); ok || len(in.Files) == 0 {
		return err
	}
	return &record.FileError{Path: in.Files[0].Dir, Err: err}
}

// commands lists the commands of every stream.
func commands(ctx context.Context, in *record.Input, w io.Writer) error {
	out := bufio.NewWriter(w)
	n := 0
	err := streams(ctx, in, func(name string, _ *command.Chip, engines []*capture.Engine) error {
		for _, e := range engines {
			n += len(e.Program.Commands)
			// Flush tells the error
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
	if err == nil && n == 0 {
		err = at(in, errors.New("holds no command streams (cmd_ADDRESS_CORE_ENGINE.dat)"))
	}
	return errors.Join(err, out.Flush())
}

// check looks for places of memory that engines write and read with nothing in between that
// orders it.
func check(ctx context.Context, in *record.Input, w io.Writer) (found int, err error) {
	out := bufio.NewWriter(w)
	n := 0
	err = streams(ctx, in, func(name string, chip *command.Chip, engines []*capture.Engine) error {
		var tiu, dma []command.Command
		for _, e := range engines {
			switch e.Kind {
			case command.TIU:
				tiu = e.Program.Commands
			case command.GDMA:
				dma = e.Program.Commands
			}
		}
		n += len(tiu) + len(dma)
		r := command.Check(chip, tiu, dma)
		for i := range r.Hazards {
			if r.Hazards[i].Equal {
				continue // the same bytes: worked on in place
			}
			found++
			fmt.Fprintf(out, "%s: %s\n", name, r.Hazards[i].String()) // Flush tells the error
		}
		more := ""
		if r.Cut {
			more = "; there was more than could be compared"
		}
		fmt.Fprintf(out, "# %s: %d commands, %d pairs compared%s\n", name, r.Commands, r.Pairs, more)
		return nil
	})
	if err == nil && n == 0 {
		err = at(in, errors.New("holds no command streams (cmd_ADDRESS_CORE_ENGINE.dat)"))
	}
	return found, errors.Join(err, out.Flush())
}

// streams calls do for each core of each subnet's first run.
func streams(ctx context.Context, in *record.Input, do func(name string, chip *command.Chip, engines []*capture.Engine) error) error {
	r, faults, err := capture.Read(ctx, in)
	if err != nil {
		return at(in, err)
	}
	if r == nil || r.Chip == nil {
		return errors.Join(append(faults, at(in, errors.New("holds nothing that a tensor processor recorded")))...)
	}
	seen := map[uint32]bool{}
	for _, s := range r.Steps {
		if s.HasInfo && seen[s.Info.Subnet] {
			continue
		}
		seen[s.Info.Subnet] = true
		for _, c := range s.Cores {
			if err := do(fmt.Sprintf("subnet %d, core %d", s.Info.Subnet, c.Number), r.Chip, c.Engines); err != nil {
				return err
			}
		}
	}
	return errors.Join(faults...)
}

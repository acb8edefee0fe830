package compat

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// maxBytes bounds files that are read whole.
const maxBytes = 1 << 30

// ErrNoRecords means that a directory contains no records that the converter can convert.
var ErrNoRecords = errors.New("no records of a tensor processor: want iterN.profile or cdmlibC_N.profile")

// Read reads a profile directory as the converter does: the first subnet that ran on the chip.
// The chip is the requested one, else the one that the directory states. The options tiu and
// dma replace the converter's clocks.
func Read(ctx context.Context, files *record.Input) (*Input, error) {
	rec, faults, err := capture.ReadRaw(ctx, &record.Input{Files: files.Files, Options: record.Options{Arch: files.Arch}})
	if err == nil {
		err = errors.Join(faults...)
	}
	if err != nil {
		return nil, err
	}
	if rec == nil || rec.Chip == nil {
		return nil, ErrNoRecords
	}
	chip := rec.Chip
	in := &Input{
		Chip: chip, Net: rec.Log.NetName,
		TIUMHz: megahertz(files.Clocks["tiu"], chip.TIUClock), DMAMHz: megahertz(files.Clocks["dma"], chip.DMAClock),
	}
	if chip == command.BM1684 || chip == command.BM1684X {
		in.Classic = &Classic{Estimate: rec.Estimate}
	}
	if p := rec.Program; p != nil {
		in.Net, in.Mode, in.FLOPs = cmp.Or(p.Name, in.Net), strings.ToLower(p.Mode), float64(p.FLOPs)
	}
	if mhz := int(rec.Log.FreqMHz); chip == command.BM1684X && mhz >= 1 && len(files.Clocks) == 0 {
		in.TIUMHz, in.DMAMHz = mhz, mhz
	}
	for _, f := range files.Files {
		if err := in.text(f); err != nil {
			return nil, err
		}
	}
	for _, s := range rec.Steps {
		if (len(in.Cores) == 0 || chip == command.BM1690) && (!s.HasInfo || s.Info.Kind == block.OnTPU) {
			in.step(s)
		}
	}
	if len(in.Cores) == 0 {
		return nil, ErrNoRecords
	}
	return in, nil
}

// step adds the cores with records of a step.
func (in *Input) step(s *capture.Step) {
	in.Subnet = int(s.Subnet())
	for _, c := range s.Cores {
		if len(c.Engines) == 0 && len(c.Firmware.Raw) == 0 {
			continue
		}
		var core Core
		for _, e := range c.Engines {
			p := &e.Program
			in.Embedded = in.Embedded || e.Kind == command.TIU && p.Embedded
			switch e.Kind {
			case command.TIU:
				core.TIU, core.TIUCommands = e.Raw, p.Commands
			case command.GDMA:
				core.GDMA, core.GDMACommands = e.Raw, p.Commands
			case command.SDMA:
				core.SDMA, core.SDMACommands = e.Raw, p.Commands
			}
		}
		if in.Classic != nil {
			in.Classic.Firmware, in.Classic.Dynamic = c.Firmware.Raw, s.Dynamic()
		}
		in.Cores = append(in.Cores, core)
	}
}

func megahertz(requested, nominal float64) int {
	if requested > 0 && requested < 1e13 {
		nominal = requested
	}
	return max(1, int(math.Round(nominal/1e6)))
}

// text reads a file of the compiler.
func (in *Input) text(f *record.File) error {
	kind := capture.KindOf(f)
	switch kind {
	case capture.LogFile, capture.Places, capture.Mlir:
	default:
		return nil
	}
	data, err := f.Read(maxBytes)
	if err != nil {
		return err
	}
	switch {
	case kind == capture.Places:
		if err := in.places(data); err != nil {
			return &record.FileError{Path: f.Path, Err: err}
		}
	case kind == capture.Mlir:
		in.MLIR = strings.Split(string(data), "\n")
	case in.Classic != nil:
		in.Classic.Log = data
	}
	return nil
}

// places reads tensor_location.json.
func (in *Input) places(data []byte) error {
	var list []Place
	if err := jsonx.Unmarshal(data, &list); err != nil {
		return err
	}
	for i := range list {
		p := &list[i]
		p.Ordinal = i + 1
		_, p.Op, _ = strings.Cut(p.Op, ".")
		for e := range p.Before {
			// A range that no stream can have would only cost time.
			p.Before[e], p.After[e] = max(0, p.Before[e]), min(p.After[e], command.MaxCommands)
		}
		p.In, p.Out = parseTensors(p.In), parseTensors(p.Out)
	}
	in.Places = append(in.Places, list...)
	return nil
}

// parseTensors splits memory types such as <1x3x46x128xf32>. It removes tensors without a type.
func parseTensors(list []Tensor) []Tensor {
	var out []Tensor
	for _, t := range list {
		parts := strings.Split(strings.Trim(t.Type, "<>"), "x")
		t.Type = ""
		for i, p := range parts {
			n, err := strconv.Atoi(p)
			if err != nil {
				t.Type = strings.Join(parts[i:], "x")
				break
			}
			if len(t.Shape) < 8 {
				t.Shape = append(t.Shape, n)
			}
		}
		if t.Type != "" {
			out = append(out, t)
		}
	}
	return out
}

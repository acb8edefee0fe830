package compat

import (
	"context"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// maxBytes bounds files and blocks that are read whole.
const maxBytes = 1 << 30

// ErrNoRecords means that a directory contains no records that the converter can convert.
var ErrNoRecords = errors.New("no records of a tensor processor: want iterN.profile or cdmlibC_N.profile")

// Read reads a profile directory as the converter does: the first subnet that ran on the chip.
// The chip is the requested one, else the one that the directory states. The options tiu and
// dma replace the converter's clocks.
func Read(ctx context.Context, files *record.Input) (*Input, error) {
	rec, _, err := capture.Read(ctx, &record.Input{Files: files.Files, Options: record.Options{Arch: files.Arch}})
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
	r := reader{in: in, streams: map[capture.StreamKey][]byte{}}
	if chip == command.BM1684 || chip == command.BM1684X {
		in.Classic = &Classic{}
	}
	if mhz := int(rec.Log.FreqMHz); chip == command.BM1684X && mhz >= 1 && len(files.Clocks) == 0 {
		in.TIUMHz, in.DMAMHz = mhz, mhz
	}
	for _, f := range files.Files {
		if err := r.text(f); err != nil {
			return nil, err
		}
	}
	list := slices.Clone(files.Files)
	slices.SortStableFunc(list, func(a, b *record.File) int { return fileNumber(a) - fileNumber(b) })
	for _, f := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if kind := capture.KindOf(f); kind == capture.StepFile || kind == capture.CoreFile {
			if err := r.records(f); err != nil {
				return nil, &record.FileError{Path: f.Path, Err: err}
			}
		}
	}
	if len(in.Cores) == 0 {
		return nil, ErrNoRecords
	}
	return in, nil
}

func megahertz(requested, nominal float64) int {
	if requested > 0 && requested < 1e13 {
		nominal = requested
	}
	return max(1, int(math.Round(nominal/1e6)))
}

var firstNumber = regexp.MustCompile(`\d+`)

// fileNumber returns the first number in the name of a file: the step, or the core for BM1690.
func fileNumber(f *record.File) int {
	n, err := strconv.Atoi(firstNumber.FindString(f.Name))
	if err != nil {
		return math.MaxInt32
	}
	return n
}

type reader struct {
	in      *Input
	streams map[capture.StreamKey][]byte
	done    bool // a subnet of the chip was read
}

// text reads a file of the compiler or a stream of commands.
func (r *reader) text(f *record.File) error {
	kind := capture.KindOf(f)
	classic := r.in.Classic
	switch kind {
	case capture.LogFile, capture.Stream, capture.Estimates, capture.Places, capture.Mlir:
	default:
		return nil
	}
	data, err := f.Read(maxBytes)
	if err != nil {
		return err
	}
	switch {
	case kind == capture.Places:
		if err := r.places(data); err != nil {
			return &record.FileError{Path: f.Path, Err: err}
		}
	case kind == capture.Mlir:
		r.in.MLIR = strings.Split(string(data), "\n")
	case kind == capture.Stream:
		if k, ok := capture.StreamName(f.Name); ok {
			k.Core = max(0, k.Core)
			r.streams[k] = data
		}
	case classic != nil && kind == capture.LogFile:
		classic.Log = data
	case classic != nil:
		classic.Estimate = data
	}
	return nil
}

// places reads tensor_location.json.
func (r *reader) places(data []byte) error {
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
	r.in.Places = append(r.in.Places, list...)
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

// records reads a file of blocks. The next core begins at a block whose type is not above the
// type before.
func (r *reader) records(f *record.File) error {
	if r.done && r.in.Chip != command.BM1690 {
		return nil
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	var streams []block.Streams
	var cores []Core
	last := block.Type(0)
	onTPU, embedded := true, false
	_, err = block.Scan(in, func(t block.Type, length int64, p io.Reader) error {
		switch t {
		case block.FirmwareLog, block.CompilerLog, block.BMLib, block.BMLibExtra:
			return nil
		}
		if !t.Known() {
			return nil
		}
		data, err := io.ReadAll(io.LimitReader(p, min(length, maxBytes)))
		if err != nil {
			return err
		}
		switch t {
		case block.Summary:
			if s, ok := block.ParseStep(data); ok {
				if onTPU = s.Kind == block.OnTPU; onTPU {
					r.in.Subnet = int(s.Subnet)
					if r.in.Classic != nil {
						r.in.Classic.Dynamic = s.Extra == 1
					}
				}
			}
			return nil
		case block.Commands:
			if s, ok := block.ParseStreams(data, r.in.Chip == command.BM1690); ok {
				streams = append(streams, s)
			}
			return nil
		}
		if t <= last || len(cores) == 0 {
			cores = append(cores, Core{})
		}
		last = t
		c := &cores[len(cores)-1]
		switch t {
		case block.MonitorBD:
			c.TIU = data
		case block.MonitorGDMA:
			c.GDMA = data
		case block.MonitorSDMA:
			c.SDMA = data
		case block.DynData:
			if r.in.Classic != nil {
				r.in.Classic.Firmware = data
			}
		case block.DesBD:
			c.TIUCommands, _ = command.Decode(r.in.Chip, command.TIU, data, 0)
			embedded = true
		case block.DesGDMA:
			c.GDMACommands, _ = command.Decode(r.in.Chip, command.GDMA, data, 0)
		case block.DesSDMA:
			c.SDMACommands, _ = command.Decode(r.in.Chip, command.SDMA, data, 0)
		}
		return nil
	})
	if err != nil || !onTPU || len(cores) == 0 {
		return err
	}
	for k := range min(len(cores), len(streams)) {
		r.commands(&cores[k], k, &streams[k])
	}
	r.in.Embedded = r.in.Embedded || embedded
	r.in.Cores = append(r.in.Cores, cores...)
	r.done = true
	return nil
}

// commands decodes the streams of a core. Neither the converter nor this package knows the
// commands behind an undecodable place.
func (r *reader) commands(c *Core, k int, s *block.Streams) {
	tiu, dma := 0, 0
	if r.in.Classic != nil {
		for _, g := range s.Groups {
			dma, tiu = dma+int(g[0]), tiu+int(g[1])
		}
	}
	decode := func(base, offset uint64, engine, count int, e command.Engine) (list []command.Command) {
		if data := r.streams[capture.StreamKey{Base: base, Core: k, Engine: engine}]; offset <= uint64(len(data)) {
			list, _ = command.Decode(r.in.Chip, e, data[offset:], count)
		}
		return list
	}
	c.TIUCommands = decode(s.TIUBase, s.TIUOffset, 0, tiu, command.TIU)
	c.GDMACommands = decode(s.GDMABase, s.GDMAOffset, 1, dma, command.GDMA)
	if r.in.Chip == command.BM1690 {
		c.SDMACommands = decode(s.SDMABase, s.SDMAOffset, 5, 0, command.SDMA)
	}
}

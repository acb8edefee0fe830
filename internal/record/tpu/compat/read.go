package compat

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
)

// Bounds of the files that are read whole.
const (
	maxText  = 1 << 30
	maxBlock = 1 << 30
)

// ErrNoRecords says that a directory has nothing that the converter would convert.
var ErrNoRecords = errors.New("no records of a tensor processor: want iterN.profile or cdmlibC_N.profile")

// Read reads a profile directory as the converter does: the first subnet that ran on the
// chip. The chip is the one that is asked for, or that the directory says. Clocks are the
// converter's, unless they are asked for under the names tiu and dma.
func Read(ctx context.Context, files *record.Input) (*Input, error) {
	rec, _, err := capture.Read(ctx, &record.Input{Files: files.Files, Options: record.Options{Arch: files.Arch}})
	if err != nil {
		return nil, err
	}
	if rec == nil || rec.Chip == nil {
		return nil, ErrNoRecords
	}
	in := &Input{Chip: rec.Chip}
	in.TIUMHz, in.DMAMHz = megahertz(files.Clocks["tiu"], in.Chip.TIUClock), megahertz(files.Clocks["dma"], in.Chip.DMAClock)
	r := reader{in: in, streams: map[streamKey][]byte{}}
	if old(in.Chip) {
		in.Classic = &Classic{}
	}
	for _, f := range files.Files {
		if err := r.text(f); err != nil {
			return nil, err
		}
	}
	if in.Chip == command.BM1684X && r.stated >= 1 && len(files.Clocks) == 0 {
		in.TIUMHz, in.DMAMHz = int(r.stated), int(r.stated)
	}
	list := slices.Clone(files.Files)
	slices.SortStableFunc(list, func(a, b *record.File) int { return fileNumber(a) - fileNumber(b) })
	for _, f := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch capture.KindOf(f) {
		case capture.StepFile, capture.CoreFile:
			if err := r.records(f); err != nil {
				return nil, err
			}
		}
	}
	if len(in.Cores) == 0 {
		return nil, ErrNoRecords
	}
	return in, nil
}

func megahertz(asked, nominal float64) int {
	if asked > 0 && asked < 1e13 {
		nominal = asked
	}
	return max(1, int(math.Round(nominal/1e6)))
}

// old reports whether the classic converter is the one for a chip.
func old(chip *command.Chip) bool { return chip == command.BM1684 || chip == command.BM1684X }

// fileNumber is the number of a file of records: its step, or the core of BM1690's.
func fileNumber(f *record.File) int {
	digits := strings.TrimLeftFunc(f.Name, func(r rune) bool { return r < '0' || r > '9' })
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(digits)
	}
	n, err := strconv.Atoi(digits[:end])
	if err != nil {
		return math.MaxInt32
	}
	return n
}

type streamKey struct {
	base   uint64
	core   int
	engine int
}

type reader struct {
	in      *Input
	streams map[streamKey][]byte
	done    bool // a subnet of the chip was read
	// stated is the clock of the log, 0 for none.
	stated float64
}

// text takes a file of the compiler, or a stream of commands.
func (r *reader) text(f *record.File) error {
	kind := capture.KindOf(f)
	switch kind {
	case capture.LogFile, capture.Stream, capture.Estimates, capture.Places, capture.Mlir:
	default:
		return nil
	}
	data, err := f.Read(maxText)
	if err != nil {
		return err
	}
	switch kind {
	case capture.LogFile:
		if r.in.Classic != nil {
			r.in.Classic.Log = data
		}
		if log, err := compiler.ReadLog(strings.NewReader(string(data))); err == nil {
			r.in.Net = log.NetName
			r.stated = log.FreqMHz
		}
	case capture.Estimates:
		if r.in.Classic != nil {
			r.in.Classic.Estimate = data
		}
	case capture.Places:
		return r.places(f, data)
	case capture.Mlir:
		r.in.MLIR = strings.Split(string(data), "\n")
	case capture.Stream:
		if k, ok := streamName(f.Name); ok {
			r.streams[k] = data
		}
	}
	return nil
}

// streamName reads the name cmd_ADDRESS_CORE_ENGINE.dat, or that of older runtimes
// without a core.
func streamName(name string) (k streamKey, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(name, "cmd_"), ".dat"), "_")
	if len(parts) < 2 {
		return k, false
	}
	base, err := strconv.ParseUint(parts[0], 16, 64)
	if err != nil {
		return k, false
	}
	k.base = base
	if len(parts) > 2 {
		if k.core, err = strconv.Atoi(parts[1]); err != nil {
			return k, false
		}
	}
	k.engine, err = strconv.Atoi(parts[len(parts)-1])
	return k, err == nil
}

// places reads tensor_location.json.
func (r *reader) places(f *record.File, data []byte) error {
	var list []struct {
		Line   int    `json:"file-line"`
		Subnet int    `json:"subnet_id"`
		Core   int    `json:"core_id"`
		Opcode string `json:"opcode"`
		Local  bool   `json:"is_local"`
		Before [2]int `json:"tiu_dma_id(before)"`
		After  [2]int `json:"tiu_dma_id(after)"`
		In     []struct {
			Type string `json:"memory_type"`
		} `json:"operands"`
		Out []struct {
			Type string `json:"memory_type"`
		} `json:"results"`
	}
	if err := jsonx.Unmarshal(data, &list); err != nil {
		return &record.FileError{Path: f.Path, Err: err}
	}
	for i, p := range list {
		_, op, _ := strings.Cut(p.Opcode, ".")
		pl := Place{Ordinal: i + 1, Line: p.Line, Subnet: p.Subnet, Core: p.Core, Op: op, Local: p.Local, Before: p.Before, After: p.After}
		for e := range pl.Before {
			// A range that no stream can have would only cost time.
			pl.Before[e], pl.After[e] = max(0, pl.Before[e]), min(pl.After[e], command.MaxCommands)
		}
		for _, o := range p.In {
			if t, ok := ParseTensor(o.Type); ok {
				pl.In = append(pl.In, t)
			}
		}
		for _, o := range p.Out {
			if t, ok := ParseTensor(o.Type); ok {
				pl.Out = append(pl.Out, t)
			}
		}
		r.in.Places = append(r.in.Places, pl)
	}
	return nil
}

// records takes a file of blocks. The k-th core begins where a type of block comes that
// is not above the one before.
func (r *reader) records(f *record.File) error {
	in, err := f.Open()
	if err != nil {
		return &record.FileError{Path: f.Path, Err: err}
	}
	defer func() { _ = in.Close() }()
	if r.done && r.in.Chip != command.BM1690 {
		return nil
	}
	var streams []block.Streams
	var cores []Core
	last := block.Type(0)
	tpu := true
	embedded := false
	_, err = block.Scan(in, func(t block.Type, length int64, p io.Reader) error {
		if t == block.FirmwareLog || t == block.CompilerLog || !t.Known() {
			return nil
		}
		data, err := io.ReadAll(io.LimitReader(p, min(length, maxBlock)))
		if err != nil {
			return err
		}
		switch t {
		case block.Summary:
			if s, ok := block.ParseStep(data); ok {
				tpu = s.Kind == block.OnTPU
				if tpu {
					r.in.Subnet = int(s.Subnet)
				}
				if r.in.Classic != nil && tpu {
					r.in.Classic.Dynamic = s.Extra == 1
				}
			}
			return nil
		case block.Commands:
			if s, ok := block.ParseStreams(data, r.in.Chip == command.BM1690); ok {
				streams = append(streams, s)
			}
			return nil
		case block.BMLib, block.BMLibExtra:
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
	if err != nil {
		return &record.FileError{Path: f.Path, Err: err}
	}
	if !tpu || len(cores) == 0 {
		return nil
	}
	for k := range cores {
		if k < len(streams) {
			r.commands(&cores[k], k, &streams[k])
		}
	}
	r.in.Embedded = r.in.Embedded || embedded
	r.in.Cores = append(r.in.Cores, cores...)
	r.done = true
	return nil
}

// commands decodes the streams of a core. Commands behind a place that cannot be decoded
// are unknown to the converter too.
func (r *reader) commands(c *Core, k int, s *block.Streams) {
	tiu, dma := 0, 0
	if old(r.in.Chip) {
		for _, g := range s.Groups {
			dma += int(g[0])
			tiu += int(g[1])
		}
	}
	decode := func(base, offset uint64, engine, count int, e command.Engine) []command.Command {
		data, ok := r.streams[streamKey{base, k, engine}]
		if !ok || offset > uint64(len(data)) {
			return nil
		}
		list, _ := command.Decode(r.in.Chip, e, data[offset:], count)
		return list
	}
	c.TIUCommands = decode(s.TIUBase, s.TIUOffset, 0, tiu, command.TIU)
	c.GDMACommands = decode(s.GDMABase, s.GDMAOffset, 1, dma, command.GDMA)
	if r.in.Chip == command.BM1690 {
		c.SDMACommands = decode(s.SDMABase, s.SDMAOffset, 5, 0, command.SDMA)
	}
}

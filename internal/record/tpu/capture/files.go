package capture

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// Read reads the files of a directory. Faults are files that could not be read, or only in part.
// The recording contains the rest. It is nil without a chip.
func Read(ctx context.Context, in *record.Input) (r *Recording, faults []error, err error) {
	return read(ctx, in, &Recording{})
}

// ReadRaw is [Read] with the payloads of blocks.
func ReadRaw(ctx context.Context, in *record.Input) (r *Recording, faults []error, err error) {
	return read(ctx, in, &Recording{raw: true})
}

func read(ctx context.Context, in *record.Input, r *Recording) (_ *Recording, faults []error, err error) {
	faults = r.texts(in.Files)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if err := r.detect(in); err != nil {
		return nil, nil, &record.FileError{Path: in.Files[0].Dir, Err: err}
	}
	if r.Chip == nil {
		return nil, faults, nil
	}
	files := slices.Clone(in.Files)
	sorting.Stable(files, func(a, b *record.File) int { return order(a) - order(b) })
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		take := takers[KindOf(f)]
		if take == nil {
			continue
		}
		r.Files++
		list, fault := r.parts(f)
		if fault != nil {
			faults = append(faults, fault)
		}
		if len(list) > 0 || fault == nil {
			take(r, f, list)
		}
	}
	r.gaps()
	for _, s := range r.Steps {
		for _, c := range s.Cores {
			r.programs(s, c)
			for _, e := range c.Engines {
				r.match(s, c, e)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
	}
	r.place(in)
	return r, faults, nil
}

// takers add the blocks of a file by its kind.
var takers = map[Kind]func(r *Recording, f *record.File, list []part){
	StepFile: (*Recording).step, CoreFile: (*Recording).coreFile, PortFile: (*Recording).port, DriverLog: (*Recording).driver,
}

// order returns the position of a binary file: steps by number, then the others.
func order(f *record.File) int {
	switch KindOf(f) {
	case StepFile:
		return numbers(stepName, f.Name)[0]
	case CoreFile:
		n := numbers(coreName, f.Name)
		return 1<<30 + n[1]%(1<<16)*(1<<14) + n[0]
	}
	return 1<<31 - 1
}

// gaps lists the missing numbers between steps, at most 1000.
func (r *Recording) gaps() {
	have := map[int]bool{}
	last := 0
	for _, s := range r.Steps {
		have[s.Number] = true
		last = max(last, s.Number)
	}
	for n := 0; n < last && len(r.Missing) < 1000; n++ {
		if !have[n] {
			r.Missing = append(r.Missing, n)
		}
	}
}

// part is a block in the order of the file.
type part struct {
	kind   block.Type
	engine *Engine
	data   []byte
}

const maxPayload = 1 << 30

// parts reads the blocks of a file. Records of monitors become engines. Other blocks are read
// whole.
func (r *Recording) parts(f *record.File) (list []part, fault error) {
	in, err := f.Open()
	if err != nil {
		return nil, &record.FileError{Path: f.Path, Err: err}
	}
	defer func() { _ = in.Close() }() // it was only read
	c := &counted{r: in}
	unknown := map[block.Type]int64{}
	cut, err := block.Scan(c, func(t block.Type, length int64, p io.Reader) error {
		switch t {
		case block.MonitorBD, block.MonitorGDMA, block.MonitorSDMA, block.MonitorCDMA:
			var raw []byte
			if r.raw {
				if raw, err = io.ReadAll(io.LimitReader(p, min(length, maxPayload))); err != nil {
					return err
				}
				p = bytes.NewReader(raw)
			}
			e, err := r.monitor(f, t, p)
			if e != nil {
				e.Raw = raw
				list = append(list, part{kind: t, engine: e})
			}
			return err
		case block.FirmwareLog, block.CompilerLog:
			return nil
		}
		if !t.Known() {
			unknown[t]++
			return nil
		}
		data, err := io.ReadAll(io.LimitReader(p, min(length, maxPayload)))
		if err != nil {
			return err
		}
		list = append(list, part{kind: t, data: data})
		return nil
	})
	for t, n := range unknown {
		r.Dropped.Add(fmt.Sprintf("blocks of unknown type %d", t), n)
	}
	switch {
	case err != nil:
		return list, &record.FileError{Path: f.Path, Place: fmt.Sprintf("byte %d", c.n), Err: err}
	case cut != nil && cut.Type != 0:
		r.cut(f, cut)
	case cut != nil:
		r.Dropped.Add(fmt.Sprintf("%s ends within the head of a block, after %d bytes of it", path.Base(f.Path), cut.Have), 1)
	}
	return list, nil
}

// cut counts the records that are missing at the end of a file. The record in which the file ends
// was counted where it was read.
func (r *Recording) cut(f *record.File, c *block.Cut) {
	missing := c.Want - c.Have
	text := fmt.Sprintf("%s ends within a block of type %d: %d of %d bytes are missing", path.Base(f.Path), c.Type, missing, c.Want)
	kind, monitor := monitored[c.Type]
	if l := block.LayoutOf(r.Chip.Name, kind); monitor && l != nil {
		r.Dropped.Add(text, missing/int64(l.Size))
		return
	}
	r.Dropped.Add(text, 1)
}

// step reads iter<N>.profile.
func (r *Recording) step(f *record.File, list []part) {
	s := &Step{Number: numbers(stepName, f.Name)[0], CoresFound: true}
	for _, p := range list {
		if p.kind == block.Summary && !s.HasInfo {
			s.Info, s.HasInfo = block.ParseStep(p.data)
		}
	}
	r.share(s, list)
	r.Steps = append(r.Steps, s)
}

// share assigns blocks to cores. Blocks do not name the core: the k-th block of a monitor belongs
// to the k-th core, unless monitors are missing.
func (r *Recording) share(s *Step, list []part) {
	count := map[block.Type]int{}
	for _, p := range list {
		count[p.kind]++
	}
	n := max(count[block.Commands], 1)
	fits := func(t block.Type) bool { return count[t] == n || count[t] == 0 }
	s.CoresFound = n == 1 && count[block.MonitorBD] <= 1 && count[block.MonitorGDMA] <= 1 ||
		fits(block.MonitorBD) && fits(block.MonitorGDMA)
	core := func(i int) *Core {
		for len(s.Cores) <= i && len(s.Cores) < 256 {
			k := len(s.Cores)
			number := k
			if k < len(r.Log.Cores) {
				number = r.Log.Cores[k]
			}
			s.Cores = append(s.Cores, &Core{Index: k, Number: number})
		}
		return s.Cores[min(i, len(s.Cores)-1)]
	}
	seen := map[block.Type]int{}
	at, last := 0, block.Type(0)
	for _, p := range list {
		switch p.kind {
		case block.Commands:
			c := core(seen[p.kind])
			c.Streams, c.HasStreams = block.ParseStreams(p.data, r.Chip == command.BM1690)
			if !c.HasStreams {
				r.Dropped.Add("descriptions of command streams that are cut", 1)
			}
			seen[p.kind]++
			continue
		case block.Summary, block.BMLib, block.BMLibExtra:
			continue
		}
		kind, follows := p.kind, p.kind == block.MonitorSDMA || p.kind >= block.DesBD
		if follows {
			kind = block.MonitorGDMA
		}
		switch {
		case s.CoresFound && (p.kind == block.MonitorBD || p.kind == block.MonitorGDMA):
			at = seen[p.kind]
			seen[p.kind]++
		case !s.CoresFound && last != 0 && kind <= last && !follows:
			at++
		}
		last = kind
		r.addPart(core(at), p)
	}
}

func (r *Recording) addPart(c *Core, p part) {
	switch p.kind {
	case block.MonitorBD, block.MonitorGDMA, block.MonitorSDMA, block.MonitorCDMA:
		c.Engines = append(c.Engines, p.engine)
	case block.DynData:
		r.firmware(c, p.data)
	case block.DynExtra:
		list, rest := block.ParseExtras(p.data)
		r.Dropped.Add("bytes of the firmware's data that make no record", int64(rest))
		if c.Firmware.Extras == nil {
			c.Firmware.Extras = map[uint32][]block.Extra{}
		}
		for _, e := range list {
			c.Firmware.Extras[e.Owner] = append(c.Firmware.Extras[e.Owner], e)
		}
	case block.DesBD, block.DesGDMA, block.DesSDMA, block.DesCDMA:
		kind := [...]command.Engine{command.TIU, command.GDMA, command.SDMA, command.CDMA}[p.kind-block.DesBD]
		if e := c.engine(kind); e.Program.Len() == 0 {
			list, stop := command.Decode(r.Chip, kind, p.data, 0)
			e.Program = programOf(r.Chip, list, stop)
			e.Program.Embedded = true
		}
	}
}

// coreFile reads cdmlib<core>_<n>.profile: the records of one core.
func (r *Recording) coreFile(f *record.File, list []part) {
	n := numbers(coreName, f.Name)
	core, number := n[0], n[1]
	at := slices.IndexFunc(r.Steps, func(s *Step) bool { return s.Number == number })
	if at < 0 {
		at = len(r.Steps)
		r.Steps = append(r.Steps, &Step{Number: number, CoresFound: true})
	}
	s := r.Steps[at]
	c := &Core{Index: len(s.Cores), Number: core}
	for _, p := range list {
		switch p.kind {
		case block.Summary:
			s.Info, s.HasInfo = block.ParseStep(p.data)
		case block.Commands:
			c.Streams, c.HasStreams = block.ParseStreams(p.data, true)
		default:
			r.addPart(c, p)
		}
	}
	s.Cores = append(s.Cores, c)
}

// port reads cdma<dev>_<port>.profile. Its clock is that of the last core.
func (r *Recording) port(f *record.File, list []part) {
	if len(r.Steps) == 0 {
		r.Steps = append(r.Steps, &Step{CoresFound: true})
	}
	s := r.Steps[0]
	if len(s.Cores) == 0 {
		s.Cores = append(s.Cores, &Core{})
	}
	c := s.Cores[len(s.Cores)-1]
	at := -1
	var own *Core // has the command stream of this port's engine
	for _, p := range list {
		if p.kind == block.MonitorCDMA {
			p.engine.Port = numbers(portName, f.Name)[1]
			if at < 0 {
				at = len(c.Engines)
			}
			c.Engines = append(c.Engines, p.engine)
		}
		if p.kind == block.DesCDMA {
			own = &Core{}
			r.addPart(own, p)
		}
	}
	if at >= 0 && own != nil {
		c.Engines[at].Program = own.Engines[0].Program
	}
}

// driver reads bmlib<n>.profile.
func (r *Recording) driver(f *record.File, list []part) {
	d := &Driver{File: path.Base(f.Path)}
	var rest []part
	for _, p := range list {
		switch p.kind {
		case block.BMLib:
			calls, ok := block.ParseDriver(p.data)
			if !ok {
				r.Dropped.Add("driver's records that are cut or longer than expected", 1)
			}
			d.Calls = calls
		case block.BMLibExtra:
			list, left := block.ParseExtras(p.data)
			r.Dropped.Add("bytes of the driver's texts that make no record", int64(left))
			d.Extras = append(d.Extras, list...)
		default:
			rest = append(rest, p)
		}
	}
	r.Drivers = append(r.Drivers, d)
	if slices.ContainsFunc(rest, func(p part) bool { return p.engine != nil && p.engine.Len() > 0 }) {
		s := &Step{Number: len(r.Steps), CoresFound: true}
		r.share(s, rest)
		r.Steps = append(r.Steps, s)
	}
}
